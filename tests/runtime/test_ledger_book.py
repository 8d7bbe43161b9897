"""The ledger on disk: survives crashes, refuses other hands, never goes above its limit."""

import json
import os
import shutil
import stat
import tempfile
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from dpsim.core.errors import InputError
from dpsim.core.ledger import BudgetExceededError, PlanConflictError
from dpsim.core.plan import Plan
from dpsim.core.privacy import PrivacyLoss
from dpsim.data.sources import parse_generated
from dpsim.runtime import ledger_book
from dpsim.runtime.ledger_book import LedgerBook, LedgerFileError

pytestmark = pytest.mark.usefixtures("quick_disk")

DATA = parse_generated("uniform:n=5,seed=1")
OTHER_DATA = parse_generated("uniform:n=5,seed=2")

losses = st.sampled_from(["1/14", "0.1", "1/3", "0.5", "0"])


def plan(round_id, variant=""):
    return Plan("demo", round_id, f"how many{variant}?", ())


def loss(epsilon):
    return PrivacyLoss.of(epsilon)


def filled(path, rounds=4):
    book = LedgerBook(1, path)
    book.bind(DATA)
    for round_id in range(rounds):
        book.charge(plan(round_id, " ä"), loss("1/14"))
    return book


class LedgerLife(RuleBasedStateMachine):
    """Charges, replays, conflicts and crashes in any order, against a plain account."""

    @initialize()
    def open_book(self):
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "ledger.jsonl"
        self.paid: dict[int, tuple[str, str]] = {}
        self.book = LedgerBook(1, self.path)
        self.book.bind(DATA)

    @rule(round_id=st.integers(0, 30), variant=st.sampled_from(["", " x"]), epsilon=losses)
    def charge(self, round_id, variant, epsilon):
        before = self.path.read_bytes()
        known = self.paid.get(round_id)
        if known not in {None, (variant, epsilon)}:
            with pytest.raises(PlanConflictError):
                self.book.charge(plan(round_id, variant), loss(epsilon))
        elif known is None and self.spent + Fraction(epsilon) > 1:
            with pytest.raises(BudgetExceededError):
                self.book.charge(plan(round_id, variant), loss(epsilon))
        else:
            self.book.charge(plan(round_id, variant), loss(epsilon))
            self.paid[round_id] = (variant, epsilon)
        is_new = known is None and round_id in self.paid
        assert (self.path.read_bytes() != before) == is_new

    @precondition(lambda self: self.paid)
    @rule(data=st.data())
    def replay(self, data):
        round_id = data.draw(st.sampled_from(sorted(self.paid)))
        before = self.path.read_bytes()
        variant, epsilon = self.paid[round_id]
        self.book.charge(plan(round_id, variant), loss(epsilon))
        assert self.path.read_bytes() == before

    @rule()
    def crash(self):
        self.book = LedgerBook(1, self.path)

    @rule(share=st.floats(0, 0.999), noise=st.binary(max_size=20))
    def crash_while_writing(self, share, noise):
        whole = self.path.read_bytes()
        line = whole.splitlines()[-1]
        torn = line[: int(len(line) * share)] + noise.replace(b"\n", b"")
        with self.path.open("ab") as file:
            file.write(torn)
        self.book = LedgerBook(1, self.path)
        assert self.path.read_bytes() == whole

    @rule()
    def refuse_other_data(self):
        with pytest.raises(InputError, match="this ledger belongs to other data"):
            self.book.bind(OTHER_DATA)
        self.book.bind(DATA)

    @property
    def spent(self):
        return sum((Fraction(epsilon) for _, epsilon in self.paid.values()), Fraction(0))

    @invariant()
    def the_book_is_right_and_within_its_limit(self):
        assert self.book.ledger.spent.epsilon == self.spent <= 1
        assert len(self.book.ledger.charges) == len(self.paid)

    @invariant()
    def the_file_says_the_same(self):
        assert LedgerBook(1, self.path).ledger == self.book.ledger

    def teardown(self):
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)


def test_a_ledger_survives_any_life():
    run_state_machine_as_test(LedgerLife, settings=settings(stateful_step_count=30))


def test_the_chain_is_the_documented_one(tmp_path):
    """Each line carries the SHA-256 of the line before it and its own text."""
    filled(tmp_path / "ledger.jsonl")
    last = "0" * 64
    lines = (tmp_path / "ledger.jsonl").read_text().splitlines()
    assert len(lines) == 5
    for line in lines:
        row = json.loads(line)
        chain = row.pop("chain")
        text = json.dumps(row, ensure_ascii=False, sort_keys=True)
        assert chain == sha256(f"{last}{text}".encode()).hexdigest()
        last = chain


