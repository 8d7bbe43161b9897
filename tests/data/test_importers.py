"""Imports: all of a table, or nothing and one list of reasons."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.records import blocks_of
from dpsim.core.schema import Attribute, Bins, Category, CodeRange, Schema
from dpsim.data.block_store import BlockStore
from dpsim.data.importers import check_table, import_table
from dpsim.data.tables import frame_table, open_table

CANARY = "s3cr3t-c4n4ry"
SCHEMA = Schema(
    (
        Attribute("age", Bins(17.0, 90.0, 16)),
        Attribute("job", Category(("cook", "judge"), other=True), "category"),
        Attribute("region", CodeRange(8)),
    )
)
CSV = "region,job,age,extra\n3,judge,17,x\n0,,120,y\n7,baker,21.5625,z\n"


def write(folder, text):
    path = folder / "people.csv"
    path.write_text(text, "utf-8", newline="")
    return path


def codes_of(store: BlockStore) -> dict[str, list[int]]:
    records = [store.read(block) for block in blocks_of(store.n, store.block_size)]
    return {
        name: [code for part in records for code in part.open(name).tolist()]
        for name in store.schema.names
    }


def test_a_file_becomes_a_store_of_codes(tmp_path):
    table = open_table(write(tmp_path, CSV))
    store, notes = import_table(table, SCHEMA, tmp_path / "store", block_size=2)
    assert store.n == 3
    assert codes_of(store) == {"age": [0, 15, 1], "job": [1, 3, 2], "region": [3, 0, 7]}
    assert codes_of(BlockStore.open(tmp_path / "store")) == codes_of(store)
    assert notes == [
        "age: 1 row is outside the bounds; the nearest bound stands for such numbers",
        "not in the schema, so ignored: extra",
    ]


def test_csv_parquet_and_frames_give_the_same_store(tmp_path):
    path = write(tmp_path, CSV)
    frame = pd.read_csv(path)
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "people.parquet")
    tables = [open_table(path), open_table(tmp_path / "people.parquet"), frame_table(frame)]
    stores = [
        import_table(table, SCHEMA, tmp_path / f"store{i}", 2)[0]
        for i, table in enumerate(tables)
    ]
    assert len({store.fingerprint for store in stores}) == 1


def test_a_header_alone_gives_a_store_without_users(tmp_path):
    table = open_table(write(tmp_path, "age,job,region,extra\n"))
    store, notes = import_table(table, SCHEMA, tmp_path / "store", 2)
    assert store.n == 0
    assert BlockStore.open(tmp_path / "store").n == 0
    assert notes == ["not in the schema, so ignored: extra"]


def test_all_problems_are_told_at_once_and_nothing_is_left_behind(tmp_path):
    schema = Schema((*SCHEMA.attributes, Attribute("extra", Category(("x",)))))
    bad = f"{CANARY},,{CANARY},{CANARY}\n9,cook,,x\n1,cook,inf,x\n"
    table = open_table(write(tmp_path, CSV + bad))
    with pytest.raises(InputError) as caught:
        import_table(table, schema, tmp_path / "store", 1)
    assert str(caught.value).splitlines() == [
        "the data does not fit the schema; nothing was imported",
        'age: 1 row is missing; fill the gaps, or declare missing = "category"',
        "age: 1 row is not numeric; write decimal numbers such as -1.5",
        "age: 1 row is infinite or NaN; write finite numbers",
        "region: 1 row is not numeric; write decimal numbers such as -1.5",
        "region: 1 row is outside the codes 0..size-1; "
        "write smaller codes, or declare a larger size",
        "extra: 3 rows are outside the declared values; "
        "list every value, or declare other = true",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


def test_a_broken_file_leaves_nothing_behind(tmp_path):
    table = open_table(write(tmp_path, CSV + f"{CANARY}\n"))
    with pytest.raises(InputError, match="1 row has another number of fields") as caught:
        import_table(table, SCHEMA, tmp_path / "store", 1)
    assert CANARY not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


@pytest.mark.parametrize("rows", ["", f"1,{CANARY}\n"])
def test_a_table_that_lacks_an_attribute_is_refused(tmp_path, rows):
    table = open_table(write(tmp_path, f"Region,job\n{rows}"))
    for act in (
        lambda: import_table(table, SCHEMA, tmp_path / "store", 1),
        lambda: check_table(table, SCHEMA),
    ):
        with pytest.raises(InputError) as caught:
            act()
        assert "no column for: age, region (nearest: Region);" in str(caught.value)
        assert CANARY not in str(caught.value)
    assert not (tmp_path / "store").exists()


def test_a_check_counts_without_writing(tmp_path):
    findings = check_table(open_table(write(tmp_path, CSV + f"1,cook,{CANARY},\n")), SCHEMA)
    assert findings.n == 4
    assert len(findings.errors) == 1
    assert len(findings.notes) == 2
    assert CANARY not in repr(findings)
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


@given(st.lists(st.integers(0, 7), max_size=30), st.integers(1, 12))
def test_codes_do_not_depend_on_the_block_size(tmp_path_factory, codes, block_size):
    schema = Schema((Attribute("region", CodeRange(8)),))
    table = frame_table(pd.DataFrame({"region": np.array(codes, dtype=np.int64)}))
    folder = tmp_path_factory.mktemp("import") / "store"
    store, _ = import_table(table, schema, folder, block_size)
    assert codes_of(store) == {"region": codes}
