"""Networks in tight loops: subsets of attributes, their scores, who may come next, rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpsim.synthesis.contingency import Subsets


@njit(cache=True, nogil=True)
def subsets_within(
    sizes: NDArray[np.int64],
    members: NDArray[np.int16],
    limit: float,
    rows: Subsets,
    most: int,
) -> int:
    """Fill rows with the members' subsets within the limit of cells, in order; how many.

    Counts on when the rows are full, and gives up beyond ``most``.
    """
    width = rows.shape[1]
    places, cells = np.full(width, -1), np.ones(width + 1)
    level, n = 0, 0
    while level >= 0 and n <= most:
        places[level] += 1
        if places[level] > members.size - (width - level):
            level -= 1
            continue
        cells[level + 1] = cells[level] * sizes[members[places[level]]]
        if cells[level + 1] > limit:
            continue
        if level < width - 1:
            places[level + 1] = places[level]
            level += 1
            continue
        if n < rows.shape[0]:
            for i in range(width):
                rows[n, i] = members[places[i]]
        n += 1
    return n


@njit(cache=True, nogil=True)
def holders(rows: Subsets, d: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Which rows hold each attribute: those of a stand at ``found[first[a]:first[a + 1]]``."""
    first = np.zeros(d + 1, np.int64)
    for place in range(rows.shape[0]):
        for attribute in rows[place]:
            first[attribute + 1] += 1
    for attribute in range(d):
        first[attribute + 1] += first[attribute]
    end, found = first.copy(), np.empty(rows.size, np.int32)
    for place in range(rows.shape[0]):
        for attribute in rows[place]:
            found[end[attribute]] = place
            end[attribute] += 1
    return first, found


@njit(inline="always")
def _key_without(row: Any, place: Any, d: Any) -> Any:  # noqa: ANN401
    """A number for the row without one member; it orders rows as they are ordered."""
    key = np.int64(0)
    for i in range(row.size):
        if i != place:
            key = key * d + row[i]
    return key


@njit(cache=True, nogil=True)
def informations(
    rows: Subsets,
    joint: NDArray[np.float64],
    below: tuple[Subsets, NDArray[np.float64]],
    single: NDArray[np.float64],
) -> NDArray[np.float64]:
    """I = H(x) + H(Π) - H(x,Π), one column per child x; nan where H(Π) is not known.

    Joint are the entropies of the rows, below the sorted sets of one member less and theirs,
    single those of the attributes.
    """
    sets, entropies = below
    d, n = single.size, sets.shape[0]
    keys = np.empty(n, np.int64)
    for place in range(n):
        keys[place] = _key_without(sets[place], -1, d)
    scores = np.full(rows.shape, np.nan)
    for member in range(rows.shape[1]):
        found = 0
        for place in range(rows.shape[0]):
            key = _key_without(rows[place], member, d)
            if found + 1 < n and keys[found + 1] == key:  # neighbors ask for neighbors
                found += 1
            elif n > 0 and keys[found] != key:
                found = min(np.searchsorted(keys, key), n - 1)
            if n > 0 and keys[found] == key:
                gain = single[rows[place, member]] + entropies[found]
                scores[place, member] = gain - joint[place]
    return scores


@njit(nogil=True)
def _last_open(row: Any, is_placed: Any) -> Any:  # noqa: ANN401
    """The place of the only member that is not placed yet; -1 where there are more."""
    found = -1
    for i in range(row.size):
        if not is_placed[row[i]]:
            if found >= 0:
                return -1
            found = i
    return found


@njit(nogil=True)
def _entries(row: Any, place: Any, entry: Any) -> Any:  # noqa: ANN401
    """The entries of the row's other members, ascending."""
    values = np.empty(row.size - 1, np.int64)
    n = 0
    for i in range(row.size):
        if i != place:
            value, j = entry[row[i]], n
            while j > 0 and values[j - 1] > value:
                values[j] = values[j - 1]
                j -= 1
            values[j] = value
            n += 1
    return values


@njit(nogil=True)
def _is_earlier(row: Any, place: Any, other: Any, other_place: Any, entry: Any) -> Any:  # noqa: ANN401
    """Whether a row's parents come before those of the other in lexicographic order."""
    mine, others = _entries(row, place, entry), _entries(other, other_place, entry)
    for i in range(mine.size):
        if mine[i] != others[i]:
            return mine[i] < others[i]
    return False


@njit(cache=True, nogil=True)
def keep_best(
    rows: Subsets,
    scores: NDArray[np.float64],
    held: NDArray[np.int32],
    is_placed: NDArray[np.bool_],
    entry: NDArray[np.int64],
    best: tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]],
) -> None:
    """Update each child's best row (score, row, place in it) by the rows that are held.

    Of equal scores the first parents win, compared by their ascending entries.
    """
    best_scores, best_rows, best_places = best
    for place in held:
        row = rows[place]
        child_place = _last_open(row, is_placed)
        if child_place < 0:
            continue
        child, score = row[child_place], scores[place, child_place]
        if np.isnan(score) or score < best_scores[child]:
            continue
        known = best_rows[child]
        if (
            known < 0
            or score > best_scores[child]
            or _is_earlier(row, child_place, rows[known], best_places[child], entry)
        ):
            best_scores[child], best_rows[child] = score, place
            best_places[child] = child_place


@njit(cache=True, nogil=True)
def completed(
    rows: Subsets,
    held: NDArray[np.int32],
    is_placed: NDArray[np.bool_],
    sizes: NDArray[np.int64],
) -> tuple[NDArray[np.int32], NDArray[np.int16], NDArray[np.float64]]:
    """The held rows whose members are placed but one: row, place of that one, room.

    Room is the smallest size of a placed attribute outside the row: what a further parent
    would multiply the cells by at least; infinite where all that are placed are in the row.
    """
    found, places = np.empty(held.size, np.int32), np.empty(held.size, np.int16)
    room = np.empty(held.size, np.float64)
    n = 0
    for place in held:
        child_place = _last_open(rows[place], is_placed)
        if child_place < 0:
            continue
        least = np.inf
        for attribute in range(sizes.size):
            if is_placed[attribute] and sizes[attribute] < least:
                is_inside = False
                for member in rows[place]:
                    is_inside |= member == attribute
                if not is_inside:
                    least = np.float64(sizes[attribute])
        found[n], places[n], room[n] = place, child_place, least
        n += 1
    return found[:n], places[:n], room[:n]


@njit(cache=True, nogil=True)
def draw_codes(
    codes: NDArray[Any],
    child: int,
    parents: tuple[NDArray[np.int16], NDArray[np.int64]],
    ends: NDArray[np.float64],
    uniforms: NDArray[np.float64],
) -> None:
    """Fill the child's row of codes: the first code whose end lies above the uniform.

    Parents are attributes and sizes; ends hold one line per cell of theirs, ascending.
    """
    attributes, sizes = parents
    lines, size = ends.reshape(-1), ends.shape[1]
    for i in range(uniforms.size):
        cell = 0
        for place in range(attributes.size):
            cell = cell * sizes[place] + np.int64(codes[attributes[place], i])
        start, left, uniform = cell * size, size, uniforms[i]
        low = start
        while left > 1:
            half = left >> 1
            low += half if lines[low + half - 1] <= uniform else 0
            left -= half
        codes[child, i] = low - start
