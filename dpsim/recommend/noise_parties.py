"""Noise without a trusted aggregator: parties that add shares of it, masks that hide all else.

V parties are fixed by the plan, not by the layout: party v belongs to user ⌊vU/V⌋, and whoever
holds this user adds its share, so that any number of pieces gives the same bits. Each share has
variance σ²/(V - t): t parties may reveal theirs, and σ² is left. An answer is hidden by masks
that each pair of pieces shares and that cancel in the sum, modulo 2^64: simulated secure
aggregation, in which a lost piece fails the round.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsim.core.arrays import Counts
from dpsim.core.errors import InputError
from dpsim.core.records import Block
from dpsim.core.rng import CentralNoise, Purpose
from dpsim.mechanisms.discrete_gaussian import DiscreteGaussian
from dpsim.recommend.gram_budget import StageNoise


def first_users(n_users: int, parties: int) -> tuple[int, ...]:
    """The user that each party belongs to."""
    return tuple(party * n_users // parties for party in range(parties))


def party_shares(
    stage: StageNoise,
    users: Block,
    n_users: int,
    noise: CentralNoise,
    place: tuple[str, int, int],
) -> Counts:
    """The summed shares of the parties that belong to these users.

    ``place`` is the subject, the first entry and how many.
    """
    subject, start, n = place
    if not isinstance(stage.law, DiscreteGaussian):
        raise InputError("only Gaussian noise is divided among parties")
    shares = np.zeros(n, np.int64)
    for party, user in enumerate(first_users(n_users, stage.parties)):
        if users.start <= user < users.stop:
            shares += stage.law.draw(n, noise, f"{subject} of party {party}", start)
    return shares


def masked(
    values: Counts, piece: int, pieces: int, noise: CentralNoise, place: tuple[str, int]
) -> NDArray[np.uint64]:
    """An answer behind the masks that its piece shares with each other one.

    ``place`` is the subject and the first entry.
    """
    subject, start = place
    hidden = values.astype(np.int64).view(np.uint64).copy()
    for other in range(pieces):
        if other == piece:
            continue
        low, high = sorted((piece, other))
        name = f"{subject} mask {low} {high} of {pieces}"
        mask = noise.words(Purpose.MEASURE, name, values.size, start)
        hidden += mask if piece == low else -mask
    return hidden


def unmasked(answers: list[NDArray[np.uint64]]) -> Counts:
    """The sum of all answers: the masks are gone, and nothing but the sum is left."""
    if not answers:
        raise InputError("there must be one answer at least")
    total = np.zeros_like(answers[0])
    for answer in answers:
        if answer.dtype != np.uint64 or answer.shape != total.shape:
            raise InputError("masked answers must be words of one length")
        total += answer
    return total.view(np.int64)
