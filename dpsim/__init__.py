"""Simulate differential-privacy protocols on many users, and see what a budget costs.

    >>> from dpsim import FrequencyEstimator
    >>> release = FrequencyEstimator("grr", epsilon=1.0).fit("zipf:n=10000,k=4").release_
    >>> release.table("a0")  # doctest: +SKIP

A simulator: seeded noise is for study, not for protecting people.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpsim.core.errors import DpsimError
    from dpsim.core.ledger import Ledger
    from dpsim.core.privacy import PrivacyLoss
    from dpsim.core.schema import Attribute, Bins, Category, CodeRange, Schema
    from dpsim.data.schema_file import load_schema
    from dpsim.experiments.estimators import (
        FrequencyEstimator,
        KeyValueEstimator,
        MeanEstimator,
    )
    from dpsim.experiments.table_estimators import DP2Pub, PrivBayes
    from dpsim.mechanisms.grr import GRR
    from dpsim.protocols.release import Release
    from dpsim.runtime.ledger_book import LedgerBook

_HOMES = {
    "Attribute": "dpsim.core.schema",
    "Bins": "dpsim.core.schema",
    "Category": "dpsim.core.schema",
    "CodeRange": "dpsim.core.schema",
    "DP2Pub": "dpsim.experiments.table_estimators",
    "DpsimError": "dpsim.core.errors",
    "FrequencyEstimator": "dpsim.experiments.estimators",
    "GRR": "dpsim.mechanisms.grr",
    "KeyValueEstimator": "dpsim.experiments.estimators",
    "Ledger": "dpsim.core.ledger",
    "LedgerBook": "dpsim.runtime.ledger_book",
    "MeanEstimator": "dpsim.experiments.estimators",
    "PrivBayes": "dpsim.experiments.table_estimators",
    "PrivacyLoss": "dpsim.core.privacy",
    "Release": "dpsim.protocols.release",
    "Schema": "dpsim.core.schema",
    "load_schema": "dpsim.data.schema_file",
}

__all__ = [
    "GRR",
    "Attribute",
    "Bins",
    "Category",
    "CodeRange",
    "DP2Pub",
    "DpsimError",
    "FrequencyEstimator",
    "KeyValueEstimator",
    "Ledger",
    "LedgerBook",
    "MeanEstimator",
    "PrivBayes",
    "PrivacyLoss",
    "Release",
    "Schema",
    "load_schema",
]


def __getattr__(name: str) -> object:
    """Load a public name on first use: `import dpsim` costs nothing, and never loads Ray."""
    if name not in _HOMES:
        raise AttributeError(f"module 'dpsim' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
