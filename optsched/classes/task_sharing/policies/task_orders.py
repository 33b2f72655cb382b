"""The policies of the task level that are orders: shortest remaining service first, with a rule that admits transfers.

`task_order` makes a policy of a function.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec

import numpy as np

from optsched.classes.task_sharing.simulation.links import PENALTY, SECONDS_PER_BYTE, bytes_left, most_running
from optsched.classes.task_sharing.simulation.task_policy import Countdown, TaskJobs, TaskOrder, TaskPolicy, admission
from optsched.compiled import njit
from optsched.errors import check_legal
from optsched.policies.queue_orders import registering
from optsched.simulation.policy import Knowledge

P = ParamSpec("P")


def task_order(
    name: str, knowledge: Knowledge, **members: Any
) -> Callable[[Callable[Concatenate[TaskJobs, P], TaskOrder]], Callable[P, TaskPolicy]]:
    """Return a decorator that turns a function from `TaskJobs` to a `TaskOrder` into a policy, as `queue_order` does.

    Parameters
    ----------
    name
        Name of the policy.
    knowledge
        Facts that the policy may use.
    members
        Other members of the class, such as ``default_placement`` or ``__post_init__``.
    """
    return registering("tasks", TaskPolicy, name, {"knowledge": knowledge, **members})


def shortest_service(
    jobs: TaskJobs,
    admit: Any,
    numbers: tuple[float, ...] = (),
    *,
    includes_comm: bool = False,
    link: Countdown | None = None,
) -> TaskOrder:
    """Return an order by the least remaining service, ties by index.

    It is the order of the queue, of GPUs, and of transfers unless ``link`` is given.
    Service is the compute time that is left, in seconds, summed over the workers of the gang.

    Parameters
    ----------
    jobs
        Facts about the jobs at their arrival.
    admit
        Compiled admission rule.
    numbers
        Numbers of the rule.
    includes_comm
        Service also has n_j b M_j for each all-reduce that is left, as long as every worker waits for it. Before
        placement it is counted as if all gangs that can span nodes did so.
    link
        Keys of transfers; None: by service.
    """
    per_transfer = jobs.may_send * jobs.gpus * jobs.message * jobs.seconds_per_byte if includes_comm else 0.0
    left = Countdown(forward=jobs.forward, backward=jobs.backward, transfer=per_transfer)
    queue = jobs.service + (jobs.iterations * per_transfer if includes_comm else 0.0)
    return TaskOrder(queue=queue, gpu=left, link=left if link is None else link, admit=admit, numbers=numbers)


@admission
def fewer_than(job: Any, links: Any, numbers: Any) -> bool:
    """Admit a transfer if there are fewer than ``numbers[0]`` transfers on every node of the job.

    Parameters
    ----------
    job
        Index of the job.
    links
        Links.
    numbers
        The number k of SRSF(k).
    """
    return bool(most_running(links, job) < numbers[0])


def _require_count(policy: Any) -> None:
    check_legal(policy.k >= 1, "srsf: k", policy.k, "an integer >= 1")


@task_order("srsf", Knowledge.CLAIRVOYANT, default_placement="lwf", __post_init__=_require_count)
def srsf(jobs: TaskJobs, k: int = 1, service_includes_comm: bool = False) -> TaskOrder:
    """SRSF(k): shortest remaining service first at the task level; ``k`` = 1 never lets transfers overlap, 2 in pairs.

    **Problem** jobs of iterations (forward, backward, all-reduce) that share GPUs and network interfaces | sum (C_j - r_j).
    **Knowledge** clairvoyant (iterations). Jobs are placed, GPUs and transfers are served in the order of the remaining
    service; ``service_includes_comm`` counts transfers, too.

    **Guarantee** none known for clusters. Two transfers on one link: 2 for k = 1, (4 + 2 eta / b) / 3 for k >= 2, both
    tight; for n transfers SRSF(1) is not constant-competitive (a long one blocks n short ones).
    **Tight family** `adadual`. **Complexity** O(nodes of the gang) a test.
    **Reference** the baselines of Wang, Shi, Wang, Chu, arXiv 2002.10105 (2020).

    Parameters
    ----------
    jobs
        Facts about the jobs at their arrival.
    k
        Transfers on a node at once, at most.
    service_includes_comm
        Count all-reduces in the remaining service, too.
    """
    return shortest_service(jobs, fewer_than, (float(k),), includes_comm=service_includes_comm)


@admission
def small_enough(job: Any, links: Any, numbers: Any) -> bool:
    """Admit a transfer if at most one runs on each node, and M_new < theta x what is left of every one of them.

    Parameters
    ----------
    job
        Index of the job.
    links
        Links.
    numbers
        Theta.
    """
    most = most_running(links, job)
    if most != 1:
        return bool(most == 0)
    for e in range(links.first[job], links.first[job] + links.span[job]):
        other = links.head[links.job_node[e]]
        if other >= 0:
            left = bytes_left(links, links.sending[other].job)
            if not links.message[job] < numbers[0] * left:
                return False
    return True


def _require_theta(policy: Any) -> None:
    legal = "a number > 0, or 0 for b / (2 (b + eta))"
    check_legal(0 <= policy.theta < math.inf, f"{policy.name}: theta", policy.theta, legal)


def threshold(policy: str, jobs: TaskJobs, theta: float) -> float:
    """Return AdaDUAL's theta: as given, or b / (2 (b + eta)).

    Parameters
    ----------
    policy
        Name of the policy, for the message of an error.
    jobs
        Facts about the jobs at their arrival.
    theta
        Threshold; 0: that of the contention.

    Raises
    ------
    InputError
        The theorem behind the default does not hold: the contention is measured, or eta < 0.
    """
    if theta > 0 or jobs.contention is None:
        return theta or 0.5
    jobs.contention.require_penalty(f"{policy} (its threshold b / (2 (b + eta)); or say theta=...)")
    return jobs.contention.theta


@task_order("adadual", Knowledge.CLAIRVOYANT, default_placement="lwf", __post_init__=_require_theta)
def adadual(jobs: TaskJobs, theta: float = 0.0) -> TaskOrder:
    """AdaDUAL on its own: shortest transfer first, and a second one joins a first iff M_new / M_left < theta.

    **Problem** transfers of M_j bytes with releases on network interfaces where k at once take k b + (k - 1) eta seconds a
    byte | sum (C_j - r_j); jobs with compute are placed and computed in the order of their remaining service.
    **Knowledge** clairvoyant. ``theta`` = b / (2 (b + eta)) unless given.

    Starting a transfer of M_2 bytes while M_1 are left of another: of all delays only "now" and "when it has ended" can be
    best, and now is better iff M_2 / M_1 < theta (proof in `optsched.speeds.sharing_pair`).
    **Guarantee** two transfers on one link, any releases: (2 + theta) / (1 + 2 theta) on sum C_j and on flow time; that is
    1.25 for eta = 0, 2 for eta -> infinity. n transfers: not constant-competitive.
    **Tight family** M_2 / M_1 = theta; the unbounded family: `adadual`.
    **Complexity** O(nodes of the gang) a test. **Reference** Wang, Shi, Wang, Chu, arXiv 2002.10105 (2020).

    Parameters
    ----------
    jobs
        Facts about the jobs at their arrival.
    theta
        Largest quotient of the bytes of a new transfer and those left of a running one; 0: b / (2 (b + eta)).
    """
    limit = threshold("adadual", jobs, theta)
    return shortest_service(jobs, small_enough, (limit,), link=Countdown(constant=jobs.message))


@task_order("ada-srsf", Knowledge.CLAIRVOYANT, default_placement="lwf", __post_init__=_require_theta)
def ada_srsf(jobs: TaskJobs, theta: float = 0.0, service_includes_comm: bool = False) -> TaskOrder:
    """Ada-SRSF: LWF-1 placement, shortest remaining service first, and AdaDUAL says which all-reduces may overlap.

    **Problem** jobs of iterations (forward, backward, all-reduce) that share GPUs and network interfaces | sum (C_j - r_j).
    **Knowledge** clairvoyant (iterations). Jobs that wait for memory, tasks on a GPU and ready transfers are served in the
    order of the remaining service: compute seconds left, summed over the workers (``service_includes_comm``: and the
    transfers). A transfer starts when nothing runs on its nodes, or one transfer a node at most and it is smaller than theta
    times what is left of each of them; ``theta`` = b / (2 (b + eta)) unless given.

    **Guarantee** none known for clusters; on one link see ``adadual``. **Counterexample** `adadual`.
    **Complexity** O(nodes of the gang) a test. **Reference** Wang, Shi, Wang, Chu, arXiv 2002.10105 (2020); its gains over
    SRSF(1) and SRSF(2) do not come out of a faithful model: ``optsched reproduce ada-srsf``.

    Parameters
    ----------
    jobs
        Facts about the jobs at their arrival.
    theta
        As of ``adadual``.
    service_includes_comm
        Count all-reduces in the remaining service, too.
    """
    limit = threshold("ada-srsf", jobs, theta)
    return shortest_service(jobs, small_enough, (limit,), includes_comm=service_includes_comm)


@njit
def drain(sizes: Any, b: float, eta: float) -> float:
    """Return the sum of the completion times of transfers that all run together on one link.

    Parameters
    ----------
    sizes
        Bytes of the transfers, in ascending order, f64[].
    b
        Seconds a byte of a transfer alone.
    eta
        Penalty of contention, in seconds a byte.
    """
    now, total, before = 0.0, 0.0, 0.0
    for i in range(sizes.size):
        k = sizes.size - i
        now += (sizes[i] - before) * (k * b + (k - 1) * eta)
        total += now
        before = sizes[i]
    return total


@njit
def insert_sorted(sizes: Any, count: int, new: float) -> None:
    """Insert a number into the sorted beginning of an array.

    Parameters
    ----------
    sizes
        Array whose first ``count`` entries are in ascending order; it is longer than that.
    count
        Number of entries.
    new
        The number.
    """
    while count > 0 and sizes[count - 1] > new:
        sizes[count] = sizes[count - 1]
        count -= 1
    sizes[count] = new


@njit
def gain_of_waiting(running: Any, new: float, b: float, eta: float) -> float:
    """Return the sum of the completions if a transfer starts now, minus the sum if it waits for the first end.

    Parameters
    ----------
    running
        Bytes left of the running transfers, in ascending order, f64[].
    new
        Bytes of the transfer.
    b
        Seconds a byte of a transfer alone.
    eta
        Penalty of contention, in seconds a byte.
    """
    k = running.size
    beside, after = np.empty(k + 1), np.empty(k)
    for i in range(k):
        beside[i] = running[i]
        if i > 0:
            after[i - 1] = running[i] - running[0]
    insert_sorted(beside, k, new)
    insert_sorted(after, k - 1, new)
    first = running[0] * (k * b + (k - 1) * eta)
    return drain(beside, b, eta) - ((k + 1) * first + drain(after, b, eta))


@admission
def pays_now(job: Any, links: Any, numbers: Any) -> bool:
    """Admit a transfer if now is strictly better than after the next completion, on every node where something runs.

    Parameters
    ----------
    job
        Index of the job.
    links
        Links.
    numbers
        Numbers of the order; none is used.
    """
    b, eta = links.cost[SECONDS_PER_BYTE], links.cost[PENALTY]
    for e in range(links.first[job], links.first[job] + links.span[job]):
        node = links.job_node[e]
        if links.running[node] == 0:
            continue
        sizes = np.empty(links.running[node])
        other = links.head[node]
        for i in range(sizes.size):
            insert_sorted(sizes, i, bytes_left(links, links.sending[other].job))
            other = links.after[other]
        if not gain_of_waiting(sizes, links.message[job], b, eta) < 0.0:
            return False
    return True


@task_order("k-way", Knowledge.CLAIRVOYANT, default_placement="lwf")
def k_way(jobs: TaskJobs, by_size: bool = False) -> TaskOrder:
    """The k-way myopic rule in place of AdaDUAL's, which is its case k = 1.

    **Problem** and **Knowledge** (clairvoyant) as ``ada-srsf``.
    With k transfers of x_1 <= x_2 <= ... bytes left on a node, one of M bytes starts iff the summed completion times are
    smaller than when it starts at the next completion, all else drained without further starts; for M <= x_1 and M <=
    x_2 - x_1 that is M / x_1 < (k b + (k - 1) eta) / (2 (b + eta)). It must pay on each of its nodes; it is asked when
    it becomes ready, and again when another one has ended on one of its nodes. ``by_size``: transfers are asked about in
    order of their sizes, not of the service of their jobs.

    **Guarantee** none known. **Complexity** O(k log k) a node and test. **Reference** this project's extension of the
    two-task theorem of Wang, Shi, Wang, Chu, arXiv 2002.10105 (2020).

    Parameters
    ----------
    jobs
        Facts about the jobs at their arrival.
    by_size
        Ask about transfers in order of their sizes, not of the service of their jobs.
    """
    if jobs.contention is not None:
        jobs.contention.require_penalty("k-way")
    return shortest_service(jobs, pays_now, link=Countdown(constant=jobs.message) if by_size else None)
