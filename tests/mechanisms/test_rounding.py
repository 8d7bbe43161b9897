"""Rounding is always to the safe side, and never by much."""

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.mechanisms.rounding import (
    atoms_up,
    decimal_of,
    is_precise,
    log_of,
    loss_up,
    real_loss,
)

ratios = st.fractions(1, 10**9, max_denominator=10**12)


@given(st.fractions(0, 1), st.sampled_from([32, 64]))
def test_atoms_are_the_next_whole_number(share, bits):
    assert atoms_up(decimal_of(share), bits) == -(-share * 2**bits // 1)


@given(st.fractions(0, 60))
def test_a_charged_loss_is_above_by_less_than_a_trillionth(epsilon):
    charged = loss_up(decimal_of(epsilon))
    assert 0 <= charged - epsilon < Fraction(1, 10**12) + Fraction(1, 10**50)
    assert (charged * 10**12).denominator == 1


@given(ratios)
def test_a_real_loss_is_the_nearest_float_that_is_not_above(ratio):
    loss = real_loss(ratio)
    with localcontext(prec=60):
        exact = log_of(ratio)
        assert exact == decimal_of(ratio).ln()
        assert 0 <= exact - Decimal(loss) <= Decimal("2.3e-16") * (1 + exact)
    assert real_loss(decimal_of(ratio)) == loss


def test_precision_is_one_hundred_thousandth_and_one_sided():
    epsilon = Decimal(1)
    with localcontext(prec=60):
        near, far, above = (
            Fraction(Decimal(x).exp()) for x in ("0.99999", "0.99998", "1.0000001")
        )
    assert is_precise(near * (1 + Fraction(1, 10**12)), epsilon)
    assert not is_precise(far, epsilon)
    assert not is_precise(above, epsilon)


@pytest.mark.parametrize("ratio", [Fraction(1), Fraction(0), Fraction(-2)])
def test_a_ratio_that_tells_nothing_is_never_precise(ratio):
    assert not is_precise(ratio, Decimal("1e-30"))
