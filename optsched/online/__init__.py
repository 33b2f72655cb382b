"""Online primal-dual method: covering and packing programs whose constraints arrive, and the proofs of their runs."""

from __future__ import annotations

from optsched.online.online_program import OnlineProgram
from optsched.online.program_proof import ProgramProof, prove
from optsched.online.ski_rental import (
    SkiSeason,
    bought_at,
    bought_at_once,
    fractional_factor,
    fractionally_bought,
    purchase_probabilities,
)

__all__ = [
    "OnlineProgram",
    "ProgramProof",
    "SkiSeason",
    "bought_at",
    "bought_at_once",
    "fractional_factor",
    "fractionally_bought",
    "prove",
    "purchase_probabilities",
]


def __dir__() -> list[str]:
    return sorted(__all__)
