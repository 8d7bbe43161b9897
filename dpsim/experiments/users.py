"""Whom a run asks, and whom they trust: known from its specification alone."""

from __future__ import annotations

from fractions import Fraction

from dpsim.core.errors import InputError
from dpsim.core.records import RecordSource
from dpsim.data.hold_out import HoldOut
from dpsim.experiments.methods import METHODS
from dpsim.experiments.spec import RunSpec
from dpsim.protocols.curator import Entrusted

HELD_OUT = Fraction(1, 5)
"""Of the users, kept apart to test what is predicted for a target."""


def asked_users(spec: RunSpec, source: RecordSource) -> RecordSource:
    """The users a run asks: all, or those not kept apart for a test of its target."""
    if spec.target is not None:
        if METHODS[spec.method].family != "table":
            raise InputError(f"{spec.method} makes no records to learn from; leave out target")
        _ = source.schema[spec.target]
        source = HoldOut(source, HELD_OUT, spec.seed)
    return Entrusted(source) if trusts_curator(spec) else source


def trusts_curator(spec: RunSpec) -> bool:
    """Whether the method needs a curator who holds the records."""
    if spec.method == "mwem":
        return spec.preset != "local"
    return spec.method == "privbayes" or (spec.method, spec.preset) == ("dp2pub", "trusted")


def held_out(source: RecordSource) -> RecordSource | None:
    """The users kept apart, if there are any."""
    inside = source.source if isinstance(source, Entrusted) else source
    if not isinstance(inside, HoldOut):
        return None
    return HoldOut(inside.source, inside.share, inside.seed, is_held_out=True)
