"""What a good schedule costs: of a candidate by a short search, of what is reported by `optsched.solve`."""

from __future__ import annotations

import numpy as np

from optsched.adversary.space import Reached
from optsched.check.referee import schedule_value
from optsched.deadline import NEVER, Deadline
from optsched.guarantees.optimum import proved_here, stating
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective
from optsched.solvers.methods.mode_branching import branch, empty_stack, problem_of
from optsched.solvers.solve import solve

NODES = 20_000  # some milliseconds
Modes = list[list[tuple[tuple[int, ...], float]]]  # of every job: (GPUs held of every node, seconds)


def branched(instance: Instance, objective: str, modes: Modes) -> float:
    """The best value without preemption that `NODES` nodes find; the optimum where the search ends before.

    Every job has at least one mode.
    """
    flat = [mode for own in modes for mode in own]
    problem = problem_of(
        instance,
        get_objective(objective),
        np.concatenate([[0], np.cumsum([len(own) for own in modes])]).astype(np.int64),
        np.array([held for held, _ in flat], dtype=np.int64),
        np.array([seconds for _, seconds in flat], dtype=np.float64),
    )
    stack = empty_stack(instance.n, len(flat), np.inf)
    owner = np.repeat(np.arange(instance.n, dtype=np.int64), [len(own) for own in modes])
    branch(problem, stack, owner, 0.0, NODES)
    return float(stack.best[0])


LEAST = 0.01  # seconds
SECONDS = 60.0  # where there is no deadline


def solved(instance: Instance, objective: str, deadline: Deadline = NEVER) -> Reached:
    """The instance, stating its optimum among schedules without preemption where the time suffices to prove it; the value of
    the best schedule.
    """
    best = solve(instance, objective, time_limit=max(min(SECONDS, deadline.left), LEAST))
    reached = None if best.schedule is None else schedule_value(instance, best.schedule, objective)
    if best.status != "optimal" or best.value is None:
        return instance, reached
    stated = stating(best.value, objective, "gang-nonpreemptive", best.model)
    return proved_here(instance.replace(optimum=stated)), reached
