"""Published tables, computed anew."""

import pytest

from dpsim.experiments import reproduce_notes
from dpsim.experiments.reproduce import TABLES, Reproduction, reproduce
from dpsim.synthesis.notes_floor import floor_of_report


def test_a_table_fits_a_screen_and_says_its_verdict():
    found = Reproduction("t", ("a", "b"), (("1", "22"),), "word " * 40, 5.0)
    assert not found.holds
    assert max(map(len, found.lines())) <= 80
    assert "NOT reproduced" in list(found.lines())[-1]
    assert found.as_dict()["rows"] == [{"a": "1", "b": "22"}]


def test_the_notes_tables_are_the_sampling_floor(monkeypatch):
    small = [row for row in reproduce_notes.PRINTED if row[:2] == (50, 1_000)]
    monkeypatch.setattr(reproduce_notes, "PRINTED", tuple(small))
    told: list[str] = []
    found = reproduce("dp2pub-notes", 0, told.append)
    assert found.holds
    assert len(told) == len(found.rows) == 3
    assert "sampling floor" in found.meaning
    assert max(map(len, found.lines())) <= 80


def test_wrong_figures_are_not_reproduced(monkeypatch):
    """A floor that is 5 % off, and nothing else, must be seen."""
    row = reproduce_notes.PRINTED[3]
    monkeypatch.setattr(reproduce_notes, "PRINTED", (row,))
    monkeypatch.setattr(
        reproduce_notes,
        "floor_of_report",
        lambda size, n, keep: floor_of_report(size, round(0.9 * n), keep),
    )
    assert not reproduce("dp2pub-notes", 0, lambda text: None).holds


@pytest.mark.parametrize("name", TABLES)
def test_every_table_says_what_it_is(name):
    assert TABLES[name][1]
