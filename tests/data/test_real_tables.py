"""Real tables, where there are any: NLTCS and Adult as codes, with declared domains."""

import os
from pathlib import Path

import numpy as np
import pytest

from dpsim.core.records import blocks_of
from dpsim.core.schema import Attribute, CodeRange, Schema
from dpsim.data.importers import check_table, import_table
from dpsim.data.tables import open_table
from dpsim.evaluation.truth import true_rows
from dpsim.experiments.estimators import FrequencyEstimator
from dpsim.experiments.prepare import Wish, prepare

FOLDER = Path(os.environ.get("DPSIM_DATA", Path(__file__).parents[3] / "shared" / "data"))
TABLES = {
    "nltcs": (21_574, (2,) * 16),
    "adult": (45_222, (16, 7, 16, 16, 16, 7, 14, 6, 5, 2, 8, 15, 16, 41, 2)),
}


@pytest.fixture(params=TABLES)
def table(request):
    path = FOLDER / request.param / f"{request.param}.csv"
    if not path.exists():
        pytest.skip(f"no {path.name}: set DPSIM_DATA to the folder of real tables")
    n, sizes = TABLES[request.param]
    attributes = [Attribute(str(i), CodeRange(size)) for i, size in enumerate(sizes)]
    return path, n, Schema(tuple(attributes))


def test_a_real_table_fits_its_declared_domain(table, tmp_path):
    path, n, schema = table
    assert check_table(open_table(path), schema).errors == []
    store, _ = import_table(open_table(path), schema, tmp_path / "store", 4_096)
    assert store.n == n
    for attribute in schema:
        parts = [store.read(block).open(attribute.name) for block in blocks_of(n, 4_096)]
        assert np.concatenate(parts).max() == attribute.size - 1


@pytest.mark.statistical
@pytest.mark.parametrize("method", ["grr", "oue", "olh", "ss"])
def test_shares_of_a_real_table_lie_within_their_errors(table, method, tmp_path):
    path, _, schema = table
    estimator = FrequencyEstimator(method, epsilon=2, collect="sample", schema=schema)
    release = estimator.fit(path).release_
    source = prepare(str(path), Wish(schema=schema), tmp_path).source
    scores = [
        (row.estimate - truth) / row.standard_error
        for row, truth in zip(release.rows, true_rows(source, release), strict=True)
        if row.estimate is not None and truth is not None and row.standard_error
    ]
    assert len(scores) == sum(attribute.size for attribute in schema)
    assert np.abs(scores).max() < 5
    # Binary attributes have one independent score each: at least as many as attributes.
    assert abs(np.std(scores) - 1) < 5 * (1 / (2 * len(schema))) ** 0.5
