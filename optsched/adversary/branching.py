"""The best schedule of a few jobs that hold their GPUs alone: the search of `mode-branching`, a candidate at a time."""

from __future__ import annotations

import numpy as np

from optsched.bounds.regular import regular_cost
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective
from optsched.solvers.mode_search import Problem, branch, empty_stack

NODES = 20_000  # some milliseconds
Modes = list[list[tuple[tuple[int, ...], float]]]  # of every job: (GPUs held of every node, seconds)


def branched(instance: Instance, objective: str, modes: Modes) -> float:
    """The best value without preemption that `NODES` nodes find; the optimum where the search ends before.

    Every job has at least one mode.
    """
    cost, n = regular_cost(get_objective(objective), instance), instance.n
    flat = [mode for own in modes for mode in own]
    problem = Problem(
        release=instance.arrival.copy(),
        offset=np.concatenate([[0], np.cumsum([len(own) for own in modes])]).astype(np.int64),
        held=np.array([held for held, _ in flat], dtype=np.int64),
        seconds=np.array([seconds for _, seconds in flat], dtype=np.float64),
        capacity=instance.cluster.node_gpus.copy(),
        alike=instance.cluster.node_group.copy(),
        slope=cost.slope,
        kink=cost.kink,
        base=cost.base,
        maximum=cost.maximum,
    )
    stack = empty_stack(n, len(flat), np.inf)
    owner = np.repeat(np.arange(n, dtype=np.int64), [len(own) for own in modes])
    branch(problem, stack, owner, 0.0, NODES)
    return float(stack.best[0])
