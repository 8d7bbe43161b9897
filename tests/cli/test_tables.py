"""Publishing whole tables from the command line."""

import json
from pathlib import Path

import pandas as pd
import pytest

DATA = "chain:n=3000,d=4,k=3,copy=0.8"


def run(dpsim, *words):
    code, out, err = dpsim("run", *words)
    assert code == 0, err
    return out


@pytest.mark.parametrize(
    ("method", "trusted"),
    [
        (("dp2pub",), "nobody"),
        (("dp2pub", "--preset", "local"), "nobody"),
        (("dp2pub", "--preset", "trusted"), "curator"),
        (("dp2pub", "--preset", "faithful-local"), "nobody"),
        (("dp2pub", "--preset", "faithful-pram"), "nobody"),
        (("privbayes",), "curator"),
        (("privbayes", "--preset", "faithful"), "curator"),
        (("mwem",), "curator"),
        (("mwem", "--preset", "faithful"), "curator"),
        (("mwem", "--preset", "local"), "nobody"),
    ],
)  # fmt: skip
def test_a_published_table_says_how_good_it_is_what_it_cost_and_who_is_trusted(
    method, trusted, dpsim
):
    out = run(dpsim, method[0], DATA, *method[1:], "-q")
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    assert "bootstrap" in out
    assert "independent" in out
    assert f"trusted: {trusted}" in out
    if "faithful-local" in method:
        assert "announced as ε=1, really costs ε=" in out


def test_the_files_are_the_table_its_schema_its_model_and_the_result(dpsim, tmp_path):
    result = json.loads(run(dpsim, "privbayes", DATA, "--json"))
    folder = Path(result["run"]) / "results"
    frame = pd.read_csv(folder / "synthetic.csv")
    assert frame.shape == (3000, 4)
    assert set(frame["a0"]) <= {0, 1, 2}
    assert (
        json.loads((folder / "model.json").read_text())["network"] == result["table"]["network"]
    )
    assert "[attribute]" in (folder / "synthetic.schema.toml").read_text()
    assert result["evaluation"]["rows"][0]["metric"] == "tvd_1"
    assert all(path.stat().st_mode & 0o77 == 0 for path in folder.iterdir())


def test_a_published_table_can_be_published_again(dpsim, tmp_path):
    result = json.loads(run(dpsim, "privbayes", DATA, "--json"))
    path = f"{result['run']}/results/synthetic.csv"
    again = json.loads(run(dpsim, "dp2pub", path, "--json"))
    assert again["users"]["counted"] == 3000


def test_the_truth_is_not_looked_at_where_that_is_not_wanted(dpsim):
    result = json.loads(run(dpsim, "mwem", DATA, "--no-truth", "--json"))
    assert result["evaluation"] is None
    assert not list((Path(result["run"]) / "results").glob("*.svg"))


def test_a_target_is_tested_on_users_that_were_not_asked(dpsim):
    result = json.loads(run(dpsim, "privbayes", DATA, "--target", "a1", "--json"))
    assert result["users"]["counted"] < 2600
    metrics = [row["metric"] for row in result["evaluation"]["rows"]]
    assert any(metric.startswith("error_svm") for metric in metrics)
    assert any(metric.startswith("error_tree") for metric in metrics)


def test_a_resumed_publication_is_the_same(dpsim, tmp_path):
    first = json.loads(run(dpsim, "dp2pub", DATA, "--name", "one", "--json"))
    table = Path("runs/one/results/synthetic.csv").read_bytes()
    Path("runs/one/results/result.json").unlink()
    Path("runs/one/results/synthetic.csv").unlink()
    code, out, _ = dpsim("resume", "runs/one", "--json")
    assert code == 0
    assert Path("runs/one/results/synthetic.csv").read_bytes() == table
    assert json.loads(out)["privacy"]["spent"] == first["privacy"]["spent"]


def test_mwem_tries_as_often_as_asked_and_shows_the_baseline(dpsim):
    out = run(dpsim, "mwem", "zipf:n=5000,k=9", "--trials", "12", "-q")
    assert "mean of 12" in out
    assert "Laplace histogram" in out
    assert sorted(p.name for p in Path().glob("runs/*/results/*.svg")) == [
        "bars.svg", "differences.svg", "lines.svg",
    ]  # fmt: skip


MISTAKES = {
    "unknown preset": (["dp2pub", DATA, "--preset", "best"], "preset must be one of"),
    "model elsewhere": (["dp2pub", DATA, "--preset", "local", "--model", "tree"], "belongs to"),
    "no network": (["dp2pub", DATA, "--model", "network"], "name one with --network"),
    "network file": (["dp2pub", DATA, "--network", "none.json"], "cannot read the network"),
    "privbayes network": (["privbayes", DATA, "--model", "tree"], "neither --network nor"),
    "curator dropout": (["privbayes", DATA, "--dropout", "0.5"], "a curator holds all records"),
    "counts": (["dp2pub", DATA, "--fidelity", "aggregate"], "has no law of counts"),
    "target of estimates": (["grr", DATA, "--target", "a0"], "makes no records"),
    "unknown target": (["dp2pub", DATA, "--target", "zz"], "no attribute 'zz'"),
    "one value": (["dp2pub", "uniform:n=9,d=2,k=1"], "one value only"),
    "too few for trees": (["dp2pub", "chain:n=50,d=4", "--model", "tree"], "is the least for"),
    "no records": (["mwem", "zipf:n=0,k=4"], "there are no records"),
    "one cell": (["mwem", "uniform:n=9,d=1,k=1"], "one value only"),
    "T over the workload": (
        ["mwem", "zipf:k=4", "--queries", "3", "--iterations", "9"], "iterations must be <="),
    "too many cells": (["mwem", "uniform:d=9,k=20"], "is the most for a histogram"),
    "too many queries": (["mwem", "zipf:k=3", "--queries", "50"], "n must be <= 6"),
    "epsilon": (["mwem", "zipf:k=3", "--epsilon", "0"], "epsilon"),
    "workload": (["mwem", "zipf:k=3", "--workload", "lines"], "workload must be one of"),
    "marginals": (["mwem", "zipf:k=3", "--workload", "marginals-2"], "needs 2 attributes"),
    "local trials": (
        ["mwem", "zipf:k=3", "--preset", "local", "--trials", "3"], "not with preset local"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_gets_its_line_code_2_and_leaves_nothing_behind(name, dpsim):
    words, message = MISTAKES[name]
    code, out, err = dpsim("run", *words)
    assert code == 2
    assert message in err.replace("\n", " ")
    assert out == ""
    assert not [path for path in Path().glob("runs/*") if path.name != ".stores"]
