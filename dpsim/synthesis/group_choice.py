"""Which groups to ask about, by the domain sizes and ε alone."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import exp, inf, log, prod

from dpsim.core.checks import require_epsilon
from dpsim.core.errors import InputError
from dpsim.mechanisms.subset import SubsetSelection
from dpsim.synthesis.designs import CELL_CAP, Design, design_of, mixed_design

REPEATS = 3
"""How often at least every pair of attributes is asked about together in larger groups."""

PAIR = 2
_POOLED = 5.0
_GAIN = 0.92  # a larger group must cost less than this part of the smaller one
_NARROW, _WIDE = 4.0, 32.0


def attribute_design(sizes: tuple[int, ...], epsilon: object) -> Design:
    """One group per attribute that has a choice of codes."""
    return design_of(sizes, [(a,) for a in _asked(sizes)], epsilon)


def pair_design(sizes: tuple[int, ...], epsilon: object) -> Design:
    """One group per pair of attributes; the attribute itself where there is only one."""
    asked = _asked(sizes)
    return design_of(sizes, list(combinations(asked, 2)) or [asked], epsilon)


def cover_design(sizes: tuple[int, ...], epsilon: object) -> Design:
    """Groups of two and more attributes that hold all pairs about equally often.

    One report tells most about all functions of a group together where it has about e^ε + 1
    cells. So at large ε groups of small attributes tell more about their many pairs than pairs
    do: four binary attributes at ε = 4 tell four times as much. A group starts as the pair
    that was held least so far, and takes in the attribute it has been with least, as long as
    that lowers the predicted error; ties go to the lowest index.
    """
    asked = _asked(sizes)
    loss = require_epsilon(epsilon)
    pairs = list(combinations(asked, 2))
    if not pairs:
        return design_of(sizes, [asked], loss)
    held = dict.fromkeys(pairs, 0)
    used = dict.fromkeys(asked, 0)
    groups: list[tuple[int, ...]] = []
    cost = _Cost(sizes, len(asked), loss)
    grows = any(len(_grown(pair, asked, (held, used), cost)) > PAIR for pair in pairs)
    wanted = REPEATS if grows else 1
    while (least := min(held.values())) < wanted:
        first = min(
            (used[a] + used[b], a, b) for (a, b), times in held.items() if times == least
        )
        group = _grown(first[1:], asked, (held, used), cost)
        groups.append(group)
        for attribute in group:
            used[attribute] += 1
        for pair in combinations(group, 2):
            held[pair] += 1
    return _merged(sizes, groups, loss)


def auto_design(sizes: tuple[int, ...], epsilon: object) -> Design:
    """The design that came out best for such domains, by public facts only.

    With m cells in a typical pair (geometric mean): covering groups where m < 4e^ε, attributes
    alone where m > 32e^ε, and in between half of the users on each.
    """
    loss = require_epsilon(epsilon)
    asked = _asked(sizes)
    typical = exp(2 * sum(log(sizes[a]) for a in asked) / len(asked) - float(loss))
    if len(asked) == 1 or typical > _WIDE:
        return attribute_design(sizes, loss)
    if typical < _NARROW:
        return cover_design(sizes, loss)
    half = Fraction(1, 2)
    return mixed_design(
        [(attribute_design(sizes, loss), half), (cover_design(sizes, loss), half)]
    )


class _Cost:
    """The error that a design of such groups would leave, up to a common factor.

    With c of d attributes in a group and information i about each function of its cells, the
    d margins are told ``c i`` and the d(d-1)/2 pairs ``c(c-1) i / 2`` per user. A pair's table
    errs by two margins and an interaction, and classes learn interactions from all pairs
    together, which counts as five times the users. Of m cells in equal use::

        cost = (2/c + (d-1) / (5c(c-1))) / i
        i = (m-1)(p-q)² / (m² r(1-r))     r = q + (p-q)/m
    """

    def __init__(self, sizes: tuple[int, ...], attributes: int, epsilon: Fraction) -> None:
        self.sizes, self.attributes, self.epsilon = sizes, attributes, epsilon
        self.noise: dict[int, float] = {}

    def of(self, group: tuple[int, ...]) -> float:
        cells = prod(self.sizes[attribute] for attribute in group)
        if cells > CELL_CAP:
            return inf
        if cells not in self.noise:
            oracle = SubsetSelection(cells, self.epsilon)
            rate = oracle.q + oracle.gap / cells
            self.noise[cells] = cells**2 * rate * (1 - rate) / ((cells - 1) * oracle.gap**2)
        c = len(group)
        parts = 2 / c + (self.attributes - 1) / (_POOLED * c * (c - 1))
        return parts * self.noise[cells]


def _grown(
    group: tuple[int, ...],
    asked: tuple[int, ...],
    counts: tuple[dict[tuple[int, int], int], dict[int, int]],
    cost: _Cost,
) -> tuple[int, ...]:
    held, used = counts
    while True:
        before = cost.of(group)
        fitting = [
            (sum(held[min(a, b), max(a, b)] for b in group), used[a], a)
            for a in asked
            if a not in group and cost.of((*group, a)) < _GAIN * before
        ]
        if not fitting:
            return tuple(sorted(group))
        group = (*group, min(fitting)[2])


def _merged(sizes: tuple[int, ...], groups: list[tuple[int, ...]], epsilon: Fraction) -> Design:
    """Groups that came up several times, once with their joint share."""
    made = design_of(sizes, groups, epsilon)
    shares: dict[tuple[int, ...], Fraction] = {}
    for group in made.groups:
        shares[group.attributes] = shares.get(group.attributes, Fraction(0)) + group.share
    return design_of(sizes, list(shares), epsilon, list(shares.values()))


def _asked(sizes: tuple[int, ...]) -> tuple[int, ...]:
    if not sizes or min(sizes) < 1:
        raise InputError(f"sizes must be whole numbers >= 1, one per attribute, got {sizes}")
    asked = tuple(attribute for attribute, size in enumerate(sizes) if size > 1)
    if not asked:
        raise InputError("every attribute has one code only: there is nothing to ask")
    return asked
