"""What people type, and what they see."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dpsim.cli.names import COMMANDS
from dpsim.experiments.methods import METHODS

ROOT = Path(__file__).parents[2]


def test_json_is_one_object_and_nothing_else(dpsim):
    code, out, err = dpsim("run", "grr", "zipf:n=5000,k=4", "--json")
    assert (code, err) == (0, "")
    result = json.loads(out)
    assert result["privacy"]["spent"] == {"epsilon": "1", "delta": "0"}
    assert len(result["attributes"][0]["rows"]) == 4
    assert out.isascii()


def test_the_table_fits_eighty_columns_and_has_no_control_characters(dpsim):
    code, out, err = dpsim("run", "grr", "planted:n=5000,d=8,k=2-30", "--epsilon", "8")
    assert code == 0
    assert max(map(len, (out + err).splitlines())) <= 80
    assert "\x1b" not in out + err
    assert "trusted: nobody" in out
    assert "2 more attributes" in out


def test_a_terminal_without_unicode_gets_ascii(tmp_path):
    call = [sys.executable, "-m", "dpsim", "run", "grr", "zipf:n=1000,k=3"]
    environment = {"PYTHONIOENCODING": "ascii", "PYTHONPATH": str(ROOT), "PYTHONUTF8": "0"}
    seen = subprocess.run(call, capture_output=True, cwd=tmp_path, env=environment, check=True)
    assert b"eps=1 of eps=1 spent" in seen.stdout


def test_equal_runs_give_equal_bits_whatever_the_layout(dpsim):
    args = ("run", "grr", "planted:n=30000,d=3", "--json", "--seed", "5")
    first = json.loads(dpsim(*args)[1])
    second = json.loads(dpsim(*args, "--shards", "3", "--block-size", "777")[1])
    other = json.loads(dpsim(*args[:-1], "6")[1])
    assert first["attributes"] == second["attributes"]
    assert first["run"] != second["run"]
    assert first["attributes"] != other["attributes"]


def test_dropout_and_lateness_are_told(dpsim):
    _, out, _ = dpsim("run", "grr", "zipf:n=10000,k=3", "--dropout", "0.2", "--latency-ms",
                      "100", "--deadline-ms", "150")  # fmt: skip
    found = re.search(r"users +([\d,]+) counted · ([\d,]+) late · ([\d,]+) dropped", out)
    assert found is not None
    counts = [int(part.replace(",", "")) for part in found.groups()]
    assert sum(counts) == 10_000


def test_an_empty_table_is_a_flagged_empty_result_and_charges_nothing(dpsim, tmp_path):
    (tmp_path / "empty.csv").write_text("a,b\n")
    code, out, _ = dpsim("run", "grr", "empty.csv")
    assert code == 0
    assert "nobody was counted" in out
    assert "ε=0 of ε=1 spent" in out


def test_one_user_and_one_value_work(dpsim, tmp_path):
    (tmp_path / "one.csv").write_text("a\nx\n")
    (tmp_path / "one.schema.toml").write_text(
        '[attribute]\na = {kind = "category", values = ["x"]}\n'
    )
    code, out, _ = dpsim("run", "grr", "one.csv")
    assert code == 0
    assert "100.00%" in out


def test_a_schema_read_from_the_data_is_said_everywhere(dpsim, tmp_path):
    (tmp_path / "my.csv").write_text("a\n" + "x\ny\n" * 50)
    code, out, _ = dpsim("run", "grr", "my.csv", "--name", "r")
    assert code == 0
    text = "domain read from the data: fine for a study, no guarantee"
    assert text in out
    assert text in (tmp_path / "runs/r/manifest.json").read_text()
    assert '"domain": "read from the data"' in (tmp_path / "runs/r/ledger.jsonl").read_text()
    assert json.loads((tmp_path / "runs/r/privacy.json").read_text())["guarantee"] is False


def test_strict_accepts_the_proposal_only_after_a_person_has_reviewed_it(dpsim, tmp_path):
    (tmp_path / "my.csv").write_text("a\n" + "x\ny\n" * 50)
    assert dpsim("run", "grr", "my.csv", "--strict")[0] == 2
    assert dpsim("data", "schema", "my.csv", "-o", "my.schema.toml")[0] == 0
    code, _, err = dpsim("run", "grr", "my.csv", "--strict")
    assert code == 2
    assert "reviewed = true" in err
    path = tmp_path / "my.schema.toml"
    path.write_text(path.read_text().replace("reviewed = false", "reviewed = true"))
    code, out, _ = dpsim("run", "grr", "my.csv", "--strict")
    assert code == 0
    assert "no guarantee" not in out
    assert "true" not in out.splitlines()[1]


def test_a_sample_can_be_checked_and_run(dpsim, tmp_path):
    for name in ("s.csv", "s2.parquet"):
        assert dpsim("data", "sample", "planted:n=500,d=3", "-o", name)[0] == 0
        assert "500 rows fit" in dpsim("data", "check", name)[1]
    first = json.loads(dpsim("run", "grr", "s.csv", "--json")[1])
    second = json.loads(dpsim("run", "grr", "s2.parquet", "--json")[1])
    third = json.loads(dpsim("run", "grr", "planted:n=500,d=3", "--json")[1])
    assert first["attributes"] == second["attributes"] == third["attributes"]


def test_run_with_resume_starts_and_then_tells_the_result_again(dpsim):
    args = ("run", "grr", "zipf:n=1000,k=3", "--name", "job", "--resume", "--json")
    first, second = dpsim(*args), dpsim(*args)
    assert first[0] == second[0] == 0
    assert json.loads(first[1]) == json.loads(second[1])


SECRET = "s3cr3t-c4n4ry"  # noqa: S105
CSV = f"a,b\n{SECRET},1\n" + "x,2\ny,3\n" * 40
SCHEMA = '[attribute]\na = {kind = "category", values = ["x", "y"]}\n'
BAD = {
    "epsilon 0": (["zipf:", "--epsilon", "0"], 2, "epsilon must be > 0 and <= 30, got 0"),
    "epsilon nan": (["zipf:", "--epsilon", "nan"], 2, "epsilon must be a finite number"),
    "epsilon inf": (["zipf:", "--epsilon", "inf"], 2, "epsilon must be a finite number"),
    "epsilon huge": (["zipf:", "--epsilon", "31"], 2, "<= 30"),
    "epsilon text": (["zipf:", "--epsilon", "one"], 2, "epsilon must be a finite number"),
    "epsilon True": (["zipf:", "--epsilon", "True"], 2, "epsilon must be a finite number"),
    "epsilon 1/0": (["zipf:", "--epsilon", "1/0"], 2, "epsilon must be a finite number"),
    "limit": (["zipf:", "--epsilon", "2", "--limit", "1"], 3, "ask for ε <= 1, or raise"),
    "dropout": (["zipf:", "--dropout", "1"], 2, "dropout: value must be >= 0 and < 1"),
    "seed": (["zipf:", "--seed", "-1"], 2, "seed"),
    "shards": (["zipf:", "--shards", "0"], 2, "shards"),
    "no file": (["nothing.csv"], 2, "nothing.csv"),
    "folder": (["."], 2, "."),
    "empty file": (["zero.csv"], 2, "zero.csv"),
    "unknown ending": (["my.xls"], 2, ".csv"),
    "ragged": (["ragged.csv"], 2, "row"),
    "duplicate names": (["twice.csv"], 2, "twice"),
    "not UTF-8": (["latin.csv"], 2, "UTF-8"),
    "NUL": (["nul.csv"], 2, "NUL"),
    "unseen label": (["my.csv", "--schema", "my.toml"], 2, "a: "),
    "unknown attribute": (["my.csv", "--attributes", "c"], 2, "there are: a, b"),
    "no schema": (["my.csv", "--schema", "none.toml"], 2, "none.toml"),
    "bad schema": (["my.csv", "--schema", "my.csv"], 2, "is not TOML"),
    "generator key": (["zipf:kk=3"], 2, "did you mean 'k'?"),
    "generator value": (["zipf:k=many"], 2, "k must be a whole number"),
    "no generator": (["zipff:k=3"], 2, "no generator of that name"),
    "huge domain": (["zipf:k=2000000"], 2, "k must be"),
    "name escapes": (["zipf:", "--name", "../x"], 2, "a run's name must be"),
    "name absolute": (["zipf:", "--name", "/x"], 2, "a run's name must be"),
    "name long": (["zipf:", "--name", "x" * 300], 2, "a run's name must be"),
    "name used": (["zipf:", "--name", "used"], 2, "holds a run already"),
    "too many actors": (["zipf:n=65", "--actor-per-user"], 2, "at most 64 users, got 65"),
    "unreachable": (["zipf:", "--address", "127.0.0.1:1"], 4, "no Ray cluster answers"),
    "no address": (["zipf:", "--address", "here"], 2, "address must be"),
    "rounds": (["zipf:", "--rounds", "0"], 2, "rounds"),
    "pad": (["zipf:", "--pad", "0"], 2, "pad"),
    "top": (["zipf:", "--top", "0"], 2, "top"),
    "postprocess": (["zipf:", "--postprocess", "magic"], 2, "postprocess must be one of norm"),
    "first share": (["zipf:", "--first-share", "1"], 2, "first_share"),
    "fidelity": (["zipf:", "--fidelity", "aggregate", "--block-size", "8"], 2, "multiple of"),
    "resume other": (
        ["zipf:", "--name", "used", "--resume", "--seed", "3"],
        2,
        "seed was 0 when the run began and cannot become 3",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_clear_line_and_loses_nothing(case, dpsim, tmp_path):
    (tmp_path / "my.csv").write_text(CSV)
    (tmp_path / "my.toml").write_text(SCHEMA)
    (tmp_path / "my.xls").write_text(CSV)
    (tmp_path / "zero.csv").write_text("")
    (tmp_path / "ragged.csv").write_text(CSV + f"{SECRET},1,2\n")
    (tmp_path / "twice.csv").write_text("twice,twice\n1,2\n")
    (tmp_path / "latin.csv").write_bytes(b"a\n\xe4" + SECRET.encode() + b"\n")
    (tmp_path / "nul.csv").write_bytes(b"a\n\0" + SECRET.encode() + b"\n")
    assert dpsim("run", "grr", "zipf:", "--name", "used")[0] == 0
    before = sorted(tmp_path.rglob("*"))
    words, code, message = BAD[case]
    got, out, err = dpsim("run", "grr", *words)
    assert (got, out) == (code, "")
    assert message in err
    assert err.startswith("dpsim: ")
    assert len(err.splitlines()) <= 2
    assert SECRET not in err
    assert "Traceback" not in err
    left = [path for path in tmp_path.rglob("*") if path not in before]
    assert all(".stores" in path.parts for path in left), "only an import may be kept"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["duchi", "my.csv"], "needs numbers, and every attribute is a category"),
        (["duchi", "my.csv", "--attributes", "a"], "attribute 'a' is a category"),
        (["duchi", "pairs:"], "has missing values; ask with a key-value method"),
        (["duchi", "zipf:", "--fidelity", "aggregate"], "duchi has no law of counts"),
        (["pem", "zipf:d=2"], "asks for one attribute; name it with --attributes"),
        (["privkvm", "pairs:d=2"], "one attribute at a time"),
        (["l-osue", "zipf:", "--first-share", "0"], "first_epsilon must be > 0"),
        (["oue", "zipf:k=1000000"], "use olh"),
    ],
)
def test_methods_refuse_what_they_cannot_read(words, message, dpsim, tmp_path):
    (tmp_path / "my.csv").write_text("a\n" + "x\ny\n" * 40)
    code, out, err = dpsim("run", *words)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_several_mistakes_are_told_at_once(dpsim):
    _, _, err = dpsim("run", "grr", "zipf:", "--epsilon", "0", "--seed", "-1")
    assert "epsilon" in err
    assert "seed" in err


def test_errors_are_json_where_json_is_asked_for(dpsim):
    code, out, err = dpsim("run", "grr", "zipf:", "--epsilon", "0", "--json")
    assert (code, err) == (2, "")
    assert "epsilon" in json.loads(out)["error"]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["rnu"], "Did you mean 'run'?"),
        (["run", "gr", "x"], "Did you mean 'grr'?"),
        (["run", "grr"], "DATA"),
        (["run", "grr", "x", "--epsilom", "1"], "--epsilon"),
        (["resume", "nowhere"], "is not a run directory"),
    ],
)
def test_a_slip_gets_the_nearest_name(words, hint, dpsim):
    code, out, err = dpsim(*words)
    assert (code, out) == (2, "")
    assert hint in err


def test_bare_dpsim_is_help(dpsim):
    code, out, _ = dpsim()
    assert code == 0
    assert "Commands:" in out


@pytest.mark.parametrize("words", [["--help"], ["rnu"], ["run", "gr", "x"], ["--version"]])
def test_help_and_slips_load_nothing_heavy(words):
    """The interpreter tells what it loaded: click and the standard library only."""
    call = [sys.executable, "-X", "importtime", "-m", "dpsim", *words]
    seen = subprocess.run(call, capture_output=True, text=True, cwd=ROOT, check=False)
    loaded = set(re.findall(r"\| +([a-z_]+)", seen.stderr))
    heavy = {"ray", "numpy", "pandas", "sklearn", "scipy", "pyarrow", "pydantic", "rich"}
    assert "click" in loaded
    assert not loaded & heavy


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_a_line_in_the_readme(command, dpsim):
    code, out, _ = dpsim(command, "--help")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert f"dpsim {command}" in (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_explained_within_eighty_columns(name, dpsim):
    code, out, _ = dpsim("explain", name)
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert f"dpsim run {name} DATA" in out
    assert "real" in out or METHODS[name].family == "table"
    assert name in dpsim("explain")[1]


@pytest.mark.parametrize(
    ("words", "seen"),
    [
        (["hybrid", "uniform:n=2000,k=9"], "mean"),
        (["state-encoding", "pairs:n=2000,f=0.2"], "holds it"),
        (["olh", "zipf:n=2000,k=30", "--collect", "sample"], "OLH"),
        (["oue", "zipf:n=1e9,k=8", "--fidelity", "aggregate"], "1,000,000,000 counted"),
        (["l-osue", "zipf:n=2000,k=5", "--rounds", "3"], "LOSUE"),
        (["faithful-piecewise", "zipf:n=2000,k=5"], "no finite ε"),
        (["pem", "zipf:n=9000,k=5000,s=2", "--epsilon", "4", "--top", "2"], "PrefixOracle"),
        (["faithful-sue", "zipf:n=2000,k=5", "--epsilon", "0.01", "--limit", "2"], "ε=1.38"),
    ],
)
def test_methods_of_every_family_run_from_the_command_line(words, seen, dpsim):
    code, out, err = dpsim("run", *words)
    assert (code, err) == (0, "")
    assert seen in out
    assert max(map(len, out.splitlines())) <= 80


def test_a_method_that_costs_more_than_it_is_asked_for_is_refused_by_the_ledger(dpsim):
    """The notes' SUE at ε=0.01 really costs 1.38: the ledger charges what is true."""
    code, _, err = dpsim("run", "faithful-sue", "zipf:n=2000,k=5", "--epsilon", "0.01")
    assert code == 3
    assert "limit ε=0.01" in err
