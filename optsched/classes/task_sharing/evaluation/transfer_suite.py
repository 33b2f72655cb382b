"""The suite ``transfers-small``: two to four transfers on one link, with their optimum."""

from __future__ import annotations

from functools import cache

import numpy as np

from optsched.classes.task_sharing.problem.transfers import TransferProblem, transfer_instance
from optsched.classes.task_sharing.solvers.transfer_search import best_event_order, transfer_optimum
from optsched.errors import OptschedError
from optsched.evaluation.suites import AGREE, MADE, Suite
from optsched.guarantees.optimum import proved_here, stating
from optsched.problem.contention import Contention
from optsched.problem.instance import Instance

PENALTIES = (0.0, 0.2745, 1.0)  # eta / b
SEEDS = {2: 9, 3: 9, 4: 3}  # of every number of transfers
TRANSFERS = tuple(f"transfers-{n}-{seed}" for n, seeds in SEEDS.items() for seed in range(1, seeds + 1))


SMALLEST, LARGEST, AT_ZERO, SPAN = 0.01, 10.0, 0.3, 0.7  # of random transfers


def random_transfers(n: int, seed: int, eta: float) -> TransferProblem:
    """Draw n transfers on one link with b = 1, on which rules are compared with the exact optimum.

    Sizes are log-uniform on [0.01, 10]. Each release date is 0 with probability 0.3, else uniform on [0, 0.7 W] with
    W = sum M_j, the seconds of all transfers one after the other. The law is this project's own design.

    Parameters
    ----------
    n
        Number of transfers.
    seed
        Seed of the random numbers.
    eta
        Penalty of contention, in seconds a byte.
    """
    rng = np.random.default_rng(seed)
    size = np.exp(rng.uniform(np.log(SMALLEST), np.log(LARGEST), n))
    late = rng.random(n) >= AT_ZERO
    return TransferProblem(late * rng.uniform(0.0, SPAN * float(size.sum()), n), size, Contention(1.0, eta))


@cache
def small_transfers(member: str) -> Instance:
    """Return ``transfers-N-S``: `random_transfers` of N with seed S, with their optimum.

    Branch and bound over events finds the optimum of sum C_j. The linear programs of all event orders, in which starts may
    lie anywhere, must agree. Four transfers take about a second. Policies that go by service or by size ask the smallest
    transfer first.

    Parameters
    ----------
    member
        The name, ``transfers-N-S``.

    Raises
    ------
    OptschedError
        The two methods disagree.
    """
    n, seed = (int(part) for part in member.split("-")[1:])
    problem = random_transfers(n, seed, PENALTIES[seed % len(PENALTIES)])
    found = transfer_optimum(problem)
    value = float(found.value)
    if not found.proved or abs(best_event_order(problem).value - value) > AGREE * value:
        raise OptschedError(f"{member}: branch and bound and the event orders disagree")
    optimum = stating(value, "total_completion_time", "task-sharing", "transfer-search", "transfer-orders")
    return proved_here(transfer_instance(problem, member, objective="total_flow_time", optimum=optimum))


MADE.register(
    "task-sharing",
    (
        Suite(
            "transfers-small",
            TRANSFERS,
            f"{len(TRANSFERS)} instances: two to four transfers on one link, r_j | sum C_j - r_j (jobs with tasks)",
            make=small_transfers,
        ),
    ),
)
