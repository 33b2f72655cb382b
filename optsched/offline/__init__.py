"""Offline: optima with proofs, list schedules, and LP bounds that can be verified."""

from __future__ import annotations

from optsched.offline.linear_program import LinearProgram, compile
from optsched.offline.list_schedule import best_list_schedule, list_schedule
from optsched.offline.lp_bound import lp_bound
from optsched.offline.session import Outcome, Progress, Session
from optsched.offline.solution import Solution
from optsched.offline.solve import model_names, solve

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
