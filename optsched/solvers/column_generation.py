"""Column generation: a linear program with too many columns to list, of which a few are enough.

**Problem** min (or max) sum_s v_s x_s over lower <= sum_s a_s x_s <= upper, x >= 0. A *pricing problem* gives the columns
s = (v_s, a_s): for duals y it returns columns whose reduced cost v_s - y a_s is good, and the bound that these duals prove.
**Loop** The *restricted master* is the program with the columns found so far; it gives duals. The pricing problem is solved
at a mixture of these duals and of those with the best bound so far (smoothing, Wentges 1997), because duals of a restricted
master jump and the mixture does not. A column is added if it improves the master at the master's own duals. If no column
does, the mixture moves towards these duals, and the loop ends when no column is left. At any time the value of the master
and the best bound are an interval around the optimum.
**Bound** The bound is what the pricing problem returns: with exact pricing the Lagrangian bound of any duals; see
`PricedColumns`. The floats of the loop determine how good the bound is. The caller must prove it from
`Generated.duals` in exact numbers.
**Complexity** a simplex solve and a pricing a round; the master starts from its last basis.
**References** Gilmore and Cowell 1961; Dantzig and Wolfe 1960; Wentges, Weighted Dantzig-Wolfe decomposition for linear
mixed-integer programming, Int. Trans. Oper. Res. 4 (1997); Pessoa, Sadykov, Uchoa and Vanderbeck, INFORMS J. Comput. 30
(2018).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from optsched.deadline import NEVER, Deadline
from optsched.errors import OptschedError
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.solvers.linear_program import LinearProgram
from optsched.solvers.session import PRIMAL, Progress, Session

SMOOTHING = 0.5  # weight of the best duals in the duals that are priced next
SMALL = 1e-9  # relative: a smaller reduced cost counts as 0
# Primal simplex: with new columns the last basis stays feasible. Presolve would discard the basis.
OPTIONS = {"presolve": "off", "simplex_strategy": PRIMAL}


@dataclass(frozen=True, eq=False)
class PricedColumns:
    """Columns ``value`` f64[k] and ``A`` csc [rows, k], and the ``bound`` that the duals prove for the whole program.

    ``bound`` is a lower bound of a minimisation and an upper bound of a maximisation; inf or -inf if the duals prove
    nothing.
    """

    value: Floats
    A: sp.csc_array
    bound: float = math.nan

    def some(self, chosen: Ints | Bools) -> PricedColumns:
        """Return some of the columns, without a bound.

        Parameters
        ----------
        chosen
            Positions of the columns, or bool[k].
        """
        return PricedColumns(self.value[chosen], sp.csc_array(self.A[:, chosen]))

    @classmethod
    def joined(cls, parts: Sequence[PricedColumns]) -> PricedColumns:
        """Return the columns of all parts, one part after the other.

        Parameters
        ----------
        parts
            The parts.
        """
        A = sp.csc_array(sp.hstack([part.A for part in parts], format="csc"))
        return cls(np.concatenate([part.value for part in parts]), A)


@dataclass(frozen=True, eq=False)
class Generated:
    """Result of column generation.

    ``value`` of the last master and its solution ``x`` f64[K] over ``columns``; ``bound``, proved by ``duals`` f64[rows];
    ``rounds`` of pricing; ``finished``: the gap is closed, or no column improves the master any more.
    """

    value: float
    bound: float
    duals: Floats
    x: Floats
    columns: PricedColumns
    rounds: int
    finished: bool


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
    price
        The pricing problem: a function of duals y f64[rows] (d value / d right-hand side: in a maximisation those
        of ``<=`` rows are >= 0, in a minimisation those of ``>=`` rows). It may return no column if none has a good
        reduced cost at y.
    lower
        Lower bounds of the rows, f64[rows]; -inf where there is none.
    upper
        Upper bounds of the rows, f64[rows]; inf where there is none.
    sense
        1 minimises, -1 maximises.
    start
        Columns to begin with. With them alone the master must be feasible (their bound does not matter), unless x =
        0 is.
    duals
        Duals at which to price first, if a good guess is known; default: those of the first master.
    smoothing
        Part of the best duals in the mixture, in [0, 1); 0: only the master's own (Kelley's method).
    tolerance
        Relative gap at which to stop.
    most_rounds
        Largest number of pricing rounds; unlike a deadline it gives the same result on every machine.
    deadline
        Time at which to stop, checked between rounds; the result is then the interval so far.
    progress
        Function called after every round.

    Raises
    ------
    OptschedError
        If the master is infeasible with the columns of ``start``, or unbounded, or HiGHS fails.

    Examples
    --------
    Cutting stock: rolls of length 10 into 4 pieces of 3 and 3 of 5. Pricing tries all patterns:

    >>> import numpy as np, scipy.sparse as sp
    >>> from optsched import PricedColumns, generate_columns
    >>> patterns = np.array([[3, 0], [1, 1], [0, 2], [1, 0]])
    >>> def price(y):
    ...     worth = patterns @ y
    ...     best = patterns[[worth.argmax()]]
    ...     return PricedColumns(np.ones(1), sp.csc_array(best.T.astype(float)), (y @ [4, 3]) / max(1.0, worth.max()))
    >>> singles = PricedColumns(np.ones(2), sp.csc_array(np.array([[1.0, 0.0], [0.0, 1.0]])))
    >>> generated = generate_columns(price, np.array([4.0, 3.0]), np.full(2, np.inf), start=singles)
    >>> round(generated.value, 6), round(generated.bound, 6)
    (2.833333, 2.833333)
    """
    parts, began = [start or PricedColumns(np.zeros(0), sp.csc_array((len(lower), 0)))], time.perf_counter()
    program = LinearProgram.from_arrays(parts[0].value, parts[0].A, lower, upper, sense=sense)
    session = Session(program, options=OPTIONS)
    value, x, master_duals = _optimum(session, lower, upper)
    bound, rounds, exhausted, weight = -sense * math.inf, 0, False, smoothing
    best = mixed = master_duals if duals is None else duals
    while True:
        # price, keep the better bound, add the columns that improve the master, solve it, mix again
        at_own = mixed is master_duals
        priced = price(mixed)
        rounds += 1
        if sense * (priced.bound - bound) > 0:
            bound, best = float(priced.bound), mixed
        reduced = sense * (priced.value - priced.A.T @ master_duals)
        good = np.flatnonzero(reduced < -SMALL * np.maximum(1.0, np.abs(priced.value)))
        if good.size:
            parts.append(priced.some(good))
            session.add_columns(parts[-1].value, parts[-1].A)
            value, x, master_duals = _optimum(session, lower, upper)
            weight = smoothing
        elif at_own:
            exhausted = True
        else:
            weight = weight / 2 if weight > 0.1 else 0.0
        mixed = weight * best + (1 - weight) * master_duals if weight else master_duals
        gap = abs(value - bound) / max(abs(value), 1e-300)
        if progress is not None:
            progress(Progress(value, bound, gap, rounds, time.perf_counter() - began))
        finished = gap <= tolerance or sense * (bound - value) >= 0 or exhausted
        if finished or rounds >= most_rounds or deadline.passed:
            return Generated(value, bound, best, x, PricedColumns.joined(parts), rounds, finished)


def _optimum(session: Session, lower: Floats, upper: Floats) -> tuple[float, Floats, Floats]:
    """Return (value, x, duals) of the restricted master."""
    if not session.highs.getNumCol() and bool((lower <= 0).all() and (upper >= 0).all()):
        return 0.0, np.zeros(0), np.zeros(lower.size)  # without columns HiGHS returns no solution
    outcome = session.solve()
    if outcome.status != "optimal" or outcome.x is None or outcome.value is None:
        raise OptschedError(f"column generation: the restricted master is {outcome.status}")
    return outcome.value, outcome.x, session.duals()
