"""CSV files: every cell as it is, and a clear refusal that never quotes one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.data import csv_file
from dpsim.data.tables import RawTable, open_table

CANARY = "s3cr3t-c4n4ry"


@pytest.fixture
def csv(tmp_path):
    def write(content: bytes | str):
        path = tmp_path / "people.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def rows(table: RawTable) -> list[tuple[object, ...]]:
    batches = [batch.to_pydict() for batch in table.batches()]
    columns = [[cell for batch in batches for cell in batch[name]] for name in table.names]
    return list(zip(*columns, strict=True))


def refusal(act) -> str:
    with pytest.raises(InputError) as caught:
        act()
    error = caught.value
    assert error.__suppress_context__ or error.__context__ is None
    assert CANARY not in repr(error)
    return str(error)


def test_cells_stay_as_they_are(csv):
    table = open_table(csv("a,b\nNA,00123\nnull,9007199254740993\n,1e5\n true ,x\n"))
    assert table.names == ("a", "b")
    assert rows(table) == [
        ("NA", "00123"),
        ("null", "9007199254740993"),
        ("", "1e5"),
        (" true ", "x"),
    ]


def test_a_table_can_be_read_again(csv):
    table = open_table(csv("a\n1\n2\n"))
    assert rows(table) == rows(table) == [("1",), ("2",)]


@pytest.mark.parametrize("text", ["a,b", "a,b\n", "a,b\r\n", "\ufeffa,b\n"])
def test_a_header_alone_is_an_empty_table(csv, text):
    table = open_table(csv(text))
    assert table.names == ("a", "b")
    assert rows(table) == []


def test_quoted_cells_may_hold_newlines_commas_and_quotes(csv):
    table = open_table(csv('"a\nz",b\n"x\ny","p,""q"""\n'))
    assert table.names == ("a\nz", "b")
    assert rows(table) == [("x\ny", 'p,"q"')]


def test_a_byte_order_mark_is_accepted(csv):
    assert open_table(csv('\ufeff"a",b\n1,2\n')).names == ("a", "b")


def test_empty_lines_are_no_rows_but_missing_values_of_a_single_column(csv):
    assert rows(open_table(csv("a,b\n1,2\n\n3,4\n\n"))) == [("1", "2"), ("3", "4")]
    assert rows(open_table(csv("a\n1\n\n2\n"))) == [("1",), ("",), ("2",)]


cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)


@given(st.lists(st.tuples(cells, cells), max_size=20), st.integers(16, 99))
def test_any_text_survives_any_block_size(tmp_path_factory, records, block_bytes):
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    quoted = [",".join('"' + cell.replace('"', '""') + '"' for cell in r) for r in records]
    path.write_text("\n".join(["a,b", *quoted]), "utf-8", newline="")
    longest = max((len(line.encode()) for line in quoted), default=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_file, "_BLOCK_BYTES", block_bytes + longest)
        assert rows(open_table(path)) == records


@pytest.mark.parametrize("block_bytes", [24, 1 << 20])
def test_ragged_rows_are_counted_and_refused(csv, monkeypatch, block_bytes):
    monkeypatch.setattr(csv_file, "_BLOCK_BYTES", block_bytes)
    good = "1,2,3\n" * 5
    table = open_table(csv(f"a,b,c\n{good}{CANARY}\n{good}1,{CANARY},3,4\n{good}1,2\n"))
    assert refusal(lambda: rows(table)).endswith(
        "people.csv: 3 rows have another number of fields than the header's 3; "
        "first at row 7, counting the header as row 1"
    )


def test_a_single_short_row_is_refused_even_if_it_is_all(csv):
    message = refusal(lambda: rows(open_table(csv(f"a,b\n{CANARY}\n"))))
    assert "1 row has another number of fields than the header's 2; first at row 2" in message


def test_an_unclosed_quote_is_refused(csv):
    message = refusal(lambda: open_table(csv(f'a,b\n1,"{CANARY}\n3,4\n5,6\n')))
    assert "a quotation mark is not closed" in message


def test_a_row_longer_than_a_block_is_refused(csv, monkeypatch):
    monkeypatch.setattr(csv_file, "_BLOCK_BYTES", 64)
    table = open_table(csv(f"a,b\n1,2\n1,{CANARY * 20}\n"))
    assert "cannot be read as CSV: it changed, or a row is longer" in refusal(
        lambda: rows(table)
    )


def test_a_file_that_vanished_is_refused(csv):
    path = csv("a,b\n1,2\n")
    table = open_table(path)
    path.unlink()
    assert "it changed" in refusal(lambda: rows(table))


@pytest.mark.parametrize(
    "content",
    [
        f"a,b\n{CANARY},\xe9\n".encode("latin-1"),
        f"a,b\n{CANARY},1\n".encode("utf-16"),
        f"{CANARY}\xff,b\n1,2\n".encode("latin-1"),
        f"a,b\n1,{CANARY}\n".encode() + b"\xc3",
    ],
)
def test_other_encodings_are_refused_with_the_remedy(csv, content):
    message = refusal(lambda: open_table(csv(content)))
    assert message.endswith(
        "people.csv is not UTF-8; convert it, for example from Latin-1 by "
        "iconv -f LATIN1 -t UTF-8"
    )


def test_a_character_may_lie_across_the_parts_of_a_scan(csv, monkeypatch):
    monkeypatch.setattr(csv_file, "_SCAN_BYTES", 3)
    assert rows(open_table(csv("a\néé€\n"))) == [("éé€",)]


def test_nul_bytes_are_refused(csv):
    assert "holds NUL bytes" in refusal(lambda: open_table(csv(f"a,b\n{CANARY}\0,1\n")))


def test_duplicate_column_names_are_refused(csv):
    message = refusal(lambda: open_table(csv(f"a,b,a,c,b\n{CANARY},2,3,4,5\n")))
    assert message.endswith("has columns of the same name: a, b; rename all but one")


def test_a_column_without_name_is_refused(csv):
    message = refusal(lambda: open_table(csv(f"a,,c\n{CANARY},2,3\n")))
    assert "column 2 has no name" in message


@pytest.mark.parametrize("content", [b"\n1,2\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
def test_a_file_without_header_is_refused(csv, content):
    assert "its first line must name them" in refusal(lambda: open_table(csv(content)))


def test_a_header_with_too_long_a_name_is_refused(csv):
    assert "the header cannot be read" in refusal(lambda: open_table(csv("a" * 200_000)))
