"""MWEM on marginals of wide tables as pure steps: start, advance by one iteration, model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations

import numpy as np

from dpsim.core.arrays import Counts
from dpsim.core.errors import InputError
from dpsim.core.rng import CentralNoise
from dpsim.mechanisms.postprocess import norm_sub
from dpsim.synthesis.beliefs import Beliefs, Floats
from dpsim.synthesis.contingency import joint_counts
from dpsim.synthesis.graphical_model import GraphicalModel, tree_of
from dpsim.synthesis.iterative_scaling import ScalingFit, Target
from dpsim.synthesis.junction import Clique, JunctionTree, cells_in
from dpsim.synthesis.marginal_settings import MarginalSettings, Measurer, mean_error
from dpsim.synthesis.marginal_state import MarginalState, Measurement
from dpsim.synthesis.table import TableSource

_SUBJECT = "marginals"
_LAST_SWEEPS = 25


@dataclass(frozen=True, slots=True, eq=False)
class MarginalTruth:
    """What the host knows and nobody else: the exact counts of every candidate."""

    total: int
    counts: dict[Clique, Counts]


@dataclass(frozen=True, eq=False)
class MarginalMWEM:
    """A run of MWEM whose guess is a graphical model: settings and public domain sizes.

    Selects the marginal that the guess gets most wrong, score ``|n M p - M(B)|₁`` less expected
    noise; measures it whole; and fits the model to all measurements so far. Candidates that
    would make the model's tables too large, or whose noise is as large as the table itself,
    are left out: sizes and measurements alone decide that.
    """

    settings: MarginalSettings
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 1:
            raise InputError("sizes must be whole numbers >= 1, one per attribute")
        if sum(self.sizes) > self.settings.model_limit:
            raise InputError(
                f"the margins alone have {sum(self.sizes):,} cells, and model_limit is "
                f"{self.settings.model_limit:,}: raise it, or make the domains smaller"
            )

    @cached_property
    def candidates(self) -> tuple[Clique, ...]:
        """The marginals that may be measured."""
        return self.settings.candidates(self.sizes)

    @cached_property
    def _cells(self) -> Floats:
        return np.array([cells_in(scope, self.sizes) for scope in self.candidates], np.float64)

    @property
    def _wide(self) -> tuple[int, ...]:
        return tuple(attribute for attribute, size in enumerate(self.sizes) if size > 1)

    def truth(self, table: TableSource) -> MarginalTruth:
        """All counts that may be asked for."""
        if table.sizes != self.sizes:
            raise InputError(f"the table must have the sizes {self.sizes}, got {table.sizes}")
        if table.n < 1:
            raise InputError("the table must have one user at least")
        opened = table.open()
        scopes = (*((attribute,) for attribute in self._wide), *self.candidates)
        return MarginalTruth(table.n, {scope: joint_counts(opened, scope) for scope in scopes})

    def start(self, truth: MarginalTruth, noise: CentralNoise) -> MarginalState:
        """The margins, measured evenly; costs the part ``margins``, or nothing."""
        settings, found = self.settings, []
        if settings.margins and self._wide:
            part = settings.budget * settings.margins / len(self._wide)
            mechanism = settings.measurer(part)
            for attribute in self._wide:
                subject = f"{_SUBJECT}: margin {attribute}"
                counts = mechanism.measure(truth.counts[attribute,], noise, subject)
                found.append(Measurement((attribute,), counts, mechanism.variance))
        share = self._first_share(truth.total)
        state = MarginalState(truth.total, tuple(found), (), Fraction(0), share)
        return replace(state, potentials=self._fitted(state, settings.sweeps))

    def is_done(self, state: MarginalState) -> bool:
        """Whether no iteration is left: all is spent, or no candidate may be measured."""
        if state.used >= 1:
            return True
        possible = np.flatnonzero(self._is_useful(state)).tolist()
        return self._first_that_fits(possible, state) is None

    def advance(
        self, state: MarginalState, truth: MarginalTruth, noise: CentralNoise
    ) -> MarginalState:
        """One iteration; costs `MarginalSettings.iteration_parts`, charged beforehand."""
        if self.is_done(state):
            raise InputError(f"the run is done after {state.iteration} iterations")
        before = self.fit_of(state).beliefs(state.potentials)
        choice = self._select(self.scores(before, state, truth), state, noise)
        scope, mechanism = self.candidates[choice], self._measurer(state.share)
        subject = f"{_SUBJECT}: iteration {state.iteration}, {' '.join(map(str, scope))}"
        counts = mechanism.measure(truth.counts[scope], noise, subject)
        measurement = Measurement(scope, counts, mechanism.variance)
        asked = replace(
            state,
            measurements=(*state.measurements, measurement),
            used=state.used + state.share,
            iteration=state.iteration + 1,
        )
        fitted = replace(asked, potentials=self._fitted(asked, self.settings.sweeps))
        if self.settings.schedule == "even":
            return fitted
        after = self.fit_of(fitted).beliefs(fitted.potentials)
        moved = float(np.abs(after.marginal(scope) - before.marginal(scope)).sum())
        is_noise = moved * state.total <= mean_error(mechanism) * counts.size
        return replace(fitted, share=self._next_share(fitted, is_noise=is_noise))

    def run(self, truth: MarginalTruth, noise: CentralNoise) -> MarginalState:
        """All iterations, one after the other."""
        state = self.start(truth, noise)
        while not self.is_done(state):
            state = self.advance(state, truth, noise)
        return state

    def model(self, state: MarginalState) -> GraphicalModel:
        """What is released: the model, fitted some more."""
        sweeps = _LAST_SWEEPS * self.settings.sweeps
        scopes = tuple(target.attributes for target in self.targets(state))
        limit = self.settings.model_limit
        return GraphicalModel(self.sizes, scopes, self._fitted(state, sweeps), limit)

    def spent(self, state: MarginalState) -> Fraction:
        """What the run has cost so far: ε, or ρ."""
        settings = self.settings
        first = settings.margins if self._wide else Fraction(0)
        return settings.budget * (first + (1 - settings.margins) * state.used)

    def scores(self, beliefs: Beliefs, state: MarginalState, truth: MarginalTruth) -> Floats:
        """How wrong the guess is about each candidate, less its expected noise.

        Sensitivity 2 when one record is replaced. Candidates that are not useful get 0.
        """
        is_useful = self._is_useful(state)
        scores = np.zeros(len(self.candidates))
        for place in np.flatnonzero(is_useful).tolist():
            scope = self.candidates[place]
            wrong = np.abs(state.total * beliefs.marginal(scope) - truth.counts[scope])
            scores[place] = float(wrong.sum())
        expected = self._error(state.share) * self._cells
        penalized: Floats = scores - float(self.settings.penalty) * expected * is_useful
        return penalized

    def fit_of(self, state: MarginalState) -> ScalingFit:
        """The problem that the state's potentials answer."""
        return ScalingFit(self.sizes, self.targets(state))

    def targets(self, state: MarginalState) -> tuple[Target, ...]:
        """What the model is fitted to: one distribution per measured set of attributes.

        Measurements of one set are averaged by precision and projected on the simplex. The
        ridge of a table with c cells is c times its shares' variance: as if each count could
        differ from what simpler marginals say by about the average count. A margin, about
        which they say nothing, has its variance alone.
        """
        groups: dict[Clique, list[Measurement]] = {}
        for each in state.measurements:
            groups.setdefault(each.attributes, []).append(each)
        return tuple(_target(scope, group, state.total) for scope, group in groups.items())

    def _fitted(self, state: MarginalState, sweeps: int) -> tuple[Floats, ...]:
        fit = self.fit_of(state)
        return fit.fit(fit.start(state.potentials), sweeps)

    def _measurer(self, share: Fraction) -> Measurer:
        return self.settings.measurer(self.settings.iteration_parts(share)[1])

    def _first_share(self, total: int) -> Fraction:
        """The first iteration's share of what all of them have; public numbers decide it.

        Even iterations are no more than candidates. Their number is halved while the noise of
        the median pair is above n/2 in sum.
        """
        most = self.settings.iterations
        if self.settings.schedule == "even":
            most = max(1, min(most, len(self.candidates)))
        pairs = sorted(cells_in(scope, self.sizes) for scope in combinations(self._wide, 2))
        median = pairs[len(pairs) // 2] if pairs else 0
        while most > 1 and 2 * median * self._error(Fraction(1, most)) > total:
            most //= 2
        return Fraction(1, most)

    def _error(self, share: Fraction) -> float:
        return mean_error(self._measurer(share))

    def _is_useful(self, state: MarginalState) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Whose expected noise is at most n in sum: half of what any two tables differ by."""
        useful = self._cells * self._error(state.share) <= state.total
        if self.settings.schedule == "even":
            done = {each.attributes for each in state.measurements}
            useful &= np.array([scope not in done for scope in self.candidates], np.bool_)
        return useful

    def _select(self, scores: Floats, state: MarginalState, noise: CentralNoise) -> int:
        """The candidate with the largest key among those that fit; the first of equal ones."""
        selector = self.settings.selector(self.settings.iteration_parts(state.share)[0])
        start = state.iteration * scores.size
        keys = selector.keys(scores, noise, _SUBJECT, start)
        keys[~self._is_useful(state)] = -np.inf
        order = np.argsort(-keys, kind="stable")
        possible = order[np.isfinite(keys[order])].tolist()
        found = self._first_that_fits(possible, state)
        if found is None:
            raise InputError("no candidate is left to select")
        return found

    def _first_that_fits(self, places: Iterable[int], state: MarginalState) -> int | None:
        """The first candidate with which the model stays within its limit."""
        scopes = [each.attributes for each in state.measurements]
        tree = tree_of(self.sizes, scopes)
        for place in places:
            if self._fits(tree, scopes, self.candidates[place]):
                return place
        return None

    def _fits(self, tree: JunctionTree, scopes: Sequence[Clique], scope: Clique) -> bool:
        if tree.home_of(scope) is not None:
            return True
        return tree_of(self.sizes, [*scopes, scope]).cells <= self.settings.model_limit

    def _next_share(self, state: MarginalState, *, is_noise: bool) -> Fraction:
        grown = state.share * (2 if self.settings.is_pure else 4) if is_noise else state.share
        rest = 1 - state.used
        return rest if rest < 2 * grown else grown


def _target(scope: Clique, group: Sequence[Measurement], total: int) -> Target:
    weights = [1 / each.variance for each in group]
    pooled = np.zeros(group[0].counts.shape)
    for weight, each in zip(weights, group, strict=True):
        pooled += each.counts * (weight / sum(weights))
    shares = norm_sub(pooled.ravel() / total).reshape(pooled.shape)
    prior = shares.size if len(scope) > 1 else 1
    return Target(scope, shares, prior / (sum(weights) * total**2))
