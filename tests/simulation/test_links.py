"""Links of the task engine: rates by hand, barriers and gangs on one node, and questions that change nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from optsched.io.traces.generate import generate
from optsched.io.traces.random_transfers import random_transfers
from optsched.policies.simulate import simulate
from optsched.policies.specification import specify
from optsched.policies.task_orders import ada_srsf
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.contention import Contention, IterationTasks
from optsched.problem.instance import Instance, Job
from optsched.problem.transfers import TransferProblem
from optsched.simulation.iterations import TaskRun
from optsched.simulation.task_policy import LinkView, TaskJobs, TaskOrder
from optsched.simulation.transfers import simulate_transfers


def ran(instance: Instance, spec: Any) -> TaskRun:
    run = simulate(instance, spec)
    assert isinstance(run, TaskRun)
    assert run.schedule.tasks is not None
    return run


def tasks(run: TaskRun, job: str, worker: int) -> list[tuple[float, float]]:
    """(start, end) of the tasks of a worker, or (-1) of the all-reduces of a job, by start."""
    log, j = run.schedule.tasks, run.instance.index[job]
    rows = np.flatnonzero((log.job == j) & (log.worker == worker))
    return sorted(zip(log.start[rows].tolist(), log.end[rows].tolist(), strict=True))


def completions(release: list[float], size: list[float], links: Any, cost: Contention, spec: str) -> list[float]:
    policy: Any = specify(spec).policy
    return simulate_transfers(TransferProblem(release, size, cost, links), policy).tolist()


# --- rates --------------------------------------------------------------------------------------------------------------


def test_the_pace_is_that_of_the_busiest_node_and_follows_every_start_and_end() -> None:
    """b = 1, eta = 1/2: a byte takes 1, 2.5, 4 seconds beside 0, 1, 2 others.

    ``wide`` uses both links. On link 1 three run from 2 on; on link 0 it never shares with more than one.
    """
    cost = Contention(1, 0.5)
    links = ((0, 1), (0,), (1,), (1,))
    ends = completions([0, 1, 2, 2], [10, 100, 2, 4], links, cost, "srsf:k=3")
    # wide: 1 byte until 1, 0.4 until 2, then 1/4 a second until the small one on link 1 ends
    small = 2 + 2 * 4
    wide_left = 10 - 1 - 1 / 2.5 - 2
    other_left = 4 - 2
    # then k = 2 on both links: 2.5 seconds a byte
    other = small + other_left * 2.5
    wide = other + (wide_left - other_left) * 2.5  # still beside the long one on link 0
    long_left = 100 - (wide - 1) / 2.5  # link 0 carries two from 1 to the end of wide
    assert ends == pytest.approx([wide, wide + long_left, small, other], rel=1e-14)


def test_without_a_penalty_the_link_is_always_as_fast_as_alone() -> None:
    for seed in range(6):
        problem = random_transfers(6, seed, 0.0)
        at_once = completions([0] * 6, problem.size.tolist(), (), Contention(1), "srsf:k=6")
        assert max(at_once) == pytest.approx(float(problem.size.sum()), rel=1e-13)
        dear = completions([0] * 6, problem.size.tolist(), (), Contention(1, 0.2745), "srsf:k=6")
        assert max(dear) > max(at_once) * 1.05


def one_gpu_nodes(names: str, jobs: dict[str, tuple[float, str, IterationTasks]], cost: Contention) -> Instance:
    """Jobs by name: (arrival, nodes, tasks); every node has one GPU and a name of one letter."""
    made = [
        Job(name, arrival=at, gpus=len(nodes), iterations=1, profile=name, gpu_types=tuple(nodes))
        for name, (at, nodes, _) in jobs.items()
    ]
    cluster = Cluster(tuple(NodeGroup(gpus=1, gpu=name) for name in names))
    return Instance(made, cluster, tasks={name: each for name, (_, _, each) in jobs.items()}, contention=cost)


def test_a_latency_neither_moves_nor_contends_but_counts_as_running() -> None:
    jobs = {
        "first": (0.0, "AB", IterationTasks(0, 0, 10)),
        "second": (1.0, "AC", IterationTasks(0, 0, 10)),
    }
    # First moves from 2 on, second from 3 on; two at once take 2.5 seconds a byte.
    run = ran(one_gpu_nodes("ABC", jobs, Contention(1, 0.5, latency=2)), "srsf:k=2")
    assert tasks(run, "first", -1) == [(0, 3 + 9 * 2.5)]
    assert tasks(run, "second", -1) == [(1, 3 + 9 * 2.5 + (10 - 9))]
    alone = ran(one_gpu_nodes("ABC", jobs, Contention(1, 0.5, latency=2)), "srsf:k=1")
    assert tasks(alone, "second", -1) == [(12, 24)]  # the first one blocks already while it waits


def test_measured_ratios_multiply_and_the_worst_node_counts() -> None:
    kinds, ratios = ("x", "y", "z"), ((1, 0.5, 0.25), (0.8, 1, 1), (1, 1, 1))
    jobs = {
        "x": (0.0, "AB", IterationTasks(0, 0, 16)),
        "y": (0.0, "AC", IterationTasks(0, 0, 100)),
        "z": (0.0, "BD", IterationTasks(0, 0, 100)),
    }
    cost = Contention(1, kinds=kinds, ratios=ratios)
    run = ran(one_gpu_nodes("ABCD", jobs, cost), "srsf:k=3")
    assert tasks(run, "x", -1) == [(0, 64)]  # 1/2 on A, 1/4 on B
    assert tasks(run, "y", -1) == [(0, 64 + (100 - 0.8 * 64))]  # 0.8 beside x
    assert tasks(run, "z", -1) == [(0, 100)]
    beside_both = {name: (0.0, "AB", each) for name, (_, _, each) in jobs.items()}
    # 1/2 x 1/4 until z ends, then 1/2
    assert tasks(ran(one_gpu_nodes("AB", beside_both, cost), "srsf:k=3"), "x", -1) == [(0, 100 + (16 - 100 / 8) * 2)]


# --- iterations ---------------------------------------------------------------------------------------------------------


def test_the_barrier_waits_for_the_slowest_worker_and_compute_never_overlaps_the_transfer() -> None:
    """``other`` holds node A's GPU when ``gang`` is ready there; B is idle."""
    cluster = Cluster((NodeGroup(gpus=1, gpu="A"), NodeGroup(gpus=1, gpu="B")))
    made = [
        Job("other", iterations=2, profile="other", gpu_types=("A",)),
        Job("gang", gpus=2, iterations=2, profile="gang"),
    ]
    known = {"other": IterationTasks(3, 1, 99), "gang": IterationTasks(2, 2, 5)}
    run = ran(Instance(made, cluster, tasks=known, contention=Contention(1, 0.5)), "ada-srsf+first-fit")
    assert run.transfers == 2  # other is on one node: it has a message and no all-reduce
    assert tasks(run, "other", -1) == []
    assert tasks(run, "other", 0) == [(0, 3), (3, 4), (4, 7), (7, 8)]  # 8 s of service against 16: first on A
    assert tasks(run, "gang", 1) == [(0, 2), (2, 4), (17, 19), (19, 21)]
    assert tasks(run, "gang", 0) == [(8, 10), (10, 12), (17, 19), (19, 21)]
    assert tasks(run, "gang", -1) == [(12, 17), (21, 26)]
    assert run.schedule.completion.tolist() == [8, 26]


