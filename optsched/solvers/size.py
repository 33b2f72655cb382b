"""How large the program is that a solver got."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Size:
    """Rows, columns and nonzeros of the last program that was solved (all 0: none was needed)."""

    rows: int = 0
    columns: int = 0
    nonzeros: int = 0
