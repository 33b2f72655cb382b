"""CVXPY to arrays: ``Problem.get_problem_data(HIGHS)`` and its traps.

* The data are of a minimisation whatever the problem's sense, and the constant of the objective is in the inverse data
  only. Both are converted here, so that the value of the program is the value of the problem.
* Rows are ``A x + s = b``: first the equalities, then ``A x <= b``. A constraint ``f >= 0`` arrives negated.
* Inequality duals are always >= 0 and **equality duals have the opposite sign** of HiGHS's. CVXPY's own inversion
  stores them, so ``constraint.dual_value`` has the meaning that CVXPY's users expect.
* CVXPY may add variables (epigraphs) and rows of its own; no variable or constraint of the user belongs to them.

`get_problem_data` is documented, but the way back from its data is not: CVXPY's own `unpack_results` expects the results of
its own interface to HiGHS, while one session of HiGHS is solved here again and again. So this file, and no other, uses
``cvxpy.reductions``; `tests/solvers/test_public_ground.py` reports what a new version of CVXPY no longer has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from cvxpy.error import DCPError, SolverError
from cvxpy.reductions.solution import Solution
from cvxpy.reductions.solvers import utilities

from optsched.errors import InputError
from optsched.problem.arrays import Floats
from optsched.solvers.linear_program import Binding, LinearProgram


@dataclass
class CvxpyBinding(Binding):
    """Columns are ``(variable, flat index)``, rows ``(constraint or None, flat index)``; flat in Fortran order."""

    problem: Any
    chain: Any
    inverse: list[Any]
    variables: list[Any]
    cost: Floats
    sense: int

    def load(self, x: Floats, row_dual: Floats | None) -> None:
        """Set variables, duals and ``problem.value`` through CVXPY's own inversion of its reductions.

        Parameters
        ----------
        x
            Values of the columns, f64[columns].
        row_dual
            Duals of the rows in HiGHS's sign, f64[rows]; None: there are none.
        """
        last = self.inverse[-1]
        duals = None
        if row_dual is not None:
            cones = last["eq_constr"] + last["other_constr"]
            # CVXPY minimises -f to maximise f; the row duals belong to the problem as it was written
            duals = utilities.get_dual_values(-self.sense * row_dual, utilities.extract_dual_value, cones)
        value = float(self.cost @ x) + float(last["offset"])
        solution = Solution(cp.OPTIMAL, value, {last["var_id"]: x}, duals, {})
        for reduction, data in zip(self.chain.reductions[-2::-1], self.inverse[-2::-1], strict=True):
            solution = reduction.invert(solution, data)
        self.problem.unpack(solution)

    def values(self) -> Floats:
        """Return the variables' values; nan for variables without a value and for those that CVXPY added."""
        parts = [
            np.full(variable.size, math.nan)
            if variable.value is None
            else np.asarray(variable.value, dtype=np.float64).reshape(-1, order="F")
            for variable in self.variables
        ]
        return np.concatenate(parts) if parts else np.zeros(0)

    def row_name(self, i: int) -> str:
        """Return the constraint's label, or its text.

        Parameters
        ----------
        i
            Number of the row.
        """
        constraint, k = self.rows[i]
        if constraint is None:
            return "of CVXPY's own"
        name = constraint.label or str(constraint)
        return f"{name}[{k}]" if constraint.size > 1 else name

    def column_name(self, j: int) -> str:
        """Return the variable's name.

        Parameters
        ----------
        j
            Number of the column.
        """
        variable, k = self.columns[j]
        return f"{variable.name()}[{k}]" if variable.size > 1 else str(variable.name())


def reads(model: Any) -> bool:
    """Return whether the model is a CVXPY problem.

    Parameters
    ----------
    model
        Any object.
    """
    return isinstance(model, cp.Problem)


def is_linear(problem: Any) -> bool:
    """Return whether a CVXPY problem is a linear program, with or without integers.

    Parameters
    ----------
    problem
        A `cvxpy.Problem`.
    """
    try:
        return bool(_data(problem))
    except InputError:
        return False


def _data(problem: Any) -> tuple[Any, Any, Any]:
    try:
        data, chain, inverse = problem.get_problem_data(cp.HIGHS)
    except (DCPError, SolverError) as error:
        raise InputError(f"the problem is not a linear program: {error}") from None
    if "c" not in data:  # CVXPY took the method to HiGHS's quadratic solver
        raise InputError("the problem is not a linear program: its objective is quadratic")
    return data, chain, inverse


def read(problem: Any) -> LinearProgram:
    """Return the `LinearProgram` of a CVXPY problem; the module's docstring describes the conversion.

    Parameters
    ----------
    problem
        A `cvxpy.Problem`.

    Raises
    ------
    InputError
        If the problem is not linear.
    """
    data, chain, inverse = _data(problem)
    stuffed = data["param_prob"]
    n, A, b = len(data["c"]), data["A"].tocsc(), np.asarray(data["b"], dtype=np.float64)
    lower = np.full(n, -math.inf) if data["lower_bounds"] is None else np.array(data["lower_bounds"], dtype=float)
    upper = np.full(n, math.inf) if data["upper_bounds"] is None else np.array(data["upper_bounds"], dtype=float)
    booleans, integers = (np.asarray(data[key], dtype=np.int64) for key in ("bool_vars_idx", "int_vars_idx"))
    integrality = np.zeros(n, dtype=bool)
    integrality[booleans] = integrality[integers] = True
    lower[booleans] = np.maximum(lower[booleans], 0.0)
    upper[booleans] = np.minimum(upper[booleans], 1.0)
    sense = -1 if isinstance(problem.objective, cp.Maximize) else 1
    row_lower = b.copy()
    row_lower[int(data["dims"].zero) :] = -math.inf
    # the user's constraint behind each row: ids are followed back through the reductions that renamed them
    user = {constraint.id: constraint for constraint in problem.constraints}
    origin = {key: key for key in user}
    for step in inverse[:-1]:
        renamed = getattr(step, "cons_id_map", None)
        if isinstance(step, tuple) and len(step) == 3 and isinstance(step[2], dict):
            renamed = step[2]
        if renamed is not None:
            origin = {new: origin[old] for old, new in renamed.items() if old in origin}
    cones = inverse[-1]["eq_constr"] + inverse[-1]["other_constr"]
    rows = [(user.get(origin.get(cone.id, -1)), k) for cone in cones for k in range(cone.size)]
    binding = CvxpyBinding(
        problem=problem,
        columns=[(v, k) for v in stuffed.variables for k in range(v.size)],
        rows=rows,
        chain=chain,
        inverse=inverse,
        variables=list(stuffed.variables),
        cost=np.asarray(data["c"], dtype=np.float64),
        sense=sense,
    )
    return LinearProgram(
        c=sense * binding.cost,
        A=sp.csc_array(A),
        row_lower=row_lower,
        row_upper=b,
        lower=lower,
        upper=upper,
        integrality=integrality,
        offset=sense * float(inverse[-1]["offset"]),
        sense=sense,
        binding=binding,
    )
