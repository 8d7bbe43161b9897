"""Reports of whole records, one per attribute, together with the mechanisms that made them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpsim.core.checks import require_codes
from dpsim.core.errors import InputError
from dpsim.mechanisms.grr import GRR
from dpsim.synthesis.table import CodeTable


@dataclass(frozen=True, slots=True, eq=False)
class SplitReports:
    """A table of reports and its channels: whoever inverts them cannot take others.

    Everything computed from it alone is postprocessing. One user's reports together are
    ε-LDP for the whole record with ε the sum of the channels' losses.
    """

    table: CodeTable
    channels: tuple[GRR, ...]
    """One mechanism per attribute: the one that perturbed it."""

    def __post_init__(self) -> None:
        sizes = tuple(channel.domain_size for channel in self.channels)
        if sizes != self.table.sizes:
            raise InputError(
                f"channels must have the attributes' domain sizes {self.table.sizes}, "
                f"got {sizes}"
            )
        for codes, size in zip(self.table.codes, sizes, strict=True):
            require_codes(codes, size)

    @property
    def epsilon(self) -> Fraction:
        """What all reports of one user cost together."""
        return sum((channel.loss.epsilon for channel in self.channels), Fraction(0))

    def channels_of(self, attributes: tuple[int, ...]) -> tuple[GRR, ...]:
        """The mechanisms of some attributes."""
        return tuple(self.channels[attribute] for attribute in attributes)
