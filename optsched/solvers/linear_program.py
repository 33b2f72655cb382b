"""A linear program as arrays, with maps back to the variables and constraints of the model from which it was compiled.

A formulation in Pyomo or CVXPY reads like the paper; a solver needs ``row_lower <= A x <= row_upper``. The model is
compiled once. All later changes (costs, right-hand sides, columns) change the copy of the arrays in a live
`Session`, never the model.

References: Pyomo's ``LinearStandardFormCompiler``; CVXPY's ``Problem.get_problem_data``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from optsched.errors import InfeasibleError, InputError
from optsched.problem.arrays import Bools, Floats


@dataclass(frozen=True, slots=True)
class Size:
    """Rows, columns and nonzeros of the last program that was solved (all 0: no program was needed)."""

    rows: int = 0
    columns: int = 0
    nonzeros: int = 0


ROUNDING = 1e-5  # an integer column this close to an integer counts as that integer (HiGHS's own tolerance is 1e-6)
WHOLE = 1e-9  # a bound of an integer column this close to an integer counts as that integer
# Tolerance for HiGHS where its own (1e-6 for integers, 1e-7 for rows) prove too little, see `LinearProgram.coarse`. It
# is no finer for integers: a row that is off by this moves an integer by as much, and HiGHS then rejects solutions.
FEASIBILITY = 1e-9
COARSE = 1e-6  # HiGHS's own tolerance for integers
USED = 100  # largest number of nonzero columns in a solution, each of which may be that far from an integer


@dataclass
class Binding:
    """Connection to the model behind the arrays: it puts values back on the model and reads them from it.

    This class is for arrays without a model: columns and rows are their own names.
    """

    columns: Sequence[Any]
    rows: Sequence[Any]
    x: Floats | None = field(default=None, init=False)

    def load(self, x: Floats, row_dual: Floats | None) -> None:
        """Give the model's variables the values ``x``, and its constraints their duals if it keeps them.

        Parameters
        ----------
        x
            Values of the columns, f64[columns].
        row_dual
            Duals of the rows, f64[rows]; None: there are none.
        """
        self.x = x.copy()

    def values(self) -> Floats:
        """Return the current values of the model's variables, nan where a variable has none."""
        return np.full(len(self.columns), math.nan) if self.x is None else self.x

    def row_name(self, i: int) -> str:
        """Return the name of a row in the model, for errors.

        Parameters
        ----------
        i
            Number of the row.
        """
        return str(self.rows[i])

    def column_name(self, j: int) -> str:
        """Return the name of a column in the model, for errors.

        Parameters
        ----------
        j
            Number of the column.
        """
        return str(self.columns[j])


