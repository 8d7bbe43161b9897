"""Every method, from its specification to its release."""

import os
import pickle
import signal
from dataclasses import replace

import numpy as np
import pytest

from dpsim import FrequencyEstimator, KeyValueEstimator, MeanEstimator
from dpsim.core.errors import InputError
from dpsim.core.records import Block
from dpsim.core.rng import ClientNoise
from dpsim.data.sources import parse_generated
from dpsim.evaluation.truth import accuracy, true_rows
from dpsim.experiments.ask import estimate, first_request, limit_of
from dpsim.experiments.methods import METHODS
from dpsim.experiments.spec import RunSpec
from dpsim.mechanisms.interfaces import CountLaw
from dpsim.protocols.refine import STEPS, refine
from dpsim.runtime.ledger_book import LedgerBook
from dpsim.runtime.local import LocalFleet

TABLES = {
    "frequency": "zipf:n=20000,k=6,d=2",
    "longitudinal": "zipf:n=20000,k=6,d=2",
    "mean": "zipf:n=20000,k=9,d=2",
    "key-value": "pairs:n=20000,k=9,d=2,f=0.4",
    "heavy-hitters": "zipf:n=60000,k=1000,s=1.5",
}
BIASED = {"faithful-privkv", "privkvm"}
ONE_ONLY = {"privkvm", "pem"}
ESTIMATES = [name for name, method in METHODS.items() if method.family in TABLES]


def spec_of(name, **changes):
    attributes = ("a0",) if name in ONE_ONLY and name != "pem" else ()
    values = {"epsilon": "4", "attributes": attributes, "rounds": 3, "pad": 2, "limit": "9"}
    values |= changes
    values |= {"method": name, "data": TABLES[METHODS[name].family]}
    return RunSpec.model_validate(values)


def run(spec, shards=1, block_size=4_000):
    source = parse_generated(spec.data, block_size)
    limit = limit_of(spec, first_request(spec, source).loss)
    fleet = LocalFleet(source, spec.seed, LedgerBook(limit), shards=shards)
    return estimate(spec, fleet), source


@pytest.mark.statistical
@pytest.mark.parametrize("name", ESTIMATES)
def test_every_method_finds_the_truth_within_its_own_standard_errors(name):
    release, source = run(spec_of(name))
    truths = true_rows(source, release)
    scores = [
        (row.estimate - truth) / row.standard_error
        for row, truth in zip(release.rows, truths, strict=True)
        if None not in {row.estimate, truth, row.standard_error}
        and not (name in BIASED and row.label == "mean")
    ]
    assert len(scores) > 0
    assert np.abs(scores).max() < 5
    assert release.turnout.counted == source.n
    assert release.ledger.spent.within(release.ledger.limit)
    if name != "faithful-piecewise":
        assert release.paid.real_epsilon <= float(release.loss.epsilon) * (1 + 1e-9)


@pytest.mark.parametrize("name", ESTIMATES)
def test_neither_shards_nor_block_size_change_a_row(name):
    spec = spec_of(name, epsilon="1", dropout="0.1")
    expected, _ = run(spec, 1, 20_000)
    for shards, block_size in ((3, 4_000), (7, 1_237)):
        assert run(spec, shards, block_size)[0].rows == expected.rows
    assert run(replace_seed(spec), 1, 20_000)[0].rows != expected.rows


def replace_seed(spec):
    return spec.model_copy(update={"seed": spec.seed + 1})


@pytest.mark.parametrize("name", ESTIMATES)
def test_every_request_survives_the_trip_to_a_shard(name):
    spec = spec_of(name)
    request = first_request(spec, parse_generated(spec.data))
    again = pickle.loads(pickle.dumps(request))
    assert again == request
    assert again.plan.hash == request.plan.hash


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["grr", "sue", "oue", "olh", "blh"])
def test_counts_drawn_from_their_law_are_as_good_as_records(name):
    """Same law, other bits: mean square error over its own theory is one for both."""
    for fidelity in ("record", "aggregate"):
        ratios = []
        for seed in range(30):
            spec = spec_of(name, epsilon="1", seed=seed, fidelity=fidelity)
            release, source = run(spec, 1, 1 << 20)
            found = accuracy(release.rows, true_rows(source, release, fidelity))
            ratios += [(item.rmse / (item.expected_rmse or 0)) ** 2 for item in found]
        # 30 seeds x 2 attributes x 6 codes: the mean has a relative sd of sqrt(2 / 360)
        assert abs(np.mean(ratios) - 1) < 5 * (2 / 360) ** 0.5


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["grr", "oue", "olh"])
def test_units_of_counts_are_drawn_independently(name):
    """Four units of users: with noise in common their errors would add up, not average out."""
    ratios = []
    for seed in range(40):
        values = {"method": name, "data": f"zipf:n={4 << 20},k=6,seed={seed}", "seed": seed}
        release, source = run(RunSpec(**values, fidelity="aggregate"), 2, 1 << 20)
        (found,) = accuracy(release.rows, true_rows(source, release, "aggregate"))
        ratios.append((found.rmse / (found.expected_rmse or 0)) ** 2)
    assert abs(np.mean(ratios) - 1) < 5 * (2 / 240) ** 0.5


