"""Compiler `compile(model)` of a Pyomo or CVXPY model to a `LinearProgram`."""

from __future__ import annotations

import sys
from typing import Any

from optsched.errors import InputError
from optsched.solvers.linear_program import LinearProgram


def compile(model: Any) -> LinearProgram:
    """Compile a linear ``pyomo.ConcreteModel`` (or block) or ``cvxpy.Problem`` to a `LinearProgram`.

    It costs one pass over the model.

    Parameters
    ----------
    model
        The model.

    Raises
    ------
    InputError
        If the model is of another type, is not linear, or has two objectives.
    InfeasibleError
        If a constraint without variables does not hold.
    """
    # If a library was never imported, the model cannot be one of its models; so no import is made in vain.
    if "cvxpy" in sys.modules:
        from optsched.solvers import compile_cvxpy

        if compile_cvxpy.reads(model):
            return compile_cvxpy.read(model)
    if "pyomo.environ" in sys.modules or "pyomo.core" in sys.modules:
        from optsched.solvers import compile_pyomo

        if compile_pyomo.reads(model):
            return compile_pyomo.read(model)
    raise InputError(
        "not a model that compiles", value=type(model).__name__, legal="a pyomo.ConcreteModel or a cvxpy.Problem"
    )
