"""The engine for boxes on huge domains: one mass per atom, exact, whatever the domain's size.

After t boxes the guess is constant on the grid cut by their ends: at most 2t + 1 slabs along
every axis. Its cells are the atoms.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod

import numpy as np
from numpy.typing import NDArray

from dpsim.synthesis.mwem._atom_kernels import replay
from dpsim.synthesis.mwem._query_kernels import atom_answers, box_runs, fill_table
from dpsim.synthesis.mwem.dense import Fitting, project_guess
from dpsim.synthesis.mwem.newton import BoxQueries
from dpsim.synthesis.mwem.state import Guess
from dpsim.synthesis.mwem.workloads import BoxWorkload, Integers

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class AtomsEngine:
    """One mass per atom. Boxes that cut through atoms are answered by interpolation.

    It is exact, since mass is even inside an atom: nothing depends on the number of cells once
    the truth's answers are known.
    """

    workload: BoxWorkload

    name = "atoms"

    def start(self, total: float) -> Guess:
        """One atom: the whole domain."""
        edges = tuple(np.array([0, size], np.int64) for size in self.workload.shape)
        return Guess(np.full((1,) * len(edges), total), edges)

    @cached_property
    def _ends(self) -> tuple[tuple[Integers, ...], Integers, Integers]:
        """Per axis the places where boxes end; the ends of every box as indices of these."""
        places, ranks = [], []
        for lower, upper in zip(self.workload.lower.T, self.workload.upper.T, strict=True):
            found, at = np.unique(np.concatenate([lower, upper]), return_inverse=True)
            places.append(found)
            ranks.append(at.reshape(2, -1))
        stacked = np.stack(ranks, axis=2)
        return tuple(places), stacked[0].copy(), stacked[1].copy()

    def answers(self, guess: Guess) -> Floats:
        """One number per part."""
        places, lower, upper = self._ends
        slabs, shares = [], []
        for edges, ends in zip(guess.edges, places, strict=True):
            slab = np.searchsorted(edges, ends, side="right") - 1
            inside = slab < edges.size - 1
            left = edges[slab]
            width = np.where(inside, edges[np.minimum(slab + 1, edges.size - 1)] - left, 1)
            slabs.append(slab)
            shares.append((ends - left) / width)
        offsets = np.cumsum([0, *(ends.size for ends in places[:-1])])
        shape = np.array(guess.masses.shape, np.int64)
        table = np.empty(prod(size + 1 for size in guess.masses.shape))
        fill_table(guess.masses.reshape(-1), shape, table)
        cuts = np.concatenate(slabs), np.concatenate(shares)
        answers: Floats = atom_answers(table, shape, (lower, upper), offsets, cuts)
        return answers

    def fit(self, guess: Guess, fitting: Fitting) -> Guess:
        """Cut the atoms by the boxes, then move their masses."""
        parts, groups = self.workload.parts_of(fitting.queries)
        lower, upper = self.workload.lower[parts], self.workload.upper[parts]
        cut = refine(guess, np.concatenate([lower, upper]))
        boxes = [
            np.stack(
                [np.searchsorted(e, side) for e, side in zip(cut.edges, ends.T, strict=True)],
                axis=1,
            )
            for ends in (lower, upper)
        ]
        shape = cut.masses.shape
        if not fitting.replays:
            widths = [np.diff(edges) / edges[-1] for edges in cut.edges]
            volumes = reduce(np.multiply.outer, widths).reshape(-1)
            queries = BoxQueries(boxes[0], boxes[1], shape)
            return project_guess(cut, queries, volumes, fitting)
        runs = box_runs(boxes[0], boxes[1], np.array(shape, np.int64))
        masses = cut.masses.reshape(-1).copy()
        measured = np.arange(groups.size - 1), groups, fitting.targets
        head = masses, fitting.total, fitting.replays, fitting.words
        replay(*head, measured, (groups, *runs))
        return Guess(masses.reshape(shape), cut.edges, cut.summed)


def refine(guess: Guess, places: Integers) -> Guess:
    """The same guess on a finer grid: slabs cut at places are split by their widths."""
    masses, summed, finer = guess.masses, guess.summed, []
    for axis, edges in enumerate(guess.edges):
        after = np.union1d(edges, places[:, axis])
        slab = np.searchsorted(edges, after[:-1], side="right") - 1
        shares = np.diff(after) / (edges[slab + 1] - edges[slab])
        shape = [1] * len(guess.edges)
        shape[axis] = -1
        weights = shares.reshape(shape)
        masses = np.take(masses, slab, axis) * weights
        summed = None if summed is None else np.take(summed, slab, axis) * weights
        finer.append(after)
    return Guess(masses, tuple(finer), summed, guess.multipliers)


def spread_evenly(guess: Guess) -> Floats:
    """One mass per cell of the domain: for domains that are not too large."""
    if not guess.edges:
        return guess.masses
    cells = guess.masses
    for axis, edges in enumerate(guess.edges):
        widths = np.diff(edges)
        shape = [1] * len(guess.edges)
        shape[axis] = -1
        cells = np.repeat(cells / widths.reshape(shape), widths, axis)
    return cells
