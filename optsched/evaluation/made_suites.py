"""Suites whose instances optsched makes and solves to optimality when they are asked for."""

from __future__ import annotations

from functools import cache

import numpy as np

from optsched.errors import OptschedError
from optsched.guarantees.optimum import proved_here, stating
from optsched.io.traces.generate import generate
from optsched.problem.contention import Contention
from optsched.problem.instance import Instance
from optsched.problem.transfers import TransferProblem, transfer_instance
from optsched.solvers.sharing_orders import best_shared_order
from optsched.solvers.sharing_preemptive import preemptive_sharing_optimum
from optsched.solvers.transfer_search import best_event_order, transfer_optimum

AGREE = 1e-7  # relative: what a linear program may miss
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
    optimal = transfer_optimum(problem)
    value = float(optimal.value)
    if not optimal.proved or abs(best_event_order(problem).value - value) > AGREE * value:
        raise OptschedError(f"{member}: branch and bound and the event orders disagree")
    optimum = stating(value, "total_completion_time", "task-sharing", "transfer-search", "transfer-orders")
    return proved_here(transfer_instance(problem, member, objective="total_flow_time", optimum=optimum))


SLOW_DOWNS = ("1.1", "1.3", "1.5", "1.8", "exp")
# members of every slow-down, by the number of jobs; seeds differ, since xi does not change what is drawn
EACH = {3: 2, 4: 1}
SHARING = tuple(
    f"sharing-{xi}-{n}-{count * k + seed}"
    for k, xi in enumerate(SLOW_DOWNS)
    for n, count in EACH.items()
    for seed in range(1, count + 1)
)


@cache
def small_sharing(member: str) -> Instance:
    """Return ``sharing-XI-N-S``: recipe ``sharing-small`` with N jobs, one GPU, seed S and slow-down XI of every pair.

    The stated optimum is that of the class ``gpu-sharing``, which may also preempt. Where a schedule without preemption is
    no worse, both enumerations of orders agree. Four jobs take about a second. The objective is the sum of flow times; the
    stated optimum is of sum C_j, which is larger by sum r_j.

    Parameters
    ----------
    member
        The name, ``sharing-XI-N-S``; XI is a number or ``exp``.

    Raises
    ------
    OptschedError
        Preemption seems to hurt: one of the two methods is wrong.
    """
    _, xi, n, seed = member.split("-")
    instance = generate("sharing-small", int(seed), jobs=int(n), gpus=1, xi=xi)
    value = preemptive_sharing_optimum(instance).value
    kept = best_shared_order(instance).value
    if value > kept * (1 + AGREE):
        raise OptschedError(f"{member}: the optimum without preemption, {kept:.9g}, is below that with it, {value:.9g}")
    proofs = ["sharing-preemptive", *(["sharing-orders"] if value >= kept * (1 - AGREE) else [])]
    optimum = stating(value, "total_completion_time", "gpu-sharing", *proofs)
    return proved_here(instance.replace(name=member, optimum=optimum))
