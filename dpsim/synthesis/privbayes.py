"""PrivBayes: a whole table from a trusted curator, under pure ε, as its paper and beyond it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np

from dpsim.core.budget import split
from dpsim.core.checks import require_at_least, require_epsilon, require_share
from dpsim.core.errors import InputError
from dpsim.core.exact import exact, text_of
from dpsim.core.rng import CentralNoise
from dpsim.core.tasks import TaskPool
from dpsim.mechanisms.discrete_laplace import DiscreteLaplace
from dpsim.synthesis.bayes_net import BayesNet, NetworkModel
from dpsim.synthesis.contingency import joint_counts
from dpsim.synthesis.exponential_search import DrawSettings, draw_network, useful_cells
from dpsim.synthesis.noisy_margins import WHOLE_TABLE
from dpsim.synthesis.noisy_tables import clip_and_scale
from dpsim.synthesis.pair_agreements import fit_agreements, measure_agreements
from dpsim.synthesis.pair_network import NetworkBudget, effort, fit_pair_network
from dpsim.synthesis.table import TableModel, TableSource

Method = Literal["auto", "network", "classes", "faithful"]
Part: TypeAlias = tuple[str, Fraction]
"""What is asked for, and the ε it spends."""

_METHODS = ("auto", "network", "classes", "faithful")
_BINARY = 2


@dataclass(frozen=True, slots=True)
class PrivBayesSettings:
    """How the loss is spent; public numbers only, fixed before the data are seen.

    ``network``: noisy margins, then a tree and second parents from noisy pair tables.
    ``classes``: for attributes of two values, all pairs and a mixture of classes.
    ``faithful``: the paper's PrivBayes, with the constants it recommends.
    ``auto``: classes where every attribute has two values, else network.
    """

    method: Method = "auto"
    margins: Fraction = Fraction(1, 2)
    """The share of ε for margins (network)."""
    structure: Fraction = Fraction(1, 10)
    """The share of ε for selecting pairs (network); tables get the rest."""
    beta: Fraction = Fraction(3, 10)
    """The share of ε for the structure (faithful)."""
    theta: Fraction = Fraction(4)
    """How far the average count of a table must exceed its noise (faithful)."""
    parents: int = 4
    """The most parents of an attribute (faithful)."""
    score: str = "distance"
    """``distance`` (R) or ``information`` (I) (faithful)."""

    def __post_init__(self) -> None:
        if self.method not in _METHODS:
            raise InputError(f"method must be one of {', '.join(_METHODS)}, got {self.method}")
        for name in ("margins", "structure", "beta"):
            share = require_share(getattr(self, name), name)
            if not share:
                raise InputError(f"{name} must be > 0: its part would have endless noise")
            object.__setattr__(self, name, share)
        if self.margins + self.structure >= 1:
            raise InputError("margins + structure must be < 1: tables get the rest")
        object.__setattr__(self, "theta", exact(self.theta, "theta"))
        if self.theta <= 0:
            raise InputError(f"theta must be > 0, got {self.theta}")
        require_at_least(0, parents=self.parents)

    def resolve(self, sizes: tuple[int, ...]) -> Method:
        """The method that ``auto`` means for these domain sizes; checks that it applies."""
        if max(sizes, default=0) <= 1:
            raise InputError("every attribute has one value only: there is nothing to learn")
        is_binary = len(sizes) > 1 and all(size == _BINARY for size in sizes)
        if self.method == "classes" and not is_binary:
            raise InputError(
                'method "classes" needs two attributes or more, of two values each: ask for '
                '"network"'
            )
        if self.method == "auto":
            return "classes" if is_binary else "network"
        return self.method


@dataclass(frozen=True, slots=True, eq=False)
class FittedPrivBayes:
    """A private law of whole records, and what it cost. All of it may be released."""

    model: TableModel
    net: BayesNet | None
    """The network; a mixture of classes has none."""
    parts: tuple[Part, ...]
    notes: tuple[str, ...]


def privbayes_budget(
    epsilon: object, settings: PrivBayesSettings, sizes: tuple[int, ...]
) -> tuple[Part, ...]:
    """What will be asked, with exact parts that sum to ε: charge them before fitting."""
    total, method = require_epsilon(epsilon), settings.resolve(sizes)
    if method == "classes":
        return (("margins and pairs", total),)
    if sum(size > 1 for size in sizes) == 1:
        return (("margins", total),)
    if method == "faithful":
        structure, tables = split(total, (settings.beta, 1 - settings.beta))
        return (("structure", structure), ("tables", tables))
    rest = 1 - settings.margins - settings.structure
    names = ("margins", "structure", "tables")
    shares = split(total, (settings.margins, settings.structure, rest))
    return tuple(zip(names, shares, strict=True))


def fit_privbayes(
    table: TableSource,
    settings: PrivBayesSettings,
    epsilon: object,
    noise: CentralNoise,
    pool: TaskPool,
) -> FittedPrivBayes:
    """A model of the table that costs at most ε.

    Guarantees ε of pure privacy when one record is replaced; n and the domain sizes are
    public. Parts compose sequentially. Counts get exact discrete Laplace noise; selections are
    exact up to floats. Everything else is computed from what was released.

    References:
        Zhang, Cormode, Procopiuc, Srivastava, Xiao. PrivBayes: private data release via
        Bayesian networks. ACM TODS 2017.
        McKenna, Mullins, Sheldon, Miklau. AIM: an adaptive and iterative mechanism for
        differentially private synthetic data. VLDB 2022.
    """
    require_at_least(2, n=table.n)
    parts = privbayes_budget(epsilon, settings, table.sizes)
    method = settings.resolve(table.sizes)
    spend = dict(parts)
    if method == "classes":
        agreements = measure_agreements(table, spend["margins and pairs"], noise, pool)
        model = fit_agreements(agreements, noise, pool)
        return FittedPrivBayes(model, None, parts, (f"{model.weights.size} classes",))
    if method == "faithful" and "structure" in spend:
        return _fit_faithful(table, settings, parts, noise, pool)
    zero = Fraction(0)
    shares = NetworkBudget(
        spend["margins"], spend.get("structure", zero), spend.get("tables", zero)
    )
    found = fit_pair_network(table, shares, noise, pool)
    work = effort(table.sizes, table.n, shares.tables)
    notes = (f"{work.edges} pairs and {work.second_parents} second parents asked for",)
    return FittedPrivBayes(found, found.net, parts, notes)


def _fit_faithful(
    table: TableSource,
    settings: PrivBayesSettings,
    parts: tuple[Part, ...],
    noise: CentralNoise,
    pool: TaskPool,
) -> FittedPrivBayes:
    """The paper's way: useful parent sets, one noisy table per attribute, clip and scale.

    Its noise is Laplace with scale 2d/(n ε) on shares: here 2d/ε on counts, exact and whole.
    """
    (_, structure), (_, for_tables) = parts
    wide = [attribute for attribute, size in enumerate(table.sizes) if size > 1]
    limit = useful_cells(table.n, len(wide), for_tables, settings.theta)
    chosen = DrawSettings(settings.parents, limit, settings.score)
    net = draw_network(table, chosen, structure, noise, pool).net
    mechanism = DiscreteLaplace(for_tables / len(wide), WHOLE_TABLE)
    opened = table.open()
    tables = []
    for attribute, family in enumerate(net.families):
        counts = joint_counts(opened, family)
        if attribute in wide:
            subject = "table " + " ".join(map(str, family))
            counts = mechanism.measure(counts, noise, subject)
        tables.append(clip_and_scale(counts.astype(np.float64), table.n))
    notes = (f"tables of at most {limit:.0f} cells, θ = {text_of(settings.theta)}",)
    return FittedPrivBayes(NetworkModel(net, tuple(tables)), net, parts, notes)
