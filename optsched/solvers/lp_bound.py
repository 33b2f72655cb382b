"""`lp_bound`: a verified lower bound from the LP of the time-indexed program, at any scale.

The LP is solved in floats, its duals become prices, and what the prices prove is computed in fractions from the instance
alone (`optsched.bounds.lp_dual`): neither the solver's tolerances nor the rounding can make the bound wrong.

**Coarse grids.** Where slots of the exact unit are too many, slots are longer and releases and durations are rounded
**down** to them (costs are not). That is a relaxation: with S the real starts, floor(S) respects the rounded releases; and
if jobs of total width w are in process in slot t on the grid, then ``S_j < t + 1 <= S_j + p_j`` for each of them (times in
slots), so they really run together just before t + 1, and w is at most the capacity. A start in slot s costs at least what
starting at its left end does.
"""

from __future__ import annotations

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
from optsched.solvers.reduced_cost_fixing import polish, thin
from optsched.solvers.start_program import SlotJobs
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
