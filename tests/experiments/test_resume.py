"""A run survives its driver: killed at any moment, it ends with the same bits."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = "planted:n=3000000,d=6,k=4"
WORDS = ["run", "grr", DATA, "--epsilon", "2", "--seed", "4", "--no-truth", "--json"]


def dpsim(folder, *words):
    call = [sys.executable, "-m", "dpsim", *words]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        call, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def finish(folder, *words):
    process = dpsim(folder, *words)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return json.loads(out)


def wait_for_blocks(events, least):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        lines = events.read_text().splitlines() if events.exists() else []
        rows = [json.loads(line) for line in lines if line.endswith("}")]
        done = max([row.get("blocks_done", 0) for row in rows], default=0)
        if done >= least:
            return done, rows[-1]["blocks"]
        time.sleep(0.01)
    raise TimeoutError(f"no {least} blocks after a minute")


def leftovers(folder):
    """Processes of Ray whose working folder is the run's."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cwd").readlink() == folder:
                found.append((entry.name, (entry / "cmdline").read_bytes()[:80]))
        except OSError:
            continue
    return found


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_driver_is_resumed_with_other_shards_to_the_same_bits(how, tmp_path):
    clean = finish(tmp_path, *WORDS, "--name", "clean", "--fleet", "local")
    process = dpsim(
        tmp_path, *WORDS, "--name", "killed", "--fleet", "ray", "--shards", "2",
        "--block-size", "8192",
    )  # fmt: skip
    done, blocks = wait_for_blocks(tmp_path / "runs/killed/events.jsonl", 1)
    os.kill(process.pid, how)
    out, _ = process.communicate(timeout=60)
    assert done < blocks, "it was killed too late to show anything"
    expected = {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}
    assert process.returncode == expected[how]
    if how != signal.SIGKILL:
        assert "resume" in json.loads(out)["error"]
    deadline = time.monotonic() + 10
    while leftovers(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert leftovers(tmp_path) == []
    resumed = finish(tmp_path, "resume", "runs/killed", "--json", "--no-truth", "--fleet",
                     "ray", "--shards", "5")  # fmt: skip
    assert resumed["attributes"] == clean["attributes"]
    assert resumed["privacy"] == clean["privacy"]
    charges = (tmp_path / "runs/killed/ledger.jsonl").read_text().count('"plan_hash"')
    assert charges == 1
    again = finish(tmp_path, "resume", "runs/killed", "--json")
    assert again == resumed


def test_resume_refuses_changed_data(tmp_path):
    (tmp_path / "my.csv").write_text("a\n" + "x\ny\n" * 100)
    finish(tmp_path, "run", "grr", "my.csv", "--name", "r", "--json")
    (tmp_path / "runs/r/results/result.json").unlink()
    finish(tmp_path, "resume", "runs/r", "--json")
    (tmp_path / "runs/r/results/result.json").unlink()
    (tmp_path / "my.csv").write_text("a\n" + "x\ny\n" * 101)
    process = dpsim(tmp_path, "resume", "runs/r")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 6
    assert "my.csv has changed since the run began" in err


def test_a_run_in_use_is_refused(tmp_path):
    import fcntl

    finish(tmp_path, "run", "grr", "zipf:", "--name", "r", "--json")
    with (tmp_path / "runs/r/lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        process = dpsim(tmp_path, "resume", "runs/r")
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "in use by another process" in err


def test_an_edited_ledger_stops_the_run(tmp_path):
    finish(tmp_path, "run", "grr", "zipf:", "--name", "r", "--json")
    (tmp_path / "runs/r/results/result.json").unlink()
    path = tmp_path / "runs/r/ledger.jsonl"
    path.write_text(path.read_text().replace('"epsilon": "1"', '"epsilon": "0.1"'))
    process = dpsim(tmp_path, "resume", "runs/r")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 6
    assert "ledger was changed" in err


def test_files_are_private_whatever_the_umask(tmp_path):
    before = os.umask(0o022)
    try:
        (tmp_path / "my.csv").write_text("a\n" + "x\ny\n" * 100)
        finish(tmp_path, "run", "grr", "my.csv", "--name", "r", "--json")
    finally:
        os.umask(before)
    for path in (tmp_path / "runs").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


@pytest.mark.ray
def test_each_user_can_have_an_actor_of_its_own(tmp_path):
    together = finish(tmp_path, "run", "grr", "zipf:n=6,k=3", "--json")
    apart = finish(tmp_path, "run", "grr", "zipf:n=6,k=3", "--json", "--actor-per-user")
    assert apart["attributes"] == together["attributes"]
    started = (tmp_path / apart["run"] / "events.jsonl").read_text().splitlines()[0]
    assert json.loads(started)["shards"] == 6
