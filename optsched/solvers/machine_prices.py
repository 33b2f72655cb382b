"""Prices of jobs on identical machines, sum w_j C_j: first from the fluid schedule, then from a linear program of flows.

**Fluid prices.** Let all machines together be one machine that is m times as fast and processes the jobs in Smith's order,
and let r(t) be w / p of the job in process at t. A slot of a machine at time t has the price ``sum_{s >= t} r(s)``. At these
prices a job costs least if it starts about when the fluid schedule reaches it. The bound that they prove is mostly within
1e-4 of the optimum, so that few starts of every job are left.

**Flow program.** Machines are m units of flow through the points of time; job j at s is an arc from s to s + p_j that costs
``w_j (s + p_j)``, and waiting is free. The arcs of every job carry one unit of flow. The program has only arcs that may be
in a better schedule. It is the time-indexed program in other variables, and its optimum is seldom two units of cost below
that of the schedules. The duals of the jobs are their prices, and the fall of a node's dual with time is the price of a
slot. An interior-point method solves it: a simplex method needs ten times as long, since most bases are degenerate.

References: van den Akker, Hurkens and Savelsbergh, Time-indexed formulations for machine scheduling problems, INFORMS J.
Computing 12 (2000); Kramer, Dell'Amico and Iori, EJOR 275 (2019), 67-79; Eastman, Even and Isaacs, Management Science 11
(1964), for the fluid schedule.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from optsched.deadline import Deadline
from optsched.errors import OptschedError
from optsched.problem.arrays import Bools, Floats
from optsched.solvers.linear_program import LinearProgram, Size
from optsched.solvers.session import Session
from optsched.solvers.smith_order import ParallelJobs

OPTIONS = {"solver": "ipm", "run_crossover": "off"}


def fluid_prices(jobs: ParallelJobs) -> Floats:
    """Return the prices of the slots in the fluid schedule, f64[H].

    Parameters
    ----------
    jobs
        The jobs.
    """
    end = np.cumsum(jobs.length) / jobs.machines
    at = np.searchsorted(end, np.arange(jobs.horizon) + 0.5)
    ratio = np.append(jobs.weight / jobs.length, 0.0)
    return np.asarray(np.cumsum(ratio[at][::-1])[::-1])


def start_prices(jobs: ParallelJobs, slot: Floats) -> Floats:
    """Return the cost of every start, with what the job pays for its slots, f64[n, H + 1]; inf after the last start.

    Parameters
    ----------
    jobs
        The jobs.
    slot
        Price of every slot, f64[H].
    """
    paid, end = np.concatenate([[0.0], np.cumsum(slot)]), np.arange(jobs.horizon + 1)
    price = np.full((jobs.n, end.size), np.inf)
    for j, (p, w) in enumerate(zip(jobs.length.tolist(), jobs.weight.tolist(), strict=True)):
        price[j, : end.size - p] = w * end[p:] + paid[p:] - paid[: end.size - p]
    return price


@dataclass(frozen=True, eq=False)
class Flow:
    """Optimum of a flow program: prices ``job`` f64[n] and ``slot`` f64[H], and the ``value``.

    ``mean`` f64[n]: mean start of every job, and ``spread`` f64[n] its variance. ``size`` is that of the program.
    """

    job: Floats
    slot: Floats
    value: float
    mean: Floats
    spread: Floats
    size: Size


def solve_flow(jobs: ParallelJobs, open_start: Bools, near: Floats, most: float, deadline: Deadline) -> Flow | None:
    """Return the optimum over the open starts; None if the solver fails or the time is up.

    Parameters
    ----------
    jobs
        The jobs.
    open_start
        Starts that are in the program, bool[n, H + 1].
    near
        Prices that are near the optimal ones, f64[n]; costs are counted from them, since tolerances are relative.
    most
        Largest amount by which a price may rise: for so much more than its price a job need not run. So the program has a
        solution even if the open starts allow none, and its value is then high.
    deadline
        Time at which to stop.
    """
    job, start = np.nonzero(open_start)
    end = start + jobs.length[job]
    point, place = np.unique(np.concatenate([[0], start, end]), return_inverse=True)
    tail, head = place[1 : start.size + 1], place[start.size + 1 :]
    arcs, waits, n = np.arange(job.size), np.arange(point.size - 1), jobs.n
    # rows: every job once, then every point of time; columns: starts, waiting from point to point, jobs that do not run
    every, from_, last = np.arange(n), job.size + waits, job.size + waits.size
    rows = np.concatenate([job, n + tail, n + head, n + waits, n + waits + 1, every])
    columns = np.concatenate([arcs, arcs, arcs, from_, from_, last + every])
    entries = np.repeat([1.0, -1.0, 1.0, -1.0, 1.0, 1.0], [job.size] * 3 + [waits.size] * 2 + [n])
    A = sp.csc_array((entries, (rows, columns)), shape=(n + point.size, last + n))
    right = np.append(np.ones(n), np.zeros(point.size))
    right[[n, -1]] = -jobs.machines, jobs.machines
    cost = np.concatenate([jobs.weight[job] * end - near[job], np.zeros(waits.size), np.full(n, most)])
    program = LinearProgram.from_arrays(cost, A, right, right, offset=float(near.sum()))
    try:
        session = Session(program, options=OPTIONS)
        outcome = session.solve(time_limit=deadline.left)
        if outcome.status != "optimal" or outcome.x is None or outcome.value is None:
            return None
        duals = session.duals()
    except OptschedError:  # it does not converge
        return None
    used = np.clip(outcome.x[: job.size], 0.0, 1.0)
    mean: Floats = np.bincount(job, used * start, n).astype(np.float64)
    spread: Floats = np.bincount(job, used * (start - mean[job]) ** 2, n).astype(np.float64)
    fall = np.maximum(duals[n:-1] - duals[n + 1 :], 0.0) / np.diff(point)
    slot = np.zeros(jobs.horizon)
    slot[point[0] : point[-1]] = np.repeat(fall, np.diff(point))
    return Flow(duals[:n] + near, slot, outcome.value, mean, spread, program.size)
