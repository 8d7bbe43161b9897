"""The notes' PRAM and metrics, as they are."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise, UserNoise
from dpsim.mechanisms.grr import GRR
from dpsim.synthesis.notes import keep_probabilities, notes_metrics, redraw_as_notes
from dpsim.synthesis.notes_floor import floor_of_mean, floor_of_report, floor_of_resampling
from dpsim.synthesis.pram import transition
from dpsim.synthesis.split_reports import SplitReports
from dpsim.synthesis.table import CodeTable

NOISE = CentralNoise(5, "plan")


def notes_matrix(shares, channel):
    """The notes' steps 6 and 7 word by word: a shifted inverse, then Bayes' rule."""
    inverse = np.linalg.inv(channel.channel())
    inverse -= inverse.min()
    inverse = np.round(inverse / inverse.sum(axis=1, keepdims=True), 15)
    law = shares @ inverse
    joint = law[None, :] * channel.channel().T
    return np.maximum(joint / joint.sum(axis=1, keepdims=True), 0)


@given(st.integers(2, 30), st.sampled_from(["1/50", 1, 5]), st.integers(0, 99))
def test_the_closed_form_is_the_notes_matrix(size, epsilon, seed):
    shares = np.random.default_rng(seed).dirichlet(np.ones(size))
    channel = GRR(size, epsilon)
    keep = keep_probabilities(shares, channel)
    closed = np.diag(keep) + np.outer(1 - keep, shares)
    np.testing.assert_allclose(closed, notes_matrix(shares, channel), atol=1e-9)
    np.testing.assert_allclose(closed, transition(shares, (channel,)), atol=1e-14)


def test_the_normalized_inverse_is_the_identity():
    for size, epsilon in ((125, "1/50"), (4, 1)):
        inverse = np.linalg.inv(GRR(size, epsilon).channel())
        inverse -= inverse.min()
        np.testing.assert_allclose(
            inverse / inverse.sum(axis=1, keepdims=True), np.eye(size), atol=1e-9
        )


def test_the_notes_pram_keeps_neither_reports_nor_law():
    """One step from the shares themselves: with another channel, and not at its fixed point."""
    shares = np.array([0.15, 0.25, 0.28, 0.32])
    made = shares @ transition(shares, (GRR(4, 1),))
    assert np.abs(made - shares).max() > 1e-3


def uniform_table(sizes, n, seed):
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size, n) for size in sizes]).astype(np.uint8)
    return CodeTable(sizes, codes)


def reports_of(truth, epsilon, seed):
    """The first report: GRR at ε/d on every attribute."""
    d = len(truth.sizes)
    channels = tuple(GRR(size, Fraction(epsilon) / d) for size in truth.sizes)
    users = np.arange(truth.n)
    made = [
        channel.perturb(codes, UserNoise(seed, "first", str(attribute), users))
        for attribute, (channel, codes) in enumerate(zip(channels, truth.codes, strict=True))
    ]
    return SplitReports(CodeTable(truth.sizes, np.stack(made)), channels)


def test_attributes_are_redrawn_alone_and_the_callers_table_stays():
    reports = reports_of(uniform_table((5, 1, 7), 400, 1), 3, 1)
    reports.table.codes.flags.writeable = False
    before = reports.table.codes.copy()
    budgets = (Fraction(1), Fraction(0), Fraction(2))
    made = redraw_as_notes(reports, budgets, NOISE)
    np.testing.assert_array_equal(reports.table.codes, before)
    assert not np.shares_memory(made.codes, before)
    assert (made.codes[1] == 0).all()
    other = redraw_as_notes(reports, (Fraction(1), Fraction(0), Fraction(1, 9)), NOISE)
    np.testing.assert_array_equal(made.codes[0], other.codes[0])
    assert (made.codes[2] != other.codes[2]).any()


def test_redrawn_codes_follow_the_notes_row():
    """All users report the same two codes: the share of kept ones is w + (1-w)λ."""
    n = 20_000
    codes = (np.arange(n) % 4 == 0).astype(np.uint8)[None, :]
    reports = SplitReports(CodeTable((2,), codes), (GRR(2, 1),))
    made = redraw_as_notes(reports, (Fraction(2),), NOISE).codes[0]
    rows = transition(np.array([0.75, 0.25]), (GRR(2, 2),))
    for code, users in ((0, 15_000), (1, 5_000)):
        chance = rows[code, 1]
        hits = np.count_nonzero(made[codes[0] == code])
        assert abs(hits - users * chance) < 5 * (users * chance * (1 - chance)) ** 0.5


def test_metrics_of_a_small_table():
    truth = CodeTable((2, 4), np.array([[0, 0, 0, 1], [0, 1, 2, 3]], np.uint8))
    released = CodeTable((2, 4), np.array([[0, 1, 1, 1], [0, 0, 0, 0]], np.uint8))
    metrics = notes_metrics(truth, released)
    assert metrics.tvd == pytest.approx((0.5 + 0.75) / 2)
    assert metrics.mse_counts == pytest.approx(((4 + 4) / 2 + (9 + 1 + 1 + 1) / 4) / 2)
    assert metrics.mse_code == pytest.approx(metrics.mse_counts / 4)
    assert metrics.mse_counts > 1
    same = notes_metrics(truth, truth)
    assert (same.tvd, same.mse_counts, same.mse_code) == (0, 0, 0)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("d", "n", "epsilon"), [(50, 1000, 1), (50, 1000, 10), (50, 10_000, 1)]
)
def test_reports_of_the_notes_data_show_the_sampling_floor(d, n, epsilon):
    sizes = tuple(int(size) for size in np.random.default_rng(d).integers(100, 151, d))
    truth = uniform_table(sizes, n, 3)
    reports = reports_of(truth, epsilon, 4)
    first = notes_metrics(truth, reports.table)
    floor = floor_of_mean([floor_of_report(c.domain_size, n, c.p) for c in reports.channels])
    assert abs(first.tvd - floor.tvd) < 4 * floor.tvd_sd
    assert abs(first.mse_counts - floor.mse_counts) < 4 * floor.mse_counts_sd
    budgets = [Fraction(epsilon, 3 * d)] * d
    made = notes_metrics(truth, redraw_as_notes(reports, budgets, NOISE))
    raised = floor_of_mean([floor_of_resampling(size, n) for size in sizes])
    assert abs(made.tvd - raised.tvd) < 5 * raised.tvd_sd
    assert abs(made.tvd - floor.tvd) > 5 * raised.tvd_sd


def test_faults_are_named():
    reports = reports_of(uniform_table((3, 3), 10, 1), 1, 1)
    with pytest.raises(InputError, match="one budget each"):
        redraw_as_notes(reports, (Fraction(1),), NOISE)
    nobody = SplitReports(uniform_table((3, 3), 0, 1), reports.channels)
    with pytest.raises(InputError, match="0 users"):
        redraw_as_notes(nobody, (Fraction(1), Fraction(1)), NOISE)
    with pytest.raises(InputError, match="10 and 9 users"):
        notes_metrics(reports.table, uniform_table((3, 3), 9, 1))
    with pytest.raises(InputError, match="same domains"):
        notes_metrics(reports.table, uniform_table((3, 4), 10, 1))
