"""One plan, one text, one name."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.plan import Plan, Use, canonical, parameters_of
from dpsim.mechanisms.grr import GRR

PLAN = Plan("demo", 0, "frequencies of age", (Use(("age",), "GRR", GRR(10, 1).parameters),))

scalars = st.none() | st.integers() | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@given(st.dictionaries(st.text(), scalars))
def test_the_order_of_keys_does_not_matter(row):
    assert canonical(row) == canonical(dict(reversed(row.items())))


@given(values, values)
def test_texts_are_equal_just_where_the_values_are(one, other):
    assert (canonical(one) == canonical(other)) == (one == other)


def test_the_text_has_no_spaces_and_keeps_letters():
    assert canonical({"b": [1, None], "a": "ä"}) == '{"a":"ä","b":[1,null]}'.encode()


@pytest.mark.parametrize(
    "value",
    [1.0, [0.1], {"a": (1, 2.5)}, {"a": {"b": [1.0]}}, Decimal(1), Fraction(1), np.int64(1)],
)
def test_what_has_more_than_one_spelling_is_refused(value):
    with pytest.raises(TypeError, match="has no canonical text"):
        canonical(value)


@pytest.mark.parametrize("one", ["1", 1.0, 1, "1e0", Fraction(1), Decimal("1.00")])
def test_an_epsilon_hashes_alike_however_it_is_written(one):
    plan = replace(PLAN, uses=(Use(("age",), "GRR", GRR(10, one).parameters),))
    assert plan.hash == PLAN.hash


@pytest.mark.parametrize(
    "change",
    [
        {"experiment": "demo2"}, {"round_id": 1}, {"question": "?"}, {"uses": ()},
        {"uses": (Use(("sex",), "GRR", GRR(10, 1).parameters),)},
        {"uses": (Use(("age",), "OUE", GRR(10, 1).parameters),)},
        {"uses": (Use(("age",), "GRR", GRR(10, "1.0000001").parameters),)},
        {"uses": (Use(("age",), "GRR", GRR(11, 1).parameters),)},
        {"uses": PLAN.uses * 2},
        {"participation": (("dropout", "0.1"),)}, {"fidelity": "aggregate"}, {"rng": "v2"},
    ],
)  # fmt: skip
def test_every_part_of_a_plan_changes_its_hash(change):
    assert replace(PLAN, **change).hash != PLAN.hash


def test_the_hash_is_frozen():
    """If this fails, every seeded result has changed: a line in *Changed results*."""
    assert PLAN.hash == "f4fece4cfd314997f85f46c7844919d9"


@pytest.mark.parametrize("value", [True, 1.0, (1,)])
def test_a_parameter_is_a_text_a_whole_number_or_a_fraction(value):
    with pytest.raises(TypeError, match="a plan holds texts, whole numbers and fractions"):
        parameters_of(replace(PLAN, fidelity=value))
