"""Records stay where they are."""

import copy
import io
import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.records import Block, PrivateRecords, blocks_of

SECRET = 201


@pytest.fixture
def records():
    columns = {"age": np.array([SECRET, SECRET], np.uint8)}
    return PrivateRecords(Block(4, 2), lambda part: columns.__getitem__)


def test_open_is_the_way_to_the_values(records):
    assert records.open("age").tolist() == [SECRET, SECRET]
    assert records.block == Block(4, 2)


def cloudpickled(value):
    cloudpickle = pytest.importorskip("ray.cloudpickle")
    return cloudpickle.dumps(value)


@pytest.mark.filterwarnings("ignore")  # what importing Ray warns of is not dpsim's
@pytest.mark.parametrize(
    "leave",
    [
        pickle.dumps, lambda value: pickle.dumps(value, 0), lambda value: pickle.dumps([value]),
        copy.copy, copy.deepcopy, cloudpickled, lambda value: cloudpickled(lambda: value),
        lambda value: pickle.Pickler(io.BytesIO()).dump({"a": value}),
        lambda value: pickle.dumps(value.open),
    ],
)  # fmt: skip
def test_records_cannot_leave_their_process(records, leave):
    with pytest.raises(TypeError, match="private records must not leave their shard"):
        leave(records)


@pytest.mark.parametrize("write", [json.dumps, vars, bytes, list, len, dict])
def test_records_have_no_other_form(records, write):
    with pytest.raises(TypeError):
        write(records)


@pytest.mark.parametrize(
    "write", [str, repr, format, "{}".format, "{:>60}".format, "%s".__mod__, "{0!r}".format]
)
def test_records_print_as_their_number(records, write):
    text = write(records)
    assert text == "PrivateRecords(2 users)"
    assert str(SECRET) not in text


def test_arrays_of_records_hold_no_value(records):
    assert str(SECRET) not in repr(np.array([records, None]))


@given(st.integers(0, 1000), st.integers(1, 300))
def test_blocks_cover_all_users_once_and_in_order(n, size):
    blocks = blocks_of(n, size)
    users = [user for block in blocks for user in range(block.start, block.stop)]
    assert users == list(range(n))
    assert all(block.n == size for block in blocks[:-1])
    assert all(0 < block.n <= size for block in blocks)


@given(st.integers(0, 1000), st.integers(0, 100), st.integers(1, 30))
def test_parts_of_a_block_keep_their_global_places(start, n, size):
    users = [
        user for part in Block(start, n).parts(size) for user in range(part.start, part.stop)
    ]
    assert users == list(range(start, start + n))


@pytest.mark.parametrize("size", [0, -1, 1.5])
def test_a_bad_block_size_is_refused_by_name(size):
    with pytest.raises(InputError, match="block_size must be a whole number >= 1"):
        blocks_of(10, size)
