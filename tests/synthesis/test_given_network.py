"""A given network is taken as it is, or refused with what to write instead."""

import pytest

from dpsim.core.errors import InputError
from dpsim.synthesis.bayes_net import BayesNet
from dpsim.synthesis.given_network import parse_network

NAMES, SIZES = ("age", "sex", "pay", "job"), (16, 2, 5, 100)


def test_names_and_places_mean_the_same_and_the_rest_are_roots():
    expected = BayesNet((1, 2, 0, 3), ((1, 2), (), (), (0,)))
    by_name = parse_network([("job", ["age"]), ("age", ["pay", "sex"])], NAMES, SIZES)
    by_place = parse_network([(0, (2, 1)), (3, [0]), (1, ())], NAMES, SIZES)
    assert by_name == by_place == expected


def test_no_pairs_are_independent_attributes():
    assert parse_network([], NAMES, SIZES) == BayesNet((0, 1, 2, 3), ((),) * 4)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("wage", ["age"])], "no attribute 'wage'; there are: age, sex, pay, job"),
        ([("age", ["wage"])], "no attribute 'wage'"),
        ([(4, [])], "no attribute 4: places go from 0 to 3"),
        ([(0, [-1])], "no attribute -1"),
        ([(True, [])], "no attribute True"),
        ([("age", "sex")], "must be a list"),
        ([("age", ["sex"]), (0, ["pay"])], "'age' is a child twice"),
        ([("age", ["sex", 1])], "'age' has a parent twice"),
        ([("age", ["age"])], "cycle: age <- age"),
        ([("age", ["sex"]), ("sex", ["pay"]), ("pay", ["age"])], "cycle: age <- sex <- pay"),
        ([("job", ["age", "pay", "sex"])], r"age, pay, sex has 16,000 cells, and 10,000"),
    ],
)
def test_what_is_no_network_is_refused(pairs, message):
    with pytest.raises(InputError, match=message):
        parse_network(pairs, NAMES, SIZES, cell_limit=10_000)


def test_a_cycle_behind_others_is_named_alone():
    pairs = [("age", ["sex"]), ("sex", ["pay", "job"]), ("pay", ["sex"])]
    with pytest.raises(InputError, match=r"cycle: sex <- pay <- sex$"):
        parse_network(pairs, NAMES, SIZES)
