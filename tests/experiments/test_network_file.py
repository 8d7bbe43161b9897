"""A network in a file: read as written, refused in one line."""

import pytest

from dpsim.core.errors import InputError
from dpsim.experiments.network_file import read_network


def test_children_and_parents_are_read_in_order(tmp_path):
    path = tmp_path / "net.json"
    path.write_text('[["b", ["a"]], ["c", ["a", "b"]], ["a", []]]')
    assert read_network(path) == (("b", ("a",)), ("c", ("a", "b")), ("a", ()))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no JSON"),
        ('{"b": ["a"]}', "is no network"),
        ('[["b", "a"]]', "is no network"),
        ('[["b", [1]]]', "is no network"),
        ('[["b"]]', "is no network"),
        ('["b"]', "is no network"),
    ],
)  # fmt: skip
def test_what_is_no_network_is_refused(text, message, tmp_path):
    path = tmp_path / "net.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_network(path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match="cannot read the network file"):
        read_network(tmp_path / "none.json")