@given(st.data())
def test_an_edited_byte_is_noticed_or_is_the_torn_tail(data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.jsonl"
        charges = filled(path, 2).ledger.charges
        content = bytearray(path.read_bytes())
        place = data.draw(
            st.sampled_from([i for i, byte in enumerate(content) if byte == 10])
            | st.integers(0, len(content) - 1)
        )
        byte = data.draw(st.sampled_from(b'\r\n" \t,1') | st.integers(0, 255))
        if content[place] == byte:
            return
        content[place] = byte
        path.write_bytes(content)
        if place == len(content) - 1:
            assert LedgerBook(1, path).ledger.charges == charges[:-1]
        else:
            with pytest.raises(LedgerFileError):
                LedgerBook(1, path)


def test_a_missing_swapped_repeated_or_foreign_line_is_noticed(tmp_path):
    path = tmp_path / "ledger.jsonl"
    filled(path)
    a, b, c, d, e = path.read_bytes().splitlines(keepends=True)
    for lines in (
        [a, c, d, e], [b, c, d, e], [a, c, b, d, e], [a, b, b, c, d, e],
        [a, b, b"5\n", c, d, e],
        [a, b, b"\n", c, d, e], [a, b, b"[]\n", c, d, e], [a, b, b"{}\n", c, d, e],
        [a, b, c, d, e, a],
    ):  # fmt: skip
        path.write_bytes(b"".join(lines))
        with pytest.raises(LedgerFileError, match=r"line \d: the ledger was changed"):
            LedgerBook(1, path)


def test_a_charge_is_on_disk_when_it_returns_and_a_refusal_is_not(tmp_path):
    path = tmp_path / "ledger.jsonl"
    book = filled(path)
    before = path.read_bytes()
    with pytest.raises(BudgetExceededError):
        book.charge(plan(9), loss(1))
    assert path.read_bytes() == before
    book.charge(plan(9), loss("0.5"))
    assert LedgerBook(1, path).ledger.spent.epsilon == Fraction(4, 14) + Fraction(1, 2)


def test_a_charge_is_synced_before_it_is_counted(tmp_path, monkeypatch):
    """The file with the line in it, and the folder that names the file."""
    path = tmp_path / "ledger.jsonl"
    book = filled(path)
    size = path.stat().st_size
    synced = {}

    def fsync(descriptor):
        assert path.stat().st_size > size
        synced[os.fstat(descriptor).st_ino] = len(book.ledger.charges)

    monkeypatch.setattr(os, "fsync", fsync)
    book.charge(plan(9), loss("0.1"))
    assert synced == {path.stat().st_ino: 4, tmp_path.stat().st_ino: 4}
    assert len(book.ledger.charges) == 5


def test_a_charge_that_the_disk_refuses_is_not_counted_and_breaks_nothing(
    tmp_path, monkeypatch
):
    book = filled(tmp_path / "ledger.jsonl")

    def full(path, content):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(ledger_book, "append_synced", full)
        with pytest.raises(OSError, match="No space left"):
            book.charge(plan(9), loss("0.1"))
    assert len(book.ledger.charges) == 4
    book.charge(plan(9), loss("0.1"))
    assert LedgerBook(1, tmp_path / "ledger.jsonl").ledger == book.ledger


def test_the_limit_of_a_book_cannot_become_another(tmp_path):
    filled(tmp_path / "ledger.jsonl")
    for limit in (2, "0.5"):
        with pytest.raises(InputError, match="the ledger's limit is ε=1; it cannot become ε="):
            LedgerBook(limit, tmp_path / "ledger.jsonl")


def test_a_book_of_other_data_is_refused(tmp_path):
    filled(tmp_path / "ledger.jsonl")
    for book in (LedgerBook(1, tmp_path / "ledger.jsonl"), LedgerBook(1)):
        book.bind(DATA)
        with pytest.raises(InputError, match="this ledger belongs to other data"):
            book.bind(OTHER_DATA)


def test_the_first_line_says_whose_users_these_are_and_how_their_domain_is_known(tmp_path):
    filled(tmp_path / "ledger.jsonl")
    head = json.loads((tmp_path / "ledger.jsonl").read_text().splitlines()[0])
    assert (head["data"], head["domain"]) == (DATA.fingerprint, "generated")
    assert head["limit"]["epsilon"] == "1"


def test_binding_again_to_the_same_data_writes_nothing(tmp_path):
    path = tmp_path / "ledger.jsonl"
    filled(path)
    before = path.read_bytes()
    LedgerBook(1, path).bind(DATA)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("parts", "epsilon", "limit"), [(14, "1/14", 1), (3, 0.1, 0.3), (7, "1/7", 1)]
)
def test_honest_parts_fit_exactly_also_from_disk(tmp_path, parts, epsilon, limit):
    path = tmp_path / "ledger.jsonl"
    for round_id in range(parts):
        book = LedgerBook(limit, path)
        book.bind(DATA)
        book.charge(plan(round_id), loss(epsilon))
    book = LedgerBook(limit, path)
    assert book.ledger.spent == book.ledger.limit
    with pytest.raises(BudgetExceededError):
        book.charge(plan(parts), loss("1/1000000"))


def test_losses_come_back_with_their_relation(tmp_path):
    path = tmp_path / "ledger.jsonl"
    limit = PrivacyLoss(Fraction(1, 3), Fraction(1, 7), unit="rating", neighbors="add_remove")
    book = LedgerBook(limit, path)
    book.bind(DATA)
    book.charge(plan(0), limit)
    assert LedgerBook(limit, path).ledger == book.ledger


def test_a_book_in_memory_keeps_the_same_rules():
    book = LedgerBook(1)
    book.bind(DATA)
    book.charge(plan(0), loss("0.6"))
    book.charge(plan(0), loss("0.6"))
    with pytest.raises(PlanConflictError):
        book.charge(plan(0, "x"), loss("0.1"))
    with pytest.raises(BudgetExceededError):
        book.charge(plan(1), loss("0.6"))
    assert book.ledger.spent.epsilon == Fraction(6, 10)


def test_the_file_is_the_owners_alone(tmp_path):
    before = os.umask(0o022)
    try:
        filled(tmp_path / "ledger.jsonl")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "ledger.jsonl").stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [tmp_path / "ledger.jsonl"]
