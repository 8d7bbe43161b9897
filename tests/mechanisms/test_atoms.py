"""Atoms: in 80 digits, with none to lose."""

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.mechanisms.atoms import _cut, exp_of, response_atoms

epsilons = st.fractions(Fraction(1, 100), 30, max_denominator=10**6)
sizes = st.integers(1, 200) | st.sampled_from([256, 1_000, 10_000, 65_536, 1_000_000])


def exp_80(epsilon):
    with localcontext(prec=80):
        return (Decimal(epsilon.numerator) / epsilon.denominator).exp()


@given(sizes, epsilons)
def test_the_real_loss_never_exceeds_epsilon(size, epsilon):
    _, truth, lie = response_atoms(size, epsilon)
    with localcontext(prec=80):
        assert size == 1 or truth <= lie * exp_80(epsilon)


@given(sizes, epsilons)
def test_one_atom_less_per_lie_would_exceed_epsilon(size, epsilon):
    bits, _, lie = response_atoms(size, epsilon)
    with localcontext(prec=80):
        truth = 2**bits - (size - 1) * (lie - 1)
        assert truth > (lie - 1) * exp_80(epsilon)


@given(sizes, epsilons)
def test_all_atoms_are_given_away(size, epsilon):
    bits, truth, lie = response_atoms(size, epsilon)
    assert truth + (size - 1) * lie == 2**bits
    assert min(truth, lie) > 0


@given(sizes, epsilons)
def test_64_bits_are_used_just_where_32_would_waste_epsilon(size, epsilon):
    bits, _, _ = response_atoms(size, epsilon)
    truth, lie = _cut(32, size, epsilon)
    with localcontext(prec=80):
        asked = Decimal(epsilon.numerator) / epsilon.denominator
        wasted = truth <= lie or asked - (Decimal(truth) / lie).ln() > asked / 10**5
    assert bits == (64 if wasted else 32)


@pytest.mark.parametrize(
    ("epsilon", "size", "truth", "lie", "loss"),
    [
        ("1", 2, 3139872686, 1155094610, "0.9999999991993"),
        ("1", 3, 2474403178, 910282059, "0.9999999992920"),
        ("1", 10, 996300625, 366518519, "0.9999999949900"),
        ("1", 128, 90002122, 33109962, "0.9999990439611"),
        ("0.5", 16, 425330191, 257975807, "0.4999999780713"),
        ("4", 100, 1526693260, 27962364, "3.9999999443546"),
        ("1", 10_000, 1166719, 429423, "0.9995083678"),
        ("1", 65_536, 131071, 65535, "0.6931548100"),
        ("20", 2, 4294967287, 9, "19.9834852"),
        ("25", 2, 4294967295, 1, "22.1807098"),
    ],
)
def test_atoms_on_32_bits_are_those_of_the_table(epsilon, size, truth, lie, loss):
    assert _cut(32, size, Fraction(epsilon)) == (truth, lie)
    with localcontext(prec=40):
        real = (Decimal(truth) / lie).ln()
    digits = Decimal(loss).as_tuple().exponent
    assert isinstance(digits, int)
    assert abs(real - Decimal(loss)) <= Decimal(1).scaleb(digits) / 2


@pytest.mark.parametrize(
    ("epsilon", "size", "bits"),
    [("1", 10, 32), ("4", 100, 32), ("1", 65_536, 64), ("20", 2, 64), ("25", 2, 64)],
)
def test_the_width_is_that_of_the_table(epsilon, size, bits):
    assert response_atoms(size, Fraction(epsilon))[0] == bits


def test_atoms_on_64_bits_are_those_of_the_table():
    bits, truth, lie = response_atoms(65_536, Fraction(1))
    assert (bits, truth, lie) == (64, 765108254057071, 281467596939887)
    with localcontext(prec=40):
        deficit = 1 - (Decimal(truth) / lie).ln()
    assert Decimal("6.05e-12") < deficit < Decimal("6.15e-12")


def test_e_to_the_epsilon_has_sixty_digits():
    digits = "2.71828182845904523536028747135266249775724709369995957496697"
    assert str(exp_of(Fraction(1))) == digits
