"""Layouts add up, and only tallies cross the border."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.records import Block
from dpsim.protocols.base import Answer, Layout
from dpsim.protocols.shapes import ReportShape, TallyShape

ANSWER = Answer("plan", Block(0, 10), np.array([4, 6], np.int64))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8))
def test_parts_are_views_that_cover_the_vector_once(sizes):
    layout = Layout(tuple((f"part {place}", size) for place, size in enumerate(sizes)))
    vector = np.zeros(layout.size, np.int64)
    for place, part in enumerate(layout.split(vector).values(), start=1):
        part[:] += place
    assert vector.tolist() == list(np.repeat(np.arange(1, len(sizes) + 1), sizes))


def test_a_tally_of_the_plan_passes():
    ANSWER.check("plan", TallyShape(2))


class Masked(np.ndarray):
    """An array that could carry more than its numbers."""


@pytest.mark.parametrize(
    "tally",
    [
        np.array([4.0, 6.0]), np.array([4, 6], np.int32), np.array([4, 6], np.uint64),
        np.array([4, 6, 0]), np.array([[4, 6]]), np.array([]), [4, 6], None,
        np.array([4, None]), np.array([4, 6]).view(Masked),
    ],
)  # fmt: skip
def test_nothing_but_an_int64_tally_of_the_right_length_passes(tally):
    with pytest.raises(InputError, match="only answer with the int64 tally"):
        replace(ANSWER, content=tally).check("plan", TallyShape(2))


def test_a_tally_of_another_plan_is_refused():
    with pytest.raises(InputError, match="only answer with the int64 tally"):
        ANSWER.check("other", TallyShape(2))


def test_digests_are_equal_just_for_equal_tallies():
    assert replace(ANSWER, content=np.array([4, 6]), seconds=9).digest == ANSWER.digest
    assert replace(ANSWER, content=np.array([6, 4])).digest != ANSWER.digest
    assert len(ANSWER.digest) == 16


ROWS = np.zeros((3, 10), np.uint8)


def test_reports_are_rows_of_the_block_and_nothing_else():
    shape = ReportShape(2)
    assert shape.accepts(ROWS, Block(0, 10))
    for other in (ROWS[:2], ROWS[:, :9], ROWS.astype(np.uint16), ROWS.view(Masked), None):
        assert not shape.accepts(other, Block(0, 10))


def test_reports_come_together_in_any_order_and_show_only_who_took_part():
    shape = ReportShape(1)
    total = shape.empty(5)
    shape.put(total, Block(3, 2), np.array([[1, 0], [7, 0]], np.uint8))
    shape.put(total, Block(0, 3), np.array([[1, 2, 1], [4, 5, 6]], np.uint8))
    assert total.tolist() == [[1, 2, 1, 1, 0], [4, 5, 6, 7, 0]]
    assert shape.shown(total).tolist() == [3, 1, 1]
