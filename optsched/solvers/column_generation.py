"""Column generation: a linear program with more columns than anyone can list, of which a few are enough.

**Problem** min (or max) sum_s v_s x_s over lower <= sum_s a_s x_s <= upper, x >= 0, the columns s = (v_s, a_s) given by a
*pricing problem*: at duals y it names columns whose reduced cost v_s - y a_s is good, and says what these duals prove.
**Loop** The *restricted master*, the program with the columns found so far, gives duals; the pricing problem is asked at a
mixture of these and of those that have proved most (smoothing, Wentges 1997): duals of a restricted master jump, and the
mixture does not. A column is taken when it improves the master at the master's own duals; when none does, the mixture moves
towards these, and at the end none is left. Value of the master and best proof are an interval around the optimum at any
time.
**Bound** Whatever the pricing problem says it is: with exact pricing the Lagrangian bound of any duals; see
`PricedColumns`. The floats of the loop decide how good it is; whether it holds is for the caller to prove from
`Generated.duals` in exact numbers.
**Complexity** a simplex solve and a pricing a round; the master starts from its last basis.
**References** Gilmore and Cowell 1961; Dantzig and Wolfe 1960; Wentges, Weighted Dantzig-Wolfe decomposition for linear
mixed-integer programming, Int. Trans. Oper. Res. 4 (1997); Pessoa, Sadykov, Uchoa and Vanderbeck, INFORMS J. Comput. 30
(2018).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from optsched.deadline import NEVER, Deadline
from optsched.errors import OptschedError
from optsched.problem.arrays import Floats
from optsched.solvers.linear_program import LinearProgram
from optsched.solvers.session import Progress, Session

SMOOTHING = 0.5  # the part of the best duals in those that are priced next
SMALL = 1e-9  # relative: a reduced cost that is none
# Primal simplex: with new columns the last basis stays feasible. Presolve would throw the basis away.
OPTIONS = {"presolve": "off", "simplex_strategy": 4}


@dataclass(frozen=True, eq=False)
class PricedColumns:
    """Columns ``value`` f64[k], ``A`` csc [rows, k], and ``bound``: what the duals asked about prove for the whole program.

    A lower bound of a minimisation, an upper one of a maximisation; inf or -inf where they prove nothing.
    """

    value: Floats
    A: sp.csc_array
    bound: float


@dataclass(frozen=True, eq=False)
class Generated:
    """``value`` of the last master, a feasible solution ``x`` f64[K] of ``columns``; ``bound``, proved by ``duals``
    f64[rows].

    ``rounds`` of pricing; ``finished``: the gap is closed, or no column improves the master any more.
    """

    value: float
    bound: float
    duals: Floats
    x: Floats
    columns: PricedColumns
    rounds: int
    finished: bool

    @property
    def gap(self) -> float:
        """|value - bound| / |value|; inf without a bound."""
        return abs(self.value - self.bound) / max(abs(self.value), 1e-300) if self.value != self.bound else 0.0


def generate_columns(
    price: Callable[[Floats], PricedColumns],
    lower: Floats,
    upper: Floats,
    *,
    sense: int = 1,
    start: PricedColumns | None = None,
    duals: Floats | None = None,
    smoothing: float = SMOOTHING,
    tolerance: float = 1e-6,
    most_rounds: float = math.inf,
    deadline: Deadline = NEVER,
    progress: Callable[[Progress], None] | None = None,
) -> Generated:
    """Solve an LP over columns that ``price`` finds.

    Parameters
    ----------
    price : the pricing problem, asked at duals y f64[rows] (d value / d right-hand side: of a maximisation those of ``<=``
        rows are >= 0, of a minimisation those of ``>=`` rows). Without a column of good reduced cost at y it may name none.
    lower, upper : f64[rows], bounds of the rows; infinite where there is none.
    sense : 1 minimises, -1 maximises.
    start : columns to begin with. With them alone the master must be feasible (its bound does not matter), unless x = 0 is.
    duals : where to ask first, if a good guess is known; default: 0.
    smoothing : part of the best duals in the mixture, in [0, 1); 0: the master's own (Kelley's method).
    tolerance : the relative gap at which to stop.
    most_rounds : of pricing; unlike a deadline it gives the same result on every machine.
    deadline : when to stop, looked at between rounds; the interval so far is the answer.
    progress : called after every round.

    Raises `OptschedError` where the master is infeasible with the columns of ``start``, unbounded, or HiGHS fails.

    Cutting stock, rolls of 10 into 4 pieces of 3 and 3 of 5; a pattern is priced by trying all:

    >>> import numpy as np, scipy.sparse as sp
    >>> from optsched import PricedColumns, generate_columns
    >>> patterns = np.array([[3, 0], [1, 1], [0, 2], [1, 0]])
    >>> def price(y):
    ...     worth = patterns @ y
    ...     best = patterns[[worth.argmax()]]
    ...     return PricedColumns(np.ones(1), sp.csc_array(best.T.astype(float)), (y @ [4, 3]) / max(1.0, worth.max()))
    >>> singles = PricedColumns(np.ones(2), sp.csc_array(np.array([[1.0, 0.0], [0.0, 1.0]])), 0.0)
    >>> found = generate_columns(price, np.array([4.0, 3.0]), np.full(2, np.inf), start=singles)
    >>> round(found.value, 6), round(found.bound, 6)
    (2.833333, 2.833333)
    """
    first = start or PricedColumns(np.zeros(0), sp.csc_array((len(lower), 0)), math.nan)
    loop = _Loop(sense, first, lower, upper, duals, smoothing)
    began = time.perf_counter()
    while True:
        loop.ask(price)
        gap = abs(loop.value - loop.bound) / max(abs(loop.value), 1e-300)
        if progress is not None:
            progress(Progress(loop.value, loop.bound, gap, loop.rounds, time.perf_counter() - began))
        closed = gap <= tolerance or sense * (loop.bound - loop.value) >= 0
        if closed or loop.exhausted or loop.rounds >= most_rounds or deadline.passed:
            return loop.end(closed or loop.exhausted)


class _Loop:
    """One column generation under way."""

    def __init__(
        self,
        sense: int,
        start: PricedColumns,
        lower: Floats,
        upper: Floats,
        duals: Floats | None,
        smoothing: float,
    ) -> None:
        self.sense, self.lower, self.upper = sense, lower, upper
        self.smoothing = self.part = smoothing
        program = LinearProgram.from_arrays(start.value, start.A, lower, upper, sense=sense)
        self.session = Session(program, options=OPTIONS)
        self.found = [start]
        self.rounds, self.exhausted = 0, False
        self.bound, self.value = -sense * math.inf, 0.0
        self._solve()
        self.best = self.own if duals is None else duals
        self.mixed = self.best

    def _solve(self) -> None:
        if not self.session.highs.getNumCol() and bool((self.lower <= 0).all() and (self.upper >= 0).all()):
            self.x, self.own = np.zeros(0), np.zeros(self.lower.size)  # of no columns HiGHS has nothing to say
            return
        try:
            outcome = self.session.solve()
        except OptschedError:  # the simplex method lost its way from the last basis
            self.session.highs.clearSolver()
            outcome = self.session.solve()
        if outcome.status != "optimal" or outcome.x is None or outcome.value is None:
            raise OptschedError(f"column generation: the restricted master is {outcome.status}")
        self.value, self.x, self.own = outcome.value, outcome.x, self.session.duals()

    def ask(self, price: Callable[[Floats], PricedColumns]) -> None:
        """One round: price, keep the better proof, take the columns that improve the master, solve it, mix again."""
        at_own = self.mixed is self.own
        priced = price(self.mixed)
        self.rounds += 1
        if self.sense * (priced.bound - self.bound) > 0:
            self.bound, self.best = float(priced.bound), self.mixed
        reduced = self.sense * (priced.value - priced.A.T @ self.own)
        good = np.flatnonzero(reduced < -SMALL * np.maximum(1.0, np.abs(priced.value)))
        if good.size:
            block = sp.csc_array(priced.A[:, good])
            self.session.add_columns(priced.value[good], block)
            self.found.append(PricedColumns(priced.value[good], block, math.nan))
            self._solve()
            self.part = self.smoothing
        elif at_own:
            self.exhausted = True
        else:
            self.part = self.part / 2 if self.part > 0.1 else 0.0
        self.mixed = self.part * self.best + (1 - self.part) * self.own if self.part else self.own

    def end(self, finished: bool) -> Generated:
        """What was found."""
        A = sp.csc_array(sp.hstack([each.A for each in self.found], format="csc"))
        columns = PricedColumns(np.concatenate([each.value for each in self.found]), A, math.nan)
        return Generated(self.value, self.bound, self.best, self.x, columns, self.rounds, finished)
