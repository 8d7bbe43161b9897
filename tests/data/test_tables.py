"""Raw tables: from files and frames, with a clear refusal that never quotes one."""

import datetime as dt
import os

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsim.core.errors import InputError
from dpsim.data.tables import RawTable, frame_table, open_table

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


def test_what_is_no_readable_file_is_refused(csv, tmp_path):
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    assert "none.csv does not exist" in refusal(lambda: open_table(tmp_path / "none.csv"))
    assert "folder.csv is not a file" in refusal(lambda: open_table(folder))
    assert "people.csv is empty" in refusal(lambda: open_table(csv("")))
    message = refusal(lambda: open_table(tmp_path / "people.xlsx"))
    assert message == "a table must be a .csv or .parquet file, got people.xlsx"


def test_a_file_without_the_right_to_read_is_refused(csv, monkeypatch):
    path = csv("a\n1\n")
    path.chmod(0)
    if os.access(path, os.R_OK):  # root may read everything

        def deny(*args, **kwargs):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(type(path), "open", deny)
    assert "people.csv: Permission denied" in refusal(lambda: open_table(path))


def test_parquet_keeps_its_types(tmp_path):
    path = tmp_path / "x.PARQUET"
    table = pa.table({"a": [1, None], "b": pa.array(["x", "y"]).dictionary_encode()})
    pq.write_table(table, path)
    raw = open_table(path)
    assert raw.names == ("a", "b")
    assert rows(raw) == rows(raw) == [(1, "x"), (None, "y")]


def test_parquet_without_rows_is_an_empty_table(tmp_path):
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "x.parquet")
    assert rows(open_table(tmp_path / "x.parquet")) == []


def test_parquet_with_duplicate_names_is_refused(tmp_path):
    table = pa.table([pa.array([CANARY]), pa.array([CANARY])], names=["a", "a"])
    pq.write_table(table, tmp_path / "x.parquet")
    assert "same name: a" in refusal(lambda: open_table(tmp_path / "x.parquet"))


def test_damaged_parquet_is_refused(tmp_path):
    path = tmp_path / "x.parquet"
    path.write_text(CANARY * 10)
    assert "is not a Parquet file, or it is damaged" in refusal(lambda: open_table(path))
    pq.write_table(pa.table({"a": [CANARY] * 1000}), path, compression="zstd")
    content = bytearray(path.read_bytes())
    raw = open_table(path)
    content[8:60] = b"\xff" * 52
    path.write_bytes(content)
    assert "is damaged, or it changed" in refusal(lambda: rows(raw))


def test_a_frame_gives_labels_for_categoricals_and_null_for_absence():
    day = dt.datetime(2020, 1, 2)
    frame = pd.DataFrame(
        {
            "label": pd.Categorical(["b", None, "a"], categories=["a", "b"]),
            "number": pd.Categorical([30, 10, 30]),
            "float": [1.5, float("nan"), 2.0],
            "text": ["x", None, "y"],
            "day": [day, None, day],
            "flag": [True, False, True],
        }
    )
    table = frame_table(frame)
    assert table.names == tuple(frame.columns)
    assert (
        rows(table)
        == rows(table)
        == [
            ("b", 30, 1.5, "x", day, True),
            (None, 10, None, None, None, False),
            ("a", 30, 2.0, "y", day, True),
        ]
    )


def test_mixed_cells_of_a_frame_become_texts():
    frame = pd.DataFrame(
        {"a": pd.Series([1, "x", None, 2.5, float("nan"), True], dtype=object)}
    )
    expected = [("1",), ("x",), (None,), ("2.5",), (None,), ("True",)]
    assert rows(frame_table(frame)) == expected


def test_intervals_and_periods_become_texts():
    frame = pd.DataFrame(
        {
            "cut": pd.cut(pd.Series([1.0, None, 9.0]), [0, 5, 10]),
            "month": pd.period_range("2020-01", periods=3, freq="M"),
        }
    )
    assert rows(frame_table(frame)) == [
        ("(0, 5]", "2020-01"),
        (None, "2020-02"),
        ("(5, 10]", "2020-03"),
    ]


def test_a_frame_without_rows_is_an_empty_table():
    assert rows(frame_table(pd.DataFrame({"a": []}))) == []


def test_frames_with_bad_names_are_refused():
    duplicate = pd.DataFrame([[CANARY, CANARY]], columns=["a", "a"])
    assert refusal(lambda: frame_table(duplicate)) == (
        "the data frame has columns of the same name: a; rename all but one"
    )
    numbered = pd.DataFrame([[CANARY, CANARY]])
    assert refusal(lambda: frame_table(numbered)) == (
        "the data frame's column names must be texts; write df.columns = df.columns.astype(str)"
    )
    assert "has no columns" in refusal(lambda: frame_table(pd.DataFrame()))


def test_cells_that_have_no_text_are_refused():
    class Stubborn:
        def __str__(self):
            raise RuntimeError(CANARY)

    frame = pd.DataFrame({"a": [Stubborn(), 1]})
    assert "column 'a' of the data frame" in refusal(lambda: frame_table(frame))
    frame = pd.DataFrame({"a": pd.Series([CANARY + "\ud800", 1], dtype=object)})
    assert "column 'a' of the data frame" in refusal(lambda: frame_table(frame))


def test_a_table_shows_its_names_only():
    assert CANARY not in repr(frame_table(pd.DataFrame({"a": [CANARY]})))
