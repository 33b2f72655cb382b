"""Pyomo to arrays: ``LinearStandardFormCompiler().write(model, mixed_form=True)`` and its traps.

* Rows come as (constraint, bound type): 0 is ``==``, +1 ``<=``, -1 ``>=``. A ranged constraint comes as two rows,
  +1 then -1, which are joined here.
* By default the compiler negates a maximisation; the sense is kept here.
* Fixed variables are folded into right-hand sides and offset. Variables that appear in no row and no objective are no
  columns. `load` changes neither of them.

``pyomo.repn`` is documented for authors of solver interfaces; `tests/solvers/test_public_ground.py` reports what a new
version of Pyomo no longer has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from pyomo.common.errors import (
    InfeasibleConstraintException,
    InvalidConstraintError,
    InvalidExpressionError,
    InvalidValueError,
)
from pyomo.core.expr.visitor import identify_mutable_parameters, identify_variables
from pyomo.environ import Block, Constraint, Objective, Suffix, Var, maximize
from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

from optsched.errors import InfeasibleError, InputError
from optsched.problem.arrays import Floats
from optsched.solvers.linear_program import ROUNDING, Binding, LinearProgram


@dataclass
class PyomoBinding(Binding):
    """Columns are ``VarData``, rows ``ConstraintData``; duals go to an import suffix ``dual`` if the model has one."""

    model: Any

    def load(self, x: Floats, row_dual: Floats | None) -> None:
        """Set ``var.value = x[j]`` and store the duals; Pyomo's sign of duals is HiGHS's.

        Parameters
        ----------
        x
            Values of the columns, f64[columns].
        row_dual
            Duals of the rows, f64[rows]; None: there are none.
        """
        for variable, value in zip(self.columns, x.tolist(), strict=True):
            variable.set_value(value, skip_validation=True)
        suffix = self.model.component("dual")
        if row_dual is not None and isinstance(suffix, Suffix) and suffix.import_enabled():
            suffix.clear()
            suffix.update(zip(self.rows, row_dual.tolist(), strict=True))

    def values(self) -> Floats:
        """Return the variables' values, nan for variables without a value."""
        return np.fromiter(
            (math.nan if v is None else v for v in (variable.value for variable in self.columns)),
            dtype=np.float64,
            count=len(self.columns),
        )

    def row_name(self, i: int) -> str:
        """Return Pyomo's name of the constraint.

        Parameters
        ----------
        i
            Number of the row.
        """
        return str(self.rows[i].name)

    def column_name(self, j: int) -> str:
        """Return Pyomo's name of the variable.

        Parameters
        ----------
        j
            Number of the column.
        """
        return str(self.columns[j].name)


def reads(model: Any) -> bool:
    """Return whether the model is a Pyomo model or block.

    Parameters
    ----------
    model
        Any object.
    """
    return isinstance(model, Block)


def read(model: Any) -> LinearProgram:
    """Return the `LinearProgram` of a Pyomo block; the module's docstring describes the conversion.

    Parameters
    ----------
    model
        The model or block.

    Raises
    ------
    InputError
        If the model is not linear, has two objectives or an unknown domain, or holds a value that is no number.
    InfeasibleError
        If a constraint without variables does not hold.
    """
    for variable in model.component_data_objects(Var):
        value = variable.value if variable.fixed and not variable.is_continuous() else None
        if value is not None and not (math.isfinite(value) and abs(value - round(value)) <= ROUNDING):
            raise InputError("an integer variable is fixed", field=variable.name, value=value, legal="an integer")
    try:
        form = LinearStandardFormCompiler().write(model, mixed_form=True, set_sense=None)
        return _program(model, form)
    except InfeasibleConstraintException as error:
        raise InfeasibleError(f"{model.name}: {error}") from None
    except (InvalidConstraintError, InvalidExpressionError) as error:
        raise InputError(f"the model is not linear: {error}", value=model.name) from None
    except InvalidValueError as error:
        said = str(error).splitlines()[-1].strip()
        field = _part_with(model, said)
        raise InputError(f"a value that is no number: {said}", field=field, legal="a finite number") from None


def _part_with(model: Any, said: str) -> str:
    """Return the first row, or the objective, with a parameter or fixed variable that Pyomo's message names."""
    for part in model.component_data_objects((Constraint, Objective), active=True):
        held = (*identify_mutable_parameters(part.expr), *identify_variables(part.expr, include_fixed=True))
        if any(f"'{each.name}'" in said for each in held):
            return f"the objective {part.name}" if part.ctype is Objective else f"row {part.name}"
    return str(model.name)


def _program(model: Any, form: Any) -> LinearProgram:
    if len(form.objectives) > 1:
        names = ", ".join(objective.name for objective in form.objectives)
        raise InputError("the model has more than one active objective", value=names, legal="one active objective")
    columns = form.columns
    n = len(columns)
    c, offset, sense = np.zeros(n), 0.0, 1
    if form.objectives:
        c = np.asarray(form.c.todense(), dtype=np.float64).reshape(n)
        offset = float(form.c_offset[0])
        sense = -1 if form.objectives[0].sense == maximize else 1
    A, rows, row_lower, row_upper = _rows(form)
    lower, upper, integrality = np.full(n, -math.inf), np.full(n, math.inf), np.empty(n, dtype=bool)
    for j, variable in enumerate(columns):
        low, high = bounds_of(variable)
        lower[j] = lower[j] if low is None else low
        upper[j] = upper[j] if high is None else high
        integrality[j] = not variable.is_continuous()
        if integrality[j] and not variable.is_integer() and not variable.is_binary():
            raise InputError("a domain that is neither continuous nor integer", field=variable.name)
    return LinearProgram(
        c=c,
        A=A,
        row_lower=row_lower,
        row_upper=row_upper,
        lower=lower,
        upper=upper,
        integrality=integrality,
        offset=offset,
        sense=sense,
        binding=PyomoBinding(columns, rows, model),
    )


def bounds_of(variable: Any) -> tuple[float | None, float | None]:
    """Return (lower, upper) of a variable, None where it has none.

    Parameters
    ----------
    variable
        A variable of Pyomo.

    Raises
    ------
    InputError
        If Pyomo rejects a bound (NaN or infinite).
    """
    try:
        low, high = variable.bounds
    except ValueError:
        raise InputError(
            "a bound that is no finite number", field=variable.name, legal="a finite number or None"
        ) from None
    return low, high


def _rows(form: Any) -> tuple[sp.csc_array, list[Any], Floats, Floats]:
    m = len(form.rows)
    A = sp.csc_array((form.A.data, form.A.indices, form.A.indptr), shape=(m, len(form.columns)))
    constraints = [entry[0] for entry in form.rows]
    kind = np.fromiter((entry[1] for entry in form.rows), dtype=np.int8, count=m)
    rhs = np.asarray(form.rhs, dtype=np.float64).reshape(m)
    row_lower = np.where(kind <= 0, rhs, -math.inf)
    row_upper = np.where(kind >= 0, rhs, math.inf)
    seconds = np.flatnonzero((kind[:-1] == 1) & (kind[1:] == -1)) + 1
    seconds = np.array([i for i in seconds if constraints[i] is constraints[i - 1]], dtype=np.int64)
    if seconds.size:
        row_lower[seconds - 1] = row_lower[seconds]
        keep = np.ones(m, dtype=bool)
        keep[seconds] = False
        A = sp.csc_array(A.tocsr()[keep])
        constraints = [constraint for constraint, kept in zip(constraints, keep, strict=True) if kept]
        row_lower, row_upper = row_lower[keep], row_upper[keep]
    return A, constraints, row_lower, row_upper
