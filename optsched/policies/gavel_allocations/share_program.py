"""`ShareProgram`: Gavel's constraints on shares of time in one live HiGHS for a whole run.

    columns   X_ir >= 0 of slot i and type r, fixed at 0 where the slot may not run;  s, the shortage
    rows      sum_i load_i X_ir <= c_r               capacity of every type
              sum_r X_ir <= 1                        budget of every slot
              sum_r gain_ir X_ir + s >= need_i       demand of every slot

A slot is a job, or a class of jobs that some optimum treats alike (equal rates, gang and weight: the mean of their
rows is as good as the rows), with load = GPUs of all of them. Jobs come and go: an empty slot is closed (columns fixed
at 0, no demand) and given to the next newcomer, so the program never has more slots than were open at once. Gains are
written once a newcomer; afterwards only bounds change (``need``), which keeps the last basis dual feasible, so that
the dual simplex method continues from it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
import scipy.sparse as sp

from optsched.errors import OptschedError
from optsched.problem.arrays import Floats, Ints
from optsched.solvers.linear_program import LinearProgram
from optsched.solvers.session import Session

SHORTAGE = 0  # its column
OPTIONS = {
    "primal_feasibility_tolerance": 1e-9,  # needs may be small numbers
    "dual_feasibility_tolerance": 1e-9,
    "simplex_strategy": 4,  # primal: half the time of the dual here, whose perturbed costs cost more than they save
}


class ShareProgram:
    """min s over the open slots; with ``total`` s = 0 and max sum worth X.

    Arrays are in the order of the keys passed to `open`.

    Parameters
    ----------
    capacity
        GPUs of every type, f64[T].
    total
        Maximise the total reward instead of minimising the shortage.
    """

    def __init__(self, capacity: Floats, *, total: bool = False) -> None:
        self.types, self.capacity = int(capacity.size), capacity
        empty = sp.csc_array((self.types, 1))
        span = 0.0 if total else math.inf
        program = LinearProgram.from_arrays(
            np.array([0.0 if total else 1.0]),
            empty,
            np.full(self.types, -math.inf),
            capacity,
            lower=np.array([-span]),
            upper=np.array([span]),
        )
        self.session = Session(program, options=OPTIONS)
        self._slot: dict[Hashable, int] = {}
        self._closed: list[int] = []
        self._gain = np.zeros((0, self.types))
        self._load = np.zeros(0)

    def open(self, keys: Sequence[Hashable], gain: Floats, load: Floats) -> Ints:
        """Open exactly the given slots and return their numbers, i64[k].

        Parameters
        ----------
        keys
            Keys of the slots.
        gain
            Gains f64[k, T], 0 where a slot may not run; constant while its key is open.
        load
            GPUs of every slot, f64[k]; may change.
        """
        present = set(keys)
        gone = [key for key in self._slot if key not in present]
        slots = [self._slot.pop(key) for key in gone]
        if slots:
            closed = np.array(slots, dtype=np.int64)
            columns = self._columns(closed)
            self.session.set_bounds(np.zeros(columns.size), np.zeros(columns.size), columns)
            self.demand(closed, np.full(closed.size, -math.inf))
        self._closed.extend(reversed(slots))
        fresh = [i for i, key in enumerate(keys) if key not in self._slot]
        reused, added = fresh[: len(self._closed)], fresh[len(self._closed) :]
        again = [self._closed.pop() for _ in reused]
        new = range(len(self._load), len(self._load) + len(added))
        self._append(gain[added], load[added])
        self._slot.update(zip((keys[i] for i in fresh), [*again, *new], strict=True))
        numbers = np.array([self._slot[key] for key in keys], dtype=np.int64)
        self._rewrite(np.array(again, dtype=np.int64), gain[reused])
        changed = np.flatnonzero(load != self._load[numbers])
        if changed.size:
            moved = numbers[changed]
            rows = np.tile(np.arange(self.types), changed.size)
            self.session.set_coefficients(rows, self._columns(moved), np.repeat(load[changed], self.types))
            self._load[moved] = load[changed]
        return numbers

    def demand(self, slots: Ints, need: Floats) -> None:
        """Set the demands of slots.

        Parameters
        ----------
        slots
            Numbers of the slots, i64[k].
        need
            Demands, f64[k]; -inf: none.
        """
        self.session.set_rows(need, np.full(len(slots), math.inf), self._demand_rows(slots))

    def reward(self, slots: Ints, worth: Floats) -> None:
        """Set the objective of a program with ``total``.

        Parameters
        ----------
        slots
            Numbers of the slots, i64[k].
        worth
            Value of a second on every type, f64[k, T].
        """
        self.session.set_cost(-worth.ravel(), self._columns(slots))

    def solve(self, slots: Ints) -> tuple[Floats, float] | None:
        """Solve the program, from the last basis.

        Parameters
        ----------
        slots
            Numbers of the slots, i64[k].

        Returns
        -------
        tuple or None
            X f64[k, T] and value; None if the demands cannot be met.

        Raises
        ------
        OptschedError
            The solver fails.
        """
        outcome = self.session.solve()
        if outcome.status == "infeasible":
            return None
        if outcome.status != "optimal" or outcome.x is None or outcome.value is None:
            raise OptschedError(f"HiGHS: shares of time: {outcome.status}")
        shares = np.clip(outcome.x[1:].reshape(-1, self.types)[slots], 0.0, 1.0)
        return shares, outcome.value

    def prices(self, slots: Ints) -> Floats:
        """Return the prices of the demands in the last solution, f64[k].

        Parameters
        ----------
        slots
            Numbers of the slots, i64[k].
        """
        return self.session.duals()[self._demand_rows(slots)]

    def solved(self, slots: Ints) -> tuple[Floats, float]:
        """Solve a program that a shortage makes feasible; otherwise like `solve`.

        Parameters
        ----------
        slots
            Numbers of the slots, i64[k].

        Raises
        ------
        OptschedError
            The solver fails, or reports that the program is infeasible.
        """
        solution = self.solve(slots)
        if solution is None:
            raise OptschedError("HiGHS: shares of time: infeasible in spite of a shortage")
        return solution

    # --- the program's parts ---------------------------------------------------------------------------------------

    def _columns(self, slots: Ints) -> Ints:
        columns: Ints = (1 + slots[:, None] * self.types + np.arange(self.types)).ravel()
        return columns

    def _demand_rows(self, slots: Ints) -> Ints:
        rows: Ints = self.types + 2 * slots
        return rows

    def _append(self, gain: Floats, load: Floats) -> None:
        k, T, first = len(load), self.types, len(self._load)
        if k == 0:
            return
        block = sp.csc_array((np.repeat(load, T), (np.tile(np.arange(T), k), np.arange(k * T))), (T + 2 * first, k * T))
        columns = self.session.add_columns(np.zeros(k * T), block, upper=np.where(gain.ravel() > 0, math.inf, 0.0))
        slot = np.repeat(np.arange(k), T)
        demand = (gain.ravel(), (2 * slot, columns))
        budget = (np.ones(k * T), (2 * slot + 1, columns))
        shortage = (np.ones(k), (2 * np.arange(k), np.full(k, SHORTAGE)))
        values = np.concatenate([demand[0], budget[0], shortage[0]])
        places = tuple(np.concatenate([part[1][axis] for part in (demand, budget, shortage)]) for axis in (0, 1))
        rows = sp.csr_array((values, places), (2 * k, 1 + (first + k) * T))
        rows.eliminate_zeros()
        lower, upper = np.full(2 * k, -math.inf), np.tile([math.inf, 1.0], k)
        self.session.add_rows(rows, lower, upper)
        self._gain, self._load = np.vstack([self._gain, gain]), np.concatenate([self._load, load])

    def _rewrite(self, slots: Ints, gain: Floats) -> None:
        if not slots.size:
            return
        columns = self._columns(slots)
        other = np.flatnonzero((gain != self._gain[slots]).ravel())
        rows = np.repeat(self._demand_rows(slots), self.types)
        self.session.set_coefficients(rows[other], columns[other], gain.ravel()[other])
        self.session.set_bounds(np.zeros(columns.size), np.where(gain.ravel() > 0, math.inf, 0.0), columns)
        self._gain[slots] = gain
