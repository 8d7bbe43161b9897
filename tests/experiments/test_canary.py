"""A value planted in the raw data is found nowhere but in the raw data."""

import os
from pathlib import Path

import pytest
import ray
from ray._private import worker

from dpsim.experiments.run import Job, Listener, start
from dpsim.experiments.run_directory import RunDirectory
from dpsim.experiments.spec import RunSpec, RuntimeProfile
from dpsim.runtime.ray_session import ray_session

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("ignore")]

TOKEN = "c4n4ry-t0k3n-9f3a"  # noqa: S105
NUMBER = 7_131_719_232_931_374
NEEDLES = [
    TOKEN.encode(),
    TOKEN.encode("utf-16-le"),
    str(NUMBER).encode(),
    NUMBER.to_bytes(8, "little"),
    float(NUMBER).hex().encode(),
]


def hits(*roots):
    found = []
    for root in roots:
        for path in Path(root).rglob("*"):
            if path.is_file() and not path.is_symlink():
                content = path.read_bytes()
                found += [(path, needle) for needle in NEEDLES if needle in content]
    return found


@pytest.fixture
def table(tmp_path):
    rows = [f"{'xyz'[i % 3]},{i % 100}" for i in range(3_000)]
    rows[1_234] = f"{TOKEN},{NUMBER}"
    path = tmp_path / "data" / "private.csv"
    path.parent.mkdir()
    path.write_text("label,number\n" + "\n".join(rows) + "\n")
    return path


def run(table, tmp_path, name, **changes):
    spec = RunSpec(method="grr", data=str(table), **changes)
    profile = RuntimeProfile(fleet="ray", shards=2, block_size=500)
    directory = RunDirectory.named(tmp_path / "runs", name)
    return start(Job(spec, profile, directory), Listener())


def test_a_planted_value_appears_in_no_artifact_log_error_or_result(table, tmp_path, capfd):
    (tmp_path / "strict.toml").write_text(
        '[attribute]\nlabel = {kind = "category", values = ["x", "y", "z"]}\n'
        'number = {kind = "number", bounds = [0, 100], bins = 10}\n'
    )
    texts = []
    with ray_session(2):
        logs = worker._global_node.get_session_dir_path()
        result = run(table, tmp_path, "good")
        texts.append(repr(result))
        bad: dict[str, dict[str, object]] = {
            "unseen": {"schema_file": str(tmp_path / "strict.toml")},
            "unknown": {"attributes": ("nothing",)},
            "budget": {"limit": "0.5"},
        }
        for name, changes in bad.items():
            with pytest.raises(Exception) as caught:  # noqa: PT011
                run(table, tmp_path, name, **changes)
            texts += [repr(caught.value), str(caught.value), repr(caught.value.__cause__)]
        assert hits(tmp_path / "runs", logs) == []
        for store in (tmp_path / "runs/.stores").glob("*/block-000002.arrow"):
            store.write_bytes(store.read_bytes()[:-200])
        with pytest.raises(Exception, match="not the one that was imported") as caught:
            run(table, tmp_path, "corrupt")
        texts.append(repr(caught.value))
        assert hits(tmp_path / "runs", logs) == []
    seen = capfd.readouterr()
    everything = "\n".join([*texts, seen.out, seen.err]).encode()
    assert not [needle for needle in NEEDLES if needle in everything]


def test_the_search_finds_a_print_in_an_actor(tmp_path):
    """The control: a shard that prints a record would be caught."""

    @ray.remote(num_cpus=0)
    def leak():
        print(TOKEN, flush=True)  # noqa: T201
        return os.getpid()

    with ray_session(1):
        ray.get(leak.remote())
        assert hits(worker._global_node.get_session_dir_path())
