"""All that is public and fixed before a Gram recommender sees data."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, Literal, get_args

from dpsim.core.checks import require_at_least, require_epsilon
from dpsim.core.errors import InputError
from dpsim.core.exact import Number, exact, text_of
from dpsim.core.plan import Parameters, Scalar
from dpsim.core.privacy import Neighbors
from dpsim.recommend.ratings_matrix import RatingScale

Head = Literal["ratings", "top_n"]
Protected = Literal["rating", "user"]
Trust = Literal["central", "distributed", "local"]

MOST_POPULAR = 5_000
"""The most items of a Gram: its triangle has 100 MB, and top-N sensitivities hold up to it."""
DEFAULT_POPULAR = 2_000
RATING_SHARES = Fraction(1, 10), Fraction(3, 10), Fraction(6, 10)
MEANS_ONLY_SHARES = Fraction(1, 10), Fraction(9, 10), Fraction(0)
TOP_N_SHARES = Fraction(0), Fraction(1, 3), Fraction(2, 3)
POPULARITY_SHARES = Fraction(0), Fraction(1), Fraction(0)

_LARGEST_BOUND = 16
_FEWEST_BITS, _MOST_BITS = 12, 16
_INT64_USERS = 1 << 31


@dataclass(frozen=True, slots=True)
class GramSettings:
    """What is asked, how it is protected, and every constant: part of the plan's hash."""

    n_users: int
    """Public if ratings are protected; if users are, it only lays out parties."""
    n_items: int
    """Size of the public catalog."""
    scale: RatingScale
    epsilon: Fraction | None
    """For the whole model; None for a model without noise, and without any guarantee."""
    delta: Fraction = Fraction(1, 10**6)
    head: Head = "ratings"
    protects: Protected = "rating"
    """One rating of a user, or all of them; added or removed (locally: replaced)."""
    trust: Trust = "central"
    shares: tuple[Fraction, Fraction, Fraction] = ()  # type: ignore[assignment]
    """Of ε, for the global mean, the items' sums, and the Gram; they sum to 1."""
    popular: int = 0
    """How many items have a row in the Gram: m; 0 for all of them, up to 2000."""
    bound: Fraction = Fraction(1)
    """Residuals are clipped to ±B."""
    damping: Fraction = Fraction(10)
    """β: as many ratings at the mean of all pull a user's bias to 0."""
    weight_cap: int = 3
    """c: a user's sums weigh min(1, c/√n) for n ratings, where users are protected."""
    bits: int = 16
    """q: residuals are whole multiples of 2^-q."""
    kept: int = 0
    """The most directions that are kept; 0 for 10 (ratings) or 30 (top-N)."""
    parties: int = 16
    """V: who adds noise where no aggregator is trusted with it."""
    colluders: int = 0
    """t: as many parties may tell each other their noise, and the guarantee holds."""

    def __post_init__(self) -> None:
        self._set_numbers()
        self._set_defaults()
        self._check_words()
        self._check_shares()
        self._check_trust()
        self._check_sizes()

    @classmethod
    def of(
        cls,
        n_users: int,
        n_items: int,
        scale: RatingScale,
        epsilon: Number | None,
        **choices: Any,  # noqa: ANN401 - any other field, as people write it
    ) -> GramSettings:
        """Settings from numbers as people write them: ``epsilon="0.5"``, ``shares=(…)``."""
        loss = None if epsilon is None else require_epsilon(epsilon)
        return cls(n_users, n_items, scale, loss, **choices)

    def but(self, **changes: Any) -> GramSettings:  # noqa: ANN401 - as for `of`
        """The same settings with some fields changed."""
        return replace(self, **changes)

    @property
    def neighbors(self) -> Neighbors:
        """Added or removed; a user who perturbs by itself can only be replaced."""
        return "replace" if self.trust == "local" else "add_remove"

    @property
    def guarantee(self) -> str:
        """What the model promises, in words."""
        if self.epsilon is None:
            return "none"
        verb = "replaced" if self.neighbors == "replace" else "added or removed"
        delta = f", δ = {text_of(self.delta)}" if self.has_delta else ""
        return f"ε = {text_of(self.epsilon)}{delta} if one {self.protects} is {verb}"

    @property
    def has_gram(self) -> bool:
        """Whether any of ε goes to the Gram; else the model has means and counts only."""
        return self.shares[2] > 0

    @property
    def has_delta(self) -> bool:
        """Whether any noise is Gaussian."""
        return self.has_gram or self.protects == "user" or self.trust != "central"

    @property
    def levels(self) -> int:
        """L: steps from the lowest to the highest rating."""
        return self.scale.levels - 1

    @property
    def totals_unit(self) -> int:
        """Units per whole weight in the sums.

        L for ratings and 1 for counts, which are exact; 2^q for users' weights. Gaussian noise
        on ratings' sums needs a grid finer than theirs, by 2^q.
        """
        if self.protects == "user":
            return 1 << self.bits
        exact_unit = self.levels if self.head == "ratings" else 1
        return exact_unit if self.trust == "central" else exact_unit << self.bits

    @property
    def totals_size(self) -> int:
        """Entries of the first answer: two sums per item and a global pair, or one count."""
        return 2 * self.n_items + 2 if self.head == "ratings" else self.n_items

    @property
    def triangle_size(self) -> int:
        """Entries of the packed Gram."""
        return self.popular * (self.popular - 1) // 2

    @property
    def parameters(self) -> Parameters:
        """Every field as the plan holds it."""
        return tuple((item.name, self._scalar(item.name)) for item in fields(self))

    def _scalar(self, name: str) -> Scalar:
        value = getattr(self, name)
        if isinstance(value, RatingScale):
            return str(value)
        if isinstance(value, tuple):
            return " ".join(text_of(share) for share in value)
        return text_of(value) if isinstance(value, Fraction) else value

    def _set_numbers(self) -> None:
        for name in ("delta", "bound", "damping"):
            object.__setattr__(self, name, exact(getattr(self, name), name))
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", require_epsilon(self.epsilon))
        counts = {"n_users": 1, "n_items": 2, "popular": 0, "weight_cap": 1, "kept": 0}
        for name, least in {**counts, "parties": 1, "colluders": 0, "bits": 1}.items():
            object.__setattr__(
                self, name, require_at_least(least, **{name: getattr(self, name)})
            )

    def _set_defaults(self) -> None:
        usual = RATING_SHARES if self.head == "ratings" else TOP_N_SHARES
        given = tuple(exact(share, "shares") for share in self.shares)
        object.__setattr__(self, "shares", given or usual)
        popular = self.popular or min(self.n_items, DEFAULT_POPULAR)
        object.__setattr__(self, "popular", popular)
        object.__setattr__(self, "kept", self.kept or (10 if self.head == "ratings" else 30))

    def _check_words(self) -> None:
        words = {"head": Head, "protects": Protected, "trust": Trust}
        for name, kinds in words.items():
            if getattr(self, name) not in get_args(kinds):
                choices = ", ".join(get_args(kinds))
                raise InputError(
                    f"{name} must be one of {choices}, got {getattr(self, name)!r}"
                )

    def _check_shares(self) -> None:
        parts = len(TOP_N_SHARES)
        if len(self.shares) != parts or min(self.shares) < 0 or sum(self.shares) != 1:
            raise InputError("shares must be three numbers >= 0 that sum to 1")
        if (self.shares[0] > 0) != (self.head == "ratings") or self.shares[1] == 0:
            raise InputError(
                "shares must be > 0 for the items' sums, and for the global mean if (and only "
                "if) ratings are predicted"
            )
        if not 0 < self.delta < 1:
            raise InputError(f"delta must be > 0 and < 1, got {text_of(self.delta)}")

    def _check_trust(self) -> None:
        if self.trust == "local" and self.protects != "user":
            raise InputError('trust = "local" protects whole users: write protects = "user"')
        if self.colluders >= self.parties:
            raise InputError(
                f"colluders must be fewer than the {self.parties} parties, got {self.colluders}"
            )

    def _check_sizes(self) -> None:
        most = min(self.n_items, MOST_POPULAR)
        if not 2 <= self.popular <= most:  # noqa: PLR2004 - one pair at least
            raise InputError(f"popular must lie in 2..{most}, got {self.popular}")
        if not 0 < self.bound <= _LARGEST_BOUND:
            raise InputError(f"bound must be > 0 and <= 16, got {text_of(self.bound)}")
        if self.damping < 0:
            raise InputError(f"damping must be >= 0, got {text_of(self.damping)}")
        if not _FEWEST_BITS <= self.bits <= _MOST_BITS:
            raise InputError(f"bits must lie in 12..16, got {self.bits}")
        if self.n_users * self.bound**2 >= _INT64_USERS:
            raise InputError("n_users times bound² must stay below 2^31, or sums overflow")
