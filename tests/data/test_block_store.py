"""Blocks on disk: what was written, or a refusal."""

import json
import os
import pickle
import stat
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.records import Block, blocks_of
from dpsim.core.schema import Attribute, Category, CodeRange, Schema
from dpsim.data.block_store import BlockStore, BlockStoreWriter, DataChangedError

SCHEMA = Schema((Attribute("sex", Category(("f", "m"))), Attribute("zip", CodeRange(1000))))


def columns_of(n):
    return {
        "sex": (np.arange(n) * 7 // 3 % 2).astype(np.uint8),
        "zip": (np.arange(n) * 31 % 1000).astype(np.uint16),
    }


def write(folder, columns, block_size, cuts=(), schema=SCHEMA):
    n = columns["sex"].size
    borders = [0, *sorted(min(cut, n) for cut in cuts), n]
    with BlockStoreWriter(folder, schema, block_size) as writer:
        for start, stop in pairwise(borders):
            writer.append({name: column[start:stop] for name, column in columns.items()})
        return writer.finish()


@pytest.fixture
def store(tmp_path):
    return write(tmp_path / "store", columns_of(100), 40)


def replace_file(path, content):
    """Another file in its place: the mapped one stays what it was."""
    path.unlink()
    path.write_bytes(content)


@given(
    st.integers(0, 120), st.integers(1, 130), st.lists(st.integers(0, 120), max_size=6)
)  # fmt: skip
def test_what_was_appended_is_read_whatever_the_blocks_and_pieces(n, block_size, cuts):
    columns = columns_of(n)
    with TemporaryDirectory() as folder:
        made = write(Path(folder) / "store", columns, block_size, cuts)
        opened = BlockStore.open(Path(folder) / "store")
        assert opened == made
        assert (opened.n, opened.block_size, opened.schema) == (n, block_size, SCHEMA)
        for block in blocks_of(n, block_size):
            records = opened.read(block)
            for name, column in columns.items():
                codes = records.open(name)
                assert codes.dtype == column.dtype
                assert codes.tolist() == column[block.start : block.stop].tolist()


@given(st.integers(1, 130), st.lists(st.integers(0, 120), max_size=6))
def test_the_fingerprint_is_the_same_for_every_block_size(block_size, cuts):
    with TemporaryDirectory() as folder:
        one = write(Path(folder) / "one", columns_of(100), 40)
        other = write(Path(folder) / "other", columns_of(100), block_size, cuts)
        assert other.fingerprint == one.fingerprint


def test_the_fingerprint_changes_with_every_code_and_with_the_schema(tmp_path, store):
    fingerprints = {store.fingerprint}
    for name in SCHEMA.names:
        columns = columns_of(100)
        columns[name][57] ^= 1
        fingerprints.add(write(tmp_path / "other", columns, 40).fingerprint)
    fewer = {name: column[:99] for name, column in columns_of(100).items()}
    fingerprints.add(write(tmp_path / "other", fewer, 40).fingerprint)
    renamed = Schema((Attribute("sex", Category(("m", "f"))), SCHEMA["zip"]))
    fingerprints.add(write(tmp_path / "other", columns_of(100), 40, (), renamed).fingerprint)
    assert len(fingerprints) == 5


def test_part_of_a_block_can_be_read(store):
    records = store.read(Block(45, 10))
    assert records.open("zip").tolist() == columns_of(100)["zip"][45:55].tolist()


@pytest.mark.parametrize("block", [Block(35, 10), Block(80, 40), Block(100, 1), Block(0, 41)])
def test_users_beyond_one_block_are_refused(store, block):
    with pytest.raises(InputError, match="are not within one block"):
        store.read(block)


def test_codes_are_read_only(store):
    with pytest.raises(ValueError, match="read-only"):
        store.read(Block(0, 40)).open("sex")[0] = 1


@given(st.data())
def test_a_changed_byte_is_noticed_or_changes_nothing(data):
    """Padding and unused metadata may differ; no code may."""
    columns = columns_of(8)
    with TemporaryDirectory() as folder:
        made = write(Path(folder) / "store", columns, 8)
        path = made.folder / "block-000000.arrow"
        content = bytearray(path.read_bytes())
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] ^= data.draw(st.integers(1, 255))
        replace_file(path, content)
        try:
            records = BlockStore.open(made.folder).read(Block(0, 8))
        except DataChangedError:
            return
        for name, column in columns.items():
            assert records.open(name).tolist() == column.tolist()


