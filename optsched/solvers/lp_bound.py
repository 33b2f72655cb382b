"""`lp_bound`: a verified lower bound from the LP of the time-indexed program, at any scale.

The LP is solved in floats, its duals become prices, and what the prices prove is computed in fractions from the instance
alone (`optsched.bounds.lp_dual`): neither the solver's tolerances nor the rounding can make the bound wrong.

**Coarse grids.** Where slots of the exact unit are too many, slots are longer and releases and durations are rounded
**down** to them (costs are not). That is a relaxation: with S the real starts, floor(S) respects the rounded releases; and
if jobs of total width w are in process in slot t on the grid, then ``S_j < t + 1 <= S_j + p_j`` for each of them (times in
slots), so they really run together just before t + 1, and w is at most the capacity. A start in slot s costs at least what
starting at its left end does.

**Thinning.** An incumbent and LP bounds remove columns, cuts raise the bound, until little is left (`thin`). Let z be the
LP's optimum and c_jt >= 0 the reduced cost of a column that is 0. Every solution that uses it costs at least z + c_jt. Where
that exceeds ``upper - step`` (values differ by multiples of ``step``) no better schedule than the incumbent uses it.
**Cuts** are the rows of `start_program.violated_rows`, valid for every schedule. What is left after a few rounds is a
program of a few hundred columns that HiGHS finishes in seconds (`optsched.solvers.methods.reduced_cost_fixing`), or none at
all: then the incumbent is optimal.

References: reduced cost fixing is from Dantzig, Fulkerson and Johnson, Operations Research 2 (1954); the time-indexed LP,
Dyer and Wolsey (1990).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from optsched.bounds.certificate import Certificate
from optsched.deadline import NEVER, Deadline
from optsched.errors import InputError
from optsched.models.latest_starts import latest_completions
from optsched.models.mapped_modes import speed_depends_on_placement
from optsched.models.time_grid import on_common_unit
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.objectives import objective_of
from optsched.problem.schedule import Schedule
from optsched.solvers.list_schedule import best_list_schedule
from optsched.solvers.placed_list import best_placed_schedule
from optsched.solvers.session import Session
from optsched.solvers.start_program import RowFamily, SlotJobs, StartProgram, violated_rows
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
    """The best certificate of kind ``lp-dual`` that an LP of about ``nonzeros`` gives, for ``gang-nonpreemptive``.

    Parameters
    ----------
    schedule : a good non-preemptive schedule (default: a list schedule); it decides how late the LP has to look.
    deadline : when to stop.

    Returns None for the makespan (no sum of costs over jobs) and when even a coarse grid is too large.
    """
    instance.require_whole_jobs("lp_bound")
    goal, counted = objective_of(instance, objective), instance.relative
    if goal.maximum or instance.n == 0:
        return None
    if schedule is not None:
        known = schedule.relative
    elif speed_depends_on_placement(counted):
        known = best_placed_schedule(counted, goal.name)
    else:
        known = best_list_schedule(counted, goal.name, budget=0)
    upper = goal.exact_of(counted, known.completion.tolist())
    latest = latest_completions(counted, goal.name, float(upper))
    latest = np.minimum(latest, float(known.completion.max()) + float(seconds_alone(counted).max()))
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
    """The finest grid on which the LP is small enough, with all its columns."""
    origin = float(instance.arrival.min())
    release = [Fraction(r) - Fraction(origin) for r in instance.arrival.tolist()]
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
ROWS = 3000  # new rows a round
BUILDING = 2e-6  # seconds a nonzero, before the LP can begin
POLISHED = 3_000_000  # nonzeros of the LP that makes the last certificate
STALLED = 0.02  # of the gap: cuts that gain less in a round are not worth another
TOLERANCE = 1e-6  # relative: an LP's optimum and reduced costs are floats


@dataclass(frozen=True)
class Thinned:
    """What is left. ``program`` None: nothing, the incumbent is optimal.

    ``bound``: no schedule that is better than the incumbent is below it (a float that HiGHS vouches for);
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
    step : every two values differ by a multiple of it; None: unknown, then only what cannot be better goes.
    keep : slot of every job in the incumbent; those columns stay, so that it remains a solution.
    deadline : when to stop; ``finished`` is then False.
    """
    cutoff = float(upper - step) if step is not None else float(upper)
    slack = TOLERANCE * max(1.0, abs(cutoff))
    families = {jobs.gpus.tobytes(): RowFamily(jobs.gpus, jobs.instance.cluster.gpus)}  # GPUs held, at most G of them
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
        found = program.certificate(session.duals())
        certificate = found if certificate is None or found.value > certificate.value else certificate
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
            known = families.get(key)
            if known is not None and known.slots is not None and family.slots is not None:
                family = replace(family, slots=np.union1d(known.slots, family.slots))
            families[key] = family
    program = StartProgram.build(jobs, job, start, list(families.values()))
    return Thinned(program, bound, certificate, True, active)


def polish(thinned: Thinned, jobs: SlotJobs, job: Ints, start: Ints, deadline: Deadline = NEVER) -> Certificate | None:
    """A certificate nearly as high as the bound: the LP of **all** columns with the rows that mattered.

    Prices of a thinned LP may be too low where columns were removed; those of all columns are feasible everywhere.
    None when the LP is too large or the time is up.
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
    """The rows that have a price, family by family."""
    priced = row_dual[program.jobs.release.size :] < 0
    slots = [program.row_slot[priced & (program.row_family == f)] for f in range(len(program.families))]
    plain = program.families[:1]
    return plain + tuple(
        replace(family, slots=at) for family, at in zip(program.families[1:], slots[1:], strict=True) if at.size
    )
