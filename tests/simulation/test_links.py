"""Links of the task engine by hand; transfers alone, against exact fractions of plain Python, and bounds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from examples import few
from random_transfers import random_transfers

from optsched.classes.task_sharing.bounds.transfer_srpt import srpt_per_link
from optsched.classes.task_sharing.problem.transfers import TransferProblem, transfer_instance
from optsched.classes.task_sharing.simulation.iterations import TaskRun
from optsched.errors import InputError
from optsched.policies.simulate import simulate
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.contention import Contention, IterationTasks
from optsched.problem.instance import Instance, Job
from simulation.task_instances import ran
from simulation.transfer_reference import completions


def tasks(run: TaskRun, job: str, worker: int) -> list[tuple[float, float]]:
    """(start, end) of the tasks of a worker, or (-1) of the all-reduces of a job, by start."""
    log, j = run.schedule.tasks, run.instance.index[job]
    rows = np.flatnonzero((log.job == j) & (log.worker == worker))
    return sorted(zip(log.start[rows].tolist(), log.end[rows].tolist(), strict=True))


# --- rates --------------------------------------------------------------------------------------------------------------


def one_gpu_nodes(names: str, jobs: dict[str, tuple[float, str, IterationTasks]], cost: Contention) -> Instance:
    """Jobs by name: (arrival, nodes, tasks); every node has one GPU and a name of one letter."""
    made = [
        Job(name, arrival=at, gpus=len(nodes), iterations=1, profile=name, gpu_types=tuple(nodes))
        for name, (at, nodes, _) in jobs.items()
    ]
    cluster = Cluster(tuple(NodeGroup(gpus=1, gpu=name) for name in names))
    return Instance(made, cluster, tasks={name: each for name, (_, _, each) in jobs.items()}, contention=cost)


def test_the_pace_is_that_of_the_busiest_node_and_follows_every_start_and_end() -> None:
    """b = 1, eta = 1/2: a byte takes 1, 2.5, 4 seconds beside 0, 1, 2 others.

    ``wide`` uses both links. On link 1 three run from 2 on; on link 0 it never shares with more than one.
    """
    cost = Contention(1, 0.5)
    nodes, sizes = ("AB", "AC", "BD", "BE"), (10, 100, 2, 4)
    jobs = {
        name: (at, own, IterationTasks(0, 0, size))
        for name, at, own, size in zip("wlso", (0.0, 1.0, 2.0, 2.0), nodes, sizes, strict=True)
    }
    ends = ran(one_gpu_nodes("ABCDE", jobs, cost), "srsf:k=3").schedule.completion
    # wide: 1 byte until 1, 0.4 until 2, then 1/4 a second until the small one on link 1 ends
    small = 2 + 2 * 4
    wide_left = 10 - 1 - 1 / 2.5 - 2
    other_left = 4 - 2
    # then k = 2 on both links: 2.5 seconds a byte
    other = small + other_left * 2.5
    wide = other + (wide_left - other_left) * 2.5  # still beside the long one on link 0
    long_left = 100 - (wide - 1) / 2.5  # link 0 carries two from 1 to the end of wide
    assert ends == pytest.approx([wide, wide + long_left, small, other], rel=1e-14)


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


# -- Transfers alone on the task level, jobs without compute: exact fractions of plain Python, and bounds -----------------


RULES = {
    "srsf:k=1": "srsf:1",
    "srsf:k=2": "srsf:2",
    "srsf:k=3": "srsf:3",
    "adadual": "adadual",
    "ada-srsf": "adadual",
    "k-way": "k-way",
    "k-way:by_size=true": "k-way",
}
PENALTIES = (0.0, 0.2745, 1.0)


def on_links(problem: TransferProblem) -> Instance:
    """A job for each transfer, by (size, index): a gang on the nodes whose interfaces are its links, and one of its own."""
    order = sorted(range(problem.n), key=lambda j: (problem.size[j], j))
    jobs = [
        Job(
            str(j),
            problem.release[j],
            len(problem.links[j]) + 1,
            iterations=1,
            profile=f"{j}",
            gpu_types=(f"own-{j}", *(f"link-{link}" for link in problem.links[j])),
        )
        for j in order
    ]
    names = [f"own-{j}" for j in order] + [f"link-{link}" for link in problem.link_numbers]
    return Instance(
        jobs,
        Cluster(tuple(NodeGroup(1, gpu=name) for name in names)),
        tasks={f"{j}": IterationTasks(0, 0, problem.size[j]) for j in order},
        contention=problem.contention,
    )


def by_engine(instance: Instance, spec: str) -> np.ndarray:
    found = np.empty(instance.n)
    found[[int(j) for j in instance.ids]] = simulate(instance, spec).schedule.completion
    return found


@pytest.mark.parametrize("links", [1, 3])
@pytest.mark.parametrize("spec", RULES)
def test_it_is_the_exact_reference(spec: str, links: int) -> None:
    for seed in few(range(8), 3):
        problem = random_transfers(2 + seed % 6, seed, PENALTIES[seed % 3], links=links)
        exact = [list(map(Fraction, numbers.tolist())) for numbers in (problem.release, problem.size)]
        b, eta = Fraction(problem.contention.seconds_per_byte), Fraction(problem.contention.penalty)
        found = by_engine(on_links(problem), spec)
        expected = completions(*exact, problem.links, b, eta, RULES[spec])
        assert found.tolist() == pytest.approx([float(end) for end in expected], rel=1e-12)
        assert float(srpt_per_link(problem).value) <= found.sum() * (1 + 1e-12)
        if links == 1:
            assert found.tolist() == by_engine(transfer_instance(problem), spec).tolist()
            last = problem.release.max() + problem.contention.seconds_per_byte * problem.size.sum()
            if PENALTIES[seed % 3] == 0:  # contention without a penalty wastes nothing
                assert found.max() <= last * (1 + 1e-12)


def test_who_waits_is_asked_before_what_is_released_in_the_moment_of_an_end() -> None:
    problem = TransferProblem([0, 1, 4], [4, 3, 1], Contention(1))
    # a job computes, even for no time at all, before its transfer is ready
    assert by_engine(transfer_instance(problem), "srsf:k=1").tolist() == [4, 7, 8]


def test_transfers_on_different_links_are_no_instance_of_two_nodes() -> None:
    with pytest.raises(InputError, match="different links"):
        transfer_instance(TransferProblem([0, 1], [2, 1], Contention(1), ((0,), (1,))))