@pytest.mark.parametrize("name", SCHEMA.names)
def test_every_changed_code_is_noticed(tmp_path, name):
    store = write(tmp_path / "store", columns_of(100), 40)
    changed = columns_of(100)
    changed[name][99] ^= 1
    other = write(tmp_path / "other", changed, 40)
    path = "block-000002.arrow"
    replace_file(store.folder / path, (other.folder / path).read_bytes())
    fresh = BlockStore.open(store.folder)
    fresh.read(Block(0, 40))
    with pytest.raises(DataChangedError, match="users from 80 on is not the one that was imp"):
        fresh.read(Block(80, 20))


@pytest.mark.parametrize("keep", [0, 1, 100, -1])
def test_a_truncated_block_is_noticed(store, keep):
    path = store.folder / "block-000001.arrow"
    replace_file(path, path.read_bytes()[:keep])
    with pytest.raises(DataChangedError, match="users from 40 on"):
        store.read(Block(40, 40))


def test_a_missing_block_is_noticed(store):
    (store.folder / "block-000001.arrow").unlink()
    with pytest.raises(DataChangedError, match="users from 40 on"):
        store.read(Block(40, 40))


def test_a_block_in_anothers_place_is_noticed(store):
    content = (store.folder / "block-000000.arrow").read_bytes()
    replace_file(store.folder / "block-000001.arrow", content)
    with pytest.raises(DataChangedError, match="users from 40 on"):
        store.read(Block(40, 40))


def test_what_one_process_verified_another_one_verifies_again(store):
    store.read(Block(0, 40))
    travelled = pickle.loads(pickle.dumps(store))
    assert travelled == store
    content = (store.folder / "block-000001.arrow").read_bytes()
    replace_file(store.folder / "block-000000.arrow", content)
    with pytest.raises(DataChangedError):
        travelled.read(Block(0, 40))


def test_a_store_travels_as_a_small_value(store):
    assert len(pickle.dumps(store)) < 2_000
    assert "block_fingerprints" not in repr(store)


def test_files_and_folder_are_the_owners_alone(tmp_path):
    before = os.umask(0o022)
    try:
        store = write(tmp_path / "store", columns_of(100), 40)
    finally:
        os.umask(before)
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700
    files = list(store.folder.iterdir())
    assert len(files) == 4
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_an_unfinished_writer_leaves_nothing(tmp_path):
    with BlockStoreWriter(tmp_path / "store", SCHEMA, 10) as writer:
        writer.append(columns_of(25))
        assert list(tmp_path.iterdir()) == [tmp_path / ".store.partial"]
    assert list(tmp_path.iterdir()) == []


def test_a_writer_that_fails_leaves_nothing(tmp_path):
    with (
        pytest.raises(KeyError),
        BlockStoreWriter(tmp_path / "store", SCHEMA, 10) as writer,
    ):
        writer.append({"age": columns_of(25)["sex"]})
    assert list(tmp_path.iterdir()) == []


def test_what_a_crashed_writer_left_is_not_in_the_way(tmp_path):
    left = tmp_path / ".store.partial"
    left.mkdir()
    (left / "block-000009.arrow").write_bytes(b"x")
    store = write(tmp_path / "store", columns_of(25), 10)
    assert sorted(path.name for path in store.folder.iterdir()) == [
        "block-000000.arrow", "block-000001.arrow", "block-000002.arrow", "store.json",
    ]  # fmt: skip
    assert list(tmp_path.iterdir()) == [store.folder]


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", "{", '{"schema": ""}'])
def test_a_folder_without_a_description_is_no_store(tmp_path, text):
    (tmp_path / "store.json").write_text(text)
    with pytest.raises(InputError, match="is not a block store"):
        BlockStore.open(tmp_path)
    with pytest.raises(InputError, match="is not a block store"):
        BlockStore.open(tmp_path / "none")


def test_the_description_holds_no_code(store):
    description = json.loads((store.folder / "store.json").read_text())
    assert set(description) == {
        "format", "n", "block_size", "fingerprint", "schema", "blocks",
    }  # fmt: skip


def test_a_bad_block_size_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(InputError, match="block_size must be"):
        BlockStoreWriter(tmp_path / "store", SCHEMA, 0)
    assert list(tmp_path.iterdir()) == []
