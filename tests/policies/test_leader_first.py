"""leader-first: hand examples of holding and not holding, the exchange against a replay, and the gain on the workload."""

from __future__ import annotations

import numpy as np
import pytest
from examples import few
from simulation.task_instances import ran, random_task_instance

import optsched as osd
from optsched.classes.task_sharing.policies.leader_first import FOLLOWS, LEADS, LeaderFirst, exchange, leader
from optsched.classes.task_sharing.simulation.iterations import TaskRun
from optsched.classes.task_sharing.simulation.links import NOW, READY, begin_sending, end_transfer, new_links, set_key
from optsched.classes.task_sharing.simulation.task_policy import TaskJobs
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.contention import Contention, IterationTasks
from optsched.problem.instance import Instance, Job

LINK = Contention(1, 0.25)
IN_TURNS, ALWAYS_FIRST = LeaderFirst(caution=1e9), LeaderFirst(caution=0)


def pair(leader: tuple[int, float, float], other: tuple[int, float, float], late: float = 0.5) -> Instance:
    """Two jobs (iterations, compute, message), A and, ``late``, B: gangs of 3 on 3 nodes of 2 GPUs that meet on one node."""
    tasks = {name: IterationTasks(each[1], 0, each[2]) for name, each in (("A", leader), ("B", other))}
    jobs = [
        Job("A", gpus=3, iterations=leader[0], profile="A"),
        Job("B", arrival=late, gpus=3, iterations=other[0], profile="B"),
    ]
    return Instance(jobs, Cluster((NodeGroup(gpus=2, count=3),)), tasks=tasks, contention=LINK)


def ends(instance: Instance, spec: str | LeaderFirst = "leader-first") -> dict[str, float]:
    made = ran(instance, spec).schedule
    return {instance.ids[j]: end for j, end in zip(made.job.tolist(), made.end.tolist(), strict=True)}


def starts_of(made: TaskRun, job: int) -> list[float]:
    log = made.schedule.tasks
    assert log is not None
    return sorted(log.start[(log.worker < 0) & (log.job == job)].tolist())


def test_a_long_transfer_does_not_slip_into_the_computation_of_a_leader() -> None:
    # At 5 A has sent once and computes until 6. B, 6 seconds long, would hold it up by 5; waiting costs B 1 + 1.
    instance = pair((2, 1, 4), (4, 1, 6))
    assert ends(instance) == {"A": 10, "B": 37}
    assert starts_of(ran(instance), 1) == [10, 17, 24, 31]
    for spec in ("srsf:k=1", "ada-srsf", "adadual", "k-way", IN_TURNS):
        assert ends(instance, spec) == {"A": 15, "B": 35}


def test_a_short_transfer_does() -> None:
    # 1.5 seconds long it holds up A by half a second only.
    assert starts_of(ran(pair((2, 1, 4), (4, 1, 1.5))), 1)[0] == 5


@pytest.mark.parametrize(("message", "waits"), [(2.875, False), (3, False), (3.125, True)])
def test_it_waits_iff_the_gain_exceeds_the_loss(message: float, waits: bool) -> None:
    # one round of A is left: it gains message - 1, and B loses 1 + 1
    assert starts_of(ran(pair((2, 1, 4), (4, 1, message))), 1)[0] == (10 if waits else 5)
    assert starts_of(ran(pair((2, 1, 4), (4, 1, message)), LeaderFirst(caution=0.5)), 1)[0] == 10
    assert starts_of(ran(pair((2, 1, 4), (4, 1, message)), LeaderFirst(caution=2)), 1)[0] == 5


def asked(instance: Instance, policy: LeaderFirst, rounds: tuple[int, int], now: float) -> tuple[float, float]:
    """`exchange` when A has just sent, and B, which waits, is asked about."""
    order = policy.tasks(TaskJobs(instance, "clairvoyant"))
    one = np.arange(2, dtype=np.int64)
    cost = np.array([LINK.seconds_per_byte, LINK.penalty, LINK.latency])
    links = new_links(
        instance.message.copy(), np.arange(3), np.ones(2, np.int64), 0 * one, 1, cost, 0 * one, np.zeros((0, 0))
    )
    links.transfers_left[:] = rounds
    links.mark[0], links.clock[NOW], links.state[1] = now, now, READY
    gain, loss = exchange(links, np.array(order.numbers), 1, 0)
    return float(gain), float(loss)


