"""`Session`: one live HiGHS with one compiled program; inner loops change its numbers and never rebuild a model.

Where HiGHS is silent, `Session` raises: every call's ``HighsStatus`` is checked and a misspelt option is an error. There
is one thread number for the process (HiGHS's scheduler is global: a second number makes ``run`` fail), and the gaps
are set for a proof (the default relative gap of 1e-4 proves nothing).

HiGHS's tolerances are absolute numbers. So that a result does not depend on the unit of the objective, coefficients
far from 1 are scaled by a power of two on their way in, which rounds nothing, and all results are scaled back. The
constant of the objective stays outside.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import highspy
import numpy as np
import scipy.sparse as sp

from optsched.deadline import Deadline
from optsched.errors import OptschedError
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.solvers.linear_program import FEASIBILITY, LinearProgram, whole_bounds
from optsched.solvers.outcome import Outcome, round_bound

# for all sessions: results are then deterministic, and HiGHS's global scheduler never gets two different numbers
THREADS = 1
IIS_STRATEGY = 4  # irreducible; the default, 0, finds only conflicts between a row's own bounds, 2 leaves too many rows
AGREES = 1e-6  # relative difference between the value that HiGHS reports and the value of its solution
# `Session.solve_finely`, powers of two: the largest term of a reduced cost, and its ratio to the least that counts.
LARGEST, DIGITS = 20, 40
DUAL, PRIMAL = 1, 4  # HiGHS's simplex_strategy
# range of the largest cost coefficient that HiGHS gets unscaled; others are scaled to about 2**9
PLAIN = (1.0, 2.0**20)

OPEN = "unbounded or infeasible"  # HiGHS may end with this; `Session.solve` decides which
_STATUS = {
    highspy.HighsModelStatus.kOptimal: "optimal",
    highspy.HighsModelStatus.kInfeasible: "infeasible",
    highspy.HighsModelStatus.kUnbounded: "unbounded",
    highspy.HighsModelStatus.kUnboundedOrInfeasible: OPEN,
    highspy.HighsModelStatus.kTimeLimit: "limit",
    highspy.HighsModelStatus.kIterationLimit: "limit",
    highspy.HighsModelStatus.kSolutionLimit: "limit",
    highspy.HighsModelStatus.kInterrupt: "limit",
    highspy.HighsModelStatus.kObjectiveBound: "limit",
    highspy.HighsModelStatus.kObjectiveTarget: "limit",
    highspy.HighsModelStatus.kModelEmpty: "optimal",
}


@dataclass(frozen=True, slots=True)
class Progress:
    """One report of a running proof.

    ``incumbent`` and ``bound`` are in the model's unit, nan while there is none;
    ``gap`` = |incumbent - bound| / |incumbent| (inf without incumbent); ``seconds`` since the start of `solve`.
    """

    incumbent: float
    bound: float
    gap: float
    nodes: int
    seconds: float

    @property
    def interval(self) -> tuple[float | None, float | None]:
        """Pair (bound, incumbent), None while there is none."""
        return None if math.isnan(self.bound) else self.bound, None if math.isnan(self.incumbent) else self.incumbent

    def on_clock(self, part: float) -> Progress:
        """Return the same interval plus the part of values that a clock adds; the gap stays relative to the rest.

        Parameters
        ----------
        part
            The part to add.
        """
        return replace(self, incumbent=self.incumbent + part, bound=self.bound + part)


class _Silent(highspy.Highs):  # type: ignore[misc]
    """A HiGHS that writes nothing.

    Its constructor sets the callbacks, and from 1.16 on this logs a banner to stdout: before
    any option can be set, and in the middle of what a command prints as JSON. This is not documented:
    `tests/solvers/test_public_ground.py` reports when it is gone.
    """

    def enableCallbacks(self) -> None:  # noqa: N802  highspy's name
        self.silent()
        super().enableCallbacks()


class Session:
    """One ``highspy.Highs`` with one `LinearProgram` in it.

    Every method raises `OptschedError` that names the HiGHS call that failed.

    Parameters
    ----------
    program
        The program, passed once as CSC arrays.
    relax
        Drop integrality.
    options
        HiGHS options by name; a name or value that HiGHS does not take raises an error.
    """

    solver = "HiGHS " + ".".join(
        str(part) for part in (highspy.HIGHS_VERSION_MAJOR, highspy.HIGHS_VERSION_MINOR, highspy.HIGHS_VERSION_PATCH)
    )

    def __init__(
        self, program: LinearProgram, *, relax: bool = False, options: Mapping[str, Any] | None = None
    ) -> None:
        self._relax = relax
        self.highs = _Silent()
        self.set_options(output_flag=False, threads=THREADS, mip_rel_gap=0.0, mip_abs_gap=0.0)
        self.set_options(**dict(options or {}))
        self.replace(program)

    def replace(self, program: LinearProgram) -> None:
        """Put another program in the place of the present one; the next solve starts without a basis.

        Parameters
        ----------
        program
            The program, passed once as CSC arrays.
        """
        self.program = program
        self.is_mip = program.is_mip and not self._relax
        largest = float(np.max(np.abs(program.c), initial=0.0))
        plain = largest == 0 or not math.isfinite(largest) or PLAIN[0] <= largest <= PLAIN[1]
        self._scale = 1.0 if plain else math.ldexp(1.0, min(max(10 - math.frexp(largest)[1], -1000), 1000))
        self._cost = program.c * self._scale
        p, A = self.program, self.program.A
        shape = (len(p.c), len(p.row_lower), A.nnz)
        matrix = (A.indptr.astype(np.int32, copy=False), A.indices.astype(np.int32, copy=False), A.data)
        bounds = (self._cost, p.lower, p.upper, p.row_lower, p.row_upper)
        kinds = p.integrality.astype(np.int32) if self.is_mip else np.zeros(len(p.c), dtype=np.int32)
        self._call("passModel", *shape, 1, p.sense, 0.0, *bounds, *matrix, kinds)
        self._start: tuple[Floats, Bools] | None = None

    def _call(self, name: str, *args: Any) -> None:
        """Call HiGHS and check the status; a warning (a bound dropped, a value clipped) counts as an error."""
        status = getattr(self.highs, name)(*args)
        if status != highspy.HighsStatus.kOk:
            raise OptschedError(f"HiGHS: {name} returned {getattr(status, 'name', status)}")

    def set_options(self, **options: Any) -> None:
        """Set HiGHS options.

        Parameters
        ----------
        **options
            Options by name.

        Raises
        ------
        OptschedError
            If HiGHS rejects a name or a value.
        """
        for name, value in options.items():
            if self.highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
                raise OptschedError(f"HiGHS: setOptionValue refuses {name} = {value!r}")

    # --- changes -------------------------------------------------------------------------------------------------

    def _change(self, name: str, count: int, which: Ints | None, *values: Floats) -> Ints:
        """Set numbers of some columns or rows, or of all ``count``; return which."""
        which = np.arange(count) if which is None else which
        numbers = [np.asarray(each, dtype=np.float64) for each in values]
        self._call(name, len(which), which.astype(np.int32), *numbers)
        return which

    def set_cost(self, cost: Floats, columns: Ints | None = None) -> None:
        """Set objective coefficients; the basis stays.

        Parameters
        ----------
        cost
            New coefficients, f64[k].
        columns
            Numbers of the columns, i64[k]; None: all.
        """
        cost = np.asarray(cost, dtype=np.float64) * self._scale
        self._cost[self._change("changeColsCost", self.highs.getNumCol(), columns, cost)] = cost

    def set_rows(self, lower: Floats, upper: Floats, rows: Ints | None = None) -> None:
        """Set row bounds; the basis stays.

        Parameters
        ----------
        lower
            New lower bounds, f64[k].
        upper
            New upper bounds, f64[k].
        rows
            Numbers of the rows, i64[k]; None: all.
        """
        self._change("changeRowsBounds", self.highs.getNumRow(), rows, lower, upper)

    def set_bounds(self, lower: Floats, upper: Floats, columns: Ints | None = None) -> None:
        """Set column bounds, with those of integer columns rounded inwards.

        Parameters
        ----------
        lower
            New lower bounds, f64[k].
        upper
            New upper bounds, f64[k].
        columns
            Numbers of the columns, i64[k]; None: all.
        """
        if self.is_mip:
            integer = np.zeros(self.highs.getNumCol(), dtype=bool)  # added columns are continuous
            integer[: len(self.program.c)] = self.program.integrality
            lower, upper = whole_bounds(lower, upper, integer if columns is None else integer[columns])
        self._change("changeColsBounds", self.highs.getNumCol(), columns, lower, upper)

    def add_columns(self, cost: Floats, A: sp.csc_array, *, upper: Floats | None = None) -> Ints:
        """Append continuous columns >= 0, and return their numbers.

        Parameters
        ----------
        cost
            Objective coefficients, f64[k].
        A
            Matrix, csc [rows, k].
        upper
            Upper bounds, f64[k]; None: inf.
        """
        k, first = len(cost), self.highs.getNumCol()
        upper = np.full(k, math.inf) if upper is None else upper
        starts, indices = A.indptr[:-1].astype(np.int32), A.indices.astype(np.int32)
        cost = np.asarray(cost, dtype=np.float64) * self._scale
        self._call("addCols", k, cost, np.zeros(k), upper, A.nnz, starts, indices, A.data)
        self._cost = np.concatenate([self._cost, cost])
        return np.arange(first, first + k)

    def add_rows(self, A: sp.csr_array, lower: Floats, upper: Floats) -> Ints:
        """Append rows, and return their numbers.

        Parameters
        ----------
        A
            Matrix, csr [k, columns].
        lower
            Lower bounds, f64[k].
        upper
            Upper bounds, f64[k].
        """
        k, first = len(lower), self.highs.getNumRow()
        starts, indices = A.indptr[:-1].astype(np.int32), A.indices.astype(np.int32)
        self._call("addRows", k, lower, upper, A.nnz, starts, indices, A.data)
        return np.arange(first, first + k)

    def set_coefficients(self, rows: Ints, columns: Ints, values: Floats) -> None:
        """Set entries of the matrix one by one; for a few entries.

        Parameters
        ----------
        rows
            Row of every entry, i64[k].
        columns
            Column of every entry, i64[k].
        values
            New values, f64[k].
        """
        for i, j, value in zip(rows.tolist(), columns.tolist(), values.tolist(), strict=True):
            self._call("changeCoeff", i, j, value)

    def mip_start(self, x: Floats, known: Bools | None = None) -> None:
        """Keep a (partial) solution from which the next solve starts; HiGHS completes what is not ``known``.

        Parameters
        ----------
        x
            Values of the columns, f64[columns].
        known
            Columns whose value is known, bool[columns]; None: all.
        """
        known = np.ones(len(x), dtype=bool) if known is None else known
        self._start = (np.asarray(x, dtype=np.float64), known)

    # --- solving -------------------------------------------------------------------------------------------------

    def solve(
        self,
        *,
        time_limit: float | None = None,
        node_limit: int | None = None,
        objective_step: Fraction | float | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> Outcome:
        """Solve the current program; a second call starts from the last basis.

        Parameters
        ----------
        time_limit
            Seconds of wall time for this solve (None: none). HiGHS may overrun it inside presolve.
        node_limit
            Number of branch-and-bound nodes; unlike seconds it gives the same result on every machine.
        objective_step
            Number of which all solutions' values are multiples (plus the offset). It is found automatically if all
            columns with a cost are integer and their costs too; then the proof ends at a gap of 0.99 steps and the
            bound is rounded. Pass it where theory proves it and the model cannot show it (integer instances have
            integer optima). Without a step the proof ends at a gap of 0, with a solution feasible to
            `LinearProgram.tolerance`.
        progress
            Function called from within the solve on every new incumbent and every line HiGHS would log.
        """
        step = None
        if self.is_mip:
            step = objective_step if objective_step is not None else self.program.objective_step
        began, deadline = time.perf_counter(), Deadline.after(time_limit)
        if self.is_mip:
            self.set_options(mip_abs_gap=0.0 if step is None else 0.99 * float(step) * self._scale)
        if self.is_mip and not self.program.coarse(step):
            names = ("mip_feasibility_tolerance", "primal_feasibility_tolerance")
            self.set_options(**dict.fromkeys(names, self.program.tolerance), dual_feasibility_tolerance=FEASIBILITY)
        self._give_start(deadline)
        with self._reporting(progress, began):
            status = self._run(deadline, node_limit)
        if status == OPEN or (status == "unbounded" and self.is_mip):
            status = self._unbounded_or_infeasible(deadline, node_limit)
            return Outcome(status, None, None, None, 0, 0, time.perf_counter() - began)
        return self._outcome(status, step, time.perf_counter() - began)

    def _run(self, deadline: Deadline, node_limit: int | None = None) -> str:
        """Run HiGHS, and return how it ended.

        An LP without a result is solved again, without a basis and by the other simplex method: the primal method
        sometimes ends with "Unknown" although there is an optimum.
        """
        ended = self._ended(deadline, node_limit)
        if ended is None and not self.is_mip:
            self.highs.clearSolver()
            strategy = self.highs.getOptionValue("simplex_strategy")[1]
            self.set_options(simplex_strategy=DUAL if strategy == PRIMAL else PRIMAL)
            ended = self._ended(deadline, node_limit)
            self.set_options(simplex_strategy=strategy)
        if ended is None:
            model = self.highs.modelStatusToString(self.highs.getModelStatus())
            raise OptschedError(f"HiGHS: run failed (model status: {model})")
        return ended

    def _ended(self, deadline: Deadline, node_limit: int | None) -> str | None:
        # a time limit counts for all LP solves of one HiGHS together, but for each MIP separately
        past = 0.0 if self.is_mip else self.highs.getRunTime()
        self.set_options(time_limit=past + deadline.left)
        if self.is_mip:
            self.set_options(mip_max_nodes=highspy.kHighsIInf if node_limit is None else int(node_limit))
        failed = self.highs.run() == highspy.HighsStatus.kError
        return None if failed else _STATUS.get(self.highs.getModelStatus())

    def _give_start(self, deadline: Deadline) -> None:
        """Pass the start to HiGHS, complete in its integer columns; it is a hint, which HiGHS may reject."""
        if self._start is None or not self.is_mip:
            return
        x, known = self._start
        integer = self.program.integrality
        if not known[integer].all() or bool(np.any(np.abs(x - np.round(x))[integer] > FEASIBILITY)):
            # HiGHS completes a start by a MIP of its own in which the known values are fixed, and its callbacks then
            # report the bounds of that MIP. So this runs first, without callbacks; no node of the program itself is
            # searched.
            self._set_solution(x, known)
            with contextlib.suppress(OptschedError):
                self._run(deadline, node_limit=0)
            completed = self._feasible()
            if completed is None:
                return
            x, known = np.where(integer, np.round(completed), completed), np.ones(len(x), dtype=bool)
        self._set_solution(x, known)

    def _set_solution(self, x: Floats, known: Bools) -> None:
        indices = np.flatnonzero(known).astype(np.int32)
        self.highs.setSolution(len(indices), indices, x[known])

    def _feasible(self) -> Floats | None:
        """Return HiGHS's current solution, if it is a solution of the program."""
        feasible = self.highs.getInfo().primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        return np.asarray(self.highs.allVariableValues()) if feasible else None

    def _unbounded_or_infeasible(self, deadline: Deadline, node_limit: int | None) -> str:
        """Return whether a program without an optimum is unbounded or infeasible: it is unbounded if it has any solution.

        This is true of a MIP, too: Meyer,
        On the existence of optimal solutions to integer and mixed-integer programming problems, Math. Prog. 7, 1974.
        """
        self._change("changeColsCost", self._cost.size, None, np.zeros(self._cost.size))
        try:
            status = self._run(deadline, node_limit)
        finally:
            self._change("changeColsCost", self._cost.size, None, self._cost)
        return "unbounded" if status == "optimal" else status

    @contextlib.contextmanager
    def _reporting(self, progress: Callable[[Progress], None] | None, began: float) -> Iterator[None]:
        if progress is None or not self.is_mip:
            yield
            return

        def report(event: Any) -> None:
            out = event.data_out
            incumbent = self._value(out.mip_primal_bound) if math.isfinite(out.mip_primal_bound) else math.nan
            bound = self._value(out.mip_dual_bound) if math.isfinite(out.mip_dual_bound) else math.nan
            nodes, seconds = int(out.mip_node_count), time.perf_counter() - began
            gap = abs(incumbent - bound) / abs(incumbent) if incumbent and math.isfinite(incumbent) else math.inf
            progress(Progress(incumbent, bound, gap, nodes, seconds))

        sources = (self.highs.cbMipLogging, self.highs.cbMipImprovingSolution)
        for source in sources:
            source.subscribe(report)
        try:
            yield
        finally:
            for source in sources:
                source.unsubscribe(report)

    def _outcome(self, status: str, step: Fraction | float | None, seconds: float) -> Outcome:
        info = self.highs.getInfo()
        x = None if status == "unbounded" else self._feasible()
        value = None if x is None else self._value(float(info.objective_function_value))
        if not self.highs.getNumCol():  # HiGHS reports "empty", whatever the rows are
            rows = self.highs.getLp()
            held = np.all(np.less_equal(rows.row_lower_, 0.0) & np.greater_equal(rows.row_upper_, 0.0))
            status, x, value = ("optimal", np.zeros(0), self.program.offset) if held else ("infeasible", None, None)
        if self.is_mip and x is not None:
            # HiGHS 1.16.0, given a start or continuing from its last solution, may return a worse point, often the
            # start itself, together with the value of another point. Then none of its results counts as a proof.
            reported, terms = float(info.objective_function_value), self._cost * x
            if abs(reported - float(terms.sum())) > AGREES * (1.0 + float(np.abs(terms).sum())):
                raise OptschedError(
                    f"HiGHS: {reported:.12g} is not the value of its solution, {float(terms.sum()):.12g}"
                )
        bound: float | None = None
        # HiGHS reports 0.0 for an LP, 0.0 or an infinity for an infeasible program, an infinity before a MIP's first
        # bound
        if self.is_mip and status in ("optimal", "limit") and math.isfinite(info.mip_dual_bound):
            in_its_scale = None if step is None else Fraction(step) * Fraction(self._scale)
            bound = self._value(round_bound(float(info.mip_dual_bound), in_its_scale, 0.0, self.program.sense))
        elif not self.is_mip and status == "optimal":
            bound = value
        return Outcome(
            status=status,
            value=value,
            bound=bound,
            x=x,
            nodes=max(0, int(info.mip_node_count)) if self.is_mip else 0,
            iterations=int(info.simplex_iteration_count),
            seconds=seconds,
        )

    def _value(self, amount: float) -> float:
        """Return a value of HiGHS in the model's unit, plus the constant.

        HiGHS never gets the constant, because its values would be rounded for it.
        """
        return amount / self._scale + self.program.offset

    def solve_finely(self, time_limit: float | None = None) -> Outcome:
        """Solve as `solve` does; solve an LP again in a unit of the objective in which HiGHS's tolerances hide no dual.

        Reduced costs may be off by 1e-7, whatever their size: if there are costs of 1 and duals of 1e-6, optima are
        off in the fourth digit. So the first solve gives a value and no bound: ``limit`` if the time was up before the
        second had ended, ``feasible`` if that failed. Use it only before rows or columns are added.

        Parameters
        ----------
        time_limit
            Seconds of wall time for both solves (None: none).
        """
        deadline = Deadline.after(time_limit)
        outcome = self.solve(time_limit=time_limit)
        if self.is_mip or outcome.status != "optimal" or not self.program.A.nnz:  # without rows there are no duals
            return outcome
        terms = abs(self.program.A).multiply(np.abs(self._solution().row_dual)[:, None]).tocsc()
        size = np.frexp(terms.max(axis=0).toarray().ravel())[1][np.diff(terms.indptr) > 0]
        largest = int(size.max(initial=0))
        power = min(-int(size[size > largest - DIGITS].min(initial=0)), LARGEST - largest)
        if power <= 0:
            return outcome
        basis, status = self.highs.getBasis(), "feasible"
        self._rescale(math.ldexp(1.0, power))
        with contextlib.suppress(OptschedError):
            finer = self.solve(time_limit=None if time_limit is None else deadline.left)
            if finer.status == "optimal":
                return replace(finer, iterations=outcome.iterations + finer.iterations)
            status = finer.status if finer.status == "limit" else status
        self._rescale(math.ldexp(1.0, -power))
        self._call("setBasis", basis)
        return replace(outcome, status=status, bound=None)  # the coarse optimum has a value, and proves nothing

    def _rescale(self, factor: float) -> None:
        self._scale, self._cost = self._scale * factor, self._cost * factor
        self._change("changeColsCost", self._cost.size, None, self._cost)

    # --- results of an LP ------------------------------------------------------------------------------------------

    def duals(self) -> Floats:
        """Return row duals d value / d right-hand side, in the model's sense (min: ``>=`` rows >= 0, ``<=`` rows <= 0)."""
        return np.asarray(self._solution().row_dual, dtype=np.float64) / self._scale

    def reduced_costs(self) -> Floats:
        """Return column duals c - A^T y in the same sense."""
        return np.asarray(self._solution().col_dual, dtype=np.float64) / self._scale

    def _solution(self) -> Any:
        solution = self.highs.getSolution()
        if self.is_mip or not solution.dual_valid:
            raise OptschedError("HiGHS: there are no duals (a MIP, or the LP was not solved to optimality)")
        return solution

    def iis(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return (rows, columns with bounds) that cannot all hold.

        They are an irreducible subsystem of the (relaxed) infeasible program.
        """
        self.set_options(iis_strategy=IIS_STRATEGY)
        status, found = self.highs.getIis()
        if status == highspy.HighsStatus.kError:
            raise OptschedError("HiGHS: getIis returned kError")
        rows, columns = tuple(found.row_index_), tuple(found.col_index_)
        part = {int(getattr(highspy.IisBoundStatus, f"kIisBoundStatus{kind}")) for kind in ("Lower", "Upper", "Boxed")}
        columns = tuple(j for j, bound in zip(columns, found.col_bound_, strict=True) if int(bound) in part)
        return rows, columns