def test_a_gang_on_one_node_sends_nothing_and_needs_no_contention() -> None:
    jobs = [Job("a", gpus=3, iterations=4, profile="p")]
    run = ran(Instance(jobs, "1x4", tasks={"p": IterationTasks(1, 2, 1e9)}), "ada-srsf")
    assert run.transfers == 0
    assert run.schedule.completion.tolist() == [12]


def test_jobs_that_span_nodes_never_compute_while_they_send() -> None:
    run = ran(generate("ada-srsf", 3, jobs=20, scale=2, window=0.4, cluster="4x2"), "srsf:k=3")
    assert run.contended > 0
    checked = 0
    for job in run.instance.ids:
        sent = np.array(tasks(run, job, -1)).reshape(-1, 2)
        for worker in range(int(run.instance.gpus[run.instance.index[job]])):
            own = np.array(tasks(run, job, worker))
            for start, end in sent:
                assert ((own[:, 1] <= start) | (own[:, 0] >= end)).all()
                checked += 1
    assert checked > 100


# --- questions ----------------------------------------------------------------------------------------------------------


class Curious:
    """AdaDUAL in plain Python that asks ``times`` times over what is left of everything that runs."""

    name, knowledge, default_placement = "curious", "clairvoyant", "lwf"

    def __init__(self, times: int) -> None:
        self.times, self.answers = times, 0

    def tasks(self, jobs: TaskJobs) -> TaskOrder:
        order = ada_srsf().tasks(jobs)
        (self.theta,) = order.numbers
        return TaskOrder(order.queue, order.gpu, order.link)

    def communicate(self, view: LinkView) -> None:
        for job in view.ready:
            for _ in range(self.times):
                for node in view.nodes(job):
                    self.answers += sum(view.bytes_left(other) >= 0 for other in view.running(node))
            running = [view.running(node) for node in view.nodes(job)]
            if max(map(len, running)) <= 1 and all(
                view.message(job) < self.theta * view.bytes_left(other) for here in running for other in here
            ):
                view.start(job)


def test_asking_what_is_left_changes_nothing() -> None:
    """A published simulator credits a transfer with progress whenever it is asked (section 9 of the AdaDUAL sheet)."""
    instance = generate("ada-srsf", 4, jobs=20, scale=2, window=0.4, cluster="4x2")
    expected = ran(instance, "ada-srsf")
    assert expected.contended > 0
    for times in (0, 1, 7):
        curious = Curious(times)
        found = ran(instance, curious)
        assert found.schedule.completion.tolist() == expected.schedule.completion.tolist()
        assert (curious.answers > 0) == (times > 0)


def test_every_transfer_moves_its_message_exactly() -> None:
    """The rate of every transfer, rebuilt from the log alone, integrated from its start to its end."""
    run = ran(generate("ada-srsf", 5, jobs=20, scale=2, window=0.4, cluster="4x2"), "srsf:k=3")
    instance, log, cost = run.instance, run.schedule.tasks, run.instance.contention
    assert cost is not None
    nodes = {s.job: sorted({node for node, _ in s.gpus}) for s in run.schedule.segments()}
    rows = np.flatnonzero(log.worker < 0)
    who, start, end = log.job[rows], log.start[rows], log.end[rows]
    at = np.unique(np.concatenate([start, end]))
    active = (start[:, None] <= at[None, :-1]) & (end[:, None] >= at[None, 1:])
    on = np.array([[node in nodes[j] for node in range(instance.cluster.node_count)] for j in who.tolist()])
    carried = on.T.astype(float) @ active  # f[nodes, intervals]
    k = np.where(on[:, :, None], carried[None], 0).max(axis=1)
    assert carried.max() == 3
    pace = np.maximum(k, 1) * cost.seconds_per_byte + (np.maximum(k, 1) - 1) * cost.penalty
    moved = (active * np.diff(at) / pace).sum(axis=1)
    np.testing.assert_allclose(moved, instance.message[who], rtol=1e-9)
