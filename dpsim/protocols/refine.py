"""Post-processing of a release: named steps that cost no privacy, and no interval is left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from dpsim.core.arrays import Frequencies
from dpsim.core.errors import InputError
from dpsim.mechanisms import postprocess
from dpsim.protocols.release import Release, Row

_STEPS: Final[dict[str, Callable[[Frequencies, Frequencies], Frequencies]]] = {
    "norm": lambda shares, _errors: postprocess.norm(shares),
    "base-pos": lambda shares, _errors: postprocess.base_pos(shares),
    "norm-mul": lambda shares, _errors: postprocess.norm_mul(shares),
    "norm-sub": lambda shares, _errors: postprocess.norm_sub(shares),
    "norm-cut": lambda shares, _errors: postprocess.norm_cut(shares),
    "base-cut": lambda shares, errors: postprocess.base_cut(shares, float(errors.max())),
}
STEPS = tuple(_STEPS)


def refine(release: Release, step: str) -> Release:
    """The release after one step on each attribute's shares; intervals are for raw ones."""
    if step not in _STEPS:
        raise InputError(f"postprocess must be one of {', '.join(STEPS)}, got {step!r}")
    refined = dict[tuple[str, str], float]()
    for name in release.schema.names:
        rows = [row for row in release.rows if row.attribute == name and _is_known_share(row)]
        if not rows:
            continue
        shares = np.array([row.estimate for row in rows], float)
        errors = np.array([row.standard_error for row in rows], float)
        values = _STEPS[step](shares, errors).tolist()
        refined |= {(name, row.label): v for row, v in zip(rows, values, strict=True)}
    rows_after = tuple(
        replace(row, estimate=refined[key], standard_error=None)
        if (key := (row.attribute, row.label)) in refined and row.unit == "share"
        else row
        for row in release.rows
    )
    return Release(release.paid, rows_after)


def _is_known_share(row: Row) -> bool:
    return row.unit == "share" and row.estimate is not None and row.standard_error is not None
