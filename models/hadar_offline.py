"""Hadar's offline optimum as a MILP over rounds x machines x types: gangs, the slowest type rules, one finish round a job.

Sets: jobs j; rounds t = a_j..T-1; cells (h, r) with devices; modes m of j (`RoundProblem.modes`): a slowest type, on any
machines or on one machine alone.
Data: W_j devices of the gang; c_h^r devices there are; p_m = min(1, L W_j X_m / (E_j N_j)) part of the work that a round in
mode m does; u_jt utility of finishing with round t, not increasing in t.
Variables: w[j, h, r, t] integer devices; mode[j, m, t] = 1 if j runs in round t in mode m (binaries of thresholds: a mode
opens the cells that are fast enough); finish[j, t] = 1 if t is j's last round.

    max  sum_{j,t} u_jt finish[j, t]                                                              (0)
    s.t. sum_{h,r} w[j, h, r, t] = W_j sum_m mode[j, m, t]        every j, t                      (1)  gang
         w[j, h, r, t] <= min(W_j, c_h^r) sum_{m opens (h,r)} mode[j, m, t]   every j, h, r, t    (2)  opened
         sum_r w[j, h, r, t] <= W_j sum_{m only on h} mode[j, m, t]
                              + (W_j - 1) sum_{m on any} mode[j, m, t]        every j, h, t       (3)  apart
         sum_m mode[j, m, t] <= sum_{s >= t} finish[j, s]         every j, t                      (4)  until
         finish[j, t] <= sum_m mode[j, m, t]                      every j, t                      (5)  last
         sum_{t,m} p_m mode[j, m, t] >= sum_t finish[j, t]        every j                         (6)  work
         sum_j w[j, h, r, t] <= c_h^r                             every h, r, t                   (7)  capacity
         sum_t finish[j, t] <= 1                                  every j                         (8)  once

(3) only where gangs on one machine have modes of their own: then a mode of spread gangs needs two machines. (1) and (4)
let at most one mode be on, so by (2) all W_j devices are in cells that are as fast as the mode says; a mode that
is slower than its cells is feasible and never better. p_m may be cut at 1 since one such round is enough.

Optimum: exact for schedules in rounds, jobs may be left out; equal to that of the integral program `hadar_primal` over
all schedules (`RoundProblem.packing`). Its LP relaxation is weaker than the packing LP (a job can take half a gang).
It is a *restriction* of continuous time: no bound for schedules that are not in rounds.
Size: columns about sum_j (T - a_j)(H R + modes + 1), rows the same; NP-hard, for small instances.
Reference: the problem of Sultana et al., Hadar, IPDPS 2024, arXiv 2503.10918; the program is our own.
"""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo

from optsched.errors import InputError
from optsched.models.fast_building import collector_paused
from optsched.models.hadar_rounds import ENOUGH, RoundProblem
from optsched.models.program import add_program, rounds_of

NAME = "hadar-offline"


