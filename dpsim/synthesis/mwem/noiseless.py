"""The iterations of MWEM on answers that are private already: no noise, no loss."""

from __future__ import annotations

import numpy as np

from dpsim.core.rng import CentralNoise
from dpsim.core.tasks import Teller, tell_nobody
from dpsim.synthesis.mwem.dense import Fitting
from dpsim.synthesis.mwem.loop import MWEM
from dpsim.synthesis.mwem.noise import order_words
from dpsim.synthesis.mwem.state import Guess
from dpsim.synthesis.mwem.truth import Truth


def fit_to_answers(
    mwem: MWEM, private: Truth, noise: CentralNoise, tell: Teller = tell_nobody
) -> Guess:
    """The guess after all iterations; each takes the query that is answered worst so far."""
    settings, groups = mwem.settings, mwem.workload.groups
    guess = mwem.engine.start(private.total)
    queries: list[int] = []
    targets = np.zeros(0)
    for iteration in range(settings.iterations):
        scores = mwem.scores(mwem.engine.answers(guess), private)
        scores[queries] = -np.inf
        query = int(np.argmax(scores))
        queries.append(query)
        answers = private.answers[int(groups[query]) : int(groups[query + 1])]
        targets = np.concatenate([targets, np.clip(answers, 0, private.total)])
        words = np.zeros(0, np.uint64)
        if settings.is_shuffled and settings.fit == "replays":
            words = order_words(noise, settings.replays, iteration, 1)
        replays = settings.replays if settings.fit == "replays" else 0
        ridge = mwem.measurer.variance / private.total**2
        fitting = Fitting(queries, targets, private.total, replays, words, ridge)
        guess = mwem.engine.fit(guess, fitting)
        tell("fitting", iteration + 1, settings.iterations)
    return guess
