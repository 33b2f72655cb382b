"""Theorems on the one machine of a relaxation (`optsched.bounds.relaxation`), each evaluated by runs of one rule.

**The volume that is left**. **Problem**: C_max.
**Bound**: ``max over release dates t of t + sum_{r_j >= t} u_j d_j / U``, u_j the widths and U the capacity: for gangs
at threshold 1 GPU-seconds over the GPUs that gangs can fill, for elastic jobs the fewest GPU-seconds over all GPUs.
**Proof**: after t the fast machine does at most one second of work a second, and all the work of jobs released from t
on is done after t. Rounding down on the grid (`optsched.bounds.integer_grid`) only lowers both parts.
**Tight** for one machine, where it is the optimum. **Complexity** O(n log n), O(n) if the jobs are in order of release.

**SRPT**. **Problem**: sum C_j and sum (C_j - r_j); with weights in layers.
**Bound**: the jobs that take a part of the fast machine cost at least their cost there under SRPT, which is optimal for
1 | r_j, pmtn | sum C_j, plus the tails that follow. The others (set aside by a threshold, without work on a resource,
or shorter than the grid) cost at least r_j + e_j each, e_j their seconds alone. Flow times: minus ``sum w_j r_j``.
Prices and charges come from a search; any legal ones give a bound.
**Proof**: a schedule of the class is one of the fast machine with the same completion times (except for tails), and
SRPT is optimal there. The grid rounds down only (`optsched.bounds.integer_grid`).
**Guarantee**, with equal weights: exact for one machine with one-GPU jobs; for forked jobs whose gang is one GPU on one
type; for elastic jobs that run G times as fast on G GPUs as on one; for one-GPU jobs on one GPU where xi = 2 (then
sharing gains nothing); and for tasks on one GPU, if they may be preempted.
**Complexity** O(n log n) a run, a run per level; at most 122 runs for a search.
**Reference**: Schrage, Operations Research 16 (1968), 687-690; for clusters the virtual single machine of Luo et al.,
INFOCOM 2025 (there with a factor, here with none); the other relaxations are derived here.

**First come, first served**. **Problem**: max (C_j - r_j).
**Bound**: ``max over sets S of min_S release + work of S / capacity + min_S tail - max_S r_j``. The release on the
machine is r_j except for transfers, which begin later. For jobs that arrive in [a, b] it is the work less b - a. The
machine that serves the released job with the least r_j - tail first, tails being what follows the work on the machine,
reaches the maximum: with E_j its end, ``max_j E_j + tail_j - r_j``.
**Proof**: the last job of S on the machine ends no earlier than the first release plus the work of S, and completes its
tail after that; it arrived no later than the last of S. The rule attains the best S (Jackson): S are the jobs served
without a pause before the latest job, since the last moment at which a job with a later r_j - tail was served. On the
grid r_j - tail is rounded **up**, which only lowers the bound.
**Tight** for one machine, where first come, first served is optimal. **Complexity** O(n log n).
**Reference**: Horn, Some simple scheduling algorithms, Naval Research Logistics 21 (1974), 177-185.

**SRPT against due dates in order**, a matching that no other assignment of jobs to due dates can improve. **Problem**:
sum w_j max(C_j - d_j, 0); weights in layers.
**Bound**: on the fast machine the k-th completion of SRPT, C_[k], is the earliest possible k-th completion, for every k
at once. So jobs with a due date have ``sum T_j >= sum_k max(0, C_[k] - d_[k])`` with the due dates, reduced by what
follows the work on the machine (its tail), in ascending order. Jobs set aside, and weight above the levels, cost at
least max(0, r_j + e_j - d_j) a unit.
**Proof**: of all ways to assign the completion times to the due dates the one in order has the least total tardiness
(exchange argument), and the terms are nondecreasing in C_[k]. On the grid due dates are rounded **up**, which only
lowers the terms; those after the machine's last possible completion are moved down to it, which changes nothing.
**Complexity** O(n log n), a run per level.
**Reference**: Chu, A branch-and-bound algorithm to minimize total tardiness with different release dates, Naval
Research Logistics 39 (1992), 265-283.

**Flow times on an equal share**: jobs that need the same GPUs cannot all have their share. **Problem**: max (C_j - r_j)
/ d_j, d_j the flow time under equal sharing (`optsched.problem.fair_share`).
**Bound**: for a set S of jobs with work on the machine, ``min over j in S of (b + tail_j - r_j) / d_j`` with ``b =
min_S release + work of S / capacity``.
**Proof**: the last job of S on the machine ends no earlier than b and completes its tail after that; it is one of S.
**Search**: all jobs are within a ratio R exactly if the rule of the earliest due date meets the due dates r_j + R d_j -
tail_j (Jackson). From R = 0 on, the job that is latest under that rule gives S: the jobs served without a pause before
it since a job with a later due date was. The bound of S is the next R; it is larger, since at the old R all of S were
due before b. When no job is late the bound is the best of all sets, the optimum of the machine except for its grid.
**Complexity** O(n log n) for each R; a handful of them.
**Reference**: Bender, Chakrabarti and Muthukrishnan, Flow and stretch metrics for scheduling continuous job streams,
SODA 1998: the maximum stretch of one machine by due dates.

**Weights in layers**: a weighted sum is at least a sum of unweighted sums over nested sets of jobs. For levels 0 =
theta_0 < theta_1 < ... let S_l be the jobs with w_j >= theta_l, and w'_j <= w_j the largest level not above w_j. Then
``sum w_j x_j = sum_l (theta_l - theta_{l-1}) sum_{j in S_l} x_j + sum (w_j - w'_j) x_j`` for any x >= 0, so that bounds
on the unweighted sums of the sets S_l add up. With a level at every weight the last sum is empty.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from optsched.bounds.certificate import Proof, best_proof, ratio_text
from optsched.bounds.exact_dot import exact_dot, exact_total
from optsched.bounds.fast_machine import by_release, served_in_order, srpt_completions
from optsched.bounds.integer_grid import GridJobs, due_ticks
from optsched.bounds.relaxation import FastMachine, Relaxed, Theorem, theorem
from optsched.bounds.sum_costs import (
    COMPLETION,
    FAIR,
    FLOW,
    LARGEST_FLOW,
    MAKESPAN,
    TARDINESS,
    SumCosts,
    two_sum,
)
from optsched.problem.arrays import Floats, Ints
from optsched.problem.fair_share import fair_flow_times
from optsched.problem.instance import Instance

# --- weights in layers ----------------------------------------------------------------------------------------------------

MAX_LEVELS = 4  # a run of the fast machine each


def levels_of(weight: Floats) -> list[float]:
    """Return the levels of weights in ascending order: every positive weight if they are few, else quartiles.

    Parameters
    ----------
    weight
        Weights, f64[n].
    """
    positive = weight[weight > 0]
    if positive.size == 0:
        return []
    if positive.min() == positive.max():
        return [float(positive[0])]
    distinct = np.unique(positive)
    if distinct.size > MAX_LEVELS:
        quartiles = np.quantile(positive, np.arange(MAX_LEVELS) / MAX_LEVELS, method="lower")
        distinct = np.unique(quartiles)
    return [float(level) for level in distinct]


def reduced(weight: Floats, levels: list[float]) -> Floats:
    """Return w'_j, the largest level <= w_j, or 0 below all of them, f64[n].

    Parameters
    ----------
    weight
        Weights w_j, f64[n].
    levels
        Levels, ascending.
    """
    if not levels:
        return np.zeros(weight.size)
    return np.array([0.0, *levels])[np.searchsorted(np.array(levels), weight, side="right")]


def steps(levels: list[float]) -> list[tuple[float, Fraction]]:
    """Return (level, its height above the one before) for every level.

    Parameters
    ----------
    levels
        Levels, ascending.
    """
    return [(high, Fraction(high) - Fraction(low)) for low, high in pairwise([0.0, *levels])]


# --- makespan and sums ----------------------------------------------------------------------------------------------------


def volume(relaxed: Relaxed, objective: str) -> Proof | None:
    """Return the proof by volume on the best machine; its data are the machine and the grid.

    Parameters
    ----------
    relaxed
        The relaxed instance.
    objective
        Name of the objective.
    """
    candidates = ((best, best.grid()) for (best,) in relaxed.machines(lambda best: float(_last_end(best.rough_grid()))))
    return best_proof((_last_end(grid), machine.data(grid)) for machine, grid in candidates)


def _last_end(jobs: GridJobs) -> Fraction:
    """Return the end of the last busy period."""
    release, work = jobs.release, jobs.work
    order = by_release(release)
    if order is not None:
        release, work = release[order], work[order]
    # of jobs released together the first one in order has all their work behind it
    return jobs.tick * (int(np.max(release + np.cumsum(work[::-1])[::-1], initial=0)) + jobs.origin)


theorem(Theorem("volume", (MAKESPAN,), "a release date plus the work still to come on one machine", volume))


def srpt(relaxed: Relaxed, objective: str) -> Proof | None:
    """Return the proof by SRPT on the best machine; its data are machine, grid, levels of weight and flow constant.

    Parameters
    ----------
    relaxed
        The relaxed instance.
    objective
        Name of the objective.
    """
    costs = relaxed.costs(objective)
    levels = levels_of(costs.weight)
    stated = {**costs.data(), "levels": [ratio_text(Fraction(level)) for level in levels]}
    candidates = ((best, best.grid()) for (best,) in relaxed.machines(lambda best: rough_value(costs, best, levels)))
    return best_proof(
        (layered(costs, grid, levels, machine.tail), {**machine.data(grid), **stated}) for machine, grid in candidates
    )


def layered(costs: SumCosts, jobs: GridJobs, levels: list[float], tail: Floats | None = None) -> Fraction:
    """Return the bound with one run of SRPT for every level of weight.

    Parameters
    ----------
    costs
        Costs of the jobs.
    jobs
        The jobs on the machine's grid.
    levels
        Levels of weight, ascending.
    tail
        Least seconds from the end of the work to the completion, f64[n]; None for 0.
    """
    weight = np.where(jobs.work > 0, reduced(costs.weight, levels), 0.0)
    value = Fraction(0) if tail is None else exact_dot(weight, tail)
    for level, height in steps(levels):
        chosen = weight >= level
        every = bool(chosen.all())
        done = srpt_completions(
            jobs.release if every else jobs.release[chosen], jobs.work if every else jobs.work[chosen]
        )
        value += height * jobs.tick * (exact_total(done) + done.size * jobs.origin)
    if costs.objective in FLOW:
        value -= exact_dot(weight, costs.release)
    if not np.array_equal(weight, costs.weight):
        value += costs.alone(costs.weight) - costs.alone(weight)
    return value


def rough_value(costs: SumCosts, machine: FastMachine, levels: list[float]) -> float:
    """Return the value of `layered` in floats, without the flow constant.

    Parameters
    ----------
    costs
        Costs of the jobs.
    machine
        The machine.
    levels
        Levels of weight, ascending.
    """
    grid = machine.rough_grid()
    weight = np.where(grid.work > 0, reduced(costs.weight, levels), 0.0)
    value = float((costs.weight - weight) @ (costs.release + costs.duration))
    for level, height in steps(levels):
        chosen = weight >= level
        done = srpt_completions(grid.release[chosen], grid.work[chosen])
        value += float(height) * float(grid.tick) * (float(done.astype(np.float64).sum()) + done.size * grid.origin)
    return value


theorem(Theorem("srpt", (*COMPLETION, *FLOW), "SRPT on one machine", srpt))


# --- due dates ------------------------------------------------------------------------------------------------------------


def first_come(relaxed: Relaxed, objective: str) -> Proof | None:
    """Return the proof by first come, first served on the best machine; its data are the machine and the grid.

    Parameters
    ----------
    relaxed
        The relaxed instance.
    objective
        Name of the objective.
    """
    return _best_by_due_dates(relaxed, relaxed.instance.arrival, _latest, {})


def due_dates_in_order(relaxed: Relaxed, objective: str) -> Proof | None:
    """Return the proof by due dates in order on the best machine; its data are machine, grid and levels of weight.

    Parameters
    ----------
    relaxed
        The relaxed instance.
    objective
        Name of the objective.
    """
    costs = relaxed.costs(objective)
    levels = levels_of(costs.weight)
    texts = [ratio_text(Fraction(level)) for level in levels]
    return _best_by_due_dates(relaxed, costs.counted, partial(_late, costs, levels), {"levels": texts})


def _best_by_due_dates(
    relaxed: Relaxed, moment: Floats, value: Callable[[GridJobs, Floats], Fraction], more: dict[str, Any]
) -> Proof | None:
    proofs = []

    def rough(machine: FastMachine) -> float:
        due = due_dates(moment, machine)
        return float(value(machine.rough_grid(due), due))

    for (machine,) in relaxed.machines(rough):
        due = due_dates(moment, machine)
        grid = machine.grid(due)
        proofs.append((value(grid, due), machine.data(grid) | more))
    return best_proof(proofs)


def due_dates(due: Floats, machine: FastMachine) -> Floats:
    """Return due dates for the machine: reduced by tails, rounded up, and at most its last possible completion, f64[n].

    Parameters
    ----------
    due
        Due dates in seconds, f64[n].
    machine
        The machine.
    """
    if machine.tail is not None:
        less, error = two_sum(due, -machine.tail)
        due = np.where(error > 0, np.nextafter(less, math.inf), less)
    busy = float(np.sum(machine.width * machine.seconds)) / machine.capacity
    return np.minimum(due, np.ceil((float(machine.release.max(initial=0.0)) + busy) * (1 + 1e-9)))


def _latest(grid: GridJobs, due: Floats) -> Fraction:
    counted = due_ticks(due, grid)
    used = np.flatnonzero(grid.work > 0)
    used = used[np.lexsort((counted[used], grid.release[used]))]
    counted = counted[used]
    done, *_ = served_in_order(grid.release[used], grid.work[used], np.argsort(counted, kind="stable"))
    return grid.tick * int(np.max(done - counted, initial=0))


def _late(costs: SumCosts, levels: list[float], grid: GridJobs, due: Floats) -> Fraction:
    weight = np.where(grid.work > 0, reduced(costs.weight, levels), 0.0)
    value, ticks = costs.alone(costs.weight) - costs.alone(weight), due_ticks(due, grid)
    for level, height in steps(levels):
        chosen = weight >= level
        late = srpt_completions(grid.release[chosen], grid.work[chosen]) - np.sort(ticks[chosen])
        value += height * grid.tick * exact_total(np.maximum(late, 0))
    return value


SOME_SECONDS = "work of jobs that come in some seconds, less these, on one machine"
theorem(Theorem("first-come", (LARGEST_FLOW,), SOME_SECONDS, first_come))
IN_ORDER = "SRPT completions against the due dates in order on one machine"
theorem(Theorem("due-dates", TARDINESS, IN_ORDER, due_dates_in_order))


# --- flow times on an equal share -----------------------------------------------------------------------------------------

MOST_RATIOS = 60  # tried one after the other: every set of jobs proves something


def fair_share(relaxed: Relaxed, objective: str) -> Proof | None:
    """Return the proof by flow times on an equal share on the best machine.

    Its data are the machine, the grid and the ids of S.

    Parameters
    ----------
    relaxed
        The relaxed instance.
    objective
        Name of the objective.
    """
    instance, proofs = relaxed.instance, []
    for (machine,) in relaxed.machines(lambda machine: _search(instance, machine, machine.rough_grid())[0]):
        grid = machine.grid()
        chosen = _search(instance, machine, grid)[1]
        jobs = {"jobs": [instance.ids[j] for j in np.sort(chosen).tolist()]}
        proofs.append((_exactly(instance, machine, grid, chosen), {**machine.data(grid), **jobs}))
    return best_proof(proofs)


def _search(instance: Instance, machine: FastMachine, grid: GridJobs) -> tuple[float, Ints]:
    """Return the bound and the set of jobs that proves it."""
    used = np.flatnonzero(grid.work > 0)
    used = used[np.argsort(grid.release[used], kind="stable")]
    tail, tick = 0.0 if machine.tail is None else machine.tail[used], float(grid.tick)
    fair, due = fair_flow_times(instance)[used] / tick, (instance.arrival[used] - tail) / tick - grid.origin
    ratio, chosen = 0.0, np.zeros(0, dtype=np.int64)
    for _ in range(MOST_RATIOS if used.size else 0):
        jobs, end = _in_the_way(grid.release[used], grid.work[used], due + ratio * fair)
        better = float(np.min((end - due[jobs]) / fair[jobs]))
        if better <= ratio:
            break
        ratio, chosen = better, used[jobs]
    return ratio, chosen


def _in_the_way(release: Ints, work: Ints, due: Floats) -> tuple[Ints, int]:
    """Return the jobs, by release, that make the latest job late, and the tick at which the last of them ends."""
    order = np.argsort(due, kind="stable")
    done, *_ = served_in_order(release, work, order)
    last = int(np.argmax(done - due))
    no_later = np.zeros(due.size, dtype=bool)
    no_later[order[: int(np.flatnonzero(order == last)[0]) + 1]] = True
    urgent = np.flatnonzero(no_later & (release < done[last]))
    before = np.cumsum(work[urgent]) - work[urgent]
    jobs = urgent[urgent.size - 1 - int(np.argmax((release[urgent] - before)[::-1])) :]  # no pause since
    return jobs, int(release[jobs[0]] + work[jobs].sum())


def _exactly(instance: Instance, machine: FastMachine, grid: GridJobs, chosen: Ints) -> Fraction:
    if not chosen.size:
        return Fraction(0)
    end = (grid.origin + int(grid.release[chosen].min()) + int(grid.work[chosen].sum())) * grid.tick
    fair, tail = fair_flow_times(instance), machine.tail
    after = [Fraction(0 if tail is None else float(tail[j])) - Fraction(float(instance.arrival[j])) for j in chosen]
    return min((end + more) / Fraction(float(fair[j])) for j, more in zip(chosen.tolist(), after, strict=True))


IN_THE_WAY = "jobs in each other's way on one machine, against their flow times on an equal share"
theorem(Theorem("fair-share", (FAIR,), IN_THE_WAY, fair_share))
