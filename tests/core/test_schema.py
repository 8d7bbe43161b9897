"""Schemas: declared, checked, and named by what their codes mean."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.schema import (
    MISSING,
    OTHER,
    READ_FROM_DATA,
    Attribute,
    Bins,
    Category,
    CodeRange,
    Schema,
)

AGE = Attribute("age", Bins(0, 100, 4))
SEX = Attribute("sex", Category(("f", "m"), other=True), missing="category")
CODE = Attribute("code", CodeRange(300))
SCHEMA = Schema((AGE, SEX, CODE))

domains = st.one_of(
    st.builds(CodeRange, st.integers(1, 300)),
    st.builds(Bins, st.just(0.0), st.just(1.0), st.integers(1, 300)),
    st.builds(Category, st.lists(st.text(), min_size=1, unique=True).map(tuple), st.booleans()),
)
attributes = st.builds(
    Attribute, st.just("x"), domains, st.sampled_from(["refuse", "category"])
)


@given(attributes)
def test_there_is_one_label_per_code_and_a_type_that_holds_all(attribute):
    assert len(attribute.labels) == attribute.size
    assert attribute.code_type == np.min_scalar_type(attribute.size - 1)
    assert attribute.code_type.kind == "u"


def test_labels_say_what_codes_mean():
    assert AGE.labels == ("0..25", "25..50", "50..75", "75..100")
    assert SEX.labels == ("f", "m", OTHER, MISSING)
    assert CODE.labels[299] == "299"
    assert AGE.domain.edges.tolist() == [0, 25, 50, 75, 100]  # type: ignore[union-attr]


def test_the_universe_is_the_product_of_the_domains():
    assert SCHEMA.universe_size == 4 * 4 * 300
    assert Schema(
        tuple(Attribute(f"a{i}", CodeRange(1000)) for i in range(50))
    ).universe_size == (1000**50)


def test_attributes_are_found_by_name():
    assert SCHEMA["sex"] is SEX
    assert list(SCHEMA) == [AGE, SEX, CODE]
    assert (len(SCHEMA), SCHEMA.names) == (3, ("age", "sex", "code"))
    with pytest.raises(InputError, match="no attribute 'zip'; there are: age, sex, code"):
        SCHEMA["zip"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Category(("a", "a")), lambda: Bins(1, 1, 3), lambda: Bins(0, float("inf"), 3),
        lambda: Bins(float("nan"), 1, 3), lambda: Bins(0, 1, 0), lambda: CodeRange(0),
        lambda: Attribute("", CodeRange(2)), lambda: Attribute("a\0b", CodeRange(2)),
        lambda: Attribute("a", Category(())), lambda: Attribute("a", CodeRange(1_000_001)),
        lambda: Attribute("a", CodeRange(1_000_000), missing="category"),
        lambda: Schema(()), lambda: Schema((AGE, AGE)),
    ],
)  # fmt: skip
def test_impossible_declarations_are_refused(make):
    with pytest.raises(InputError):
        make()


def test_attributes_named_twice_are_named():
    with pytest.raises(InputError, match=r"got twice: age$"):
        Schema((AGE, SEX, AGE))


@pytest.mark.parametrize(
    "other",
    [
        (AGE, SEX), (SEX, AGE, CODE), (replace(AGE, name="Age"), SEX, CODE),
        (replace(AGE, missing="category"), SEX, CODE),
        (replace(AGE, domain=Bins(0, 101, 4)), SEX, CODE),
        (AGE, replace(SEX, domain=Category(("m", "f"), other=True)), CODE),
        (AGE, replace(SEX, domain=Category(("f", "m", "x"))), CODE),
    ],
)  # fmt: skip
def test_the_fingerprint_changes_with_the_meaning_of_a_code(other):
    assert Schema(other).fingerprint != SCHEMA.fingerprint


def test_the_fingerprint_does_not_depend_on_how_the_schema_became_known():
    assert replace(SCHEMA, origin="else", reviewed=False).fingerprint == SCHEMA.fingerprint


def test_a_schema_is_declared_only_if_a_person_vouches_for_it():
    assert SCHEMA.is_declared
    assert not replace(SCHEMA, reviewed=False).is_declared
    assert not replace(SCHEMA, origin=READ_FROM_DATA).is_declared
