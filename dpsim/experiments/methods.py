"""All methods by name: what each is for, and where it lives. Loads nothing of it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

Family = Literal["frequency", "mean", "key-value", "longitudinal", "heavy-hitters", "table"]


@dataclass(frozen=True, slots=True)
class Method:
    """One entry of ``dpsim explain``."""

    name: str
    family: Family
    home: str
    about: str
    is_joint: bool = False
    """One mechanism for all attributes together."""

    def load(self) -> Any:  # noqa: ANN401 - a class or function
        """The mechanism's class, or what makes it; of a table, its settings."""
        module, _, name = self.home.partition(":")
        folder = "protocols" if self.family == "table" else "mechanisms"
        return getattr(import_module(f"dpsim.{folder}.{module}"), name)


def _methods(family: Family, *rows: tuple[str, str, str]) -> list[Method]:
    return [Method(name, family, home, about) for name, home, about in rows]


_ALL = [
    *_methods(
        "frequency",
        ("grr", "grr:GRR", "generalized randomized response: best for small domains"),
        ("sue", "unary:SUE", "symmetric unary encoding: k bits per user"),
        ("oue", "unary:OUE", "optimized unary encoding: best for large domains"),
        ("olh", "local_hashing:OLH", "optimized local hashing: as good, short reports"),
        ("blh", "local_hashing:BLH", "binary local hashing"),
        ("ss", "subset:SubsetSelection", "subset selection: never worse than grr and oue"),
        ("hr", "hadamard:HadamardResponse", "Hadamard response: fast server"),
        ("adaptive", "adaptive:adaptive", "grr or oue, whichever has the smaller variance"),
        ("faithful-sue", "unary:FaithfulSUE", "SUE as released with the toolbox notes"),
        ("faithful-oue", "unary:FaithfulOUE", "OUE as released with the toolbox notes"),
    ),
    Method("rs-fd", "frequency", "fake_data:FakeData",
           "one attribute sampled, the others faked: ε for one attribute", is_joint=True),
    *_methods(
        "mean",
        ("duchi", "duchi:Duchi", "two outcomes: best for small ε"),
        ("piecewise", "piecewise:Piecewise", "a peak around the truth: best for large ε"),
        ("hybrid", "hybrid:Hybrid", "the mixture of the two"),
        ("laplace", "laplace:LocalLaplace", "the baseline"),
        ("faithful-piecewise", "piecewise:FloatPiecewise", "Piecewise in floats: no finite ε"),
    ),
    Method("joint-duchi", "mean", "duchi_joint:JointDuchi",
           "all attributes in one report", is_joint=True),
    *_methods(
        "key-value",
        ("privkv", "privkv:PrivKV", "presence, then value; mean debiased"),
        ("faithful-privkv", "privkv:FaithfulPrivKV", "PrivKV with its biased mean"),
        ("privkvm", "privkv:PrivKVMRound", "PrivKV in rounds, the last mean as fake value"),
        ("state-encoding", "state_encoding:StateEncoding", "three states: best for one key"),
        ("f2m", "f2m:F2M", "frequency and mean apart"),
    ),
    Method("pckv-ue", "key-value", "pckv:PCKVUE", "many keys, one sampled, bits",
           is_joint=True),
    Method("pckv-grr", "key-value", "pckv:PCKVGRR", "many keys, one sampled, a code",
           is_joint=True),
    *_methods(
        "longitudinal",
        ("l-grr", "longitudinal:LGRR", "memoized grr"),
        ("l-osue", "longitudinal:LOSUE", "memoized oue, sue again: the default of its kind"),
        ("l-sue", "longitudinal:LSUE", "memoized sue, sue again"),
        ("rappor", "longitudinal:RAPPOR", "RAPPOR with one hash"),
    ),
    Method("pem", "heavy-hitters", "adaptive:adaptive",
           "frequent values of a large domain, prefix by prefix"),
    *_methods(
        "table",
        ("dp2pub", "dp2pub_settings:DP2PubSettings", "a whole table from local reports"),
        ("mwem", "mwem_asked:MWEMAsked", "a histogram of few attributes, from many queries"),
        ("privbayes", "privbayes:PrivBayesAsked", "a whole table by a trusted curator"),
    ),
]  # fmt: skip

METHODS = {method.name: method for method in _ALL}
