"""Margins under noise: sensitivities by enumeration, an exact sum of losses."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.rng import CentralNoise
from dpsim.synthesis.contingency import joint_counts
from dpsim.synthesis.noisy_margins import margin_mechanisms, measure_margins
from tests.synthesis.small_tables import chain, table_of


@given(st.lists(st.integers(1, 300), min_size=1, max_size=9), st.fractions("0.01", 5))
def test_losses_sum_to_epsilon_exactly_and_grow_with_the_root_of_the_size(sizes, epsilon):
    mechanisms = margin_mechanisms(sizes, epsilon)
    losses = [mechanism.loss.epsilon if mechanism else Fraction(0) for mechanism in mechanisms]
    assert sum(losses) == (epsilon if max(sizes) > 1 else 0)
    for size, loss in zip(sizes, losses, strict=True):
        assert (loss == 0) == (size == 1)
        if size > 1:
            share = size**0.5 / sum(other**0.5 for other in sizes if other > 1)
            assert float(loss / epsilon) == pytest.approx(share, rel=0.01)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_sensitivities_are_the_most_that_replacing_a_record_moves(size):
    """Two values are measured as one count, more as all their cells."""
    (mechanism,) = margin_mechanisms((size,), Fraction(1))
    assert mechanism is not None
    worst = 0
    for first, second in product(range(size), repeat=2):
        moved = [joint_counts(table_of((size,), [(code,), (0,), (1,)]), (0,))
                 for code in (first, second)]  # fmt: skip
        used = slice(0, 1) if size == 2 else slice(None)
        worst = max(worst, int(np.abs(moved[0] - moved[1])[used].sum()))
    assert worst == mechanism.sensitivity


def test_margins_are_counts_with_the_public_total_and_no_zero():
    table = chain(500, 4, 5)
    for margin in measure_margins(table, Fraction(1, 10), CentralNoise(1, "m")):
        assert margin.sum() == pytest.approx(500)
        assert margin.min() > 0


def test_much_budget_recovers_the_truth():
    table = table_of((3, 1, 2), [(0, 0, 1)] * 70 + [(2, 0, 0)] * 30)
    margins = measure_margins(table, Fraction(40), CentralNoise(1, "m"))
    for margin, truth in zip(margins, ([70, 0, 30], [100], [30, 70]), strict=True):
        np.testing.assert_allclose(margin, truth, atol=0.03)
