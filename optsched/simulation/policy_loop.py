"""Parts of the compiled loops that make the decisions of policies in plain Python (`Order.loop`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from optsched.compiled import NESTED, njit, runs_compiled, worked
from optsched.problem.arrays import Ints
from optsched.simulation.kernel import start, stop
from optsched.simulation.ordered import ContextLoops
from optsched.simulation.records import COUNT, POOL
from optsched.simulation.state import RunContext, State

UNITS = 300  # of work in an interpreted loop, after which it is weighed against compiling


def weigh(loops: ContextLoops, facts: Any) -> None:
    """Count the work that a loop has done since the last call towards its compilation, and set the next limit.

    Parameters
    ----------
    loops
        The loop for every type of context.
    facts
        Record of the policy; ``work`` has the units of work, and at ``limit`` the loop returns `ASKED`.
    """
    for loop in loops.forms:
        worked(loop, int(facts.work))
    # A call of machine code with all the arrays of a run takes as long as some events.
    facts.work, facts.limit = 0, np.iinfo(np.int64).max if any(map(runs_compiled, loops.forms)) else UNITS


@njit(**NESTED)
def move_all(s: State, context: RunContext, stops: Ints, starts: Ints, first: Ints, node: Ints, count: Ints) -> None:
    """Stop running jobs, then start waiting ones, whose GPUs are free.

    Parameters
    ----------
    s
        State of the run.
    context
        Constants of the run.
    stops
        Jobs that stop, i64[].
    starts
        Jobs that start, i64[k].
    first
        Where the entries of every start begin, i64[k + 1].
    node, count
        Node and GPUs of every entry, i64[].
    """
    for j in stops:
        stop(s, context, j)
    for i in range(starts.size):
        begin = first[i]
        for k in range(begin, first[i + 1]):
            s.out[POOL, k - begin], s.out[COUNT, k - begin] = node[k], count[k]
        start(s, context, starts[i], first[i + 1] - begin, np.int64(0))
