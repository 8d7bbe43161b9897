"""Names for the meanings of arrays."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Codes: TypeAlias = NDArray[np.unsignedinteger[Any]]
"""Values of one attribute, or reports of it: one index 0..k-1 per user."""

Draws: TypeAlias = NDArray[np.unsignedinteger[Any]]
"""Raw random bits at an address: uint32 or uint64."""

Counts: TypeAlias = NDArray[np.int64]
"""Sums over users."""

Frequencies: TypeAlias = NDArray[np.float64]
"""Estimated or true shares of the users."""
