"""`FittedProgram`: a mixed-integer program in units in which the solver's tolerances can separate its solutions.

HiGHS's tolerances are absolute, and float64 has 53 bits. Let A be the largest size of a row in which integer and continuous
columns meet: the sum of |a_ij| times the largest |x_j| (for big-M rows about 3 M). Then

* no row can be computed better than to ``A 2^-52``. If that is near the tolerance for rows, the solver takes nodes with
  solutions for infeasible, and its bound is above the optimum. So the tolerance is ``A 2^-42``, at least 1e-9;
* an integer column may be that far from an integer, and a row with M then hides A times as much. A node with such a
  solution counts as solved. If every job is longer than that, the integers still determine the order of the jobs.
  Correcting the times then moves n jobs by at most n times that, and the solver's bound may be too high by the cost of
  this (`doubt`). If a job is not longer, its position is undetermined and the bound proves nothing.

Both are parts of the latest time. So times are in units of a power of two in which A is about 2^`FIT`; this rounds
nothing. A program without such rows is solved unchanged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from optsched.problem.arrays import Bools, Floats
from optsched.solvers.linear_program import COARSE, ROUNDING, LinearProgram
from optsched.solvers.outcome import Outcome
from optsched.solvers.session import Session

FIT = 12
LEFT = (4, FIT)  # range of bits of A in which units stay unchanged
MOST = 2.0**20  # of A in these units: rows of the caller may exceed it, and then no bound is trusted
SAFETY = 2  # factor of the doubt
FINE = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
NEAR = 2.0**-40  # relative to a row's terms: a row this close to its bounds is checked in fractions
ROUNDED = 2.0**-46  # relative to a row's terms: error of sums and constants in float64


@dataclass(frozen=True, eq=False)
class FittedProgram:
    """A ``given`` program and the ``program`` for the solver.

    The columns of ``program`` times ``unit`` f64[columns] are those of ``given``; ``times`` bool[columns] are in seconds.
    """

    given: LinearProgram
    program: LinearProgram
    unit: Floats
    times: Bools

    @classmethod
    def of(cls, given: LinearProgram, times: Bools | None = None) -> FittedProgram:
        """Return the program in fitting units. O(nonzeros).

        Parameters
        ----------
        given
            The program.
        times
            Columns that are in seconds, bool[columns]; None: all continuous columns.
        """
        times = ~given.integrality if times is None else times & ~given.integrality
        unit, bits = np.ones(len(given.c)), math.frexp(given.magnitude)[1]
        if not given.is_mip or not times.any() or not given.magnitude or LEFT[0] <= bits <= LEFT[1]:
            return cls(given, given, unit, times)
        second = math.ldexp(1.0, FIT - bits)  # in units
        unit[times] = 1 / second
        A = sp.csr_array(given.A)
        per_row = np.where(abs(A) @ times.astype(np.float64) > 0, second, 1.0)
        fitted = replace(
            given,
            c=given.c * unit,
            A=sp.csc_array(sp.diags_array(per_row) @ A @ sp.diags_array(unit)),
            row_lower=given.row_lower * per_row,
            row_upper=given.row_upper * per_row,
            lower=given.lower / unit,
            upper=given.upper / unit,
        )
        return cls(given, fitted, unit, times)

    def doubt(self, outcome: Outcome, step: Fraction | None, shortest: float) -> Fraction | None:
        """Return how far above the optimum the solver's bound may lie; None: it proves nothing.

        The result is in the unit of the objective.

        Parameters
        ----------
        outcome
            Result of the solver.
        step
            Step of objective values that the solver was given; None: unknown.
        shortest
            Duration of the shortest job in seconds.
        """
        program = self.program
        if not program.is_mip:
            return Fraction(0)
        integrality = COARSE if program.coarse(step) else program.tolerance
        used = 1.0 if outcome.x is None else float(np.abs(outcome.x[program.integrality]).sum())
        dearest = float(np.max(np.abs(program.c[program.integrality]), initial=0.0))
        doubt = integrality * dearest * used
        if program.magnitude:
            hidden = integrality * program.magnitude + program.tolerance
            longest = float(self.unit[self.times].max(initial=1.0))
            if program.magnitude > MOST or SAFETY * hidden * longest >= shortest:
                return None
            mixed = ~program.integrality
            doubt += hidden * int(mixed.sum()) * float(np.abs(program.c[mixed]).sum())
        return Fraction(SAFETY * doubt)

    def settled(self, x: Floats) -> Floats | None:
        """Return a solution with whole integers and all other columns solved again; None: the integers do not fit.

        With the integers fixed no row has a large constant, so times are as exact as float64 allows.

        Parameters
        ----------
        x
            A solution in the columns of ``program``, f64[columns].

        Returns
        -------
        Floats | None
            The solution in the columns of ``given``.
        """
        program, integer = self.program, self.program.integrality
        whole = np.where(integer, np.round(x), x)
        if np.any(np.abs(whole - x) > ROUNDING):
            return None
        if program.is_mip and not integer.all():
            lower, upper = np.where(integer, whole, program.lower), np.where(integer, whole, program.upper)
            none = np.zeros_like(integer)
            outcome = Session(replace(program, lower=lower, upper=upper, integrality=none), options=FINE).solve()
            if outcome.x is None or outcome.status != "optimal":
                return None
            whole = np.where(integer, whole, outcome.x)
        return whole * self.unit

    def broken(self, x: Floats) -> list[int]:
        """Return the rows of ``given`` that x violates in exact arithmetic, by more than float64 rounds their terms.

        Parameters
        ----------
        x
            A solution in the columns of ``given``, f64[columns].
        """
        given = self.given
        A = sp.csr_array(given.A)
        body, size = A @ x, abs(A) @ np.abs(x)
        room = np.minimum(body - given.row_lower, given.row_upper - body)
        return [i for i in np.flatnonzero(room < NEAR * size).tolist() if not self._holds(A, i, x)]

    def _holds(self, A: sp.csr_array, i: int, x: Floats) -> bool:
        own = slice(A.indptr[i], A.indptr[i + 1])
        factors, values = A.data[own].tolist(), x[A.indices[own]].tolist()
        terms = [Fraction(a) * Fraction(v) for a, v in zip(factors, values, strict=True)]
        lower, upper = float(self.given.row_lower[i]), float(self.given.row_upper[i])
        body, finite = sum(terms, Fraction(0)), [abs(Fraction(b)) for b in (lower, upper) if math.isfinite(b)]
        slack = Fraction(ROUNDED) * (sum(map(abs, terms), Fraction(0)) + max(finite, default=Fraction(0)))
        above = math.isinf(lower) or body >= Fraction(lower) - slack
        return above and (math.isinf(upper) or body <= Fraction(upper) + slack)
