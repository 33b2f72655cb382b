"""Theorems as checks: statements with their assumptions, families of bad instances, and judgements on runs.

This package states and judges; it runs and solves nothing (`optsched.evaluation` does). A new theorem is one new file that
registers a `Guarantee` under its name, and with it the `Family` on which it is tight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.guarantees.family import FAMILIES, Family
from optsched.guarantees.guarantee import GUARANTEES, Guarantee, TightFamily
from optsched.guarantees.judge import Judgement
from optsched.registry import when_used

if TYPE_CHECKING:
    from optsched.guarantees.a_srpt_theorem import Factors, a_srpt_factors, a_srpt_limits
    from optsched.guarantees.hadar_theorem import DualSolution, dual_solution

__all__ = [
    "FAMILIES",
    "GUARANTEES",
    "DualSolution",
    "Factors",
    "Family",
    "Guarantee",
    "Judgement",
    "TightFamily",
    "a_srpt_factors",
    "a_srpt_limits",
    "dual_solution",
]

if not TYPE_CHECKING:  # a type checker that saw it would let every name pass
    _HOMES = {
        "DualSolution": "hadar_theorem",
        "Factors": "a_srpt_theorem",
        "a_srpt_factors": "a_srpt_theorem",
        "a_srpt_limits": "a_srpt_theorem",
        "dual_solution": "hadar_theorem",
    }
    __getattr__ = when_used(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
