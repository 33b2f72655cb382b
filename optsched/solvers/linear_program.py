"""A linear program as arrays, with maps back to the variables and constraints of the model that it was compiled from.

A formulation reads like the paper in Pyomo or CVXPY; a solver wants ``row_lower <= A x <= row_upper``. The model is
compiled once: everything that changes later (costs, right-hand sides, columns) changes the arrays' copy in a live
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
    """Rows, columns and nonzeros of the last program that was solved (all 0: none was needed)."""

    rows: int = 0
    columns: int = 0
    nonzeros: int = 0


ROUNDING = 1e-5  # an integer column this close to an integer is that integer (HiGHS's own tolerance is 1e-6)
WHOLE = 1e-9  # a bound of an integer column this close to an integer is that integer
# HiGHS's tolerance where its own (1e-6 for integers, 1e-7 for rows) prove too little, see `LinearProgram.coarse`. No finer
# one for integers: a row that is off by this moves an integer as far, and HiGHS then takes solutions for none.
FEASIBILITY = 1e-9
COARSE = 1e-6  # its own for integers
USED = 100  # columns that a solution may use of those that are not 0: as many may be that far from an integer


@dataclass
class Binding:
    """What knows the model behind the arrays: puts values back on it, and reads them from it.

    This one is of arrays without a model: columns and rows are their own names.
    """

    columns: Sequence[Any]
    rows: Sequence[Any]
    x: Floats | None = field(default=None, init=False)

    def load(self, x: Floats, row_dual: Floats | None) -> None:
        """Give the model's variables the values ``x`` (and its constraints their duals, if it keeps them)."""
        self.x = x.copy()

    def values(self) -> Floats:
        """Current values of the model's variables, nan where a variable has none."""
        return np.full(len(self.columns), math.nan) if self.x is None else self.x

    def row_name(self, i: int) -> str:
        """Name of a row in the model, for errors."""
        return str(self.rows[i])

    def column_name(self, j: int) -> str:
        """Name of a column in the model, for errors."""
        return str(self.columns[j])


@dataclass(frozen=True, eq=False)
class LinearProgram:
    """``sense * min sense * (c x + offset)`` over ``row_lower <= A x <= row_upper``, ``lower <= x <= upper``.

    ``sense`` is 1 (minimise) or -1 (maximise) and ``c`` and ``offset`` are the model's own: the value of ``x`` is the
    model's objective, no sign has been flipped. Shapes: c, lower, upper, integrality (bool) [columns]; row_lower,
    row_upper [rows]; A csc [rows, columns]. A ranged constraint is one row.

    Bounds of integer columns are rounded inwards to integers, since solvers draw wrong conclusions from others. Raises
    `InputError` that names the row or column of a number that is NaN, or infinite where only a finite one means anything;
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
        """Refuse what is no number and what has no value; round the bounds of integer columns."""
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
        """`InputError` for the first number that is NaN, or infinite in a place where that means nothing."""
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
        """A program straight from arrays; bounds default to [0, inf), columns to continuous."""
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
        """Has any column to be an integer?"""
        return bool(self.integrality.any())

    @cached_property
    def magnitude(self) -> float:
        """The largest sum of |a_ij| max |x_j| over rows in which integer and continuous columns meet; 0: there are none.

        A column without a bound counts as the largest that any continuous one has.
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
        """How far rows and integers may be off: by more than rounding moves rows in which integers and times meet."""
        return max(FEASIBILITY, self.magnitude * 2.0**-42)

    def coarse(self, step: Fraction | float | None) -> bool:
        """Are HiGHS's own tolerances fine enough for a proof? Values are multiples of ``step``, and no row holds times."""
        if step is None or self.magnitude:
            return False
        return COARSE * USED * float(np.max(np.abs(self.c), initial=0.0)) < float(step)

    def value(self, x: Floats) -> float:
        """The model's objective at ``x``."""
        return float(self.c @ x + self.offset)

    def load(self, x: Floats, row_dual: Floats | None = None) -> None:
        """Put values (integer columns that are within 1e-5 of an integer on it) back on the model, and row duals where
        the model has a place for them.

        ``row_dual`` is in HiGHS's convention, d value / d right-hand side; the binding turns it into its model's.
        """
        x = np.asarray(x, dtype=np.float64)
        nearest = np.round(x)
        self.binding.load(np.where(self.integrality & (np.abs(x - nearest) <= ROUNDING), nearest, x), row_dual)

    def values(self) -> tuple[Floats, Bools]:
        """Current values of the model's variables as a vector, and which of them are set (for a MIP start)."""
        x = np.asarray(self.binding.values(), dtype=np.float64)
        known = np.isfinite(x)
        return np.where(known, x, 0.0), known

    @cached_property
    def objective_step(self) -> Fraction | None:
        """A number that divides every difference of two objective values of integer solutions, or None.

        Exists when each column with a cost is an integer column and the costs are integers: then it is the gcd of the
        costs, and the optimum is ``offset`` plus a multiple of it. That is what lets a bound be rounded up.
        """
        costly = self.c != 0
        if not costly.any() or not self.integrality[costly].all():
            return None
        costs = self.c[costly]
        if not np.all(costs == np.floor(costs)) or np.abs(costs).max() > 2**53:
            return None
        return Fraction(math.gcd(*np.unique(np.abs(costs)).astype(np.int64).tolist()))


def whole_bounds(lower: Floats, upper: Floats, integrality: Bools) -> tuple[Floats, Floats]:
    """Bounds of columns, those of integer columns rounded inwards; within `WHOLE` of an integer they are that integer."""
    if not integrality.any():
        return lower, upper
    rounded = []
    for bound, inwards in ((lower, np.ceil), (upper, np.floor)):
        with np.errstate(invalid="ignore"):  # the distance of inf from inf
            nearest = np.round(bound)
            near = np.abs(bound - nearest) <= np.maximum(WHOLE, 2 * np.spacing(np.abs(bound)))
        whole = np.where(near, nearest, inwards(bound)) + 0.0  # no -0.0
        rounded.append(np.where(integrality, whole, bound))
    return rounded[0], rounded[1]
