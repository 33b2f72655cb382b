"""The edges of the task level: late clocks, extreme numbers, policies that are wrong, what is too large to keep."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import few

import optsched as osd
from optsched.bounds import bound
from optsched.check.referee import check_file, check_schedule
from optsched.classes.task_sharing.policies.task_orders import fewer_than, srsf
from optsched.classes.task_sharing.problem.task_log import TaskSchedule
from optsched.classes.task_sharing.simulation import iterations
from optsched.classes.task_sharing.simulation.iterations import TaskRun, run_iterations
from optsched.classes.task_sharing.simulation.task_policy import Countdown, TaskJobs, TaskOrder
from optsched.errors import InputError, KnowledgeError, SimulationError
from optsched.evaluation.evaluate import default_policies, evaluate
from optsched.io.sources import LoadRequest, load, load_counted
from optsched.policies.simulate import simulate, specify
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.contention import ETHERNET_10G, Contention, IterationTasks
from optsched.problem.instance import Instance, Job
from optsched.simulation.policy import Knowledge
from simulation.task_instances import Mine, random_task_instance

NET = {"net": IterationTasks(0.036, 0.054, 5e8), "short": IterationTasks(0.0201, 0.0301)}


def two_jobs(arrival: float, profile: str, iterations: int) -> Instance:
    jobs = [Job(name, arrival=arrival, gpus=2, iterations=iterations, profile=profile) for name in "ab"]
    return Instance(jobs, "2x1", tasks=NET, contention=ETHERNET_10G)


@pytest.mark.compiled
@pytest.mark.parametrize("arrival", few([0.0, 604800.0, 1.7e9, 2.0**20 + 0.25], 2))
@pytest.mark.parametrize("profile", ["net", "short"])
def test_late_clocks_lose_no_part_of_tasks(arrival: float, profile: str, tmp_path: Path) -> None:
    instance = two_jobs(arrival, profile, 2000)
    early = two_jobs(0.0, profile, 2000)
    for spec in ("ada-srsf", "leader-first"):
        run, same = simulate(instance, spec), simulate(early, spec)
        assert run.value("total_flow_time") == pytest.approx(same.value("total_flow_time"), rel=1e-8)
        assert check_schedule(instance, run.schedule) == []
        run.schedule.save(tmp_path / "schedule.json", sharing=True)
        assert check_file(tmp_path / "schedule.json", instance).holds
        low = bound(instance, "total_completion_time")
        assert run.value("total_completion_time") >= low.exact_float * (1 - 1e-9)


def test_a_late_clock_that_no_epoch_takes_away_loses_no_part_of_tasks() -> None:
    """The difference of the arrivals is no float, so that they stay as they are: 2000 tasks would lose 1.9e-7 s."""
    early, late = (
        Job(name, at, iterations=n, profile="p") for name, at, n in (("a", 2.0**20 + 0.1, 1000), ("b", 1e8, 1))
    )
    instance = Instance([early, late], "1x1", tasks={"p": IterationTasks(0.1, 0.1)})
    assert instance.relative is instance
    completion = simulate(instance, "srsf").schedule.completion
    assert completion[0] - instance.arrival[0] == pytest.approx(200, abs=2e-9)


def test_stays_that_the_clock_rounds_to_nothing_are_no_nan() -> None:
    tasks = {"tiny": IterationTasks(1e-9, 1e-9)}
    jobs = [Job("a", arrival=0, iterations=1, profile="tiny"), Job("b", arrival=1e9, iterations=1, profile="tiny")]
    metrics = simulate(Instance(jobs, "1x1", tasks=tasks), "srsf").metrics
    assert all(math.isfinite(value) for value in metrics.values() if isinstance(value, float))


def test_a_cluster_in_text_keeps_the_memory_of_the_instance() -> None:
    said: list[str] = []
    loaded = load_counted("contention-cluster", LoadRequest(cluster="8x8", say=said.append)).instance
    assert {group.gpu_memory for group in loaded.cluster.nodes} == {32768e6}
    assert len(said) == 1
    assert "memory" in said[0]
    assert load("contention-cluster", cluster="16x4").cluster == load("contention-cluster").cluster


def test_memories_that_differ_do_not_carry_over(tmp_path: Path) -> None:
    cluster = Cluster((NodeGroup(gpus=1, gpu_memory=8), NodeGroup(gpus=1, gpu_memory=16)))
    Instance([Job("a", iterations=1, profile="short")], cluster, tasks=NET).save(tmp_path / "x.json")
    with pytest.raises(InputError, match="what memory its GPUs have"):
        load(str(tmp_path / "x.json"), cluster="2x2")


@pytest.mark.parametrize("text", ["1e300", "nan", "-1"])
def test_what_a_byte_counts_in_loads_is_bounded(text: str) -> None:
    with pytest.raises(InputError, match="lwf: seconds_per_byte"):
        specify(f"srsf+lwf:seconds_per_byte={text}")
    run = simulate(random_task_instance(0), "srsf+lwf:seconds_per_byte=1e18")
    assert not run.unfinished


def test_numbers_have_an_upper_end() -> None:
    for make in (
        lambda: IterationTasks(1e19, 1),
        lambda: IterationTasks(1, 1, 1e19),
        lambda: Contention(math.inf),
        lambda: Contention(1, 1e19),
        lambda: Contention(1, math.nan),
    ):
        with pytest.raises(InputError, match=r"at most 1e\+18"):
            make()


def test_default_policies_fit_the_contention() -> None:
    instance = two_jobs(0, "net", 2)
    assert "ada-srsf" in default_policies(instance)
    negative = instance.replace(contention=Contention(1e-9, -1e-10))
    measured = instance.replace(contention=Contention(1e-9, kinds=("net",), ratios=((0.6,),)))
    for each in (negative, measured):
        assert "ada-srsf" not in default_policies(each)
        assert len(evaluate(each).lines) == len(default_policies(each)) >= 3


def test_an_instance_without_jobs_is_of_the_level_of_its_tasks() -> None:
    instance = Instance([], "2x1", tasks=NET, contention=ETHERNET_10G)
    assert instance.at_task_level
    assert simulate(instance, "srsf").value("total_flow_time") == 0
    assert "srsf:k=1" in default_policies(instance)
    with pytest.raises(InputError, match="schedules tasks, these jobs have none"):
        simulate(Instance([], "2x1"), "srsf")


def test_jobs_that_take_no_time_are_told_before_anything_runs() -> None:
    tasks = {"silent": IterationTasks(0, 0, 5)}
    for cluster, gpus in (("2x1", 1), ("2x2", 2)):
        instance = Instance(
            [Job("a", gpus=gpus, iterations=10**12, profile="silent")], cluster, tasks=tasks, contention=ETHERNET_10G
        )
        with pytest.raises(InputError, match="job 'a' takes 0 s when nothing is in its way"):
            simulate(instance, "srsf")


def test_jobs_that_never_send_are_not_charged_for_messages() -> None:
    tasks = {"big": IterationTasks(1, 1, 1e12), "small": IterationTasks(3, 3)}
    jobs = [Job("a", iterations=2, profile="big"), Job("b", iterations=1, profile="small")]
    instance = Instance(jobs, "2x1", tasks=tasks, contention=ETHERNET_10G)
    for includes in (False, True):
        order = srsf(1, service_includes_comm=includes).tasks(TaskJobs(instance, Knowledge.CLAIRVOYANT))
        assert order.queue.tolist() == [4, 6]


def test_long_logs_are_not_kept_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iterations, "MOST_LOGGED", 10)
    instance, chosen = two_jobs(0, "net", 5), specify("srsf")
    policy: Any = chosen.policy
    for record, kept in ((None, False), (True, True), (False, False)):
        run = run_iterations(instance, policy, chosen.placement, record=record)
        assert (run.schedule.tasks is not None) == kept  # type: ignore[attr-defined]
        assert check_schedule(instance, run.schedule) == []
    assert len(evaluate(instance, ["srsf", "ada-srsf"]).lines) == 2


@pytest.mark.parametrize(
    ("order", "field"),
    [
        (3, "tasks"),
        (TaskOrder(np.zeros(2), Countdown(), Countdown(), admit=lambda *_: True), "admit"),
        (TaskOrder(np.zeros(5), Countdown(), Countdown(), admit=fewer_than, numbers=(1.0,)), "queue"),
        (TaskOrder(np.zeros(2), Countdown(forward=math.nan), Countdown(), admit=fewer_than, numbers=(1.0,)), "gpu"),
        (TaskOrder(np.zeros(2), Countdown(), Countdown(), admit=fewer_than, numbers=("x",)), "numbers"),  # type: ignore[arg-type]
        (TaskOrder(np.zeros(2), None, Countdown(), admit=fewer_than, numbers=(1.0,)), "gpu"),  # type: ignore[arg-type]
        (TaskOrder(np.zeros(2), Countdown(), Countdown(forward="x"), admit=fewer_than, numbers=(1.0,)), "link"),  # type: ignore[arg-type]
    ],
)
def test_an_order_that_is_none_is_told(order: Any, field: str) -> None:
    with pytest.raises(InputError, match=field):
        simulate(two_jobs(0, "net", 2), Mine(order))


def test_a_rule_without_its_numbers_and_a_policy_that_starts_nothing_wait_for_ever() -> None:
    for order in (TaskOrder(np.zeros(2), Countdown(), Countdown(), admit=fewer_than), None):
        with pytest.raises(SimulationError, match="the all-reduce of job 'a' waits for ever"):
            simulate(two_jobs(0, "net", 2), Mine(order))


def test_who_may_not_know_iterations_is_not_told_them() -> None:
    with pytest.raises(KnowledgeError, match="asked for iterations"):
        simulate(two_jobs(0, "net", 2), Mine(None, knowledge=Knowledge.NON_CLAIRVOYANT))


def test_answers_of_a_policy_in_plain_python() -> None:
    instance = two_jobs(0, "net", 2)
    wanted = simulate(instance, "srsf:k=9").schedule.completion.tolist()
    for answer in (lambda view: np.array(view.ready), lambda view: [view.start(job) for job in view.ready][:0]):
        assert simulate(instance, Mine(None, answer)).schedule.completion.tolist() == wanted
    for wrong, said in (
        (lambda view: 0, "communicate gives 0"),
        (lambda view: True, "communicate gives True"),
        (lambda view: [True], "job True"),
        (lambda view: [7], "job 7 has no all-reduce"),
        (lambda view: [view.ready[0]] * 2, "job 'a' \\(0\\) has no all-reduce that waits"),
        (lambda view: view.running(99), "node 99 \\(expected: 0..1\\)"),
        (lambda view: view.running(-1), "node -1"),
    ):
        with pytest.raises(SimulationError, match=said):
            simulate(instance, Mine(None, wrong))


@pytest.mark.parametrize("damage", ["job", "end", "node"])
def test_damaged_files_of_tasks_are_not_loaded(damage: str, tmp_path: Path) -> None:
    instance = two_jobs(0, "net", 2)
    run = simulate(instance, "srsf")
    assert isinstance(run, TaskRun)
    schedule = run.schedule
    assert isinstance(schedule, TaskSchedule)
    log = schedule.tasks
    assert log is not None
    if damage == "job":
        log.job[0] = 10**6
    elif damage == "end":
        log.end[0] = math.nan
    else:
        schedule = dataclasses.replace(schedule, gpu_node=schedule.gpu_node + 99)
    schedule.save_tasks(tmp_path / "tasks.parquet")
    with pytest.raises(InputError, match="invalid"):
        TaskSchedule.load_tasks(tmp_path / "tasks.parquet", instance)
    assert not check_file(tmp_path / "tasks.parquet", instance).holds


def test_the_recipe_names_the_memory_that_it_needs() -> None:
    with pytest.raises(InputError, match=r"ada-srsf: memory = 1000000000.0: too small \(expected: at least 4.527e\+09"):
        osd.generate("ada-srsf", 1, memory=1e9)