@pytest.mark.parametrize("name", ["grr", "oue", "hybrid", "state-encoding", "l-grr"])
def test_sampled_attributes_and_dropouts_change_with_no_layout(name):
    spec = spec_of(name, epsilon="1", collect="sample", dropout="0.2")
    expected, source = run(spec, 1, 20_000)
    assert run(spec, 3, 1_237)[0].rows == expected.rows
    turnout = expected.turnout
    assert turnout.invited == source.n
    assert 0.15 < turnout.dropped / source.n < 0.25


@pytest.mark.parametrize("step", STEPS)
def test_postprocessing_is_a_step_of_its_own_that_keeps_the_raw_release(step):
    raw, source = run(spec_of("grr", epsilon="0.1"))
    refined = refine(raw, step)
    assert refined.paid == raw.paid
    assert {row.standard_error for row in refined.rows} == {None}
    assert None not in {row.standard_error for row in raw.rows}
    assert min(row.estimate or 0 for row in raw.rows) < 0
    if step != "norm":
        assert min(row.estimate or 0 for row in refined.rows) >= 0
    (first, *_) = accuracy(refined.rows, true_rows(source, refined))
    assert first.expected_rmse is None


def test_an_unknown_step_is_refused():
    with pytest.raises(InputError, match="postprocess must be one of norm, base-pos"):
        refine(run(spec_of("grr"))[0], "magic")


def test_counts_need_a_known_law_and_whole_units():
    with pytest.raises(InputError, match="duchi has no law of counts"):
        run(spec_of("duchi", fidelity="aggregate"))
    with pytest.raises(InputError, match="HadamardResponse has no law of counts"):
        run(spec_of("hr", fidelity="aggregate"), 1, 1 << 20)
    with pytest.raises(InputError, match="multiple of 1048576"):
        run(spec_of("grr", fidelity="aggregate"), 1, 4_000)


def test_each_user_samples_one_attribute_and_pays_for_one():
    release, source = run(spec_of("grr", collect="sample", epsilon="1"))
    assert sum(item.n for item in release.estimates) == source.n
    assert [item.oracle.loss.epsilon for item in release.estimates] == [1, 1]
    assert release.ledger.spent.epsilon == 1


@pytest.mark.statistical
def test_sampling_beats_splitting_when_only_marginals_are_wanted():
    errors = {}
    for collect in ("split", "sample"):
        spec = spec_of("grr", collect=collect, epsilon="1")
        source = parse_generated("zipf:n=20000,k=16,d=8")
        release = estimate(spec, LocalFleet(source, 0, LedgerBook(1)))
        found = accuracy(release.rows, true_rows(source, release))
        errors[collect] = np.mean([item.rmse for item in found])
    assert errors["split"] > 3 * errors["sample"]


def test_memoized_rounds_are_charged_once_and_fresh_ones_each_time():
    release, _ = run(spec_of("l-osue", epsilon="2", rounds=5))
    assert len(release.ledger.charges) == 5
    assert release.ledger.spent.epsilon == 2
    mechanism = first_request(spec_of("l-osue"), parse_generated(TABLES["frequency"]))
    assert not isinstance(mechanism.items[0].mechanism, CountLaw)


def test_a_memoized_user_samples_the_same_attribute_in_every_round():
    """Else each round would reveal another attribute, and the ledger would count only one."""
    spec = spec_of("l-grr", collect="sample", epsilon="1")
    source = parse_generated(spec.data)
    first = first_request(spec, source)
    noise = ClientNoise(3, first.plan.hash, Block(0, 5_000))
    second = replace(first, round_id=1)
    later = ClientNoise(3, second.plan.hash, Block(0, 5_000))
    pairs = zip(first._choose(noise, None), second._choose(later, None), strict=True)
    assert all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in pairs)
    fresh = first_request(spec_of("grr", collect="sample", epsilon="1"), source)
    again = zip(fresh._choose(noise, None), fresh._choose(later, None), strict=True)
    assert not any(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in again)


