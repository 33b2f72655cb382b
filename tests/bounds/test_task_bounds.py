"""Bounds for jobs with tasks: below every schedule, tight where they ought to be, refused when somebody touched them."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from verifier.certified_cases import with_tasks as with_tasks_on_few_gpus

from bounds import cases
from bounds.cases import OBJECTIVES
from bounds.task_cases import random_completions
from bounds.task_optimum import TaskOptimum
from bounds.typed_cases import objective_value
from optsched.bounds import bound
from optsched.bounds.mean_busy_time import onto_simplex
from optsched.classes.task_sharing.bounds.task_times import task_times
from optsched.errors import InputError
from optsched.io.traces.generate import generate
from optsched.policies.simulate import simulate
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.contention import ETHERNET_10G, Contention, IterationTasks
from optsched.problem.instance import Instance, Job

SUMS = ("task-srpt", "task-path", "task-busy-time", "link-srpt", "link-busy-time", "split-task-busy-time")
OTHERS = {"task-volume": "makespan", "task-due-dates": "total_weighted_tardiness"}
OTHERS["link-due-dates"] = OTHERS["task-due-dates"]
OTHERS |= {"task-first-come": "max_flow_time", "link-first-come": "max_flow_time"}
OTHERS |= {"task-fair-share": "max_fair_slowdown", "link-fair-share": "max_fair_slowdown"}
NAMES = (*SUMS, *OTHERS)
ROUNDING = 1 + Fraction(1, 10**9)  # the engine adds up floats


certificates = partial(cases.certificates, schedule_class="task-sharing", names=NAMES)


def values(instance: Instance, objective: str = "total_completion_time") -> dict[str, Fraction]:
    return {certificate.kind: certificate.value for certificate in certificates(instance, objective)}


def with_tasks(
    rows: list[tuple[float, int, int, str]], cluster: str, tasks: dict[str, IterationTasks], link: Contention
) -> Instance:
    jobs = [Job(f"j{k}", r, gang, iterations=i, profile=p) for k, (r, gang, i, p) in enumerate(rows)]
    return Instance(jobs, cluster, tasks=tasks, contention=link)


# --- tight, and by hand --------------------------------------------------------------------------------------------------


def test_one_gpu_is_srpt() -> None:
    tasks = {"m": IterationTasks(0.25, 0.75)}
    instance = with_tasks([(0, 1, 5, "m"), (0, 1, 2, "m"), (7, 1, 1, "m")], "1x1", tasks, ETHERNET_10G)
    found = values(instance)
    assert found["task-srpt"] == 2 + 7 + 8
    assert bound(instance, "makespan").value == 8
    assert "link-srpt" not in found


def test_transfers_alone_are_srpt_on_the_interfaces() -> None:
    # nothing to compute, all gangs on both nodes: one transfer at a time, shortest first, is optimal
    tasks = {"long": IterationTasks(0, 0, 6), "short": IterationTasks(0, 0, 2)}
    instance = with_tasks(
        [(0, 2, 1, "long"), (0, 2, 1, "short"), (1, 2, 1, "short")], "2x1", tasks, Contention(0.5, 0.25)
    )
    assert values(instance)["link-srpt"] == 1 + 2 + 5
    rng = np.random.default_rng(0)
    assert min(sum(random_completions(instance, rng, 0.5)) for _ in range(150)) == 8
    assert bound(instance, "makespan").value == 5
    assert "task-srpt" not in values(instance)  # no compute


def test_numbers_of_the_theorems_by_hand() -> None:
    """Three jobs on 2 nodes of 2 GPUs and one of 1: q = 2; 3 GPUs need 2 nodes, 5 all three; a = 1/4, b = 1/2."""
    tasks = {"m": IterationTasks(1, 2, 3), "mute": IterationTasks(1, 2)}
    link = Contention(0.5, 0.25, 0.25)
    instance = with_tasks([(1, 3, 2, "m"), (0, 5, 4, "m"), (0, 2, 3, "m"), (0, 4, 1, "mute")], "2x2+1x1", tasks, link)
    times = task_times(instance)
    assert times.path.tolist() == [2 * 4.75, 4 * 4.75, 9, 3]
    assert (times.gpus.capacity, times.links.capacity) == (5, 3)
    assert (times.links.width > 0).tolist() == [True, True, False, False]
    assert times.links.width[:2].tolist() == [2, 3]
    assert times.links.seconds[:2].tolist() == [3, 6]
    assert times.links.release[:2].tolist() == [4.25, 3.25]
    assert times.gpus.tail.tolist() == [1.75, 1.75, 0, 0]
    assert values(instance)["task-path"] == 1 + 9.5 + 19 + 9 + 3
    # N1: works 2 x 3 / 3 and 3 x 6 / 3; the second one is overtaken at 4.25 with 5 seconds left
    assert values(instance)["link-srpt"] == Fraction(25, 4) + Fraction(45, 4) + 9 + 3
    # K1: works 18, 60, 18, 12 of 5 GPUs, from 1 for the first; its turn comes at 2.4, with 3.6 seconds to do both times
    ends = [Fraction(12, 5), Fraction(30, 5), Fraction(48, 5), Fraction(108, 5)]
    assert values(instance)["task-srpt"] == sum(ends) + Fraction(7, 2)


def test_mean_busy_times_by_hand() -> None:
    """K3 and N3 of two gangs on 2 nodes of one GPU: M^G from works 4 and 1, M^N from 4 and 3 released at t."""
    tasks = {"a": IterationTasks(1, 1, 4), "b": IterationTasks(0.5, 0.5, 6)}
    instance = with_tasks([(0, 2, 2, "a"), (0, 2, 1, "b")], "2x1", tasks, Contention(0.5))
    # L = 8, 4; c = 2, 3. GPUs: b at 0..1, a at 1..5. Interfaces: b at 1..4, a at 4..8.
    assert values(instance)["task-busy-time"] == Fraction(1, 2) + 3 + (8 + 2 + 4 + 3) / Fraction(2)
    assert values(instance)["link-busy-time"] == Fraction(5, 2) + 6 + (8 - 2 + 4 - 1) / Fraction(2)


def test_a_negative_penalty_needs_the_larger_rate_of_the_link() -> None:
    """Two transfers at once end before they could one after the other: beta = b would be wrong, b + eta holds."""
    tasks = {"m": IterationTasks(0, 0, 4)}
    instance = with_tasks([(0, 2, 1, "m")] * 2, "2x1", tasks, Contention(1, -0.5))
    together = TaskOptimum(instance, "makespan").value
    assert together == 6 < 2 * 4
    assert bound(instance, "makespan").value == 4 <= together
    assert values(instance)["link-srpt"] == 2 + 4 <= 12


def test_measured_ratios_say_nothing_of_links() -> None:
    tasks = {"m": IterationTasks(0, 0, 4)}
    instance = with_tasks([(0, 2, 1, "m")] * 2, "2x1", tasks, Contention(1, kinds=("m",), ratios=((1.0,),)))
    assert set(values(instance)) == {"task-path", "split-task-busy-time"} - {"split-task-busy-time"}
    assert bound(instance, "makespan").value == 4 == max(random_completions(instance, np.random.default_rng(0), 1.0))


def test_memory_and_types_decide_who_must_span() -> None:
    big = NodeGroup(4, 1, gpu="K80", gpu_memory=10.0)
    cluster = Cluster((big, NodeGroup(2, 3, gpu="V100", gpu_memory=40.0)))
    tasks = {"m": IterationTasks(1, 0, 1)}
    needs: list[dict[str, Any]] = [{}, {"gpu_memory": 20.0}, {"gpu_types": ("V100",)}, {"gpu_types": ("K80",)}]
    jobs = [Job(str(k), gpus=4, iterations=1, profile="m", **need) for k, need in enumerate(needs)]
    times = task_times(Instance(jobs, cluster, tasks=tasks, contention=Contention(1)))
    assert times.links.width.tolist() == [0, 2, 2, 0]
    assert times.links.capacity == 3  # nobody who must span may use the large node
    assert times.gpus.capacity == 10


def test_one_node_sends_nothing() -> None:
    instance = with_tasks([(0, 4, 3, "m")], "1x4", {"m": IterationTasks(1, 1, 9)}, ETHERNET_10G)
    assert bound(instance).value == 6
    assert "link-busy-time" not in values(instance)


def test_shares_are_put_back_to_the_nearest_legal_ones() -> None:
    given = np.array([[0.2, 0.9, 2.0, -1.0, 1.5], [0.3, 0.5, 0.1, 0.4, -0.5]])
    assert onto_simplex(given).tolist() == [
        pytest.approx([0.2, 0.7, 1.0, 0.0, 1.0]),
        pytest.approx([0.3, 0.3, 0.0, 0.4, 0.0]),
    ]


# --- the search for the best schedule ------------------------------------------------------------------------------------


def test_the_optimum_by_hand() -> None:
    """One GPU: the iterations of two jobs are one machine. Two nodes: the second job computes while the first one sends."""
    tasks = {"m": IterationTasks(1, 1, 2)}
    link = Contention(1.0, 0.5)
    machine = Instance(
        [Job("a", iterations=1, profile="m"), Job("b", iterations=2, profile="m")], "1x1", tasks=tasks, contention=link
    )
    assert TaskOptimum(machine, "total_completion_time").value == 2 + 6
    pair = Instance(
        [Job(name, gpus=2, iterations=1, profile="m") for name in "ab"], "2x1", tasks=tasks, contention=link
    )
    # compute 0-2, 2-4; messages 2-4, 4-6
    assert TaskOptimum(pair, "total_completion_time").value == 4 + 6
    assert TaskOptimum(pair, "makespan").value == 6


@pytest.mark.parametrize("count", [9, pytest.param(24, marks=pytest.mark.study)])
def test_no_random_schedule_is_better_where_the_search_is_exact(count: int) -> None:
    """Schedules made by other code, with idle GPUs and messages that wait."""
    rng, looked = np.random.default_rng(3), 0
    while looked < count:
        instance = with_tasks_on_few_gpus(rng).relative
        if instance.n == 1 or int((instance.gpus > 1).sum()) > 1:
            continue
        looked += 1
        best = TaskOptimum(instance, "total_flow_time").value
        for eager in (1.0, 0.9, 0.5):
            ends = random_completions(instance, rng, eager)
            assert objective_value(instance, "total_flow_time", ends) >= best


# --- the workload of published job sets ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def workload() -> Instance:
    return generate("ada-srsf", 1)


def test_orders_of_magnitude_of_the_sheet(workload: Instance) -> None:
    """Section 4.3, mean JCT in ms over five job sets: K1 1919-2576, K2 4342-4872, K3 4005-4891, N1 3772-5071, N3 4780-6253.

    Another random stream draws other sets: the tolerance is 15 %.
    """
    found = {name: float(value) / workload.n * 1000 for name, value in values(workload, "total_flow_time").items()}
    measured = [(1919, 2576), (4342, 4872), (4005, 4891), (3772, 5071), (4780, 6253)]
    for name, (low, high) in zip(SUMS, measured, strict=False):
        assert 0.85 * low < found[name] < 1.15 * high, name
    assert found["split-task-busy-time"] > 1.03 * max(found[name] for name in SUMS[:-1])
    assert bound(workload).kind == "priced-time"


def test_below_the_runs_of_policies(workload: Instance) -> None:
    small = workload.head(8)
    runs = [simulate(small, specification) for specification in ("ada-srsf+lwf:kappa=1", "srsf:k=2+first-fit")]
    for objective in ("total_flow_time", "makespan"):
        for certificate in certificates(small, objective):
            assert certificate.value <= min(Fraction(run.value(objective)) for run in runs) * ROUNDING, certificate.kind


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_both_roads_agree_on_the_workload(workload: Instance, objective: str) -> None:
    rng = np.random.default_rng(OBJECTIVES.index(objective))
    jobs = workload.table.with_columns(
        weight=rng.integers(0, 9, workload.n) / 7, due=workload.arrival + rng.uniform(0, 30, workload.n)
    )
    instance = workload.replace(jobs=jobs, contention=Contention(0.856e-9, 0.2e-9, 6.69e-4))
    for certificate in certificates(instance, objective):
        certificate.verify(instance)


# --- what is refused -----------------------------------------------------------------------------------------------------


def test_paths_beyond_the_times_of_jobs_are_refused() -> None:
    instance = with_tasks([(0, 1, 10**6, "m")], "1x1", {"m": IterationTasks(1e17, 0)}, ETHERNET_10G)
    with pytest.raises(InputError, match="'j0' takes") as error:
        bound(instance)
    assert "\n" not in str(error.value)
