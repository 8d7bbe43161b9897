"""Item-based filtering once more, in plain numpy on dense arrays: slow, and easy to read."""

from math import e, exp, log

import numpy as np
from hypothesis import strategies as st

from dpsim.core.rng import key_of
from dpsim.data.ratings import RatingPiece, RatingScale
from dpsim.recommend.ratings_matrix import RatingMatrix
from tests.mechanisms.twins import words

STARS = RatingScale(1, 5)
NONE = -1
T = np.array(
    [[5, 4, 0, 1], [4, 5, 1, 0], [1, 0, 5, 4], [0, 2, 4, 5], [5, 0, 2, 0]]
) - 1  # fmt: skip


def piece_of_codes(codes, start=0):
    """A piece from a dense table of codes, -1 where there is none."""
    codes = np.asarray(codes)
    has = codes != NONE
    ends = np.concatenate([[0], np.cumsum(has.sum(axis=1))]).astype(np.int64)
    items = np.nonzero(has)[1].astype(np.int32)
    return RatingPiece(start, ends, items, codes[has].astype(np.uint8))


def matrix_of(codes, scale=STARS):
    return RatingMatrix(np.shape(codes)[1], scale, piece_of_codes(codes))


def codes_tables(users=(1, 7), items=(2, 6), levels=5):
    """Dense tables of codes, with at least one rating."""

    def table(shape):
        code = st.integers(NONE, levels - 1)
        size = shape[0] * shape[1]
        rows = st.lists(code, min_size=size, max_size=size)
        return rows.map(lambda flat: np.array(flat).reshape(shape))

    shapes = st.tuples(st.integers(*users), st.integers(*items))
    return shapes.flatmap(table).filter(lambda codes: (codes != NONE).any())


def units_of(codes, scale=STARS):
    """Ratings in units, 0 where there is none."""
    return np.where(codes == NONE, 0.0, scale.units(np.maximum(codes, 0)))


def similarities(codes, kind, scale=STARS):
    r = units_of(codes, scale)
    dots, sums, n = r.T @ r, r.sum(axis=0), r.shape[0]
    above, below = dots, np.sqrt(np.diag(dots))
    if kind == "pearson":
        above, below = n * dots - np.outer(sums, sums), np.sqrt(n * np.diag(dots) - sums**2)
    below = np.outer(below, below)
    s = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
    return np.minimum(s, 1.0)


def relevance(codes, i, j, scale=STARS):
    """RS by its definition: each co-rater removed from both vectors."""
    r, has = units_of(codes, scale), codes != NONE
    a, b = r[:, i], r[:, j]
    norm = np.sqrt(a @ a) * np.sqrt(b @ b)
    worst = 0.0
    for x in np.flatnonzero(has[:, i] & has[:, j]):
        left = np.sqrt(a @ a - a[x] ** 2) * np.sqrt(b @ b - b[x] ** 2)
        if left == 0:
            return 1.0
        worst = max(worst, a[x] * b[x] / left, (a @ b) * (norm - left) / (norm * left))
    return min(1.0, worst)


def uniform(purpose, noise, subject, place, item):
    key = key_of((noise.seed, purpose, noise.plan_hash, subject))
    return ((words(key, place, int(item))[0] >> 12) + 0.5) / 2**52


def predict(codes, query, method, noise, scale=STARS):
    """One rating by `PNCF`: rating, neighbors used, candidates, whether ω < s_k."""
    (user, item), r, has = query, units_of(codes, scale), codes != NONE
    s = similarities(codes, method.similarity, scale)[item]
    means = np.where(has.any(axis=0), r.sum(axis=0) / np.maximum(has.sum(axis=0), 1),
                     r.sum() / has.sum())  # fmt: skip
    pool = [j for j in range(s.size) if j != item and s[j] > 0]
    pool = sorted(sorted(pool, key=lambda j: (-s[j], j))[: method.candidates or None])
    in_catalog = method.neighbors == "catalog"
    pool = pool if in_catalog else [j for j in pool if has[user, j]]
    weights, is_active = {}, False
    if pool and len(pool) >= method.min_candidates:
        place = item if in_catalog else user * s.size + item
        weights, is_active = choose(codes, item, (pool, s), method, (noise, place), scale)
    used = [j for j in sorted(weights) if has[user, j]]
    above = sum(weights[j] * (r[user, j] - means[j]) for j in used)
    shown = np.abs if method.denominator == "absolute" else float
    below = sum(shown(weights[j]) for j in used)
    rating = means[item] + (above / below if abs(below) >= 1e-12 else 0.0)
    rating = min(max(rating * float(scale.unit), float(scale.lo)), float(scale.hi))
    return rating, len(used), len(pool), is_active


def choose(codes, item, found, method, address, scale):
    (pool, s), (noise, place) = found, address
    k = max(1, len(pool) // 2) if method.k == "half" else min(method.k, len(pool))
    best = sorted(pool, key=lambda j: (-s[j], j))
    if method.epsilon is None:
        return {j: s[j] for j in best[:k]}, False
    epsilon, subject = float(method.epsilon), f"neighbors {method.neighbors}"
    b = {j: exp(-method.beta) * relevance(codes, item, j, scale) for j in pool}
    v = (codes != NONE).sum(axis=0).max() if method.v == "ratings" else len(pool)
    s_k = s[best[k - 1]]
    raw = 4 * k * max(b.values()) / epsilon * log(max(e, k * (v - k) / method.rho))
    floor = s_k - min(s_k, raw)
    keys = {}
    for j in pool:
        u = uniform("select", noise, subject, place, j)
        keys[j] = epsilon * max(s[j], floor) / (4 * k * b[j]) - log(-log(u))
    chosen = sorted(pool, key=lambda j: (-keys[j], j))[:k]
    weights = {}
    for j in chosen:
        u = uniform("measure", noise, subject, place, j) - 0.5
        weights[j] = s[j] - 2 * b[j] / epsilon * np.sign(u) * log(1 - 2 * abs(u))
    return weights, raw < s_k