def test_groups_of_a_search_pay_once_each():
    release, source = run(spec_of("pem", epsilon="1", rounds=5))
    charges = release.ledger.charges
    assert [charge.group for charge in charges] == [0, 1, 2, 3, 4]
    assert release.ledger.spent.epsilon == 1
    assert release.turnout.counted == source.n


@pytest.mark.statistical
def test_a_search_finds_the_most_frequent_values():
    release, _ = run(spec_of("pem", epsilon="4", top=5))
    assert {row.label for row in release.rows} >= {"0", "1", "2"}


def test_privkvm_splits_its_loss_over_the_rounds():
    release, _ = run(spec_of("privkvm", epsilon="2", rounds=4))
    assert [charge.loss.epsilon for charge in release.ledger.charges] == [0.5] * 4


def test_fake_data_state_the_relation_they_hold_under():
    release, _ = run(spec_of("rs-fd", epsilon="1"))
    assert release.loss.unit == "attribute"
    assert release.ledger.limit.unit == "attribute"


@pytest.mark.parametrize(
    ("estimator", "data"),
    [
        (FrequencyEstimator(epsilon=2), "zipf:n=3000,k=5"),
        (FrequencyEstimator("pem", epsilon=2, top=3), "zipf:n=3000,k=500,s=2"),
        (FrequencyEstimator("l-osue", epsilon=2, rounds=2), "zipf:n=3000,k=5"),
        (MeanEstimator(epsilon=2), "uniform:n=3000,k=9"),
        (KeyValueEstimator(epsilon=2), "pairs:n=3000,k=9"),
    ],
)
def test_estimators_have_sensible_defaults(estimator, data):
    table = estimator.fit(data).release_.table()
    assert (table["low"] <= table["high"]).all()


def test_estimators_take_the_parameters_of_the_command_line():
    def fit(estimator, data):
        return estimator.fit(data).release_

    keys = "pairs:n=4000,k=9,d=4,f=0.8"
    narrow, wide = (fit(KeyValueEstimator("pckv-grr", pad=pad), keys) for pad in (1, 4))
    assert narrow.rows != wide.rows
    users = "zipf:n=2000,k=5"
    low, high = (fit(FrequencyEstimator("l-grr", first_share=s), users) for s in ("0.2", "0.9"))
    assert low.rows != high.rows
    refined = fit(FrequencyEstimator("grr", epsilon="0.1", postprocess="norm-sub"), users)
    assert sum(row.estimate or 0 for row in refined.rows) == pytest.approx(1)


def test_an_estimator_refuses_methods_of_another_family():
    with pytest.raises(InputError, match="MeanEstimator has no method 'grr'; there are: duchi"):
        MeanEstimator("grr").fit("zipf:")


def test_means_need_numbers_that_nobody_lacks():
    with pytest.raises(InputError, match="missing values; ask with a key-value method"):
        MeanEstimator().fit("pairs:n=100")


def test_a_category_has_no_mean(tmp_path):
    (tmp_path / "t.csv").write_text("a\n" + "x\ny\n" * 40)
    with pytest.raises(InputError, match="needs numbers, and every attribute is a category"):
        MeanEstimator().fit(tmp_path / "t.csv")


@pytest.mark.ray
@pytest.mark.filterwarnings("ignore")
def test_ray_agrees_with_local_for_every_family():
    from dpsim.runtime.ray_fleet import RayFleet
    from dpsim.runtime.ray_session import ray_session

    with ray_session(3):
        for name in ("oue", "olh", "ss", "hybrid", "pckv-grr", "l-osue", "privkvm", "pem"):
            spec = spec_of(name, epsilon="2")
            expected, source = run(spec)
            book = LedgerBook(limit_of(spec, first_request(spec, source).loss))
            with RayFleet(
                replace(source, block_size=1_000), spec.seed, book, shards=3
            ) as fleet:
                assert estimate(spec, fleet).rows == expected.rows, name


@pytest.mark.ray
@pytest.mark.filterwarnings("ignore")
def test_permanent_answers_survive_a_killed_shard():
    """They are a function of the user and the value: a new process repeats them."""
    from dpsim.runtime.ray_fleet import RayFleet
    from dpsim.runtime.ray_session import ray_session

    spec = spec_of("l-osue", epsilon="2", rounds=4)
    expected, source = run(spec)
    victims: list[int] = []

    def watch(progress):
        if victims and progress.blocks_done == progress.blocks:
            os.kill(victims.pop(), signal.SIGKILL)

    limit = limit_of(spec, first_request(spec, source).loss)
    with ray_session(2):
        with RayFleet(source, spec.seed, LedgerBook(limit), shards=2, watch=watch) as fleet:
            victims += [info.pid for info in fleet.infos]
            assert estimate(spec, fleet).rows == expected.rows
    assert not victims
