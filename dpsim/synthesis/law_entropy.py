"""Entropy and mutual information of a law: of distributions only, never of raw counts."""

from __future__ import annotations

import numpy as np

from dpsim.core.arrays import Frequencies
from dpsim.core.errors import InputError

_TOLERANCE = 1e-9


def require_law(law: Frequencies) -> None:
    """Refuse what is not a distribution."""
    if not law.size or not np.isfinite(law).all() or law.min() < 0:
        raise InputError("a law must hold finite probabilities >= 0, and one at least")
    if abs(float(law.sum()) - 1) > _TOLERANCE:
        raise InputError(f"a law must sum to 1, got {float(law.sum()):.9g}")


def entropy_of_law(law: Frequencies) -> float:
    """``H = -Σ π ln π`` in nats, over all cells."""
    require_law(law)
    positive = law[law > 0]
    return max(0.0, -float((positive * np.log(positive)).sum()))


def information_of_law(law: Frequencies) -> float:
    """The mutual information of the first axis and all others together, in nats.

    ``I = Σ π(x, y) ln[π(x, y) / (π(x) π(y))]``, term by term: no entropies are subtracted,
    so that independence gives 0 within rounding and nothing below it.
    """
    require_law(law)
    joint = law.reshape(law.shape[0], -1)
    product = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    held = joint > 0
    terms = joint[held] * np.log(joint[held] / product[held])
    return max(0.0, float(terms.sum()))
