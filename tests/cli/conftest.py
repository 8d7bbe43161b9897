"""What the tests of commands share."""

import sys

import pytest

from dpsim.cli.errors import run_safely
from dpsim.cli.main import cli


@pytest.fixture
def dpsim(monkeypatch, capsys, tmp_path):
    """Run a command in an empty folder: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["dpsim", *map(str, words)])
        code = run_safely(cli)
        seen = capsys.readouterr()
        return code, seen.out, seen.err

    return call
