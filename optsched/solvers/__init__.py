"""Offline solvers: optima with proofs, list schedules, and LP bounds that can be verified."""

from __future__ import annotations

from optsched.solvers.compile_model import compile
from optsched.solvers.linear_program import LinearProgram
from optsched.solvers.list_schedule import best_list_schedule, list_schedule
from optsched.solvers.lp_bound import lp_bound
from optsched.solvers.outcome import Outcome
from optsched.solvers.session import Progress, Session
from optsched.solvers.solution import Solution
from optsched.solvers.solve import model_names, solve

__all__ = [
    "LinearProgram",
    "Outcome",
    "Progress",
    "Session",
    "Solution",
    "best_list_schedule",
    "compile",
    "list_schedule",
    "lp_bound",
    "model_names",
    "solve",
]
