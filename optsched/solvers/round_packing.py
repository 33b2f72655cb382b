"""`pack_rounds`: Hadar's packing LP over all schedules in rounds at the size of its experiments, and a choice of schedules.

**LP** by column generation (`optsched.solvers.column_generation`, `optsched.solvers.round_columns`), first with one capacity
row for each block of rounds, then for finer and finer blocks. The LP of a coarse level is a relaxation with a master of few
rows. Its columns are columns of the next level, and its prices, the same in all rounds of a block, are prices there.
**Integers** by price-and-dive: columns of the largest shares become schedules, and the LP of the rest is solved again, with
new columns. If the choice is not within one percent of the bound, a second dive uses more of them. If there are few columns,
HiGHS also chooses the best (price-and-branch). The best choice counts. Machines are given to gangs round by round, the
largest first. A job that finds none, or was left out, goes to where it ends first among the others. Then jobs move to
earlier ends one by one until none can.
**Guarantee** value <= optimum of integral schedules <= optimum of the LP <= ``bound``, which is exact.
**Reference** Sultana et al., Hadar, IPDPS 2024, arXiv 2503.10918, whose primal and dual these are.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from optsched.deadline import NEVER, Deadline
from optsched.models.hadar_rounds import RoundProblem
from optsched.problem.arrays import Floats, Ints
from optsched.solvers.column_generation import Generated, PricedColumns, generate_columns
from optsched.solvers.linear_program import LinearProgram
from optsched.solvers.round_columns import RoundColumns
from optsched.solvers.round_places import Placed, RoundPlaces
from optsched.solvers.session import Progress, Session

BLOCKS = (64, 16, 4, 1)
COARSE, FINE = 3e-3, 3e-3  # relative gaps at which a level ends: before the last one, and the last
# Rounds of pricing of a level before the last one, and of the last: with few jobs in many rounds the LP converges
# slowly.
MOST_PRICED = 150, 50
KEPT = 4  # columns a row for the next level, those of the best reduced cost
FEW_COLUMNS, NODES = 3_000, 2_000  # largest program that HiGHS solves, too
# Diving: in each step the columns of a share of nearly 1 become schedules, and the part FIXED of the remaining jobs.
NEARLY, SOME, FIXED, MOST_STEPS = 1 - 1e-6, 1e-6, 0.3, 60
DIVES = 2, 6  # rounds of pricing a step, for one dive after another
NEAR = 1e-2  # relative: the dives end when a choice is this close to the bound


@dataclass(frozen=True, eq=False)
class RoundPacking:
    """Result of `pack_rounds`: the LP's optimum lies in [``value``, ``bound``].

    ``chosen_value`` is the total utility of ``chosen``, one schedule a job. ``price`` f64[T, H, R] of a device in a round;
    the prices prove ``bound``. ``payoff`` f64[n] is the largest gain of each job at them. ``columns`` of the last master,
    ``rounds`` of pricing in total.
    """

    problem: RoundProblem
    value: float
    bound: Fraction
    price: Floats
    payoff: Floats
    columns: int
    rounds: int
    chosen: Placed = field(repr=False)
    chosen_value: float = 0.0


def pack_rounds(
    problem: RoundProblem,
    *,
    integer: bool = True,
    tolerance: float = FINE,
    deadline: Deadline = NEVER,
    progress: Callable[[Progress], None] | None = None,
) -> RoundPacking:
    """Solve the LP, and with ``integer`` choose schedules.

    Parameters
    ----------
    problem
        The problem in rounds.
    integer
        Choose schedules, too.
    tolerance
        Relative gap of the LP at which to stop.
    deadline
        Time limit for both; if schedules are chosen, half of the time that is left is for the LP.
    progress
        Function called with (LP value, bound) after every round of pricing (for coarse levels with the bound
        alone), then with (value of the choice, bound).
    """
    began = time.perf_counter()
    columns = RoundColumns(problem)
    first = deadline.share(0.5) if integer else deadline
    generated, duals = _levels(columns, tolerance, first, progress)
    prices = columns.integers(duals[: columns.rows - problem.n])
    payoff, _ = columns.best(prices)
    bound = columns.bound(prices, payoff)
    choices = [RoundPlaces(columns)]
    if integer:
        if generated.columns.value.size <= FEW_COLUMNS:
            choices.append(_branch(columns, generated, deadline))
        for pricing in DIVES:
            choices.append(_dive(columns, generated, duals, pricing, deadline))
            if deadline.passed or max(map(RoundPlaces.value, choices)) >= (1 - NEAR) * bound:
                break
    best = max(choices, key=RoundPlaces.value)
    placed, value = best.placed(), best.value()
    if progress is not None and integer:
        gap = (float(bound) - value) / value if value else math.inf
        progress(Progress(value, float(bound), gap, generated.rounds, time.perf_counter() - began))
    per_machine = np.zeros((problem.rounds, problem.machines, problem.types))
    for q, (g, r) in enumerate(columns.cells.where):
        of_cell = np.ldexp(prices[:, q].astype(np.float64), -columns.scale)
        per_machine[:, columns.cells.group == g, r] = of_cell[:, None]
    gained = np.ldexp(payoff.astype(np.float64), -columns.scale)
    return RoundPacking(
        problem,
        generated.value,
        bound,
        per_machine,
        gained,
        generated.columns.value.size,
        generated.rounds,
        placed,
        value,
    )


def _levels(
    columns: RoundColumns, tolerance: float, deadline: Deadline, progress: Callable[[Progress], None] | None
) -> tuple[Generated, Floats]:
    """Return (the LP with a row a round, the best duals of all levels)."""
    start, duals = PricedColumns(np.zeros(0), sp.csc_array((columns.rows, 0))), np.zeros(columns.rows)
    bound, rounds = math.inf, 0
    blocks = [block for block in BLOCKS if block == 1 or 4 * block <= columns.problem.rounds]
    for block in blocks:
        sums, asked = _sums(columns, block), list[PricedColumns]()
        upper = sums @ columns.upper

        def price(y: Floats, sums: sp.csr_array = sums, asked: list[PricedColumns] = asked) -> PricedColumns:
            asked.append(columns.price(np.asarray(sums.T @ y)))
            return replace(asked[-1], A=sp.csc_array(sums @ asked[-1].A))

        generated = generate_columns(
            price,
            np.full(upper.size, -math.inf),
            upper,
            sense=-1,
            start=PricedColumns(start.value, sp.csc_array(sums @ start.A)),
            duals=np.asarray(sums @ duals) / np.asarray(sums.sum(axis=1)).ravel(),
            tolerance=tolerance if block == 1 else max(COARSE, tolerance),
            most_rounds=math.inf if tolerance < FINE else MOST_PRICED[block == 1],
            deadline=deadline if block == 1 else deadline.share(0.3),
            # the value of a coarse level is no solution of the LP
            progress=progress
            if block == 1 or progress is None
            else lambda event: progress(replace(event, incumbent=math.nan, gap=math.inf)),
        )
        rounds += generated.rounds
        if generated.bound <= bound:
            bound, duals = generated.bound, np.asarray(sums.T @ generated.duals)
        if block == 1:
            return replace(generated, bound=bound, duals=duals, rounds=rounds), duals
        start = _kept([start, *asked], duals, columns.rows * KEPT)
    raise AssertionError("the last level has blocks of one round")


def _sums(columns: RoundColumns, block: int) -> sp.csr_array:
    """Return the matrix that adds up rows: capacity (b, q) of a block is the sum of the rows (t, q) of its rounds."""
    Q, n = columns.cells.capacity.size, columns.problem.n
    fine = columns.rows - n
    t, q = np.divmod(np.arange(fine), Q)
    blocks = -(-columns.problem.rounds // block)
    row = np.concatenate([t // block * Q + q, blocks * Q + np.arange(n)])
    return sp.csr_array((np.ones(fine + n), (row, np.arange(fine + n))), shape=(blocks * Q + n, fine + n))


def _kept(found: list[PricedColumns], duals: Floats, most: int) -> PricedColumns:
    """Return the columns of the best reduced cost, each once."""
    pool = PricedColumns.joined(found)
    reduced, A = pool.value - pool.A.T @ duals, pool.A
    chosen, seen = list[int](), set[bytes]()
    for k in np.argsort(-reduced, kind="stable").tolist():
        part = slice(A.indptr[k], A.indptr[k + 1])
        key = A.indices[part].tobytes() + A.data[part].tobytes()
        if key not in seen:
            seen.add(key)
            chosen.append(k)
        if len(chosen) == most:
            break
    return pool.some(np.array(chosen, dtype=np.int64))


def _branch(columns: RoundColumns, found: Generated, deadline: Deadline) -> RoundPlaces:
    """Return the best choice among the columns, with machines and moves to earlier ends."""
    pool, places = found.columns, RoundPlaces(columns)
    program = LinearProgram.from_arrays(
        pool.value,
        pool.A,
        np.full(columns.rows, -math.inf),
        columns.upper,
        upper=np.ones(pool.value.size),
        integrality=np.ones(pool.value.size, dtype=bool),
        sense=-1,
    )
    limit = None if deadline.at == math.inf else deadline.left / 2
    outcome = Session(program).solve(time_limit=limit, node_limit=NODES)
    if outcome.x is not None:
        places.place(_rounds(columns, pool, np.flatnonzero(outcome.x > 0.5).tolist()))
    places.improve(deadline)
    return places


def _dive(columns: RoundColumns, found: Generated, duals: Floats, pricing: int, deadline: Deadline) -> RoundPlaces:
    """Make schedules of columns, the largest shares first, and solve the LP of the rest again."""
    pool, share, places = found.columns, found.x, RoundPlaces(columns)
    columns.release()
    for _ in range(MOST_STEPS):
        fixed = _largest(columns, pool, share)
        if not fixed:
            break
        places.place(_rounds(columns, pool, fixed))
        if not columns.active.any() or deadline.passed:
            break
        upper = np.concatenate([columns.free.ravel(), columns.active]).astype(float)
        fits = np.ones(pool.value.size, dtype=bool)  # columns of active jobs that the free devices allow
        of_entry = np.repeat(np.arange(fits.size), np.diff(pool.A.indptr))
        np.logical_and.at(fits, of_entry, pool.A.data <= upper[pool.A.indices])
        level = generate_columns(
            columns.price,
            np.full(columns.rows, -math.inf),
            upper,
            sense=-1,
            start=pool.some(fits),
            duals=duals,
            most_rounds=pricing,
            deadline=deadline,
        )
        duals, pool, share = level.duals, level.columns, level.x
    places.improve(deadline)
    return places


def _largest(columns: RoundColumns, pool: PricedColumns, share: Floats) -> list[int]:
    """Return columns to fix, and book their devices: all with a share of nearly 1, then the largest shares that fit."""
    first, chosen = columns.rows - columns.problem.n, list[int]()
    want = max(1, math.ceil(FIXED * int(columns.active.sum())))
    for k in np.argsort(-share, kind="stable").tolist():
        if share[k] < SOME or (share[k] < NEARLY and len(chosen) >= want):
            break
        part = slice(pool.A.indptr[k], pool.A.indptr[k + 1])
        row, held = pool.A.indices[part], pool.A.data[part].astype(np.int64)
        of_job = row >= first
        j, at = int(row[of_job][0]) - first, row[~of_job]
        free = columns.free.ravel()
        if columns.active[j] and bool((held[~of_job] <= free[at]).all()):
            free[at] -= held[~of_job]
            columns.active[j] = False
            chosen.append(k)
    return chosen


def _rounds(
    columns: RoundColumns, pool: PricedColumns, taken: list[int]
) -> Iterator[tuple[int, list[tuple[int, Ints]]]]:
    """Yield (job, [(round, devices of every cell i64[Q])]) of chosen columns."""
    Q, first = columns.cells.capacity.size, columns.rows - columns.problem.n
    for k in taken:
        part = slice(pool.A.indptr[k], pool.A.indptr[k + 1])
        row, held = pool.A.indices[part], pool.A.data[part]
        job = int(row.max()) - first
        rounds: dict[int, Ints] = {}
        for i, devices in zip(row.tolist(), held.tolist(), strict=True):
            if i < first:
                rounds.setdefault(i // Q, np.zeros(Q, dtype=np.int64))[i % Q] = int(devices)
        yield job, sorted(rounds.items(), key=lambda pair: pair[0])
