"""The two rounds of the Gram recommender: pure answers, noise on their sum, the model.

Round `totals`: each piece answers its sums; means, counts and the popular items are released.
Round `triangle`: given those, each piece answers its packed Gram, in blocks of rows. All parts
of the budget are charged before the first round.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Counts
from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise
from dpsim.recommend.gram import packed_start, row_blocks, triangle, unpack
from dpsim.recommend.gram_budget import GramBudget, StageNoise, budget_of
from dpsim.recommend.gram_model import GramModel, model_of
from dpsim.recommend.gram_settings import GramSettings
from dpsim.recommend.noise_parties import masked, party_shares, unmasked
from dpsim.recommend.ratings_matrix import RatingPiece
from dpsim.recommend.residuals import residual_rows
from dpsim.recommend.split_sums import ItemFacts, item_facts, totals

BLOCK_ENTRIES = 2_000_000
"""Entries of the Gram that are asked, summed and measured at once: 16 MB per answer."""


def measured_totals(
    summed: Counts, budget: GramBudget, settings: GramSettings, noise: CentralNoise
) -> Counts:
    """The sums of all pieces with the aggregator's noise."""
    if summed.shape != (settings.totals_size,) or summed.dtype != np.int64:
        raise InputError(f"totals must be {settings.totals_size} whole numbers")
    noisy = summed.copy()
    for stage, start, stop in _stages(settings):
        law = budget.of(stage)
        if law is not None:
            noisy[start:stop] = law.summed.measure(summed[start:stop], noise, stage)
    return noisy


def measured_rows(
    summed: Counts, block: tuple[int, int], budget: GramBudget, size: int, noise: CentralNoise
) -> Counts:
    """Summed rows ``(first, stop)`` of the Gram with noise on every entry, 0 too."""
    start, stop = (packed_start(row, size) for row in block)
    if summed.shape != (stop - start,) or summed.dtype != np.int64:
        raise InputError(f"rows {block[0]} to {block[1]} must be {stop - start} whole numbers")
    law = budget.of("gram")
    return summed if law is None else law.summed.measure(summed, noise, "gram", start)


def shared_totals(
    piece: RatingPiece, budget: GramBudget, settings: GramSettings, noise: CentralNoise
) -> Counts:
    """A piece's sums with the shares of the parties that belong to its users."""
    answer = totals(piece, settings)
    for stage, start, stop in _stages(settings):
        law = budget.of(stage)
        if law is not None:
            place = stage, 0, stop - start
            answer[start:stop] += party_shares(law, piece.block, settings.n_users, noise, place)
    return answer


def _stages(settings: GramSettings) -> tuple[tuple[str, int, int], ...]:
    """Which entries of the totals belong to which stage."""
    if settings.head == "top_n":
        return (("items", 0, settings.n_items),)
    last = settings.totals_size
    return ("items", 0, last - 2), ("global", last - 2, last)


def fit_gram(
    pieces: Sequence[RatingPiece], settings: GramSettings, noise: CentralNoise
) -> GramModel:
    """The model of all users, made in this process: what every other way must equal.

    The caller charges ``budget_of(settings).parts`` first.
    """
    if sum(piece.n for piece in pieces) != settings.n_users:
        raise InputError(f"the pieces must hold {settings.n_users} users in all")
    budget = budget_of(settings)
    facts = item_facts(_all_totals(pieces, budget, settings, noise), settings, budget)
    if not settings.has_gram:
        return model_of(facts, None, 0.0, settings)
    packed = np.concatenate(
        [
            _all_rows(pieces, facts, block, (budget, settings, noise))
            for block in row_blocks(settings.popular, BLOCK_ENTRIES)
        ]
    )
    gram = unpack(packed / 4**settings.bits, settings.popular)
    return model_of(facts, gram, budget.sd("gram"), settings)


def _all_totals(
    pieces: Sequence[RatingPiece],
    budget: GramBudget,
    settings: GramSettings,
    noise: CentralNoise,
) -> Counts:
    if settings.trust != "distributed":
        summed = _sum(totals(piece, settings) for piece in pieces)
        return measured_totals(summed, budget, settings, noise)
    return unmasked(
        [
            masked(
                shared_totals(piece, budget, settings, noise),
                number, len(pieces), noise, ("totals", 0),
            )
            for number, piece in enumerate(pieces)
        ]
    )  # fmt: skip


def _all_rows(
    pieces: Sequence[RatingPiece],
    facts: ItemFacts,
    block: tuple[int, int],
    plan: tuple[GramBudget, GramSettings, CentralNoise],
) -> Counts:
    budget, settings, noise = plan
    answers = (
        triangle(
            residual_rows(piece, facts.popular, facts.means, settings), settings.popular, block
        )
        for piece in pieces
    )
    if settings.trust != "distributed":
        return measured_rows(_sum(answers), block, budget, settings.popular, noise)
    law, start = budget.of("gram"), packed_start(block[0], settings.popular)
    hidden: list[NDArray[np.uint64]] = []
    for number, (piece, answer) in enumerate(zip(pieces, answers, strict=True)):
        shared = shared_rows(answer, start, piece, (law, settings, noise))
        hidden.append(masked(shared, number, len(pieces), noise, ("gram", start)))
    return unmasked(hidden)


def shared_rows(
    answer: Counts,
    start: int,
    piece: RatingPiece,
    plan: tuple[StageNoise | None, GramSettings, CentralNoise],
) -> Counts:
    """A piece's entries of the Gram from ``start`` on, with its parties' shares of noise."""
    law, settings, noise = plan
    if law is None:
        return answer
    place = "gram", start, answer.size
    return answer + party_shares(law, piece.block, settings.n_users, noise, place)


def _sum(answers: Iterable[Counts]) -> Counts:
    """Whole numbers, one answer at a time."""
    whole: Counts | None = None
    for answer in answers:
        whole = answer if whole is None else whole + answer
    if whole is None:
        raise InputError("there must be one piece at least")
    return whole
