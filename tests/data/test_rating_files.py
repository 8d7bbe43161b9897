"""Ratings from files: every layout, every kind of bad row, and nothing private in messages."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsim.core.errors import InputError
from dpsim.data.rating_files import read_ratings
from dpsim.data.ratings import RatingScale
from tests.data.test_ratings import rows_of

STARS = RatingScale(1, 5)
HALVES = RatingScale("0.5", 5, "0.5")
SECRET = "8675309"  # noqa: S105 - a user


def frame(rows, names=("user", "item", "rating")):
    return pd.DataFrame(rows, columns=list(names))


def read(rows, scale=STARS, **more):
    more.setdefault("is_catalog_rated", "catalog" not in more)
    return read_ratings(frame(rows), scale, **more)


def folder_of(tmp_path, files):
    for name, text in files.items():
        (tmp_path / name).write_bytes(text.encode("latin-1"))
    return tmp_path


def times_of(table):
    return np.asarray(table.times)


LAYOUTS = {
    "u.data": (
        {"u.data": "10\t2\t5\t100\n9\t3\t1\t90\n10\t3\t4\t80\n", "u.item": "1|é\n2|b\n3|c\n"},
        STARS,
    ),
    "1m": (
        {
            "ratings.dat": "10::2::5::100\n9::3::1::90\n10::3::4::80\n",
            "movies.dat": "1::é::x\n2::b::x\n3::c::x\n",
            "users.dat": "",
        },
        STARS,
    ),
    "10m": (
        {
            "ratings.dat": "10::2::5::100\n9::3::1::90\n10::3::4::80\n",
            "movies.dat": "1::é::x\n2::b::x\n3::c::x\n",
            "tags.dat": "",
        },
        HALVES,
    ),
    "csv": (
        {
            "ratings.csv": "userId,movieId,rating,timestamp\n"
            "10,2,5.0,100\n9,3,1.0,90\n10,3,4.0,80\n",
            "movies.csv": 'movieId,title,genres\n1,"a, b",x\n2,b,x\n3,c,x\n',
        },
        HALVES,
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_movielens_folder_is_read_with_its_scale_and_catalog(layout, tmp_path):
    files, scale = LAYOUTS[layout]
    table, _ = read_ratings(folder_of(tmp_path, files))
    assert (table.scale, table.catalog, table.users) == (scale, ("1", "2", "3"), ("9", "10"))
    ratings = [
        {item: scale.values(np.array(code)) for item, code in row.items()}
        for row in rows_of(table.piece)
    ]
    assert ratings == [{2: 1.0}, {1: 5.0, 2: 4.0}]
    assert table.rows.tolist() == [1, 0, 2]
    assert np.array_equal(times_of(table), [90, 100, 80])


def test_a_copy_that_is_not_the_published_file_is_noted(tmp_path):
    _, notes = read_ratings(folder_of(tmp_path, LAYOUTS["u.data"][0]))
    assert len(notes) == 1
    assert "md5 differs; 3 of 100,000 rows" in notes[0]


def test_an_inter_file_needs_its_scale(tmp_path):
    path = tmp_path / "ml.inter"
    path.write_text(
        "user_id:token\titem_id:token\trating:float\ttimestamp:float\na\tx\t3.0\t1.5\n"
    )
    with pytest.raises(InputError, match="scale is not known"):
        read_ratings(path, is_catalog_rated=True)
    table, notes = read_ratings(path, STARS, is_catalog_rated=True)
    assert (rows_of(table.piece), times_of(table).tolist(), notes) == ([{0: 2}], [1.5], [])


def test_a_ratings_dat_without_companions_needs_its_scale(tmp_path):
    path = folder_of(tmp_path, {"ratings.dat": "1::2::5::100\n"})
    with pytest.raises(InputError, match="scale is not known"):
        read_ratings(path, catalog=[2])
    assert read_ratings(path, STARS, catalog=[2])[0].piece.items.size == 1


@pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
def test_any_table_with_the_columns_is_read(kind, tmp_path):
    data = frame([("b", "y", 4.5), ("a", "x", 0.5)], ("who", "what", "stars"))
    source = data
    if kind == "csv":
        source = tmp_path / "t.csv"
        data.to_csv(source, index=False)
    elif kind == "parquet":
        source = tmp_path / "t.parquet"
        data.to_parquet(source)
    table, _ = read_ratings(
        source, HALVES, catalog=["z", "y", "x"], columns=("who", "what", "stars")
    )
    assert (table.users, rows_of(table.piece)) == (("a", "b"), [{2: 0}, {1: 8}])


def test_a_float32_column_is_read_as_the_decimals_it_shows():
    data = frame([(1, 2, 0.3)]).astype({"rating": np.float32})
    table, _ = read_ratings(data, RatingScale("0.1", 1, "0.1"), is_catalog_rated=True)
    assert rows_of(table.piece) == [{0: 2}]


def test_ids_are_numbered_as_numbers_or_else_as_texts():
    assert read([(10, 1, 1), (9, 1, 1)])[0].users == ("9", "10")
    assert read([("10", 1, 1), ("9a", 1, 1)])[0].users == ("10", "9a")
    assert read([(10.0, 1, 1), (None, 1, float("nan")), (9.0, 1, 1)])[0].users == ("9", "10")


def test_nan_and_zero_mean_not_rated_and_are_counted():
    rows = [(1, 1, 5), (1, 2, float("nan")), (1, 3, 0), (2, 3, None)]
    table, notes = read(rows)
    assert rows_of(table.piece) == [{0: 4}, {}]
    assert notes == ["3 rows hold no rating; they were left out"]


def test_zero_is_a_rating_where_the_scale_has_it():
    table, notes = read([(1, 1, 0), (1, 2, 5)], RatingScale(0, 5))
    assert (rows_of(table.piece), notes) == ([{0: 0, 1: 5}], [])


@pytest.mark.parametrize(
    ("bad", "scale", "message"),
    [
        (7, STARS, "2 rows have a rating outside 1 to 5 by 1, first at row 2"),
        (0.25, STARS, "2 rows have a rating outside"),
        (2.5, STARS, "2 rows have a rating between the steps"),
        ("great", STARS, "2 rows have no number as rating"),
        (float("inf"), STARS, "2 rows have no number as rating"),
    ],
)
def test_a_bad_rating_is_refused_by_count_and_first_row(bad, scale, message):
    rows = [(1, 1, 5), (SECRET, 2, bad), (SECRET, 3, bad)]
    with pytest.raises(InputError, match=message) as error:
        read(rows, scale)
    assert SECRET not in str(error.value)
    assert str(bad) not in str(error.value).replace("first at row 2", "")


def test_all_problems_are_told_at_once():
    rows = [(1, 1, 7), (None, 1, 1), (1, None, 1), (1, SECRET, 1)]
    with pytest.raises(InputError) as error:
        read(rows, catalog=[1])
    lines = str(error.value).splitlines()
    parts = ("outside 1 to 5", "no user", "no item", "outside the public catalog")
    assert all(part in line for part, line in zip(parts, lines, strict=True))
    assert [f"row {n};" in line for n, line in enumerate(lines, 1)] == [True] * 4
    assert SECRET not in str(error.value)


def test_rows_of_a_csv_are_counted_with_its_header(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("user,item,rating\n1,1,5\n1,2,9\n")
    with pytest.raises(InputError, match="first at row 3"):
        read_ratings(path, STARS, is_catalog_rated=True)


def test_a_catalog_is_never_taken_from_the_ratings_unasked():
    with pytest.raises(InputError, match="no public catalog"):
        read_ratings(frame([(1, 1, 5)]), STARS)
    with pytest.raises(InputError, match="names an item twice"):
        read([(1, 1, 5)], catalog=[1, "1"])


TWICE = [(1, 1, 5, 30), (2, 1, 3, 5), (1, 1, 2, 40), (1, 1, 1, 20)]
NAMES = ("user", "item", "rating", "time")


def test_a_repeated_rating_is_refused_with_its_first_row():
    with pytest.raises(InputError, match=r"2 rows have an item its user had rated.*row 3"):
        read_ratings(frame(TWICE, NAMES), STARS, is_catalog_rated=True)


def test_the_latest_of_repeated_ratings_counts_and_else_the_later_row():
    settle: dict[str, Any] = {"is_catalog_rated": True, "duplicates": "last"}
    table, notes = read_ratings(frame(TWICE, NAMES), STARS, **settle)
    assert rows_of(table.piece) == [{0: 1}, {0: 2}]
    assert notes == ["2 repeated ratings were settled: last"]
    table, _ = read_ratings(frame([row[:3] for row in TWICE]), STARS, **settle)
    assert rows_of(table.piece) == [{0: 0}, {0: 2}]
    equal = [(1, 1, 5, 7), (1, 1, 2, 7)]
    assert rows_of(read_ratings(frame(equal, NAMES), STARS, **settle)[0].piece) == [{0: 1}]


def test_the_mean_of_repeated_ratings_is_rounded_to_the_step_and_halves_up():
    settle: dict[str, Any] = {"is_catalog_rated": True, "duplicates": "mean"}
    table, _ = read_ratings(frame(TWICE, NAMES), STARS, **settle)
    assert rows_of(table.piece) == [{0: 2}, {0: 2}]
    table, _ = read_ratings(frame([(1, 1, 5), (1, 1, 4)]), STARS, **settle)
    assert rows_of(table.piece) == [{0: 4}]
    table, _ = read_ratings(frame([(1, 1, 1), (1, 1, 1), (1, 1, 2)]), STARS, **settle)
    assert rows_of(table.piece) == [{0: 0}]


def test_an_unknown_policy_is_refused():
    with pytest.raises(InputError, match="duplicates must be"):
        read([(1, 1, 5)], duplicates="first")


@pytest.mark.parametrize("columns", [("a",), ("user", "item", "stars"), ("user",) * 5])
def test_columns_that_are_not_there_are_refused(columns):
    with pytest.raises(InputError, match="there are: user, item, rating"):
        read([(1, 1, 5)], columns=columns)


def test_a_table_without_the_usual_names_says_what_it_has():
    with pytest.raises(InputError, match="no column of item and rating among user, x"):
        read_ratings(frame([(1, 2)], ("user", "x")), STARS, is_catalog_rated=True)


def test_ragged_rows_and_missing_files_are_refused(tmp_path):
    path = folder_of(tmp_path, {"u.data": f"1\t2\t3\t4\n{SECRET}\t2\n"}) / "u.data"
    with pytest.raises(InputError, match="4 fields") as error:
        read_ratings(path)
    assert SECRET not in str(error.value)
    with pytest.raises(InputError, match="does not exist"):
        read_ratings(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"holds none of u\.data"):
        read_ratings(tmp_path / "empty")


def test_times_must_be_numbers():
    rows = [(1, 1, 5, "noon")]
    with pytest.raises(InputError, match="times must be numbers"):
        read_ratings(frame(rows, NAMES), STARS, is_catalog_rated=True)


def test_timestamps_of_a_data_frame_are_kept_in_order():
    rows = [(1, 1, 5, pd.Timestamp("2020-01-02")), (1, 1, 2, pd.Timestamp("2020-01-01"))]
    settle: dict[str, Any] = {"is_catalog_rated": True, "duplicates": "last"}
    assert rows_of(read_ratings(frame(rows, NAMES), STARS, **settle)[0].piece) == [{0: 4}]
