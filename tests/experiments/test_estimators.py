import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from dpsim import (
    Attribute,
    Category,
    DpsimError,
    FrequencyEstimator,
    LedgerBook,
    PrivacyLoss,
    Schema,
)
from dpsim.core.errors import InputError
from dpsim.core.ledger import BudgetExceededError
from dpsim.experiments.prepare import SchemaRequiredError

FRAME = pd.DataFrame({"city": ["Ulm", "Bonn", "Bonn", "Kiel"] * 250, "age": range(1_000)})
CITIES = Schema((Attribute("city", Category(("Bonn", "Kiel", "Ulm"))),))


def test_three_lines_are_enough():
    release = FrequencyEstimator("grr", epsilon=8.0).fit(FRAME).release_
    table = release.table("city")
    assert list(table["label"]) == ["Bonn", "Kiel", "Ulm"]
    np.testing.assert_allclose(table["estimate"], [0.5, 0.25, 0.25], atol=0.1)
    assert (table["low"] < table["estimate"]).all()
    assert release.ledger.spent == PrivacyLoss.of(8)
    assert not release.schema.is_declared


def test_a_frame_a_file_and_a_description_are_the_same_data(tmp_path):
    from dpsim.data.sources import parse_generated
    from dpsim.experiments.sample import write_sample

    table = parse_generated("zipf:n=500,k=5")
    write_sample(table, tmp_path / "t.csv")
    estimator = FrequencyEstimator("grr", epsilon="1/3", seed=4)
    one = estimator.fit("zipf:n=500,k=5").release_
    two = clone(estimator).fit(tmp_path / "t.csv").release_
    assert one.rows == two.rows
    frame = pd.read_csv(tmp_path / "t.csv", dtype=str)
    three = FrequencyEstimator(
        "grr", epsilon="1/3", seed=4, schema=tmp_path / "t.schema.toml"
    ).fit(frame)  # fmt: skip
    assert one.rows == three.release_.rows


def test_estimators_can_be_cloned_and_hold_their_keywords():
    estimator = FrequencyEstimator("grr", epsilon=0.1, shards=3)
    assert clone(estimator).get_params() == estimator.get_params()
    assert estimator.epsilon == 0.1


def test_a_shared_ledger_adds_up_and_refuses():
    book = LedgerBook("1")
    fit = FrequencyEstimator("grr", epsilon="0.5", ledger=book, schema=CITIES).fit
    fit(FRAME)
    fit(FRAME)
    assert book.ledger.spent == PrivacyLoss.of("0.5"), "a replay is free"
    FrequencyEstimator("grr", epsilon="0.5", seed=1, ledger=book, schema=CITIES).fit(FRAME)
    assert book.ledger.spent == PrivacyLoss.of(1), "another seed is another release"
    with pytest.raises(BudgetExceededError):
        FrequencyEstimator("grr", epsilon="0.1", ledger=book, schema=CITIES).fit(FRAME)
    with pytest.raises(InputError, match="belongs to other data"):
        FrequencyEstimator("grr", epsilon="0.1", ledger=book, schema=CITIES).fit(FRAME[:500])


def test_strict_needs_a_schema_that_a_person_vouches_for():
    with pytest.raises(SchemaRequiredError):
        FrequencyEstimator("grr", strict=True).fit(FRAME)
    release = FrequencyEstimator("grr", strict=True, schema=CITIES).fit(FRAME).release_
    assert release.schema.is_declared


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), True, "x", None, 31])
def test_a_bad_epsilon_is_refused_in_fit(epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        FrequencyEstimator("grr", epsilon=epsilon).fit(FRAME)


def test_a_list_is_refused_with_what_is_taken():
    with pytest.raises(DpsimError, match="fit takes a DataFrame, a path"):
        FrequencyEstimator("grr").fit([1, 2, 3])  # type: ignore[arg-type]


def test_the_input_frame_is_not_changed():
    before = FRAME.copy(deep=True)
    FrequencyEstimator("grr").fit(FRAME)
    pd.testing.assert_frame_equal(FRAME, before)


@pytest.mark.ray
@pytest.mark.filterwarnings("ignore")
def test_ray_gives_the_same_release_from_python():
    local = FrequencyEstimator("grr", epsilon=1).fit(FRAME).release_
    ray = FrequencyEstimator("grr", epsilon=1, fleet="ray", shards=2).fit(FRAME).release_
    assert local.rows == ray.rows
