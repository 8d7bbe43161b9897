"""The package as a whole: its shape, its public names, its wheel."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dpsim

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "dpsim").rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_is_too_long_to_be_one_idea(path):
    assert len(path.read_text("utf-8").splitlines()) <= 300


def test_the_top_level_holds_what_it_should_and_no_more():
    listed = subprocess.run(
        ["git", "ls-files"],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split()
    if not listed:
        pytest.skip("not a git checkout")
    folders = {name.split("/")[0] for name in listed if "/" in name}
    files = {name for name in listed if "/" not in name}
    assert folders == {"dpsim", "cluster", "tests", "scripts", ".ci"}
    assert files == {
        "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "ARCHITECTURE.md",
        ".gitignore",
    }  # fmt: skip


def test_every_public_name_resolves():
    assert set(dpsim._HOMES) == set(dpsim.__all__)
    for name in dpsim.__all__:
        assert getattr(dpsim, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = dpsim.nothing


def test_import_dpsim_loads_nothing_heavy():
    code = "import dpsim, sys; print(*sys.modules)"
    seen = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert not {"ray", "numpy", "pandas", "sklearn", "pyarrow"} & set(seen.stdout.split())


def test_a_shard_needs_neither_pandas_nor_scikit_learn():
    """What a worker process loads to answer: memory and start-up of every shard."""
    code = "import dpsim.runtime.ray_fleet, dpsim.data.block_store, sys; print(*sys.modules)"
    seen = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert not {"pandas", "sklearn", "scipy", "pydantic", "rich"} & set(seen.stdout.split())


def test_the_changelog_has_a_section_for_the_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert f"## {project['version']}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_bare_wheel_installs_and_runs_in_an_empty_environment(tmp_path):
    """Without lock and extras: finds dependencies and files that are not declared."""
    if os.environ.get("DPSIM_OFFLINE"):
        pytest.skip("DPSIM_OFFLINE is set: nothing can be installed")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    build = ["wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index", "-w"]
    subprocess.run([*pip, *build, str(tmp_path), str(ROOT)], check=True)
    (wheel,) = tmp_path.glob("dpsim-*.whl")
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", str(bare)], check=True)
    install = [bare / "bin/python", "-m", "pip", "install", "-q", "--no-input", str(wheel)]
    subprocess.run(install, check=True, cwd=tmp_path)
    subprocess.run([bare / "bin/python", "-m", "pip", "check"], check=True, cwd=tmp_path)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    demo = subprocess.run(
        [bare / "bin/dpsim", "demo", "--quick", "--shards", "2"], cwd=tmp_path, text=True,
        env=environment, capture_output=True, check=False,
    )  # fmt: skip
    assert demo.returncode == 0, demo.stderr
    assert "the same bits" in demo.stdout
    assert list((bare / "lib").glob("python*/site-packages/dpsim/py.typed"))
