"""Checkpoints: whole, of this round, and without pickles."""

import os
import pickle
import stat
import zipfile
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.records import Block
from dpsim.protocols.shapes import TallyShape
from dpsim.runtime.checkpoint import (
    CheckpointError,
    RoundId,
    checkpoint_path,
    load_checkpoint,
    save_checkpoint,
)

pytestmark = pytest.mark.usefixtures("quick_disk")

ROUND = RoundId("plan", 25, 10, TallyShape(3))
TOTAL = np.array([5, -2, 2**60], np.int64)
DIGESTS = {Block(20, 5): b"b" * 16, Block(0, 10): b"a" * 16}


@pytest.fixture
def path(tmp_path):
    save_checkpoint(tmp_path / "round.ckpt", ROUND, TOTAL, DIGESTS)
    return tmp_path / "round.ckpt"


def test_a_state_comes_back_as_it_was(path):
    total, digests = load_checkpoint(path, ROUND)
    assert total.tolist() == TOTAL.tolist()
    assert total.dtype == np.int64
    assert digests == DIGESTS


def test_an_empty_state_comes_back(path):
    save_checkpoint(path, ROUND, np.zeros(3, np.int64), {})
    total, digests = load_checkpoint(path, ROUND)
    assert (total.tolist(), digests) == ([0, 0, 0], {})


@pytest.mark.parametrize(
    "change",
    [
        {"plan_hash": "other"},
        {"n": 26},
        {"n": 1000},
        {"block_size": 5},
        {"shape": TallyShape(4)},
    ],
)
def test_the_checkpoint_of_another_round_is_refused(path, change):
    with pytest.raises(CheckpointError, match="is not the checkpoint of this round"):
        load_checkpoint(path, replace(ROUND, **change))


@given(st.data())
def test_a_changed_byte_is_noticed_or_changes_nothing(data):
    """Dates in the archive may differ; no sum and no digest may."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "round.ckpt"
        save_checkpoint(path, ROUND, TOTAL, DIGESTS)
        content = bytearray(path.read_bytes())
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] ^= data.draw(st.integers(1, 255))
        path.write_bytes(content)
        try:
            total, digests = load_checkpoint(path, ROUND)
        except CheckpointError:
            return
        assert total.tolist() == TOTAL.tolist()
        assert digests == DIGESTS


@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.99])
def test_a_truncated_checkpoint_is_refused(path, share):
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(CheckpointError):
        load_checkpoint(path, ROUND)


def write_arrays(path, **changes):
    with np.load(path) as arrays:
        values = {**arrays, **changes}
    with path.open("wb") as file:
        np.savez(file, **{name: value for name, value in values.items() if value is not None})


@pytest.mark.parametrize(
    "changes",
    [
        {"total": None}, {"total": np.zeros(4)}, {"starts": np.array([0])},
        {"starts": np.array([0, 7])}, {"digests": np.zeros(31, np.uint8)},
        {"identity": np.zeros(3, np.uint8)},
    ],
)  # fmt: skip
def test_an_archive_that_does_not_fit_together_is_refused(path, changes):
    load_checkpoint(path, ROUND)
    write_arrays(path, **changes)
    with pytest.raises(CheckpointError):
        load_checkpoint(path, ROUND)


@pytest.mark.parametrize("content", [b"", b"hello", pickle.dumps([1, 2])])
def test_what_is_no_archive_is_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(CheckpointError):
        load_checkpoint(path, ROUND)


def test_a_single_array_is_refused(path):
    with path.open("wb") as file:
        np.save(file, TOTAL)
    with pytest.raises(CheckpointError):
        load_checkpoint(path, ROUND)


def test_a_checkpoint_holds_no_pickle(path):
    with zipfile.ZipFile(path) as archive:
        assert {name.removesuffix(".npy") for name in archive.namelist()} == {
            "identity", "total", "starts", "digests",
        }  # fmt: skip
    with np.load(path, allow_pickle=False) as arrays:
        assert {array.dtype.kind for array in arrays.values()} <= {"i", "u"}


class Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_pickle_in_a_checkpoint_is_never_opened(path, tmp_path):
    sprung = tmp_path / "sprung"
    pickle.loads(pickle.dumps(Trap(sprung)))
    assert sprung.exists()
    sprung.unlink()
    write_arrays(path, total=np.array([Trap(sprung)], object))
    with pytest.raises(CheckpointError):
        load_checkpoint(path, ROUND)
    path.write_bytes(pickle.dumps(Trap(sprung)))
    with pytest.raises(CheckpointError):
        load_checkpoint(path, ROUND)
    assert not sprung.exists()


def test_a_failed_write_leaves_the_old_state_and_nothing_else(path, monkeypatch):
    def fail(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="No space left"):
            save_checkpoint(path, ROUND, TOTAL * 0, {})
    assert load_checkpoint(path, ROUND)[1] == DIGESTS
    assert list(path.parent.iterdir()) == [path]


def test_the_file_is_the_owners_alone(tmp_path):
    before = os.umask(0o022)
    try:
        save_checkpoint(tmp_path / "round.ckpt", ROUND, TOTAL, DIGESTS)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "round.ckpt").stat().st_mode) == 0o600


def test_each_plan_has_its_own_file(tmp_path):
    one = checkpoint_path(tmp_path, ROUND)
    assert one != checkpoint_path(tmp_path, replace(ROUND, plan_hash="other"))
    assert one.parent == tmp_path
