"""Settings: exact parts that add up to ε, and refusals before any charge."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.plan import canonical
from dpsim.core.privacy import PrivacyLoss
from dpsim.synthesis.mwem.baselines import without_selection
from dpsim.synthesis.mwem.settings import MWEMSettings

GOOD: dict[str, Any] = {"shape": (14,), "neighbors": "replace", "epsilon": 1, "iterations": 30}
epsilons = st.fractions(Fraction(1, 1000), 30, max_denominator=10**6)
shares = st.fractions(Fraction(1, 1000), Fraction(999, 1000), max_denominator=1000)


@given(epsilons, st.integers(1, 500), shares, st.sampled_from(["replace", "add_remove"]))
def test_the_parts_add_up_to_epsilon_exactly(epsilon, iterations, share, neighbors):
    settings = MWEMSettings(
        shape=(3,), neighbors=neighbors, epsilon=epsilon, iterations=iterations,
        measure_share=share,
    )  # fmt: skip
    assert sum(part for _, part in settings.parts) == epsilon
    once = sum(part for _, part in settings.iteration_parts)
    start = sum(part for _, part in settings.start_parts)
    assert start + iterations * once == epsilon
    assert settings.loss == PrivacyLoss(epsilon, neighbors=neighbors)
    assert settings.faults == ()


def test_a_private_total_has_its_own_part():
    settings = MWEMSettings(**GOOD | {"neighbors": "add_remove"})
    assert settings.parts == (
        ("total", Fraction(1, 50)),
        ("select", Fraction(49, 100)),
        ("measure", Fraction(49, 100)),
    )
    assert MWEMSettings(**GOOD).parts == (
        ("select", Fraction(1, 2)), ("measure", Fraction(1, 2)),
    )  # fmt: skip


def test_texts_and_floats_mean_what_a_person_means():
    assert MWEMSettings(**GOOD | {"epsilon": 0.1}).epsilon == Fraction(1, 10)
    assert MWEMSettings(**GOOD | {"measure_share": "0.9"}).measure_share == Fraction(9, 10)


def test_no_selection_spends_all_on_measuring():
    settings = without_selection(MWEMSettings(**GOOD), 60)
    assert dict(settings.parts) == {"select": 0, "measure": 1}
    assert settings.measure_epsilon == Fraction(1, 60)


def test_every_field_is_a_canonical_parameter_and_changes_them():
    settings = MWEMSettings(**GOOD)
    assert canonical(settings.parameters)
    changes: dict[str, Any] = {
        "shape": (15,), "neighbors": "add_remove", "epsilon": 2, "iterations": 29,
        "measure_share": "0.6", "fit": "newton", "replays": 19, "selection": "permute-and-flip",
        "noise": "laplace", "output": "average", "score_divisor": 2, "noise_divisor": 2,
        "is_shuffled": False, "is_clipped": False,
    }  # fmt: skip
    assert set(changes) == set(settings.__dataclass_fields__) - {"total_share"}
    seen = {settings.parameters}
    for name, value in changes.items():
        other = replace(settings, **{name: value, "total_share": None})
        assert other.parameters not in seen
        seen.add(other.parameters)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0}, "epsilon must be > 0"),
        ({"epsilon": -1}, "epsilon must be > 0"),
        ({"epsilon": float("nan")}, "epsilon must be a finite number"),
        ({"epsilon": 31}, "epsilon must be > 0 and <= 30"),
        ({"measure_share": 0}, "measure_share must be > 0 and < 1, got 0"),
        ({"measure_share": 1}, "measure_share must be > 0 and < 1, got 1"),
        ({"measure_share": float("nan")}, "measure_share must be a finite number"),
        ({"selection": "random"}, "measure_share must be 1 with random selection"),
        ({"iterations": 0}, "iterations must be a whole number >= 1, got 0"),
        ({"replays": 0}, "replays must be a whole number >= 1, got 0"),
        ({"replays": 1.5}, "replays must be a whole number"),
        ({"neighbors": None}, "neighbors must be one of 'replace', 'add_remove', got None"),
        ({"selection": "best"}, "selection must be one of 'exponential', 'permute-and-flip'"),
        ({"noise": "gaussian"}, "noise must be one of 'discrete', 'laplace', got 'gaussian'"),
        ({"fit": "sgd"}, "fit must be one of"),
        ({"output": "first"}, "output must be one of"),
        ({"total_share": "0.1"}, "total_share must be 0 where n is public"),
        ({"neighbors": "add_remove", "total_share": 0}, "total_share must be > 0 and < 1"),
    ],
)
def test_bad_settings_are_refused_in_one_line(change, message):
    with pytest.raises(InputError, match=message) as caught:
        MWEMSettings(**GOOD | change)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", GOOD)
def test_domain_neighbors_epsilon_and_iterations_have_no_default(name):
    with pytest.raises(TypeError, match=name):
        MWEMSettings(**{key: value for key, value in GOOD.items() if key != name})
