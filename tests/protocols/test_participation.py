"""Who takes part is a function of seed, plan and user, and of nothing else."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.records import Block
from dpsim.core.rng import ClientNoise
from dpsim.protocols.participation import Participation, Turnout, _latencies

LATE = Participation(Fraction(1, 10), 1000, Fraction(1, 2), 1500)
N = 1_001


def taking_part(participation, blocks, seed=3, plan="plan"):
    pairs = [participation.draw(ClientNoise(seed, plan, block)) for block in blocks]
    sent, in_time = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    return sent, in_time


@given(st.integers(1, 1_200))
def test_the_block_size_changes_nobodys_part(size):
    whole = taking_part(LATE, [Block(0, N)])
    parts = taking_part(LATE, Block(0, N).parts(size))
    np.testing.assert_array_equal(parts, whole)


@given(st.integers(0, 10**9))
def test_a_users_part_can_be_found_alone(user):
    (near,), (far,) = taking_part(LATE, [Block(user, 1)])
    among = taking_part(LATE, [Block(max(0, user - 5), 11)])
    place = min(user, 5)
    assert (near, far) == (among[0][place], among[1][place])


@pytest.mark.parametrize(("seed", "plan"), [(4, "plan"), (3, "other")])
def test_another_seed_or_plan_draws_others(seed, plan):
    sent, in_time = taking_part(LATE, [Block(0, N)])
    other_sent, other_in_time = taking_part(LATE, [Block(0, N)], seed, plan)
    assert (sent != other_sent).any()
    assert (in_time != other_in_time).any()


def test_who_is_in_time_has_sent():
    sent, in_time = taking_part(LATE, [Block(0, N)])
    assert not (in_time & ~sent).any()
    assert 0 < in_time.sum() < sent.sum() < N


@pytest.mark.statistical
@pytest.mark.parametrize("dropout", [Fraction(1, 1000), Fraction(1, 10), Fraction(9, 10)])
def test_the_dropout_rate_is_the_stated_one(dropout):
    n = 100_000
    sent, in_time = taking_part(Participation(dropout), [Block(0, n)])
    sd = float(n * dropout * (1 - dropout)) ** 0.5
    assert abs(n - sent.sum() - n * dropout) < 5 * sd
    np.testing.assert_array_equal(sent, in_time)


@pytest.mark.statistical
@pytest.mark.parametrize(("deadline", "z"), [(1000, 0.0), (1649, 1.0), (607, -1.0)])
def test_the_share_in_time_is_that_of_the_lognormal_law(deadline, z):
    """Median 1000 ms, shape 1/2: the deadline lies z standard deviations from the median."""
    from statistics import NormalDist

    n = 100_000
    share = NormalDist().cdf(z)
    late = Participation(latency_ms=1000, spread=Fraction(1, 2), deadline_ms=deadline)
    sent, in_time = taking_part(late, [Block(0, n)])
    assert sent.all()
    assert abs(in_time.sum() / n - share) < 5 * (share * (1 - share) / n) ** 0.5 + 1 / 4096


@pytest.mark.statistical
def test_dropout_and_lateness_are_independent():
    n = 100_000
    both = Participation(Fraction(1, 2), 1000, Fraction(1), 1000)
    _, in_time = taking_part(both, [Block(0, n)])
    assert abs(in_time.sum() - n / 4) < 5 * (n * 3 / 16) ** 0.5


def test_latencies_are_frozen():
    """If this fails, every run with a deadline has changed: a line in *Changed results*."""
    times = _latencies(1000, Fraction(1))
    assert times[[0, 1, 100, 1000, 2047, 2048, 3000, 4000, 4095]].tolist() == [
        26,
        34,
        140,
        500,
        1000,
        1000,
        1860,
        7313,
        39186,
    ]
    assert int(times.sum()) == 6748540


def test_latencies_grow_with_the_quantile_around_the_median():
    times = _latencies(1000, Fraction(1, 2))
    assert (np.diff(times) >= 0).all()
    assert times[2047] <= 1000 <= times[2048]
    assert set(_latencies(1000, Fraction(0)).tolist()) == {1000}


def test_even_absurd_latencies_are_numbers():
    assert _latencies(10**15, Fraction(10)).max() == 2**62


def test_the_deadline_itself_is_in_time():
    exact = Participation(latency_ms=1000, spread=Fraction(0), deadline_ms=1000)
    early = Participation(latency_ms=1000, spread=Fraction(0), deadline_ms=999)
    assert taking_part(exact, [Block(0, 50)])[1].all()
    assert not taking_part(early, [Block(0, 50)])[1].any()


@pytest.mark.parametrize(
    ("participation", "certain"),
    [
        (Participation(), True), (Participation(latency_ms=5), True),
        (Participation(deadline_ms=0), True), (Participation(Fraction(1, 10**9)), False),
        (Participation(latency_ms=5, deadline_ms=10**9), False),
    ],
)  # fmt: skip
def test_nothing_enters_the_plan_where_everybody_answers(participation, certain):
    assert participation.is_certain is certain
    assert (participation.parameters == ()) is certain


def test_the_plan_holds_the_exact_numbers():
    assert dict(LATE.parameters) == {
        "dropout": "0.1", "latency_ms": 1000, "spread": "0.5", "deadline_ms": 1500,
    }  # fmt: skip
    assert Participation("0.1").parameters == Participation(0.1).parameters  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "bad",
    [
        {"dropout": 1}, {"dropout": -0.1}, {"spread": -1}, {"spread": "10.1"}, {"spread": "x"},
        {"latency_ms": -1}, {"latency_ms": 0.5}, {"deadline_ms": -1}, {"deadline_ms": "1"},
    ],
)  # fmt: skip
def test_bad_numbers_are_refused_by_name(bad):
    with pytest.raises(InputError, match=f"{next(iter(bad))} must be"):
        Participation(**bad)


def test_a_turnout_adds_up():
    assert Turnout(5, 3, 2).invited == 10
