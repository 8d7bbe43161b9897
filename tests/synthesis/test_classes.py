"""The model of classes: exact marginals, and records by their index."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise
from dpsim.mechanisms.grr import GRR
from dpsim.synthesis.classes import ClassModel, pack, scratch
from dpsim.synthesis.group_reports import GroupReports
from tests import laws
from tests.synthesis.group_laws import marginal, mixture

WEIGHTS = np.array([0.5, 0.3, 0.2])
LAWS = (
    np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]),
    np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.0, 1.0, 0.0]]),
    np.array([[0.25, 0.25, 0.5], [0.6, 0.4, 0.0], [1.0, 0.0, 0.0]]),
)
MODEL = ClassModel(WEIGHTS, LAWS)
JOINT = mixture(WEIGHTS, *LAWS)


@pytest.mark.parametrize(
    "attributes", [(), (1,), (0, 2), (2, 0), (0, 1, 2), (2, 1, 0), (1, 0, 2)]
)
def test_marginals_are_those_of_the_whole_table(attributes):
    expected = marginal(JOINT, attributes) if attributes else np.ones(())
    found = MODEL.marginal(attributes)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, atol=1e-15)


@pytest.mark.parametrize("attributes", [(1, 1), (3,), (-1,)])
def test_marginals_of_no_attributes_of_the_table_are_refused(attributes):
    with pytest.raises(InputError, match="attribute"):
        MODEL.marginal(attributes)


@given(st.integers(0, 70_000), st.integers(0, 300))
def test_a_record_depends_on_its_index_only(start, n):
    noise = CentralNoise(3, "rows")
    part = MODEL.sample(n, noise, start)
    assert part.shape == (3, n)
    assert part.dtype == np.uint8
    np.testing.assert_array_equal(part, WHOLE[:, start : start + n])


WHOLE = MODEL.sample(70_300, CentralNoise(3, "rows"))


@pytest.mark.statistical
def test_records_follow_the_model():
    cells = np.ravel_multi_index(tuple(WHOLE.astype(np.int64)), (2, 3, 3))
    laws.assert_counts_follow(np.bincount(cells, minlength=18), JOINT.ravel())


@pytest.mark.statistical
def test_the_sampling_test_rejects_other_weights():
    wrong = mixture([0.55, 0.25, 0.2], *LAWS)
    cells = np.ravel_multi_index(tuple(WHOLE.astype(np.int64)), (2, 3, 3))
    with pytest.raises(AssertionError):
        laws.assert_counts_follow(np.bincount(cells, minlength=18), wrong.ravel())


def test_a_code_without_a_share_is_never_drawn():
    thin = np.array([[0.1, 0.0] + [0.1] * 9 + [0.0]])
    codes = ClassModel(np.ones(1), (thin,)).sample(20_000, CentralNoise(1, "rows"))
    assert set(np.unique(codes)) == {0, *range(2, 11)}


def test_rows_side_by_side_are_split_by_attribute():
    model = ClassModel.of(WEIGHTS, np.concatenate(LAWS, axis=1), (2, 3, 3))
    assert model.sizes == (2, 3, 3)
    for found, expected in zip(model.laws, LAWS, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_laws_of_another_number_of_classes_are_refused():
    with pytest.raises(InputError, match="attribute 1 needs a row of shares for each of 3"):
        ClassModel(WEIGHTS, (LAWS[0], LAWS[1][:2]))


def test_packing_leaves_out_groups_that_say_nothing():
    reports = [
        GroupReports((1, 0), GRR(6, 1), 9, np.arange(6)),
        GroupReports((0,), GRR(2, 1), 0, np.zeros(2, np.int64)),
        GroupReports((2,), GRR(1, 1), 5, np.array([5])),
        GroupReports((1,), GRR(3, 2), 4, np.array([1, 3, 0])),
    ]
    evidence = pack(reports, (2, 3, 1))
    assert evidence.members.tolist() == [0, 2, 3]
    assert evidence.starts.tolist() == [2, 0, 2]
    assert evidence.widths.tolist() == [3, 2, 3]
    assert evidence.first.tolist() == [0, 6, 9]
    assert evidence.supports.tolist() == [0, 1, 2, 3, 4, 5, 1, 3, 0]
    assert evidence.n.tolist() == [9, 4]
    assert [part.shape for part in scratch(evidence, 4)] == [(4, 12), (6,), (6,)]
