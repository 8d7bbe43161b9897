"""Checks fire, and say the parameter, the rule and the value."""

from fractions import Fraction

import numpy as np
import pytest

from dpsim.core.checks import require_at_least, require_codes, require_epsilon, require_share
from dpsim.core.errors import InputError


@pytest.mark.parametrize("value", [3, 4, np.int32(3), np.uint8(200)])
def test_whole_numbers_from_the_least_on_pass_as_plain_integers(value):
    assert type(require_at_least(3, shards=value)) is int
    assert require_at_least(3, shards=value) == value


@pytest.mark.parametrize("value", [2, -1, 3.0, "3", True, None, np.float64(3), np.int8(2)])
def test_anything_else_is_refused_with_name_rule_and_value(value):
    with pytest.raises(InputError) as caught:
        require_at_least(3, shards=value)
    assert str(caught.value) == f"shards must be a whole number >= 3, got {value!r}"


@pytest.mark.parametrize("value", ["0.01", 30, "1/14"])
def test_an_epsilon_within_bounds_passes_exactly(value):
    assert require_epsilon(value) == Fraction(value)


@pytest.mark.parametrize("value", [0, "-1", "30.0001", 31])
def test_an_epsilon_out_of_bounds_is_refused(value):
    with pytest.raises(InputError) as caught:
        require_epsilon(value, "limit")
    assert str(caught.value) == f"limit must be > 0 and <= 30, got {value}"


@pytest.mark.parametrize("value", [0, "0.999999", "1/3"])
def test_a_share_below_one_passes(value):
    assert require_share(value, "dropout") == Fraction(value)


@pytest.mark.parametrize("value", [1, "1.0", -0.1])
def test_a_share_of_one_or_below_zero_is_refused(value):
    with pytest.raises(InputError) as caught:
        require_share(value, "dropout")
    assert str(caught.value) == f"dropout must be >= 0 and < 1, got {value}"


def test_codes_of_the_domain_pass():
    require_codes(np.array([0, 4], np.uint8), 5)
    require_codes(np.array([], np.uint8), 5)
    require_codes(np.array([255], np.uint8), 256)


def test_codes_outside_are_counted_and_not_named():
    with pytest.raises(InputError) as caught:
        require_codes(np.array([0, 5, 99], np.uint8), 5)
    assert str(caught.value) == "2 of 3 codes lie outside 0..4"


@pytest.mark.parametrize("kind", [np.int64, np.float64, bool])
def test_codes_must_be_unsigned(kind):
    with pytest.raises(InputError, match="codes must be unsigned integers"):
        require_codes(np.zeros(3, kind), 5)


def test_codes_must_have_room_for_the_whole_domain():
    with pytest.raises(InputError, match=r"uint8 cannot hold the codes 0\.\.256"):
        require_codes(np.zeros(3, np.uint8), 257)
