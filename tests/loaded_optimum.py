"""A formulation solved by optsched's own live solver, with the solution put back on the model."""

from __future__ import annotations

from typing import Any

from optsched.solvers.compile_model import compile
from optsched.solvers.session import Session


def loaded_optimum(model: Any) -> float:
    """The proved optimum; the model's variables hold a solution of that value, and an LP's rows its duals."""
    program = compile(model)
    session = Session(program)
    outcome = session.solve_finely()
    assert outcome.status == "optimal"
    assert outcome.gap < 1e-6
    assert outcome.x is not None
    assert outcome.value is not None
    program.load(outcome.x, None if program.is_mip else session.duals())
    return outcome.value
