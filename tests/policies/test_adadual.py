"""AdaDUAL's rule in the task engine: the threshold, what is left, every transfer on every node; what is refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from optsched.classes.task_sharing.problem.transfers import TransferProblem, transfer_instance
from optsched.classes.task_sharing.simulation.iterations import TaskRun
from optsched.errors import InputError
from optsched.io.traces.recipes.ada_srsf import TASK_MODELS
from optsched.policies.simulate import simulate
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.contention import ETHERNET_10G, Contention, IterationTasks
from optsched.problem.instance import Instance, Job

MESSAGE = {name: model.tasks.message or 0.0 for name, model in TASK_MODELS["10g"].models.items()}


def starts(spec: str, instance: Instance) -> dict[str, float]:
    """When the transfer of every job starts, by its id; one iteration each."""
    run = simulate(instance, spec)
    assert isinstance(run, TaskRun)
    log = run.schedule.tasks
    rows = log.worker < 0
    return {instance.ids[j]: s for j, s in zip(log.job[rows].tolist(), log.start[rows].tolist(), strict=True)}


def on_one_link(release: list[float], size: list[float], contention: Contention, spec: str = "adadual") -> list[bool]:
    """Does each transfer start when it is released?"""
    found = starts(spec, transfer_instance(TransferProblem(release, size, contention)))
    return [found[str(j)] == r for j, r in enumerate(release)]


def model(name: str) -> float:
    return next(message for known, message in MESSAGE.items() if name in known.lower())


@pytest.mark.parametrize("spec", ["adadual", "ada-srsf", "k-way"])
@pytest.mark.parametrize("k", [2, 3, 7, 16, 1000])
def test_the_threshold_flips_exactly_at_theta(spec: str, k: int) -> None:
    contention = Contention(1, k / 2 - 1)  # theta = 1 / k
    size = 1.0
    below = np.nextafter(size, 0) if spec != "k-way" else 1 - 1e-12  # that rule compares sums of seconds
    for new, joins in ((below, True), (size, False), (1 + 1e-12, False)):
        # `late` e: what is left of k + e after e seconds is k, exactly
        assert on_one_link([0, 1], [k + 1, new], contention, spec) == [True, joins]


def test_a_half_finished_transfer_counts_by_what_is_left() -> None:
    vgg, resnet, b = model("vgg"), model("resnet"), ETHERNET_10G.seconds_per_byte
    for left, joins in ((253e6, True), (252e6, False)):
        assert on_one_link([0, b * (vgg - left)], [vgg, resnet], ETHERNET_10G) == [True, joins]
    assert resnet < ETHERNET_10G.theta * vgg  # by its original size it would join in both cases


def crossing(left: float, right: float, new: float) -> Instance:
    """A transfer over nodes 0 and 2, one over 1 and 3, and a second later one over 0 and 1."""
    cluster = Cluster(tuple(NodeGroup(gpus=1, gpu=f"G{i}") for i in range(4)))
    sizes = {"left": left, "right": right, "new": new}
    gangs = {"left": ("G0", "G2"), "right": ("G1", "G3"), "new": ("G0", "G1")}
    jobs = [
        Job(name, arrival=float(name == "new"), gpus=2, iterations=1, profile=name, gpu_types=gangs[name])
        for name in sizes
    ]
    tasks = {name: IterationTasks(0, 0, size) for name, size in sizes.items()}
    return Instance(jobs, cluster, tasks=tasks, contention=Contention(1, 0.25))


@pytest.mark.parametrize(
    ("left", "right", "new", "start"),
    [
        (101, 101, 39, 1),  # theta = 0.4 of the 100 that are left of both
        (101, 101, 40, 101),
        (401, 51, 30, 51),  # too large beside the right one only: it starts when that has ended
        (51, 401, 30, 51),  # beside the left one only
        (101, 51, 30, 101),  # after 51 seconds it is too large beside the rest of the left one, too
    ],
)
def test_all_transfers_on_all_nodes_are_tested(left: float, right: float, new: float, start: float) -> None:
    assert starts("adadual", crossing(left, right, new))["new"] == start


def test_beside_two_nothing_starts_and_who_was_admitted_counts_at_once() -> None:
    contention = Contention(1, 0.25)
    assert on_one_link([0, 1, 2], [100, 30, 0.001], contention) == [True, True, False]
    assert on_one_link([0, 1, 2], [100, 30, 0.001], contention, "k-way") == [True, True, True]
    assert on_one_link([0, 1, 1], [100, 30, 20], contention) == [True, False, True]  # the smaller one is asked first
    assert on_one_link([0, 1, 1], [100, 30, 20], contention, "srsf:k=3") == [True, True, True]


def test_theta_by_hand() -> None:
    contention = Contention(1, 0.25)
    assert on_one_link([0, 1], [101, 45], contention) == [True, False]
    assert on_one_link([0, 1], [101, 45], contention, "adadual:theta=0.5") == [True, True]
    assert on_one_link([0, 1], [101, 30], contention, "ada-srsf:theta=0.1") == [True, False]


def test_the_order_by_what_a_job_still_has_to_send() -> None:
    """Both jobs compute; the one with less compute has much more to send."""
    tasks = {"talks": IterationTasks(1, 0, 50), "computes": IterationTasks(1, 0, 10)}
    jobs = [
        Job("talks", gpus=2, iterations=2, profile="talks", gpu_types=("A", "B")),
        Job("computes", gpus=2, iterations=3, profile="computes", gpu_types=("A", "C")),
    ]
    cluster = Cluster(tuple(NodeGroup(gpus=1, gpu=name) for name in "ABC"))
    instance = Instance(jobs, cluster, tasks=tasks, contention=Contention(1, 0.25))

    def first(spec: str) -> str:
        run = simulate(instance, spec)
        assert isinstance(run, TaskRun)
        log = run.schedule.tasks
        rows = np.flatnonzero(log.worker < 0)
        return instance.ids[int(log.job[rows[np.lexsort((log.job[rows], log.start[rows]))[0]]])]

    assert first("ada-srsf+first-fit") == "talks"
    assert first("ada-srsf:service_includes_comm=true+first-fit") == "computes"


@pytest.mark.parametrize("name", ["adadual", "ada-srsf"])
def test_without_the_theorem_there_is_no_threshold(name: str) -> None:
    problem = TransferProblem([0, 1], [2, 1], Contention(1))
    instance = transfer_instance(problem)
    faster = instance.replace(contention=Contention(1, -0.1))
    ratios = ((0.5, 0.75), (0.75, 0.5))
    table = instance.replace(contention=Contention(1, kinds=("transfer-0", "transfer-1"), ratios=ratios))
    for wrong, told in ((faster, "eta >= 0"), (table, "not measured ratios")):
        with pytest.raises(InputError, match=told):
            simulate(wrong, name)
        assert simulate(wrong, f"{name}:theta=0.4").unfinished == []
    with pytest.raises(InputError, match="theta"):
        simulate(instance, f"{name}:theta=-1")
    # beside 1.5 bytes that are left of 2, the second one has 1 of at most 0.75: it waits
    assert Fraction(simulate(instance, name).value("total_completion_time")) == 2 + 3
