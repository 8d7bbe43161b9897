"""``dpsim audit``: what it prints, and when it says no."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest
from click.testing import CliRunner

from dpsim.cli.audit import audit
from dpsim.core.errors import InputError
from dpsim.evaluation import audit_cases
from dpsim.evaluation.audit_cases import FAMILIES, Family
from dpsim.evaluation.audit_exact import Law
from dpsim.evaluation.audit_frequency import grr_cases, grr_laws
from dpsim.evaluation.audit_mutants import ask_with_shared_streams
from dpsim.experiments import audit as experiment
from dpsim.mechanisms.grr import GRR

FEW = ("--samples", "20000")


def call(*words):
    return CliRunner().invoke(audit, list(words))


def test_all_families_pass_and_the_table_fits_eighty_columns():
    seen = call(*FEW)
    assert seen.exit_code == 0, seen.output
    wide = call(*FEW, "--mutants").output
    assert max(map(len, (seen.output + wide).splitlines())) <= 80
    assert "\x1b" not in seen.output
    assert "0 claims refuted" in seen.output
    assert "a passed audit is no proof" in seen.output
    assert "private" not in seen.output


@pytest.mark.statistical
def test_with_mutants_every_one_is_flagged_and_still_fits():
    seen = call("--mutants", "grr", "record", "--samples", "1000000")
    assert seen.exit_code == 0, seen.output
    assert max(map(len, seen.output.splitlines())) <= 80
    assert "same stream in every shard" in seen.output
    assert "MISSED" not in seen.output
    lines = seen.output.splitlines()
    table = lines[lines.index(next(line for line in lines if line.startswith("mutants"))) + 1 :]
    assert all(line.endswith("VIOLATION") for line in table if line.startswith("  "))


def test_json_is_one_object_with_everything_in_it():
    seen = call("grr", "--json", "--mutants", "--seed", "4", *FEW)
    result = json.loads(seen.output)
    assert seen.output.isascii()
    assert (result["command"], result["format"], result["seed"]) == ("audit", 1, 4)
    assert {row["name"] for row in result["sampled"]} == {"GRR k=2", "GRR k=16", "GRR k=100"}
    row = result["sampled"][0]
    assert row["claim"] == 1
    assert row["guess_epsilon"] < row["exact"] <= 1
    assert row["verdict"].startswith("no violation found; smallest detectable excess")
    assert result["fleet"][0]["name"] == "GRR k=4 through local shards"
    assert not result["flagged"]
    assert len(result["mutants"]) > 15
    assert result["passed"] == (not result["missed"])
    assert seen.exit_code == (0 if result["passed"] else 1)


def test_equal_calls_print_equal_bytes_and_another_seed_does_not():
    first = call("grr", "--json", *FEW).output
    assert call("grr", "grr", "--json", *FEW).output == first
    assert call("grr", "--json", "--seed", "1", *FEW).output != first


def leaky_laws(epsilon):
    oracle = GRR(2, 2 * epsilon)
    for law in grr_laws(epsilon):
        if law.name == "GRR k=2":
            yield replace(law, mechanism=oracle, channel=oracle.channel())


def leaky_cases(epsilon):
    yield replace(next(grr_cases(2 * epsilon)), name="leaky", claim=epsilon)


def lying_laws(epsilon):
    law = next(law for law in grr_laws(epsilon) if law.name == "GRR k=2")
    yield replace(law, mechanism=GRR(2, "0.5"))


def nothing(_epsilon):
    return iter(())


@pytest.mark.parametrize(
    ("family", "name"),
    [
        (Family(nothing, leaky_laws), "GRR k=2"),
        (Family(leaky_cases, nothing), "leaky"),
        (Family(nothing, lying_laws), "GRR k=2"),
    ],
)
def test_a_refuted_claim_is_named_and_exits_one(monkeypatch, family, name):
    monkeypatch.setitem(FAMILIES, "grr", family)
    seen = call("grr", *FEW)
    assert seen.exit_code == 1
    assert f"REFUTED {name}" in seen.output
    assert "1 claims refuted" in seen.output
    assert "VIOLATION" in seen.output


def test_a_fleet_whose_blocks_share_noise_is_refuted(monkeypatch):
    from contextlib import contextmanager

    @contextmanager
    def shared(_through):
        yield ask_with_shared_streams

    monkeypatch.setattr(experiment, "_asking", shared)
    seen = call("grr", *FEW)
    assert seen.exit_code == 1
    assert "REFUTED blocks share no noise" in seen.output


def test_a_mutant_that_is_not_flagged_exits_one(monkeypatch):
    harmless = replace(next(grr_cases(Fraction(1))), name="harmless")
    monkeypatch.setattr(experiment, "planted_bugs", lambda _epsilon: [harmless])
    seen = call("grr", "--mutants", *FEW)
    assert seen.exit_code == 1
    assert "MISSED  harmless" in seen.output


def test_an_unknown_mechanism_is_refused_with_the_nearest_one():
    seen = call("gr")
    assert seen.exit_code == 2
    assert "Did you mean 'grr'?" in seen.output
    assert "There are: grr, unary" in seen.output


@pytest.mark.parametrize("words", [("--samples", "0"), ("--seed", "-1"), ("--through", "x")])
def test_bad_options_are_refused_by_name(words):
    seen = call("grr", *words)
    assert seen.exit_code == 2
    assert f"Invalid value for '{words[0]}'" in seen.output


@pytest.mark.parametrize("alpha", ["0", "1", "nan"])
def test_a_bad_alpha_is_refused(alpha):
    seen = call("grr", "--alpha", alpha)
    assert isinstance(seen.exception, InputError)
    assert "alpha must be > 0 and < 1" in str(seen.exception)


def test_a_terminal_without_unicode_gets_ascii_and_loses_nothing():
    seen = CliRunner(charset="ascii").invoke(audit, ["grr", "--mutants", *FEW])
    assert "GRR k=2, twice eps" in seen.output
    assert "?" not in seen.output


def test_every_family_is_complete():
    assert set(audit_cases.FAMILIES) == {
        "grr", "unary", "hashing", "subset", "hadamard", "record", "fake-data", "duchi",
        "piecewise", "laplace", "key-value", "pckv", "longitudinal",
    }  # fmt: skip
    for family in FAMILIES.values():
        assert list(family.cases(Fraction(1)))
        assert all(isinstance(law, Law) for law in family.laws(Fraction(1)))


@pytest.mark.ray
@pytest.mark.filterwarnings("ignore")
def test_the_fleet_may_be_ray_and_finds_the_same(monkeypatch):
    monkeypatch.setattr(experiment, "_SHARDS", 2)  # fewer processes to wait for
    local = json.loads(call("grr", "--json", *FEW).output)
    seen = call("grr", "--json", "--through", "ray", *FEW)
    result = json.loads(seen.output)
    assert seen.exit_code == 0
    assert result["fleet"][0]["name"] == "GRR k=4 through ray shards"
    for mine, theirs in zip(result["fleet"], local["fleet"], strict=True):
        assert mine | {"name": ""} == theirs | {"name": ""}
