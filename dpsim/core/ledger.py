"""The ledger: a list of charges under a limit, charged before anything is asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from operator import add, or_
from typing import Self

from dpsim.core.errors import BudgetError, IntegrityError
from dpsim.core.exact import text_of
from dpsim.core.plan import Plan
from dpsim.core.privacy import PrivacyLoss


class BudgetExceededError(BudgetError):
    """The limit does not allow this charge. Nothing was asked, nothing was spent."""

    def __init__(
        self, question: str, asked: PrivacyLoss, spent: PrivacyLoss, limit: PrivacyLoss
    ) -> None:
        super().__init__(question, asked, spent, limit)
        self.question, self.asked, self.spent, self.limit = question, asked, spent, limit

    def __str__(self) -> str:
        left = self.limit.epsilon - self.spent.epsilon
        remedy = f"ask for ε <= {text_of(left)}, or " if left > 0 else ""
        needed = text_of(self.spent.epsilon + self.asked.epsilon)
        return (
            f"{self.question}: asked {self.asked}, spent {self.spent}, limit {self.limit}; "
            f"{remedy}raise the limit to ε={needed}"
        )


class PlanConflictError(IntegrityError):
    """Another plan, or another price, under a round that has been charged already."""

    def __init__(self, experiment: str, round_id: int, known: str, asked: str) -> None:
        super().__init__(experiment, round_id, known, asked)
        self.experiment, self.round_id, self.known, self.asked = (
            experiment,
            round_id,
            known,
            asked,
        )

    def __str__(self) -> str:
        return (
            f"round {self.round_id} of {self.experiment} was charged for plan "
            f"{self.known[:8]} and cannot be asked again with plan {self.asked[:8]}; "
            "use a new round or a new run"
        )


@dataclass(frozen=True, slots=True)
class Charge:
    """One line of the ledger: which plan, of which round, at which loss."""

    experiment: str
    round_id: int
    question: str
    plan_hash: str
    loss: PrivacyLoss
    group: int | None = None
    """Which of the experiment's disjoint groups of users pays; None if all do."""
    memo: str = ""
    """Rounds with the same memo repeat permanent answers, which are paid for once."""

    @classmethod
    def of(cls, plan: Plan, loss: PrivacyLoss) -> Self:
        """The charge for a plan."""
        group = dict(plan.group).get("number")
        number = None if group is None else int(group)
        place = (plan.experiment, plan.round_id, plan.question, plan.hash)
        return cls(*place, loss, number, plan.memo)

    def is_same_round(self, other: Charge) -> bool:
        """Whether both are about one round of one experiment."""
        return (self.experiment, self.round_id) == (other.experiment, other.round_id)


@dataclass(frozen=True, slots=True)
class Ledger:
    """An immutable account. Charge *before* asking: a lost answer was still released."""

    limit: PrivacyLoss
    charges: tuple[Charge, ...] = ()

    @property
    def spent(self) -> PrivacyLoss:
        """What one user has paid at most.

        Charges add up, except that memoized answers are paid once, and that charges to
        disjoint groups of one experiment's users compose in parallel.
        """
        nothing = replace(self.limit, epsilon=Fraction(0), delta=Fraction(0))
        paid: dict[str, dict[int | None, PrivacyLoss]] = {}
        known: set[tuple[str, int | None]] = set()
        for charge in self.charges:
            if charge.memo and (charge.memo, charge.group) in known:
                continue
            known.add((charge.memo, charge.group))
            name = "" if charge.group is None else charge.experiment
            groups = paid.setdefault(name, {})
            groups[charge.group] = groups.get(charge.group, nothing) + charge.loss
        return reduce(add, (reduce(or_, groups.values()) for groups in paid.values()), nothing)

    def charge(self, charge: Charge) -> Ledger:
        """The ledger with this charge, once. Repeating a plan repeats its bits: free."""
        for known in self.charges:
            if known.is_same_round(charge) or known.plan_hash == charge.plan_hash:
                if (known.plan_hash, known.loss) != (charge.plan_hash, charge.loss):
                    raise PlanConflictError(
                        charge.experiment, charge.round_id, known.plan_hash, charge.plan_hash
                    )
                return self
        charged = replace(self, charges=(*self.charges, charge))
        if not charged.spent.within(self.limit):
            raise BudgetExceededError(charge.question, charge.loss, self.spent, self.limit)
        return charged
