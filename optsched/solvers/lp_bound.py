"""`lp_bound`: a verified lower bound from the LP of the time-indexed program, at any scale.

The LP is solved in floats and its duals become prices. The bound that the prices prove is computed in fractions from the
instance alone (`optsched.bounds.lp_dual`): neither the solver's tolerances nor the rounding can make the bound wrong.

**Coarse grids.** If the exact unit gives too many slots, slots are longer and releases and durations are rounded
**down** to them (costs are not). That is a relaxation. With S the real starts, floor(S) respects the rounded releases. If
jobs of total width w are in process in slot t on the grid, then ``S_j < t + 1 <= S_j + p_j`` for each of them (times in
slots), so they really run together just before t + 1, and w is at most the capacity. A start in slot s costs at least as
much as a start at its left end.

**Thinning.** An incumbent and LP bounds remove columns, and cuts raise the bound, until little is left (`thin`). Let z be
the LP's optimum and c_jt >= 0 the reduced cost of a column that is 0. Every solution that uses it costs at least z + c_jt.
If that exceeds ``upper - step`` (values differ by multiples of ``step``), no schedule better than the incumbent uses it.
**Cuts** are the rows of `violated_rows`, valid for every schedule. After a few rounds the rest is a
program of a few hundred columns that HiGHS finishes in seconds (`optsched.solvers.methods.reduced_cost_fixing`), or nothing
is left and the incumbent is optimal.

References: reduced cost fixing is from Dantzig, Fulkerson and Johnson, Operations Research 2 (1954); the time-indexed LP,
Dyer and Wolsey (1990).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from optsched.bounds.certificate import Certificate
from optsched.bounds.lp_dual import PriceRow, Prices, price_certificate, row_capacity
from optsched.bounds.regular import regular_cost
from optsched.classes import require_whole_jobs
from optsched.deadline import NEVER, Deadline
from optsched.errors import InputError
from optsched.models.latest_starts import latest_completions
from optsched.models.mapped_modes import speed_depends_on_placement
from optsched.models.time_grid import on_common_unit, releases
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective, objective_of
from optsched.problem.schedule import Schedule
from optsched.solvers.linear_program import LinearProgram
from optsched.solvers.list_schedule import best_list_schedule
from optsched.solvers.placed_list import best_placed_schedule
from optsched.solvers.session import Session
from optsched.speeds.duration import seconds_alone

COLUMNS = 100_000
NONZEROS = 250_000


def lp_bound(
    instance: Instance,
    objective: str | None = None,
    *,
    schedule: Schedule | None = None,
    deadline: Deadline = NEVER,
    nonzeros: int = NONZEROS,
) -> Certificate | None:
    """Return the best certificate of kind ``lp-dual`` from an LP of limited size, for ``gang-nonpreemptive``.

    The result is None for the makespan (it is no sum of costs over jobs) and if even a coarse grid is too large.

    Parameters
    ----------
    instance
        Jobs and cluster.
    objective
        Name of the objective (default: the instance's own).
    schedule
        A good non-preemptive schedule (default: a list schedule); it limits the horizon of the LP.
    deadline
        Time at which to stop.
    nonzeros
        Largest number of nonzeros of the LP.
    """
    require_whole_jobs(instance, "lp_bound")
    goal, counted = objective_of(instance, objective), instance.relative
    if goal.maximum or instance.n == 0:
        return None
    if schedule is not None:
        incumbent = schedule.relative
    elif speed_depends_on_placement(counted):
        incumbent = best_placed_schedule(counted, goal.name)
    else:
        incumbent = best_list_schedule(counted, goal.name, budget=0)
    upper = goal.exact_of(counted, incumbent.completion.tolist())
    latest = latest_completions(counted, goal.name, float(upper))
    latest = np.minimum(latest, float(incumbent.completion.max()) + float(seconds_alone(counted).max()))
    chosen = _grid(counted, goal.name, latest, nonzeros)
    if chosen is None:
        return None
    jobs, job, start = chosen
    thinned = thin(jobs, job, start, upper=upper, step=None, deadline=deadline)
    best = thinned.certificate
    if thinned.finished:
        polished = polish(thinned, jobs, job, start, deadline)
        if polished is not None and (best is None or polished.value > best.value):
            best = polished
    return None if best is None else best.on_clock(instance)


def _grid(instance: Instance, objective: str, latest: Floats, nonzeros: int) -> tuple[SlotJobs, Ints, Ints] | None:
    """Return the finest grid on which the LP is small enough, with all its columns."""
    origin, release = releases(instance)
    try:
        unit, _, _ = on_common_unit(release, [Fraction(p) for p in seconds_alone(instance).tolist()])
    except InputError:
        unit = Fraction(float(seconds_alone(instance).min())) / 4
    span = Fraction(float(latest.max())) - Fraction(origin)
    unit = max(unit, span / COLUMNS)
    while span >= unit:
        jobs = SlotJobs.on_grid(instance, objective, origin, unit)
        last = np.floor((latest - seconds_alone(instance) - origin) / float(unit) + 1e-9).astype(np.int64)
        count = np.maximum(last - jobs.release + 1, 1)
        if int(count.sum()) <= COLUMNS and int((count * (jobs.length + 1)).sum()) <= nonzeros:
            job = np.repeat(np.arange(instance.n), count)
            within = np.arange(job.size) - np.repeat(np.cumsum(count) - count, count)
            return jobs, job, jobs.release[job] + within
        unit *= 2 if count.sum() > 4 * COLUMNS else Fraction(5, 4)
    return None


ROUNDS = 12
ROWS = 3000  # largest number of new rows a round
BUILDING = 2e-6  # seconds a nonzero to build the LP
POLISHED = 3_000_000  # largest number of nonzeros of the LP for the last certificate
STALLED = 0.02  # part of the gap: if the cuts of a round gain less, the rounds end
TOLERANCE = 1e-6  # relative: an LP's optimum and reduced costs are floats


@dataclass(frozen=True)
class Thinned:
    """Result of thinning; ``program`` None: nothing is left, the incumbent is optimal.

    ``bound``: no schedule that is better than the incumbent is below it (a float from HiGHS);
    ``certificate``: the best exact bound on the way; ``rows``: those that had a price in the last LP.
    """

    program: StartProgram | None
    bound: float
    certificate: Certificate | None
    finished: bool
    rows: tuple[RowFamily, ...] = ()


def thin(
    jobs: SlotJobs,
    job: Ints,
    start: Ints,
    *,
    upper: Fraction,
    step: Fraction | None,
    keep: Ints | None = None,
    deadline: Deadline = NEVER,
    on_bound: Callable[[float], None] | None = None,
) -> Thinned:
    """Remove columns (job[i], start[i]) that no schedule better than ``upper`` uses.

    Parameters
    ----------
    jobs
        The jobs on a grid.
    job
        Job of every column, i64[k].
    start
        Start slot of every column, i64[k].
    upper
        Value of the incumbent.
    step
        Number of which every difference of two values is a multiple; None: unknown, then only columns that cannot
        be better go.
    keep
        Slot of every job in the incumbent, i64[n]; those columns stay, so that it remains a solution.
    deadline
        Time at which to stop; ``finished`` is then False.
    on_bound
        Function called with every new bound.
    """
    cutoff = float(upper - step) if step is not None else float(upper)
    slack = TOLERANCE * max(1.0, abs(cutoff))
    families = {jobs.gpus.tobytes(): RowFamily(jobs.gpus, jobs.instance.cluster.gpus)}  # GPUs held, at most G
    bound, gained, certificate = -np.inf, np.inf, None
    program: StartProgram | None = None
    active: tuple[RowFamily, ...] = ()
    for _ in range(ROUNDS):
        if deadline.left <= BUILDING * int(jobs.length[job].sum()):
            return Thinned(program, bound, certificate, False)
        program = StartProgram.build(jobs, job, start, list(families.values()))
        session = Session(program.program, relax=True)
        outcome = session.solve(time_limit=deadline.left)
        if outcome.status == "infeasible":
            return Thinned(None, float(upper), certificate, True, active)
        if outcome.status != "optimal" or outcome.x is None or outcome.value is None:
            return Thinned(program, bound, certificate, False)
        active = _active(program, session.duals())
        proved = program.certificate(session.duals())
        certificate = proved if certificate is None or proved.value > certificate.value else certificate
        gained, bound = outcome.value - bound, max(bound, outcome.value)
        if on_bound is not None:
            on_bound(bound)
        if bound > cutoff + slack or (certificate is not None and certificate.value >= upper):
            return Thinned(None, float(upper), certificate, True, active)
        alive = outcome.value + session.reduced_costs() <= cutoff + slack
        if keep is not None:
            alive |= start == keep[job]
        new = violated_rows(jobs, program.in_process(outcome.x), ROWS)
        job, start, few = job[alive], start[alive], bool(np.mean(alive) > 0.9)
        if not new or (few and gained < STALLED * (float(upper) - bound)):
            break
        for family in new:
            key = family.width.tobytes()
            family_before = families.get(key)
            if family_before is not None and family_before.slots is not None and family.slots is not None:
                family = replace(family, slots=np.union1d(family_before.slots, family.slots))
            families[key] = family
    program = StartProgram.build(jobs, job, start, list(families.values()))
    return Thinned(program, bound, certificate, True, active)


def polish(thinned: Thinned, jobs: SlotJobs, job: Ints, start: Ints, deadline: Deadline = NEVER) -> Certificate | None:
    """Return a certificate nearly as high as the bound, from the LP of **all** columns with the rows that had a price.

    Prices of a thinned LP may be too low where columns were removed; those of all columns are feasible everywhere.
    The result is None if the LP is too large or the time is up.

    Parameters
    ----------
    thinned
        Result of `thin`.
    jobs
        The jobs on a grid.
    job
        Job of every column, i64[k].
    start
        Start slot of every column, i64[k].
    deadline
        Time at which to stop.
    """
    families = thinned.rows
    nonzeros = len(families) * int(jobs.length[job].sum())
    if not families or nonzeros > POLISHED or deadline.left <= BUILDING * nonzeros:
        return None
    program = StartProgram.build(jobs, job, start, families)
    session = Session(program.program, relax=True)
    outcome = session.solve(time_limit=deadline.left)
    return program.certificate(session.duals()) if outcome.status == "optimal" else None


def _active(program: StartProgram, row_dual: Floats) -> tuple[RowFamily, ...]:
    """Return the rows that have a price, family by family."""
    priced = row_dual[program.jobs.release.size :] < 0
    slots = [program.row_slot[priced & (program.row_family == f)] for f in range(len(program.families))]
    plain = program.families[:1]
    return plain + tuple(
        replace(family, slots=at) for family, at in zip(program.families[1:], slots[1:], strict=True) if at.size
    )


# The time-indexed program of rigid gangs as arrays, with only the columns and rows that still matter.
#
# The formulation is that of `optsched.models.rigid_time_indexed`: with all columns and only the plain rows the arrays
# are the same. Columns that no better schedule can use are left out, and rows that cut off fractional solutions are
# added. Times are slots of a grid: ``origin + k unit`` seconds.
#
# **Cuts** are lifted knapsack rows, separated slot by slot (`violated_rows`). For a gang size e let ``u_j = floor(g_j /
# e)`` for gangs of at least e, and 1 for one smaller job k (0 for the others). If e floor(G / e) + g_k > G, jobs that
# fit together have at most ``floor(G / e)`` of it: k fits only with fewer of the large ones. The plain row allows 7/8
# of an 8-GPU gang together with a 1-GPU job; with e = 8 this row does not. On the rigid instances of 12 to 20 jobs on 8
# GPUs these rows close three quarters or more of the gap of the LP bound. Reference: lifted covers, Balas, Math.
# Program. 8 (1975); Wolsey, Math. Program. 8 (1975).

VIOLATED = 1e-4  # in units of a row's capacity: smaller violations are numerical noise of the LP
# Vertices of these LPs mostly have duals with small denominators; then rounding loses nothing.
DENOMINATORS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 24, 60, 120, 360, 840, 2520, 27720)
NEARLY, FINE = 1e-6, 1 << 24
MOST_BITS = 61  # largest number of bits of an integer price


@dataclass(frozen=True)
class SlotJobs:
    """Jobs in slots: ``release`` and ``length`` i64[n], rounded down where the grid is too coarse for them.

    Costs are computed from the exact seconds: a start at slot s completes at ``origin + s unit + p_j``.
    """

    instance: Instance
    objective: str
    origin: float
    unit: Fraction
    release: Ints
    length: Ints

    @classmethod
    def on_grid(cls, instance: Instance, objective: str, origin: float, unit: Fraction) -> SlotJobs:
        """Return the jobs on a grid; exact if all times are multiples of the unit from the origin.

        Parameters
        ----------
        instance
            Jobs and cluster.
        objective
            Name of the objective.
        origin
            Time of slot 0 in seconds.
        unit
            Length of a slot in seconds.
        """
        first = Fraction(origin)
        release = [int((Fraction(r) - first) // unit) for r in instance.arrival.tolist()]
        length = [int(Fraction(p) // unit) for p in seconds_alone(instance).tolist()]
        return cls(
            instance, objective, origin, unit, np.array(release, dtype=np.int64), np.array(length, dtype=np.int64)
        )

    @property
    def gpus(self) -> Ints:
        """Gang sizes."""
        return self.instance.gpus

    def costs(self, job: Ints, start: Ints) -> Floats:
        """Return the cost of job[i] starting at slot start[i], in the objective's unit.

        Parameters
        ----------
        job
            Jobs, i64[k].
        start
            Start slots, i64[k].
        """
        cost = regular_cost(get_objective(self.objective), self.instance)
        end = self.origin + start * float(self.unit) + seconds_alone(self.instance)[job]
        return np.asarray(cost.base[job] + cost.slope[job] * np.maximum(end - cost.kink[job], 0.0))


@dataclass(frozen=True)
class RowFamily:
    """``sum_j width_j [j in process at slot t] <= capacity`` for every slot of ``slots`` (None: every crowded one)."""

    width: Ints
    capacity: int
    slots: Ints | None = None


@dataclass(frozen=True)
class StartProgram:
    """Columns (job, start slot) and row families, compiled: ``program``; its row i > n is (family, slot)[i - n]."""

    jobs: SlotJobs
    job: Ints
    start: Ints
    families: tuple[RowFamily, ...]
    row_family: Ints
    row_slot: Ints
    program: LinearProgram

    @classmethod
    def build(cls, jobs: SlotJobs, job: Ints, start: Ints, families: Sequence[RowFamily]) -> StartProgram:
        """Build the program with columns sorted by (job, start). O(nonzeros).

        Parameters
        ----------
        jobs
            The jobs on a grid.
        job
            Job of every column, i64[k].
        start
            Start slot of every column, i64[k].
        families
            Families of rows.
        """
        n, length = jobs.release.size, jobs.length[job]
        horizon = int((start + length).max(initial=0)) + 1
        columns = np.repeat(np.arange(start.size), length)  # the column and the slot of every nonzero
        slots = np.arange(columns.size) - np.repeat(np.cumsum(length) - length - start, length)
        possible = np.zeros((n, horizon + 1), dtype=np.int32)
        np.add.at(possible, (job, start), 1)
        np.subtract.at(possible, (job, start + length), 1)
        once = sp.csr_array((np.ones(job.size), (job, np.arange(job.size))), shape=(n, job.size))
        blocks, kept_family, kept_slot, capacity = [once], [], [], []
        for f, family in enumerate(families):
            # slots whose row is not implied by the remaining columns
            total = family.width @ (np.cumsum(possible, axis=1)[:, :horizon] > 0)
            rows = np.flatnonzero(total > family.capacity)
            rows = rows if family.slots is None else np.intersect1d(rows, family.slots)
            at = np.full(horizon, -1, dtype=np.int64)
            at[rows] = np.arange(rows.size)
            width = family.width[job[columns]]
            keep = (width > 0) & (at[slots] >= 0)
            entries = (width[keep].astype(np.float64), (at[slots[keep]], columns[keep]))
            blocks.append(sp.csr_array(entries, shape=(rows.size, job.size)))
            kept_family.append(np.full(rows.size, f))
            kept_slot.append(rows)
            capacity.append(np.full(rows.size, float(family.capacity)))
        upper = np.concatenate([np.ones(n), *capacity])
        lower = np.concatenate([np.ones(n), np.full(upper.size - n, -np.inf)])
        row_family, row_slot = np.concatenate(kept_family), np.concatenate(kept_slot)
        names = [f"job {name!r} runs once" for name in jobs.instance.ids]
        names += [f"row {f} at slot {t}" for f, t in zip(row_family.tolist(), row_slot.tolist(), strict=True)]
        program = LinearProgram.from_arrays(
            jobs.costs(job, start),
            sp.csc_array(sp.vstack(blocks)),
            lower,
            upper,
            upper=np.ones(job.size),
            integrality=np.ones(job.size, dtype=bool),
            columns=list(zip(job.tolist(), start.tolist(), strict=True)),
            rows=names,
        )
        return cls(jobs, job, start, tuple(families), row_family, row_slot, program)

    def certificate(self, row_dual: Floats) -> Certificate:
        """Return the certificate that the duals prove, as prices of slots: integers over one denominator.

        Any prices >= 0 prove a bound, so rounding may lower the bound slightly but never makes it wrong.

        Parameters
        ----------
        row_dual
            Duals of HiGHS, f64[rows]; a ``<=`` row's is <= 0 in a minimisation.
        """
        jobs = self.jobs
        amount, denominator = rational(-row_dual[jobs.release.size :])
        rows = []
        for f, family in enumerate(self.families):
            of_family = (self.row_family == f) & (amount > 0)
            if of_family.any():
                price = np.zeros(int(self.row_slot.max(initial=-1)) + 1, dtype=np.int64)
                price[self.row_slot[of_family]] = amount[of_family]
                rows.append(PriceRow(family.width, price))
        prices = Prices("rigid-time-indexed", Fraction(jobs.origin), jobs.unit, denominator, tuple(rows))
        return price_certificate(jobs.instance, jobs.objective, "gang-nonpreemptive", prices)

    def in_process(self, x: Floats) -> Floats:
        """Return the fraction of every job that runs in every slot, f64[n, slots].

        Parameters
        ----------
        x
            Values of the columns, f64[k].
        """
        begin, end = self.start, self.start + self.jobs.length[self.job]
        change = np.zeros((self.jobs.release.size, int(end.max(initial=0)) + 1))
        np.add.at(change, (self.job, begin), x)
        np.subtract.at(change, (self.job, end), x)
        return np.asarray(np.cumsum(change, axis=1))

    def starts(self, x: Floats) -> Floats:
        """Return the start of every job in seconds in an integer solution.

        Parameters
        ----------
        x
            Values of the columns, f64[k].
        """
        slot = np.zeros(self.jobs.release.size)
        chosen = x > 0.5
        slot[self.job[chosen]] = self.start[chosen]
        return np.asarray(self.jobs.origin + slot * float(self.jobs.unit))


def rational(values: Floats) -> tuple[Ints, int]:
    """Return nonnegative floats as integers over the smallest denominator that fits all of them, else over 2**24.

    Any prices prove a bound: prices beyond 64 bits are reduced to what fits, and the denominator is no larger than that.

    Parameters
    ----------
    values
        Floats >= 0.

    Returns
    -------
    numerators
        i64, of the same shape.
    denominator
        The denominator.
    """
    values = np.clip(values, 0.0, 2.0**MOST_BITS)
    for denominator in DENOMINATORS:
        scaled = np.round(values * denominator)
        if scaled.max(initial=0.0) <= 2.0**MOST_BITS and np.all(
            np.abs(values * denominator - scaled) <= NEARLY * np.maximum(1.0, values)
        ):
            return scaled.astype(np.int64), denominator
    finest = min(FINE, 1 << max(MOST_BITS - math.frexp(float(values.max(initial=0.0)))[1], 0))
    return np.round(values * finest).astype(np.int64), finest


def violated_rows(jobs: SlotJobs, in_process: Floats, most: int) -> list[RowFamily]:
    """Return row families that a fractional solution violates, with the slots at which it does.

    It tries every gang size e and slot with the smaller job k that is most in process there.

    Parameters
    ----------
    jobs
        The jobs on a grid.
    in_process
        Fraction of every job that runs in every slot, f64[n, slots].
    most
        Largest number of rows.
    """
    gpus, total = jobs.gpus, jobs.instance.cluster.gpus
    violations: list[tuple[float, int, int, int]] = []
    for e in np.unique(gpus[gpus > 1]).tolist():
        units, rest = total // e, total % e
        lifted = np.flatnonzero((gpus < e) & (gpus > rest))
        activity = (gpus // e) @ in_process
        if lifted.size:
            k = lifted[np.argmax(in_process[lifted], axis=0)]
            activity = activity + in_process[k, np.arange(in_process.shape[1])]
        else:
            k = np.full(in_process.shape[1], -1)
        for t in np.flatnonzero(activity > units + VIOLATED).tolist():
            violations.append((float(activity[t]) - units, e, int(k[t]), t))
    violations.sort(reverse=True)
    slots: dict[tuple[int, int], list[int]] = {}
    for _, e, job, t in violations[:most]:
        slots.setdefault((e, job), []).append(t)
    families = []
    for (e, job), at in sorted(slots.items()):
        width = gpus // e
        if job >= 0:
            width[job] = 1
        families.append(RowFamily(width, row_capacity(width, gpus, total), np.array(sorted(at))))
    return families