@collector_paused
def build(problem: RoundProblem) -> pyo.ConcreteModel:
    """Return the model; jobs that run in no mode have no variables.

    Parameters
    ----------
    problem
        Jobs, devices and rounds.

    Raises
    ------
    InputError
        If no job runs in any mode.
    """
    arrival, tasks = problem.arrival.tolist(), problem.tasks.tolist()
    cells = [(h, r) for h in range(problem.machines) for r in range(problem.types) if problem.devices[h, r]]
    moments = [(j, t) for j in range(problem.n) if problem.modes[j] for t in range(arrival[j], problem.rounds)]
    if not moments:
        raise InputError("no job can run in any round", field="speed", legal="a type with GPUs enough for a gang")

    model = pyo.ConcreteModel(NAME)
    model.mode = pyo.Var([(j, m, t) for j, t in moments for m in range(len(problem.modes[j]))], domain=pyo.Binary)
    model.w = pyo.Var([(j, h, r, t) for j, t in moments for h, r in cells], domain=pyo.NonNegativeIntegers)
    model.finish = pyo.Var(moments, domain=pyo.Binary)
    of_job: dict[int, list[int]] = {}
    for j, t in moments:
        of_job.setdefault(j, []).append(t)
    on = {(j, t): sum(model.mode[j, m, t] for m in range(len(problem.modes[j]))) for j, t in moments}

    # (0)
    worth = sum(float(problem.utility[j, t]) * model.finish[j, t] for j, t in moments)
    model.objective = pyo.Objective(expr=worth, sense=pyo.maximize)
    # (1), (2), (3)
    held = {(j, t): sum(model.w[j, h, r, t] for h, r in cells) for j, t in moments}
    model.gang = pyo.Constraint(moments, expr={(j, t): held[j, t] == tasks[j] * on[j, t] for j, t in moments})
    _open_cells(model, problem)
    if problem.together is not None:
        _keep_apart(model, problem, moments)
    # (4), (5)
    model.until = pyo.Constraint(
        moments, expr={(j, t): on[j, t] <= sum(model.finish[j, s] for s in of_job[j] if s >= t) for j, t in moments}
    )
    model.last = pyo.Constraint(moments, expr={(j, t): model.finish[j, t] <= on[j, t] for j, t in moments})
    # (6)
    work = {}
    for j, rounds in of_job.items():
        needed = float(problem.work[j]) * ENOUGH
        part = [min(1.0, problem.iterations(j, mode) / needed) for mode in problem.modes[j]]
        done = sum(p * model.mode[j, m, t] for m, p in enumerate(part) for t in rounds)
        work[j] = done >= sum(model.finish[j, t] for t in rounds)
    model.work = pyo.Constraint(list(of_job), expr=work)
    # (7)
    columns = [(h, r, t) for h, r in cells for t in range(problem.rounds) if any(s == t for _, s in moments)]
    busy = {(h, r, t): sum(model.w[j, h, r, t] for j, s in moments if s == t) for h, r, t in columns}
    model.capacity = pyo.Constraint(columns, expr={key: busy[key] <= int(problem.devices[key[:2]]) for key in columns})
    # (8)
    model.once = pyo.Constraint(list(of_job), expr={j: sum(model.finish[j, t] for t in of_job[j]) <= 1 for j in of_job})
    return model


def _open_cells(model: pyo.ConcreteModel, problem: RoundProblem) -> None:
    opening: dict[tuple[int, int, int], list[int]] = {}
    for j, modes in enumerate(problem.modes):
        for m, mode in enumerate(modes):
            for h, r in mode.cells:
                opening.setdefault((j, h, r), []).append(m)

    def opened(model: Any, j: int, h: int, r: int, t: int) -> Any:
        most = min(int(problem.tasks[j]), int(problem.devices[h, r]))
        return model.w[j, h, r, t] <= most * sum(model.mode[j, m, t] for m in opening.get((j, h, r), []))

    model.opened = pyo.Constraint(list(model.w), rule=opened)


def _keep_apart(model: pyo.ConcreteModel, problem: RoundProblem, moments: list[tuple[int, int]]) -> None:
    def apart(model: Any, j: int, t: int, h: int) -> Any:
        W, modes = int(problem.tasks[j]), problem.modes[j]
        here = sum(model.mode[j, m, t] for m, mode in enumerate(modes) if mode.machine == h)
        any_ = sum(model.mode[j, m, t] for m, mode in enumerate(modes) if mode.machine is None)
        held = sum(model.w[j, h, r, t] for r in range(problem.types) if problem.devices[h, r])
        return held <= W * here + (W - 1) * any_

    machines = [h for h in range(problem.machines) if problem.devices[h].any()]
    model.apart = pyo.Constraint([(j, t, h) for j, t in moments for h in machines], rule=apart)


add_program(
    NAME,
    "R | r_j, size_j, pmtn, rounds | max sum_j u_j(f_j), by cells",
    "total utility w_j N_j / (f_j - r_j), the best in these rounds",
    "gang, in rounds",
    rounds_of,
    build,
)
