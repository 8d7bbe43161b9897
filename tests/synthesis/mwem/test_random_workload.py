"""Random boxes: distinct, by address, with the law of the report."""

from collections import Counter

import numpy as np
import pytest

from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise
from dpsim.synthesis.mwem.random_workload import random_boxes
from tests import laws
from tests.synthesis.mwem.problems import NOISE


def ends(workload):
    return [tuple(row) for row in np.concatenate([workload.lower, workload.upper], 1).tolist()]


def test_boxes_are_distinct_and_inside():
    workload = random_boxes((14, 4), 400, NOISE)
    assert len(set(ends(workload))) == 400
    assert (workload.lower >= 0).all()
    assert (workload.upper <= (14, 4)).all()
    assert (workload.lower < workload.upper).all()


def test_a_longer_workload_begins_with_a_shorter_one():
    assert ends(random_boxes((9, 9), 50, NOISE)) == ends(random_boxes((9, 9), 200, NOISE))[:50]


def test_another_seed_gives_other_boxes():
    assert ends(random_boxes((9, 9), 9, NOISE)) != ends(
        random_boxes((9, 9), 9, CentralNoise(1, "plan"))
    )


def test_all_boxes_of_a_domain_can_be_drawn_and_no_more():
    assert len(set(ends(random_boxes((4, 2), 30, NOISE)))) == 30
    with pytest.raises(InputError, match="n must be <= 30, the number of boxes"):
        random_boxes((4, 2), 31, NOISE)
    with pytest.raises(InputError, match="n must be a whole number >= 1"):
        random_boxes((4, 2), 0, NOISE)


@pytest.mark.statistical
def test_lo_is_uniform_and_hi_is_uniform_above_it():
    firsts = [ends(random_boxes((3,), 1, CentralNoise(seed, "law")))[0] for seed in range(5000)]
    law = {(lo, hi + 1): 1 / 3 / (3 - lo) for lo in range(3) for hi in range(lo, 3)}
    counts = Counter(firsts)
    laws.assert_counts_follow(np.array([counts[box] for box in law]), np.array([*law.values()]))
