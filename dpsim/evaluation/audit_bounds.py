"""What a sample proves about a privacy loss, with a stated confidence.

Everything here is a tail of the binomial law, computed as an incomplete beta function: exact
for any number of trials, no normal approximation.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, log

from scipy.special import betainc, betainccinv, betaincinv  # type: ignore[import-untyped]

from dpsim.core.errors import InputError

_LARGEST_EXCESS = 40.0
_HALVINGS = 50


def guess_epsilon(correct: int, guesses: int, alpha: float) -> float:
    """The largest ε that guesses of secret bits refute: a lower bound, at confidence 1-α.

    A fair secret bit decides which of two inputs is perturbed, and somebody guesses it from the
    report, or abstains. Under ε the right ones among g guesses are dominated by
    Bin(g, e^ε / (1 + e^ε)). So c right ones give::

        ε_LB = logit(BetaInv(α; c, g - c + 1))

    -inf if no guess was right.

    References:
        Steinke, Nasr, Jagielski. Privacy auditing with one (1) training run. NeurIPS 2023.
    """
    _require_part(correct, guesses)
    _require_alpha(alpha)
    if correct == 0:
        return -inf
    wrong = guesses - correct + 1
    # The complement is computed by itself: 1 - x has no digits left where x is near 1.
    least = float(betaincinv(correct, wrong, alpha))
    rest = float(betainccinv(wrong, correct, alpha))
    return log(least / rest) if least > 0 else -inf


def guess_p_value(correct: int, guesses: int, epsilon: float) -> float:
    """P[Bin(g, e^ε / (1 + e^ε)) ≥ c]: how likely so many right guesses are under ε."""
    _require_part(correct, guesses)
    if correct == 0:
        return 1.0
    return float(betainc(correct, guesses - correct + 1, _accuracy(epsilon)))


def two_arm_epsilon(
    hits1: int, n1: int, hits0: int, n0: int, alpha: float, delta: float = 0.0
) -> float:
    """The largest ε that the rates of one event under two inputs refute, at confidence 1-α.

    Clopper and Pearson bound each rate from the side that matters, at α/2 each::

        ε_LB = ln((low(hits1, n1) - δ) / high(hits0, n0))

    -inf if nothing is left above δ. Looser than guesses, but it allows for δ.
    """
    _require_part(hits1, n1)
    _require_part(hits0, n0)
    _require_alpha(alpha)
    low = float(betaincinv(hits1, n1 - hits1 + 1, alpha / 2)) if hits1 else 0.0
    high = float(betainccinv(hits0 + 1, n0 - hits0, alpha / 2)) if hits0 < n0 else 1.0
    return log((low - delta) / high) if low > delta else -inf


def least_convincing(guesses: int, epsilon: float, alpha: float) -> int | None:
    """The fewest right guesses that refute ε; None if not even all of them would."""
    _require_alpha(alpha)
    if guesses == 0 or guess_p_value(guesses, guesses, epsilon) >= alpha:
        return None
    unconvincing, convincing = 0, guesses
    while convincing - unconvincing > 1:
        middle = (unconvincing + convincing) // 2
        if guess_p_value(middle, guesses, epsilon) < alpha:
            convincing = middle
        else:
            unconvincing = middle
    return convincing


def smallest_excess(
    claim: float, guesses: Callable[[float], float], alpha: float, power: float = 0.999
) -> float:
    """The least that a loss must exceed its claim to be found with the given power.

    ``guesses`` tells how many guesses a loss of ε leads to. Infinity if nothing is found.
    """

    def is_found(excess: float) -> bool:
        n = round(guesses(claim + excess))
        least = least_convincing(n, claim, alpha)
        return least is not None and guess_p_value(least, n, claim + excess) >= power

    hidden, found = 0.0, _LARGEST_EXCESS
    if not is_found(found):
        return inf
    for _ in range(_HALVINGS):
        middle = (hidden + found) / 2
        if is_found(middle):
            found = middle
        else:
            hidden = middle
        if found - hidden < 1e-6 * found:
            break
    return found


def _accuracy(epsilon: float) -> float:
    """e^ε / (1 + e^ε), for any ε."""
    return 1 / (1 + exp(-epsilon)) if epsilon > 0 else exp(epsilon) / (1 + exp(epsilon))


def _require_part(part: int, whole: int) -> None:
    if not 0 <= part <= whole:
        raise InputError(f"hits must be >= 0 and at most the trials, got {part} of {whole}")


def _require_alpha(alpha: float) -> None:
    if not 0 < alpha < 1:
        raise InputError(f"alpha must be > 0 and < 1, got {alpha}")