@pytest.mark.parametrize("seed", few(range(8), 3))
def test_the_exchange_is_what_a_replay_of_both_orders_shows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sending = rng.integers(8, 20, 2) / 4
    compute = rng.integers(1, 8, 2) / 4  # shorter than the other's transfer, as the exchange assumes
    rounds = [int(rng.integers(2, 6)), int(rng.integers(2, 9))]
    if (rounds[0] - 1) * (compute[0] + sending[0]) >= rounds[1] * (compute[1] + sending[1]):
        rounds[1] = 2 * rounds[0]
        sending[1] = 20 / 4  # A is the more important one
    instance = pair((rounds[0], compute[0], sending[0]), (rounds[1], compute[1], sending[1]), late=compute[0])
    turns, first = ends(instance, IN_TURNS), ends(instance, ALWAYS_FIRST)
    gain, loss = asked(instance, LeaderFirst(), (rounds[0] - 1, rounds[1]), compute[0] + sending[0])
    assert gain == turns["A"] - first["A"]
    assert loss == first["B"] - turns["B"]


def test_transfers_never_overlap_and_all_start() -> None:
    for seed in range(40):
        made = ran(random_task_instance(seed), LeaderFirst(width=seed % 3 / 2, caution=seed % 4 / 2))
        assert not made.unfinished
        assert made.contended == 0


@pytest.mark.study
@pytest.mark.parametrize("other", ["srsf:k=1", "srsf:k=2", "ada-srsf", "adadual", "k-way"])
def test_the_gain_on_sixty_seeds_excludes_zero(other: str) -> None:
    found = []
    for seed in range(1, 61):
        instance = osd.generate("ada-srsf", seed=seed)
        found.append(ran(instance).metrics["mean_jct"] / ran(instance, other).metrics["mean_jct"] - 1)
    assert np.mean(found) + 2.0 * np.std(found, ddof=1) / np.sqrt(len(found)) < -0.04  # 2.0: Student t, 59 degrees


@pytest.mark.parametrize("seed", few(range(30), 10))
def test_leaders_are_those_of_a_walk_through_all_jobs(seed: int) -> None:
    # jobs by importance; one leads where no node of its gang is led yet
    rng = np.random.default_rng(seed)
    n, nodes = int(rng.integers(2, 30)), int(rng.integers(2, 8))
    gangs = [rng.permutation(nodes)[: rng.integers(1, nodes + 1)] for _ in range(n)]
    span = np.array([gang.size for gang in gangs], dtype=np.int64)
    first = np.concatenate([[0], np.cumsum(span)]).astype(np.int64)
    place = np.concatenate(gangs).astype(np.int64)
    links = new_links(np.ones(n), first, span, place, nodes, np.ones(3), 0 * span, np.zeros((0, 0)))
    links.key[:] = rng.integers(1, 6, n)  # ties
    links.transfers_left[:] = rng.integers(1, 4, n)
    for j in range(n):
        begin_sending(links, j)
    gone = rng.permutation(n)[: n // 4]
    links.pace[gone] = 1.0
    for j in gone.tolist():
        links.transfers_left[j] = 1
        links.head[links.job_node[first[j] : first[j + 1]]] = -1
        end_transfer(links, j)
    for j in rng.permutation(n)[: n // 2].tolist():
        set_key(links, j, float(rng.integers(1, 6)))
    importance = links.key
    led = np.full(nodes, -1)
    for j in sorted(range(n), key=lambda j: (importance[j], j)):
        if links.transfers_left[j] > 0 and (led[gangs[j]] < 0).all():
            led[gangs[j]] = j
    for j in range(n):
        if links.transfers_left[j] == 0:
            continue
        seen = 0
        for node in gangs[j].tolist():
            found, seen = leader(links, j, node, seen)
            other = int(led[node])
            before = other >= 0 and (importance[other], other) < (importance[j], j)
            assert found == (other if before else -1)
        for other in links.senders["visited"][:seen].tolist():
            assert links.senders["verdict"][other] == (LEADS if (led[gangs[other]] == other).all() else FOLLOWS)
            links.senders["verdict"][other] = 0
