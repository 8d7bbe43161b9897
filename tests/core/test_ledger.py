"""The ledger: exact, once per plan, and never above its limit."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsim.core.errors import InputError
from dpsim.core.ledger import BudgetExceededError, Charge, Ledger, PlanConflictError
from dpsim.core.plan import Plan
from dpsim.core.privacy import PrivacyLoss


def charge(round_id, epsilon, plan_hash=None, experiment="demo"):
    plan_hash = plan_hash or f"hash of {round_id} in {experiment}"
    return Charge(experiment, round_id, "how many?", plan_hash, PrivacyLoss.of(epsilon))


def ledger_of(limit, *charges):
    ledger = Ledger(PrivacyLoss.of(limit))
    for item in charges:
        ledger = ledger.charge(item)
    return ledger


@pytest.mark.parametrize(
    ("parts", "epsilon", "limit"),
    [(14, "1/14", "1"), (3, "0.1", "0.3"), (3, 0.1, 0.3), (3, "1/3", 1)],
)
def test_honest_parts_fit_exactly_and_one_more_does_not(parts, epsilon, limit):
    ledger = ledger_of(limit, *(charge(place, epsilon) for place in range(parts)))
    assert ledger.spent == ledger.limit
    with pytest.raises(BudgetExceededError):
        ledger.charge(charge(parts, "1/1000000000000"))


@given(st.lists(st.fractions(0, 1, max_denominator=50), max_size=20))
def test_the_spent_never_exceeds_the_limit_and_is_the_sum_of_what_passed(losses):
    ledger, passed = ledger_of(1), Fraction(0)
    for place, epsilon in enumerate(losses):
        try:
            ledger = ledger.charge(charge(place, epsilon))
            passed += epsilon
        except BudgetExceededError:
            assert passed + epsilon > 1
    assert ledger.spent.epsilon == passed <= 1


def test_repeating_a_plan_is_free_even_when_all_is_spent():
    ledger = ledger_of(1, charge(0, 1))
    assert ledger.charge(charge(0, 1)) is ledger


def test_another_plan_under_a_charged_round_is_refused():
    with pytest.raises(
        PlanConflictError, match="round 0 of demo was charged for plan"
    ) as caught:
        ledger_of(9, charge(0, 1, "first")).charge(charge(0, 1, "second"))
    assert (caught.value.known, caught.value.asked) == ("first", "second")


def test_another_price_for_the_same_plan_is_refused():
    with pytest.raises(PlanConflictError):
        ledger_of(9, charge(0, 1)).charge(charge(0, "0.5"))


def test_the_same_plan_under_another_round_costs_nothing_more():
    ledger = ledger_of(9, charge(0, 1, "plan"))
    assert ledger.charge(charge(1, 1, "plan")).spent.epsilon == 1


def test_rounds_of_different_experiments_are_different_rounds():
    ledger = ledger_of(2, charge(0, 1, experiment="a"), charge(0, 1, experiment="b"))
    assert ledger.spent.epsilon == 2


def test_a_refused_charge_leaves_the_ledger_as_it_was():
    ledger = ledger_of(1, charge(0, "0.4"))
    with pytest.raises(BudgetExceededError):
        ledger.charge(charge(1, "0.7"))
    assert ledger == ledger_of(1, charge(0, "0.4"))


def test_a_refusal_says_what_would_fit():
    with pytest.raises(BudgetExceededError) as caught:
        ledger_of(1, charge(0, "0.4")).charge(charge(1, "0.7"))
    assert str(caught.value) == (
        "how many?: asked ε=0.7, spent ε=0.4, limit ε=1; "
        "ask for ε <= 0.6, or raise the limit to ε=1.1"
    )
    with pytest.raises(BudgetExceededError, match="limit ε=1; raise the limit to ε=2"):
        ledger_of(1, charge(0, 1)).charge(charge(1, 1))


def test_delta_counts_too():
    loss = PrivacyLoss.of(1, "1e-6")
    with pytest.raises(BudgetExceededError):
        Ledger(PrivacyLoss.of(9)).charge(replace(charge(0, 1), loss=loss))


def test_a_loss_under_another_relation_is_refused():
    loss = PrivacyLoss(Fraction(1), unit="attribute")
    with pytest.raises(InputError, match="one neighbor relation"):
        ledger_of(9).charge(replace(charge(0, 1), loss=loss))


def test_a_charge_names_its_plan():
    plan = Plan("demo", 3, "how many?", ())
    loss = PrivacyLoss.of(1)
    assert Charge.of(plan, loss) == Charge("demo", 3, "how many?", plan.hash, loss)
