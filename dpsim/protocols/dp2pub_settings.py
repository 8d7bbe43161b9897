"""What DP2-Pub is asked: the preset, its model, and what may be given."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpsim.core.checks import require_at_least
from dpsim.core.errors import InputError
from dpsim.core.exact import text_of
from dpsim.protocols.participation import EVERYBODY, Participation
from dpsim.protocols.publication import GivenNetwork
from dpsim.protocols.table_release import NOBODY, Trust

PRESETS = ("partition", "local", "trusted", "faithful-local", "faithful-pram")
MODELS = ("auto", "product", "projected", "tree", "network", "classes", "posterior")
_PARENTS = {"faithful-local": 3, "faithful-pram": 3}


@dataclass(frozen=True, slots=True)
class DP2PubSettings:
    """A table of all attributes, learned from reports and published with its ledger.

    Presets, by who is trusted and what a user really pays::

        partition       nobody   ε       one report on one group of attributes
        local           nobody   ε       one report of the record, ε/d each
        trusted         curator  ε       network ε/2, randomized records ε/2
        faithful-local  nobody   ε(1+σ)  the notes: two reports of the record
        faithful-pram   nobody   ε       the notes: PRAM with a wrong channel

    ``partition`` fits a model to the reports and draws records from it; it needs the fewest
    users. Models: product (independent attributes; projected: the same by projection), tree,
    network (a given one), classes (a mixture of product laws, the likeliest), posterior (such
    mixtures, averaged). By itself it takes posterior where groups of attributes are asked
    about, else product: a choice by domain sizes and ε alone. ``local`` keeps
    each user's row: it tests which pairs of attributes show more than noise, grows a network,
    cuts it into disjoint clusters by Markov blankets, and redraws each cluster by invariant
    PRAM, so that its law is the most likely one. The faithful presets reproduce the figures
    of the notes; their clusters overlap, and faithful-local costs up to 2ε.

    Guarantees the loss under replacement of one user's whole record.

    References:
        Jiang, Zhou, Yang, et al. DP2-Pub: differentially private high-dimensional data
        publication with invariant post randomization. IEEE TKDE 2023.
    """

    epsilon: Fraction
    preset: str = "partition"
    parents: int | None = None
    model: str = "auto"
    rows: int | None = None
    network: GivenNetwork = None
    time_limit: float | None = None
    seed: int = 0
    participation: Participation = EVERYBODY

    def __post_init__(self) -> None:
        if self.preset not in PRESETS:
            raise InputError(f"preset must be one of {', '.join(PRESETS)}, got {self.preset!r}")
        if self.model not in MODELS:
            raise InputError(f"model must be one of {', '.join(MODELS)}, got {self.model!r}")
        if self.model != "auto" and self.preset != "partition":
            raise InputError(f"model = {self.model} belongs to preset partition")
        if self.rows is not None and self.preset != "partition":
            raise InputError(f"{self.preset} publishes one row per user; leave out rows")
        if self.network is not None and self.preset.startswith("faithful"):
            raise InputError("the faithful presets find their own network; leave it out")
        if self.parents is not None:
            require_at_least(0, parents=self.parents)

    @property
    def most_parents(self) -> int:
        """As asked, or what the preset takes: the notes 3, the others 2."""
        return _PARENTS.get(self.preset, 2) if self.parents is None else self.parents

    @property
    def limit(self) -> Fraction:
        """The most that the preset may cost: the notes report a record twice."""
        return 2 * self.epsilon if self.preset == "faithful-local" else self.epsilon

    @property
    def trust(self) -> Trust:
        """Who must be trusted."""
        who, model = NOBODY.who, NOBODY.model
        if self.preset == "trusted":
            who, model = "curator", "central: a trusted curator holds the records"
        return Trust(who, model, text_of(self.epsilon), self.preset)