@dataclass(frozen=True, eq=False)
class LinearProgram:
    """``sense * min sense * (c x + offset)`` over ``row_lower <= A x <= row_upper``, ``lower <= x <= upper``.

    ``sense`` is 1 (minimise) or -1 (maximise) and ``c`` and ``offset`` are the model's own: the value of ``x`` is the
    model's objective, without a change of sign. Shapes: c, lower, upper, integrality (bool) [columns]; row_lower,
    row_upper [rows]; A csc [rows, columns]. A ranged constraint is one row.

    Bounds of integer columns are rounded inwards to integers, since solvers draw wrong conclusions from other bounds. Raises
    `InputError` that names the row or column of a number that is NaN, or infinite where it must be finite;
    `InfeasibleError` for bounds that leave a row or a column no value.
    """

    c: Floats
    A: sp.csc_array
    row_lower: Floats
    row_upper: Floats
    lower: Floats
    upper: Floats
    integrality: Bools
    offset: float
    sense: int
    binding: Binding

    def __post_init__(self) -> None:
        """Reject numbers that are not legal and bounds without a value between them; round the bounds of integer columns."""
        self._require_numbers()
        lower, upper = whole_bounds(self.lower, self.upper, self.integrality)
        names = self.binding
        for low, high, name in ((lower, upper, names.column_name), (self.row_lower, self.row_upper, names.row_name)):
            for k in np.flatnonzero(low > high)[:1].tolist():
                given = (self.lower, self.upper) if low is lower else (low, high)
                kind = "integer" if low is lower and self.integrality[k] else "value"
                between = " and ".join(f"{each[k]:.15g}" for each in given)
                raise InfeasibleError(f"{name(k)}: no {kind} lies between its bounds {between}")
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    def _require_numbers(self) -> None:
        """Raise `InputError` for the first number that is NaN, or infinite where it must be finite."""
        row, column, finite = self.binding.row_name, self.binding.column_name, "a finite number"

        def refuse(field: str, value: float, legal: str = finite) -> None:
            raise InputError("invalid", field=field, value=float(value), legal=legal)

        for j in np.flatnonzero(~np.isfinite(self.c))[:1].tolist():
            refuse(f"the objective's coefficient of {column(j)}", self.c[j])
        if not math.isfinite(self.offset):
            refuse("the objective's constant", self.offset)
        for k in np.flatnonzero(~np.isfinite(self.A.data))[:1].tolist():
            j = int(np.searchsorted(self.A.indptr, k, side="right")) - 1
            refuse(f"row {row(int(self.A.indices[k]))}, coefficient of {column(j)}", self.A.data[k])
        sides = (
            ("row {}, lower bound", row, self.row_lower, math.inf),
            ("row {}, upper bound", row, self.row_upper, -math.inf),
            ("lower bound of {}", column, self.lower, math.inf),
            ("upper bound of {}", column, self.upper, -math.inf),
        )
        for words, name, bound, senseless in sides:
            for k in np.flatnonzero(np.isnan(bound) | (bound == senseless))[:1].tolist():
                refuse(words.format(name(k)), bound[k], f"{finite} or {-senseless}")

    @classmethod
    def from_arrays(
        cls,
        c: Floats,
        A: sp.csc_array,
        row_lower: Floats,
        row_upper: Floats,
        *,
        lower: Floats | None = None,
        upper: Floats | None = None,
        integrality: Bools | None = None,
        offset: float = 0.0,
        sense: int = 1,
        columns: Sequence[Any] | None = None,
        rows: Sequence[Any] | None = None,
    ) -> LinearProgram:
        """Return a program from arrays.

        Parameters
        ----------
        c
            Costs, f64[columns].
        A
            Matrix, csc [rows, columns].
        row_lower
            Lower bounds of the rows, f64[rows].
        row_upper
            Upper bounds of the rows, f64[rows].
        lower
            Lower bounds of the columns, f64[columns]; None: 0.
        upper
            Upper bounds of the columns, f64[columns]; None: inf.
        integrality
            Columns that must be integers, bool[columns]; None: no column.
        offset
            Constant of the objective.
        sense
            1 minimises, -1 maximises.
        columns
            Names of the columns; None: their numbers.
        rows
            Names of the rows; None: their numbers.
        """
        n, m = len(c), len(row_lower)
        return cls(
            c=np.asarray(c, dtype=np.float64),
            A=sp.csc_array(A),
            row_lower=np.asarray(row_lower, dtype=np.float64),
            row_upper=np.asarray(row_upper, dtype=np.float64),
            lower=np.zeros(n) if lower is None else lower,
            upper=np.full(n, math.inf) if upper is None else upper,
            integrality=np.zeros(n, dtype=bool) if integrality is None else integrality,
            offset=offset,
            sense=sense,
            binding=Binding(columns or range(n), rows or range(m)),
        )

    @property
    def size(self) -> Size:
        """Rows, columns and stored entries of A."""
        return Size(len(self.row_lower), len(self.c), int(self.A.nnz))

    @property
    def columns(self) -> Sequence[Any]:
        """The model's variable of each column: Pyomo ``VarData``, or ``(cvxpy.Variable, flat Fortran index)``."""
        return self.binding.columns

    @property
    def rows(self) -> Sequence[Any]:
        """The model's constraint of each row: Pyomo ``ConstraintData``, or ``(cvxpy constraint, flat index)``."""
        return self.binding.rows

    @cached_property
    def is_mip(self) -> bool:
        """True if a column must be an integer."""
        return bool(self.integrality.any())

    @cached_property
    def magnitude(self) -> float:
        """Largest sum of |a_ij| max |x_j| over rows in which integer and continuous columns meet; 0: there are none.

        A column without a bound counts as the largest value that any continuous column has.
        """
        A = sp.csr_array(abs(self.A))
        mixed = (A @ self.integrality.astype(np.float64) > 0) & (A @ (~self.integrality).astype(np.float64) > 0)
        if not mixed.any():
            return 0.0
        most = np.maximum(np.abs(self.lower), np.abs(self.upper))
        bounded = np.isfinite(most)
        longest = float(np.max(most[bounded & ~self.integrality], initial=1.0))
        return float((A[mixed] @ np.where(bounded, most, longest)).max())

    @cached_property
    def tolerance(self) -> float:
        """Tolerance for rows and integers, larger than rounding moves rows in which integers and times meet."""
        return max(FEASIBILITY, self.magnitude * 2.0**-42)

    def coarse(self, step: Fraction | float | None) -> bool:
        """Return whether HiGHS's own tolerances are fine enough for a proof.

        They are if values are multiples of ``step`` and no row holds times.

        Parameters
        ----------
        step
            Step of objective values; None: unknown.
        """
        if step is None or self.magnitude:
            return False
        return COARSE * USED * float(np.max(np.abs(self.c), initial=0.0)) < float(step)

    def value(self, x: Floats) -> float:
        """Return the model's objective at ``x``.

        Parameters
        ----------
        x
            Values of the columns, f64[columns].
        """
        return float(self.c @ x + self.offset)

    def load(self, x: Floats, row_dual: Floats | None = None) -> None:
        """Put values back on the model, and row duals where the model has a place for them.

        Integer columns that are within 1e-5 of an integer get that integer.

        Parameters
        ----------
        x
            Values of the columns, f64[columns].
        row_dual
            d value / d right-hand side of every row (HiGHS's convention, which the binding converts to its
            model's), f64[rows]; None: there are none.
        """
        x = np.asarray(x, dtype=np.float64)
        nearest = np.round(x)
        self.binding.load(np.where(self.integrality & (np.abs(x - nearest) <= ROUNDING), nearest, x), row_dual)

    def values(self) -> tuple[Floats, Bools]:
        """Return the current values of the model's variables as a vector, and which of them are set (for a MIP start)."""
        x = np.asarray(self.binding.values(), dtype=np.float64)
        known = np.isfinite(x)
        return np.where(known, x, 0.0), known

    @cached_property
    def objective_step(self) -> Fraction | None:
        """Number that divides every difference of two objective values of integer solutions, or None.

        It exists if each column with a cost is an integer column and the costs are integers: it is the gcd of the
        costs, and the optimum is ``offset`` plus a multiple of it. Hence a bound can be rounded up.
        """
        costly = self.c != 0
        if not costly.any() or not self.integrality[costly].all():
            return None
        costs = self.c[costly]
        if not np.all(costs == np.floor(costs)) or np.abs(costs).max() > 2**53:
            return None
        return Fraction(math.gcd(*np.unique(np.abs(costs)).astype(np.int64).tolist()))


def whole_bounds(lower: Floats, upper: Floats, integrality: Bools) -> tuple[Floats, Floats]:
    """Return the bounds of columns, with those of integer columns rounded inwards.

    A bound within `WHOLE` of an integer becomes that integer.

    Parameters
    ----------
    lower
        Lower bounds, f64[columns].
    upper
        Upper bounds, f64[columns].
    integrality
        Columns that must be integers, bool[columns].
    """
    if not integrality.any():
        return lower, upper
    rounded = []
    for bound, inwards in ((lower, np.ceil), (upper, np.floor)):
        with np.errstate(invalid="ignore"):  # inf - inf
            nearest = np.round(bound)
            near = np.abs(bound - nearest) <= np.maximum(WHOLE, 2 * np.spacing(np.abs(bound)))
        whole = np.where(near, nearest, inwards(bound)) + 0.0  # no -0.0
        rounded.append(np.where(integrality, whole, bound))
    return rounded[0], rounded[1]
