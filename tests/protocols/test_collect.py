"""What one round asks: compound codes, uneven shares of the users, whole rows."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpsim.core.errors import InputError
from dpsim.core.records import Block
from dpsim.core.rng import ClientNoise
from dpsim.data.sources import parse_generated
from dpsim.mechanisms.grr import GRR
from dpsim.protocols.collect import CollectRequest, Group, Item, collect
from dpsim.protocols.curator import read_table
from dpsim.protocols.participation import Participation
from dpsim.protocols.reports import ReportRequest, report_table
from dpsim.runtime.ledger_book import LedgerBook
from dpsim.runtime.local import LocalFleet
from dpsim.synthesis.contingency import joint_counts

USERS = parse_generated("chain:n=4000,d=3,k=2-4,copy=0.8", 700)
ATTRIBUTES = USERS.schema.attributes
SIZES = tuple(attribute.size for attribute in ATTRIBUTES)
TRUTH = read_table(USERS, USERS.schema.names)
ALMOST_CERTAIN = 30


def asked(*items, collected="split", group=None):
    request = CollectRequest("demo", 0, "cells", items, collected, group=group)
    return collect(LocalFleet(USERS, 5, LedgerBook(200)), request)


def test_several_attributes_are_one_compound_code_with_the_first_one_leading():
    item = Item(ATTRIBUTES, GRR(int(np.prod(SIZES)), ALMOST_CERTAIN))
    ((n, tally),) = asked(item).tallies
    assert n == USERS.n
    assert tally.tolist() == joint_counts(TRUTH, (0, 1, 2)).ravel().tolist()


def pairs(*shares):
    items = [Item((attribute,), GRR(attribute.size, 1)) for attribute in ATTRIBUTES]
    return [replace(item, share=share) for item, share in zip(items, shares, strict=True)]


@pytest.mark.statistical
def test_users_sample_items_by_their_shares_each_one_item():
    shares = [Fraction(1, 2), Fraction(0), Fraction(1, 2)]
    counts = [n for n, _ in asked(*pairs(*shares), collected="sample").tallies]
    assert sum(counts) == USERS.n
    assert counts[1] == 0
    assert abs(counts[0] - 2000) < 5 * 32


@pytest.mark.parametrize(
    "shares", [("1/2", "1/2", "1/3"), ("1", "1/2", "-1/2"), ("1/2", "1/2", None)]
)
def test_shares_that_are_no_partition_of_the_users_are_refused(shares):
    parts = [None if share is None else Fraction(share) for share in shares]
    with pytest.raises(InputError, match="must all be given and sum to 1"):
        CollectRequest("demo", 0, "q", tuple(pairs(*parts)), "sample")


def test_shares_are_a_part_of_the_plan_and_their_absence_changes_nothing():
    plain = CollectRequest("demo", 0, "q", tuple(pairs(None, None, None)), "sample")
    even = CollectRequest("demo", 0, "q", tuple(pairs(*[Fraction(1, 3)] * 3)), "sample")
    assert plain.plan.hash != even.plan.hash
    assert all("share" not in dict(use.parameters) for use in plain.plan.uses)


def test_uneven_groups_are_disjoint_and_together_everybody():
    shares = (Fraction(1, 5), Fraction(4, 5))
    item = Item((ATTRIBUTES[0],), GRR(SIZES[0], 1))
    counts = [
        asked(item, group=Group(number, 2, shares)).turnout.counted for number in range(2)
    ]
    assert sum(counts) == USERS.n
    assert abs(counts[0] - 800) < 5 * 26
    one = CollectRequest("demo", 0, "q", (item,), group=Group(0, 2, shares))
    other = CollectRequest("demo", 0, "q", (item,), group=Group(0, 2))
    assert one.plan.hash != other.plan.hash


def rows_of(participation=None, epsilon=ALMOST_CERTAIN):
    items = tuple(Item((a,), GRR(a.size, epsilon)) for a in ATTRIBUTES)
    request = ReportRequest("demo", 0, "rows", items)
    return request if participation is None else replace(request, participation=participation)


def answered(request, block=None):
    block = block or Block(0, USERS.n)
    noise = ClientNoise(5, request.plan.hash, block)
    return request.answer(USERS.read(block), noise)


def test_rows_hold_one_report_per_user_and_attribute_whatever_the_blocks():
    request = rows_of(epsilon=1)
    whole = answered(request)
    parts = [answered(request, block) for block in Block(0, USERS.n).parts(700)]
    assert np.array_equal(np.concatenate(parts, axis=1), whole)
    table = report_table(request.sizes, whole)
    assert table.sizes == SIZES
    assert not np.array_equal(table.codes, TRUTH.codes)
    assert np.array_equal(report_table(SIZES, answered(rows_of())).codes, TRUTH.codes)


def test_who_dropped_out_left_no_report_and_who_was_late_is_not_counted():
    late = Participation(Fraction(1, 4), 100, Fraction(1), 100)
    request = rows_of(late)
    whole = answered(request)
    fleet = LocalFleet(USERS, 5, LedgerBook(200))
    counted, n_late, dropped = fleet.ask(request).tolist()
    assert (counted, n_late, dropped) == tuple(np.bincount(whole[0])[[1, 2, 0]])
    assert min(counted, n_late, dropped) > 0
    assert not whole[1:, whole[0] != 1].any()
    assert report_table(SIZES, whole).n == counted


def test_every_attribute_of_a_row_is_charged_before_anybody_is_asked():
    request = rows_of(epsilon=1)
    fleet = LocalFleet(USERS, 5, LedgerBook(3))
    fleet.ask(request)
    assert fleet.ledger.spent.epsilon == request.loss.epsilon == 3
