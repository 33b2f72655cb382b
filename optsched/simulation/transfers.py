"""`simulate_transfers`: transfers alone, on any links, under the admission rule of a task policy; exact event times.

The links themselves are those of the task level (`optsched.simulation.links`); without jobs around them, all releases and
ends of one instant (`optsched.simulation.simultaneous_events`) are applied before anybody is asked. Time counts from the
first release.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from optsched.compiled import njit, types
from optsched.compiled.heap import KERNEL
from optsched.errors import InputError, SimulationError
from optsched.problem.arrays import Floats
from optsched.problem.epoch import epoch_of
from optsched.problem.transfer_instance import transfer_instance, transfer_order
from optsched.problem.transfers import TransferProblem
from optsched.simulation import admission
from optsched.simulation.links import (
    NOW,
    PENALTY,
    SECONDS_PER_BYTE,
    WORST,
    begin_sending,
    end_transfer,
    is_asked,
    join_waiting,
    leave_waiting,
    new_links,
    start_transfer,
)
from optsched.simulation.next_event import ringing
from optsched.simulation.run import CONSERVED
from optsched.simulation.simultaneous_events import end_of_instant
from optsched.simulation.task_policy import TaskJobs, TaskPolicy

__all__ = ["simulate_transfers"]

_F, _I = types.float64[::1], types.int64[::1]


@njit(types.boolean(types.FunctionType(admission.SIGNATURE), admission.LINKS, _F, _F, _I, _F), **KERNEL)
def _run(admit: Any, s: Any, numbers: Any, release: Any, by_release: Any, done: Any) -> bool:
    """Fill ``done``; did everything end? (If not, something waits for ever.)"""
    following, waiting = 0, 0
    for j in range(release.size):
        begin_sending(s, j)
    while True:
        t = s.tree[1]
        if following < release.size:
            t = min(t, release[by_release[following]])
        if t == np.inf:
            return waiting == 0
        last = end_of_instant(t)
        while t <= last:  # all of one instant, each at its own time
            s.clock[NOW] = t
            while s.tree[1] == t:
                j = ringing(s.tree)
                end_transfer(s, j)
                done[j] = t
            while following < release.size and release[by_release[following]] == t:
                waiting = join_waiting(s, by_release[following], waiting)
                following += 1
            t = s.tree[1]
            if following < release.size:
                t = min(t, release[by_release[following]])
        i = 0
        while i < waiting:
            j = s.waiting[i]
            if is_asked(s, j) and admit(j, s, numbers):
                waiting = leave_waiting(s, i, waiting)
                start_transfer(s, j)
            else:
                i += 1


def simulate_transfers(problem: TransferProblem, policy: TaskPolicy) -> Floats:
    """C_j of every transfer under a policy, f64[n] seconds.

    The policy is shown the jobs of `transfer_instance`: the order in which it asks about transfers and its rule to admit
    them are used, its queue and its order on GPUs are not. Policies that go by service ask the smallest transfer first.

    Raises
    ------
    InputError
        The policy decides in plain Python; run `transfer_instance` under it instead.
    SimulationError
        A transfer waits for ever, or did not move its bytes exactly.

    Complexity: O(log n + transfers on its links) a transfer, plus O(waiting + links) an event.
    """
    if problem.n == 0:
        return np.zeros(0)
    order = np.array(transfer_order(problem), dtype=np.int64)
    jobs = transfer_instance(replace(problem, links=()))
    rules = policy.tasks(TaskJobs(jobs, policy.knowledge))
    if rules.admit is None:
        raise InputError("it decides in plain Python", field="policy", value=policy.name, legal="a compiled rule")
    links = _links(problem, order)
    key = rules.link.columns(problem.n)
    links.key[:] = key[:, 0] + key[:, 3]  # no task is left when a transfer is ready, and one all-reduce
    links.transfers_left[:] = 1
    epoch = epoch_of(problem.release, np.zeros(0))
    release, done = problem.release[order] - epoch, np.full(problem.n, np.nan)
    by_release = np.lexsort((np.arange(problem.n), release)).astype(np.int64)
    ended = _run(rules.admit, links, rules.rule_numbers, release, by_release, done)
    if not ended:
        j = int(order[np.isnan(done)].min())
        raise SimulationError(f"policy {policy.name}: transfer {j} waits for ever")
    rounding = 16 * np.spacing(done.max()) / problem.alone.min()
    if links.clock[WORST] > CONSERVED + rounding:
        raise SimulationError(
            f"{policy.name}: a transfer moved {links.clock[WORST]:g} of its bytes too many or too few"
        )
    completion = np.empty(problem.n)
    completion[order] = done + epoch
    return completion


def _links(problem: TransferProblem, order: Any) -> Any:
    """The transfers in ``order`` on their links, numbered from 0."""
    column = {link: position for position, link in enumerate(problem.link_numbers)}
    used = [[column[link] for link in problem.links[j]] for j in order.tolist()]
    span = np.array([len(each) for each in used], dtype=np.int64)
    first = np.concatenate([[0], np.cumsum(span)]).astype(np.int64)
    cost = np.zeros(3)
    cost[SECONDS_PER_BYTE], cost[PENALTY] = problem.contention.seconds_per_byte, problem.contention.penalty
    kind, ratio = np.zeros(problem.n, dtype=np.int64), np.zeros((0, 0))
    nodes = np.array([link for each in used for link in each], dtype=np.int64)
    return new_links(problem.size[order], first, span, nodes, len(column), cost, kind, ratio)
