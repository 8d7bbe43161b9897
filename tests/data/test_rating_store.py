"""Ratings on disk: what was written, or a refusal."""

import pickle
import stat
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.records import Block, blocks_of
from dpsim.data.block_store import DataChangedError
from dpsim.data.rating_store import RatingStore, write_ratings
from dpsim.data.ratings import read_users
from tests.data.test_ratings import ROWS, rows_of, table_of

ROWS_3 = [{0: 1, 3: 2}, {}, {9: 4}]


@pytest.fixture
def store(tmp_path):
    return write_ratings(table_of(ROWS_3), tmp_path / "store", 2)


@given(ROWS, st.integers(1, 5), st.integers(1, 5))
def test_ratings_are_read_as_they_were_written(rows, source_size, block_size):
    table = table_of(rows, block_size=source_size)
    with TemporaryDirectory() as folder:
        store = write_ratings(table, Path(folder) / "store", block_size)
        opened = RatingStore.open(Path(folder) / "store")
        assert opened == store
        assert rows_of(read_users(opened, Block(0, table.n))) == rows
        for block in blocks_of(table.n, block_size):
            assert opened.read(block).open().start == block.start
    facts = (store.scale, store.n, store.n_items, store.fingerprint)
    assert facts == (table.scale, table.n, table.n_items, table.fingerprint)


def test_a_store_travels_and_maps_its_blocks_there(store):
    there = pickle.loads(pickle.dumps(store))
    piece = there.read(Block(0, 2)).open()
    assert rows_of(piece) == ROWS_3[:2]
    assert not piece.items.flags.writeable
    assert rows_of(there.read(Block(1, 1)).open()) == [{}]


def test_only_the_owner_may_read_the_files(store):
    for path in (store.folder, *store.folder.iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


@pytest.mark.parametrize("number", [0, 1])
def test_changed_ratings_are_refused(store, number):
    path = store.folder / f"ratings-{number:06d}.arrow"
    other = write_ratings(table_of([{0: 1, 3: 3}, {}, {9: 3}]), store.folder.with_name("b"), 2)
    path.write_bytes((other.folder / path.name).read_bytes())
    with pytest.raises(DataChangedError, match=f"from {2 * number} on"):
        RatingStore.open(store.folder).read(Block(2 * number, 1))


def test_a_damaged_or_missing_block_is_refused(store):
    (store.folder / "ratings-000000.arrow").write_bytes(b"nothing")
    (store.folder / "ratings-000001.arrow").unlink()
    for block in (Block(0, 2), Block(2, 1)):
        with pytest.raises(DataChangedError):
            store.read(block)


def test_users_outside_one_block_are_refused(store):
    for block in (Block(1, 2), Block(2, 2)):
        with pytest.raises(InputError, match="not within one block"):
            store.read(block)


def test_a_folder_without_ratings_is_refused(tmp_path):
    with pytest.raises(InputError, match="not a store of ratings"):
        RatingStore.open(tmp_path)


def test_a_failed_import_leaves_nothing_behind_and_the_old_store_in_place(store):
    class Broken:
        scale, n, n_items, block_size, fingerprint = store.scale, 3, 10, 2, "x"

        def read(self, block):
            raise OSError

    with pytest.raises(OSError):  # noqa: PT011 - the one above
        write_ratings(Broken(), store.folder)
    assert [path.name for path in store.folder.parent.iterdir()] == [store.folder.name]
    assert RatingStore.open(store.folder) == store
