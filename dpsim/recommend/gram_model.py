"""The released recommender: public numbers, from which each user is served locally.

Every answer is a function of the model and the user's own ratings. So what all others see of a
user has the model's loss, however many answers are asked: joint differential privacy. New users
are served without any loss; their ratings reach the model only with its next release.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, get_args
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from dpsim.core.errors import InputError
from dpsim.core.exact import text_of
from dpsim.recommend.denoise import denoise, rating_factors, top_n_factors
from dpsim.recommend.fold_in import Folded, fold_in, predict, recommend
from dpsim.recommend.gram_settings import GramSettings, Head
from dpsim.recommend.ratings_matrix import RatingPiece, RatingScale
from dpsim.recommend.split_sums import ItemFacts

Floats = NDArray[np.float64]

_FORMAT = "dpsim-gram-v1"
_ARRAYS = {"means": "f8", "counts": "f8", "popular": "i4", "factors": "f8"}
_NUMBERS = "global_mean", "bound", "damping"


@dataclass(frozen=True, slots=True, eq=False)
class GramModel:
    """Items' means, counts and factors. Frozen; equal in bits if made of the same release."""

    head: Head
    scale: RatingScale
    guarantee: str
    """What the release costs whom, in words; "none" without noise."""
    global_mean: float
    bound: float
    damping: float
    means: Floats = field(repr=False)
    counts: Floats = field(repr=False)
    popular: NDArray[np.int32] = field(repr=False)
    factors: Floats = field(repr=False)
    """One row per popular item; no column if noise hides every direction."""

    @property
    def n_items(self) -> int:
        """Size of the public catalog."""
        return self.means.size

    @property
    def rank(self) -> int:
        """How many directions are kept; 0 for means, or popularity, alone."""
        return int(self.factors.shape[1])

    def fold_in(self, histories: RatingPiece) -> Folded:
        """Users' own numbers, from their own ratings; new users too."""
        return fold_in(self, histories)

    def predict(
        self, histories: RatingPiece, users: NDArray[np.int64], items: NDArray[np.int32]
    ) -> Floats:
        """Ratings of pairs of a user, by place among the histories, and an item."""
        return predict(self, histories, users, items)

    def recommend(self, histories: RatingPiece, n: int) -> NDArray[np.int32]:
        """The n best unseen items of each user; -1 where there are fewer."""
        return recommend(self, histories, n)

    def without_gram(self) -> GramModel:
        """The same release without its directions: means and biases, or popularity."""
        return _replaced(self, np.zeros((self.popular.size, 0)))

    def to_bytes(self) -> bytes:
        """The model as an npz file: a header in JSON, and the arrays."""
        header = {
            "format": _FORMAT,
            "head": self.head,
            "scale": [
                text_of(part) for part in (self.scale.lo, self.scale.hi, self.scale.step)
            ],
            "guarantee": self.guarantee,
            **{name: getattr(self, name).hex() for name in _NUMBERS},
        }
        arrays: dict[str, Any] = {
            name: getattr(self, name).astype(f"<{kind}") for name, kind in _ARRAYS.items()
        }
        content = BytesIO()
        text = np.frombuffer(json.dumps(header, sort_keys=True).encode(), np.uint8)
        np.savez(content, header=text, **arrays)
        return content.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> GramModel:
        """The model of `to_bytes`; nothing in the file is executed."""
        try:
            with np.load(BytesIO(content), allow_pickle=False) as stored:
                header = json.loads(stored["header"].tobytes())
                arrays: dict[str, Any] = {name: stored[name] for name in _ARRAYS}
            numbers: dict[str, Any] = {name: float.fromhex(header[name]) for name in _NUMBERS}
            scale = RatingScale(*header["scale"])
            is_known = header["format"] == _FORMAT and header["head"] in get_args(Head)
        except (ValueError, KeyError, OSError, EOFError, TypeError, BadZipFile):
            is_known = False
        if not is_known:
            raise InputError(f"this is not a model of format {_FORMAT}; write one with save")
        words = {name: header[name] for name in ("head", "guarantee")}
        return _checked(cls(scale=scale, **words, **numbers, **arrays))

    def save(self, path: Path) -> None:
        """Write the model to a file."""
        path.write_bytes(self.to_bytes())

    @classmethod
    def load(cls, path: Path) -> GramModel:
        """Read a model from a file."""
        return cls.from_bytes(path.read_bytes())


def model_of(
    facts: ItemFacts, gram: Floats | None, sd: float, settings: GramSettings
) -> GramModel:
    """The model of a release: item facts and, where it was bought, a noisy Gram matrix.

    ``sd`` is the noise of one entry. If no direction stands out, means or popularity are left.
    """
    factors = np.zeros((settings.popular, 0))
    if gram is not None:
        spectrum = denoise(gram, sd, settings.kept)
        factors = (
            rating_factors(spectrum, facts, settings)
            if settings.head == "ratings"
            else top_n_factors(spectrum, facts)
        )
    return _checked(
        GramModel(
            head=settings.head,
            scale=settings.scale,
            guarantee=settings.guarantee,
            global_mean=facts.global_mean,
            bound=float(settings.bound),
            damping=float(settings.damping),
            means=facts.means,
            counts=facts.counts,
            popular=facts.popular,
            factors=np.ascontiguousarray(factors),
        )
    )


def _checked(model: GramModel) -> GramModel:
    """The model with read-only arrays of the right shapes."""
    shapes = model.means.shape == model.counts.shape == (model.n_items,)
    if not shapes or model.factors.shape[:1] != model.popular.shape:
        raise InputError("a model needs one mean and count per item, one row per popular item")
    for name in _ARRAYS:
        getattr(model, name).setflags(write=False)
    return model


def _replaced(model: GramModel, factors: Floats) -> GramModel:
    names = (name for name in GramModel.__slots__ if name != "factors")
    return _checked(
        GramModel(**{name: getattr(model, name) for name in names}, factors=factors)
    )
