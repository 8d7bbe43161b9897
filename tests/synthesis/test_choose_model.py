"""One way in to all models."""

import numpy as np
import pytest

from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise
from dpsim.mechanisms.grr import GRR
from dpsim.synthesis import choose_model as module
from dpsim.synthesis.bayes_net import BayesNet
from dpsim.synthesis.choose_model import fit_model
from dpsim.synthesis.classes import ClassModel
from dpsim.synthesis.group_reports import GroupReports
from tests.synthesis.group_laws import expected_reports

NOISE = CentralNoise(1, "fit")
LAW = np.array([[0.4, 0.1], [0.1, 0.4]])
ALONE = [expected_reports(LAW, (a,), n=1_000) for a in (0, 1)]
PAIR = [expected_reports(LAW, (0, 1), n=10_000)]
EMPTY = GroupReports((0, 1), GRR(4, 1), 0, np.zeros(4, np.int64))


@pytest.fixture
def called(monkeypatch):
    names = []
    for name in (
        "fit_product",
        "project_product",
        "fit_tree",
        "fit_network",
        "fit_classes",
        "fit_posterior",
    ):
        real = getattr(module, name)

        def spy(*arguments, real=real, name=name):
            names.append(name)
            return real(*arguments)

        monkeypatch.setattr(module, name, spy)
    return names


@pytest.mark.parametrize(
    ("choice", "reports", "expected"),
    [
        ("auto", ALONE, "fit_product"),
        ("auto", [*ALONE, EMPTY], "fit_product"),
        ("auto", PAIR, "fit_posterior"),
        ("auto", ALONE + PAIR, "fit_posterior"),
        ("product", PAIR, "fit_product"),
        ("projected", PAIR, "project_product"),
        ("tree", PAIR, "fit_tree"),
        ("classes", PAIR, "fit_classes"),
        ("posterior", ALONE, "fit_posterior"),
    ],
)
def test_a_choice_leads_to_its_model(choice, reports, expected, called):
    model = fit_model(reports, (2, 2), NOISE, choice)
    assert called == [expected]
    assert model.sizes == (2, 2)
    law = model.marginal((0, 1))
    assert law.sum() == pytest.approx(1)
    assert model.sample(5, NOISE).shape == (2, 5)


def test_a_network_is_fitted_where_it_is_given(called):
    net = BayesNet((0, 1), ((), (0,)))
    model = fit_model(PAIR, (2, 2), NOISE, "network", net)
    assert called == ["fit_network"]
    np.testing.assert_allclose(model.marginal((0, 1)), LAW, atol=0.02)


def test_the_number_of_classes_reaches_the_posterior():
    walked = fit_model(PAIR, (2, 2), NOISE, "posterior", classes=2)
    assert isinstance(walked, ClassModel)
    assert walked.weights.size % 2 == 0
    assert walked.weights.size <= 2 * 3 * 40


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("forest",), "no model 'forest'; there are: auto, product"),
        (("network",), "exactly where the model is 'network'"),
        (("tree", BayesNet((0, 1), ((), ()))), "exactly where the model is 'network'"),
    ],
)
def test_choices_that_fit_nothing_are_refused(arguments, words):
    with pytest.raises(InputError, match=words):
        fit_model(PAIR, (2, 2), NOISE, *arguments)


def test_no_reports_are_refused():
    with pytest.raises(InputError, match="no reports"):
        fit_model([EMPTY], (2, 2), NOISE)
