"""Which tables can be compared: the same domains, and codes within them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpsim.core.errors import InputError
from dpsim.synthesis.table import CodeTable


def require_comparable(tables: Sequence[CodeTable]) -> None:
    """Refuse tables without rows, of other domains than the first, or with codes outside."""
    sizes = tables[0].sizes
    for table in tables:
        if table.sizes != sizes:
            raise InputError(
                "tables must have the same domain sizes to be compared, got "
                f"{_list(table.sizes)} beside {_list(sizes)}"
            )
        if table.n < 1:
            raise InputError("a table without rows cannot be compared: give one row at least")
        if table.codes.dtype.kind != "u":
            raise InputError(f"codes must be unsigned integers, got {table.codes.dtype}")
        for attribute, (size, codes) in enumerate(zip(sizes, table.codes, strict=True)):
            if int(codes.max()) >= size:
                outside = int(np.count_nonzero(codes >= size))
                raise InputError(
                    f"attribute {attribute}: {outside} of {table.n} codes lie outside "
                    f"0..{size - 1}; declare a larger domain"
                )


def _list(sizes: Sequence[int], shown: int = 8) -> str:
    text = ", ".join(str(size) for size in sizes[:shown])
    return f"({text}, ...; {len(sizes)} in all)" if len(sizes) > shown else f"({text})"
