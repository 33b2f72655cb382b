"""The suite ``transfers-small``: a few transfers on one link, made when they are asked for, with their proven optimum.

Members ``transfers-N-S``: `random_transfers` of N = 2, 3, 4 with seed S; eta / b is 0, 0.2745 or 1, in turn. The optimum of
sum C_j is what branch and bound over events finds, provided that the linear programs of all event orders, in which starts
may lie anywhere, agree. Policies that go by service or by size ask the smallest transfer first.
"""

from __future__ import annotations

from functools import cache

from optsched.errors import OptschedError
from optsched.guarantees.optimum import proved_here, stating
from optsched.io.traces.random_transfers import random_transfers
from optsched.problem.instance import Instance
from optsched.problem.transfer_instance import transfer_instance
from optsched.solvers.transfer_search import best_event_order, transfer_optimum

PENALTIES = (0.0, 0.2745, 1.0)  # eta / b
SEEDS = {2: 9, 3: 9, 4: 3}  # of every number of transfers
AGREE = 1e-7  # relative: what a linear program may miss
MEMBERS = tuple(f"transfers-{n}-{seed}" for n, seeds in SEEDS.items() for seed in range(1, seeds + 1))


@cache
def small_transfers(member: str) -> Instance:
    """The instance of that name with its optimum; about a second for four transfers, next to nothing for fewer.

    Raises `OptschedError` when the two methods disagree.
    """
    n, seed = (int(part) for part in member.split("-")[1:])
    problem = random_transfers(n, seed, PENALTIES[seed % len(PENALTIES)])
    found = transfer_optimum(problem)
    value = float(found.value)
    if not found.proved or abs(best_event_order(problem).value - value) > AGREE * value:
        raise OptschedError(f"{member}: branch and bound and the event orders disagree")
    optimum = stating(value, "total_completion_time", "task-sharing", "transfer-search", "transfer-orders")
    return proved_here(transfer_instance(problem, member, objective="total_flow_time", optimum=optimum))
