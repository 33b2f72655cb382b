"""What every registered policy keeps with every registered placement; a new one of either is picked up by itself."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulation.instances import MIXED, random_instance

import optsched.policies
from optsched.check.referee import check_schedule
from optsched.policies import POLICIES
from optsched.policies.placements import PLACEMENTS
from optsched.policies.simulate import simulate
from optsched.policies.specification import names_nodes, specify, whole_job_policies
from optsched.problem.cluster import Cluster
from optsched.problem.instance import Instance, Job
from optsched.simulation.policy import Knowledge, KnownJobs, Use, uses_of
from optsched.simulation.run import Run
from policies.delays import delay_alone

# Parameters that show more of a policy than its defaults do; policies that are not named here run with the defaults.
TELLING = {
    "a-srpt": ":backfill=shadow,beta=0.5",
    "fifo": ":skip=true",
    "gavel": ":policy=finish_time_fairness_perf,round=4",
    "hadar": ":round=4,restart=1",
    "hadar-commit": ":round=4",
    "hadar-e": ":copies=1,round=16,overhead=0",
    "immediate-dispatch": ":restart=1",
    "preemptive-wspt": ":restart=1",
    "setf": ":quantum=2",
    "srtf": ":restart=3",
    "srtf-gpu": ":restart=1",
    "tiresias": ":threshold=24,starvation=1,restart=1,round=4",
    "wspt": ":gpus=true",
}
# A policy that forks keeps this contract with one copy of a job (see its own tests). Such a policy, like some others, names
# its nodes itself.
WHOLE = whole_job_policies()  # policies of the task level: tests/policies/test_task_contract.py
FORKING = [name for name in WHOLE if Use.COPIES in uses_of(POLICIES.get(name))]
POLICY_SPECS = [
    spec
    for name in WHOLE
    for spec in dict.fromkeys([*([] if name in FORKING else [name]), name + TELLING.get(name, "")])
]
PAIRS = [
    f"{policy}{placement}"
    for policy in POLICY_SPECS
    for placement in ([""] if names_nodes(specify(policy).policy) else [f"+{name}" for name in PLACEMENTS.names()])
]
SHIFT = 1024  # a multiple of every round above


def real_instance(seed: int, cluster: Cluster | str, jobs: int = 40) -> Instance:
    """Crowded, with arrivals and durations that are no integers, and no two alike."""
    rng = np.random.default_rng([seed, 11])
    base = random_instance(seed, cluster, jobs)
    made = [
        dataclasses.replace(job, arrival=float(rng.random() * 30), duration=float(rng.random() * 9 + 0.5))
        for job in base.jobs
    ]
    return Instance(made, base.cluster, base.name)


def run(instance: Instance, spec: str) -> Run:
    return simulate(instance, spec)


@cache
def instances() -> tuple[Instance, ...]:
    """Small ones with ties, larger ones without, homogeneous and mixed."""
    return (
        random_instance(1, "2x4"),
        random_instance(800, MIXED, jobs=30),
        real_instance(801, "4x2"),
        real_instance(802, MIXED),
    )


@cache
def base(spec: str) -> tuple[Run, ...]:
    """What a pair does on `instances`: run once, and compared with again and again."""
    return tuple(run(instance, spec) for instance in instances())


@cache
def base_rows(spec: str) -> tuple[list[tuple[Any, ...]], ...]:
    return tuple(map(rows, base(spec)))


def rows(made: Run) -> list[tuple[Any, ...]]:
    """Every segment with its GPUs, sorted."""
    return sorted((s.job, s.start, s.end, s.work, tuple(sorted(s.gpus))) for s in made.schedule.segments())


def problems(made: Run) -> list[str]:
    """A small checker of its own: every rule of a gang schedule, one segment and one GPU at a time."""
    found, instance = [], made.instance
    by_gpu: dict[tuple[int, int], list[tuple[float, float]]] = {}
    by_job: dict[int, list[Any]] = {}
    for s in made.schedule.segments():
        by_job.setdefault(s.job, []).append(s)
        if len(s.gpus) != instance.gpus[s.job] or len(set(s.gpus)) != len(s.gpus):
            found.append(f"gang of {s.job}")
        if s.start < instance.arrival[s.job]:
            found.append(f"{s.job} starts before it arrives")
        # an end is the rounded sum of start, overhead and work
        if not (0 <= s.work <= (s.end - s.start) * (1 + 1e-12) + 1e-12 and s.start < s.end):
            found.append(f"work of {s.job}")
        for node, index in s.gpus:
            if not instance.eligible(s.job)[node] or not 0 <= index < instance.cluster.node_gpus[node]:
                found.append(f"{s.job} on a GPU that it must not use")
            by_gpu.setdefault((node, index), []).append((s.start, s.end))
    for gpu, spans in by_gpu.items():
        spans.sort()
        if any(first[1] > second[0] for first, second in pairwise(spans)):
            found.append(f"GPU {gpu} is used twice at once")
    for j in range(instance.n):
        mine = sorted(by_job.get(j, []), key=lambda s: s.start)
        if any(first.end > second.start for first, second in pairwise(mine)):
            found.append(f"{j} runs beside itself")
        if abs(sum(s.work for s in mine) - instance.duration[j]) > 1e-9 * instance.duration[j]:
            found.append(f"{j} is not complete")
    return found


# -- schedules ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", PAIRS)
def test_every_job_is_done_in_a_legal_schedule_and_two_runs_are_the_same_bit_for_bit(spec: str) -> None:
    for instance, made in zip(instances(), base(spec), strict=True):
        again = run(instance, spec)
        assert made.unfinished == []
        assert problems(made) == []
        assert check_schedule(instance, made.schedule, preemptive=made.schedule_class == "gang") == []
        assert made.schedule.policy == made.policy == spec
        for name in ("job", "start", "end", "work", "gpu_offset", "gpu_node", "gpu_index"):
            assert np.array_equal(getattr(made.schedule, name), getattr(again.schedule, name)), name
        assert (made.events, made.preemptions) == (again.events, again.preemptions)


@pytest.mark.parametrize("spec", PAIRS)
def test_only_a_preemptive_policy_preempts_and_counts_how_often(spec: str) -> None:
    for instance, made in zip(instances(), base(spec), strict=True):
        job = made.schedule.job
        assert made.preemptions == job.size - instance.n  # a job that was stopped has a segment more
        if made.schedule_class == "gang-nonpreemptive":
            assert made.preemptions == 0
            assert sorted(job.tolist()) == list(range(instance.n))
            assert np.array_equal(made.schedule.work, instance.duration[job])


def test_policies_that_may_stop_jobs_do_so_somewhere() -> None:
    """The instances are crowded enough for that: what is said of preemption above is said of something."""
    stopped = {spec.partition(":")[0].partition("+")[0] for spec in PAIRS if sum(r.preemptions for r in base(spec))}
    preemptive = {"srtf", "srtf-gpu", "preemptive-wspt", "setf", "tiresias", "hadar", "hadar-commit", "gavel"}
    assert stopped >= preemptive | {"immediate-dispatch"}


@pytest.mark.parametrize("spec", PAIRS)
def test_work_and_gpus_are_conserved_at_every_instant(spec: str) -> None:
    # GPUs in use never exceed what is there (checked GPU by GPU above); here: the sums that the metrics report.
    for instance, made in zip(instances(), base(spec), strict=True):
        hours = made.metrics["gpu_hours"]
        asked = float(np.dot(instance.gpus, instance.duration)) / 3600
        assert hours["busy"] == pytest.approx(asked, rel=1e-12)
        assert min(hours["overhead"], hours["idle"]) > -1e-12
        total = instance.cluster.gpus * (made.metrics["makespan"] - instance.arrival.min()) / 3600
        assert hours["busy"] + hours["overhead"] + hours["idle"] == pytest.approx(total, rel=1e-12)


# -- invariances ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", PAIRS)
def test_a_later_clock_shifts_the_schedule_and_changes_nothing_else(spec: str) -> None:
    for instance, before in zip(instances()[:2], base_rows(spec), strict=False):  # integers: exact
        later = [
            dataclasses.replace(job, arrival=job.arrival + SHIFT, due=None if job.due is None else job.due + SHIFT)
            for job in instance.jobs
        ]
        shifted = [(j, start + SHIFT, end + SHIFT, work, gpus) for j, start, end, work, gpus in before]
        assert rows(run(Instance(later, instance.cluster), spec)) == shifted


@pytest.mark.parametrize("spec", PAIRS)
def test_names_of_jobs_users_and_models_do_not_matter(spec: str) -> None:
    for instance, before in zip(instances(), base_rows(spec), strict=True):
        renamed = [
            dataclasses.replace(job, id=f"{97 * j % 101}-{j}", user=f"u{j}", group="g", model="m")
            for j, job in enumerate(instance.jobs)
        ]
        assert rows(run(Instance(renamed, instance.cluster), spec)) == before


# a round makes ties of arrivals that are none; random draws depend on the order of starts; a list is an order
@pytest.mark.parametrize(
    "spec", [s for s in PAIRS if not s.startswith("list") and "random" not in s and "round" not in s]
)
def test_the_order_of_jobs_in_the_file_matters_only_for_ties(spec: str) -> None:
    instance = real_instance(803, "4x2", jobs=25)  # no two alike
    order = np.random.default_rng(5).permutation(instance.n)
    jobs = instance.jobs
    mixed = run(Instance([jobs[j] for j in order], instance.cluster), spec)
    assert mixed.schedule.completion.tolist() == run(instance, spec).schedule.completion[order].tolist()


def has_seconds(spec: str) -> bool:
    """Are parameters of the policy a number of seconds, so that another unit makes it another policy?"""
    policy = specify(spec).policy
    return "restart" in spec or policy.name in ("setf", "tiresias") or bool(getattr(policy, "round", 0))


@pytest.mark.parametrize("spec", [spec for spec in POLICY_SPECS if not has_seconds(spec)])
def test_a_clock_that_ticks_eight_times_as_fast_changes_nothing_but_the_unit(spec: str) -> None:
    instance = real_instance(804, "2x4", jobs=25)
    faster = [
        dataclasses.replace(
            job, arrival=job.arrival * 8, duration=(job.duration or 0) * 8, due=None if job.due is None else job.due * 8
        )
        for job in instance.jobs
    ]
    eightfold = run(Instance(faster, instance.cluster), spec).schedule.completion / 8
    assert eightfold.tolist() == run(instance, spec).schedule.completion.tolist()


# -- knowledge ------------------------------------------------------------------------------------------------------------


def prefix(made: Run, time: float) -> list[tuple[Any, ...]]:
    """What happened before ``time``: who ran on which nodes from when, and until when if it ended before.

    GPUs of a node get their names after the run, in which knowledge plays no part.
    """
    return sorted(
        (s.job, s.start, float(min(s.end, time)), sorted(node for node, _ in s.gpus))
        for s in made.schedule.segments()
        if s.start < time
    )


def told_at_arrival(spec: str) -> bool:
    """Does the policy know durations at arrival, itself or by an oracle?"""
    policy: Any = specify(spec).policy
    if policy.knowledge is Knowledge.PREDICTED:
        return bool(getattr(policy.make_predictor(), "oracle", False))
    return bool(policy.knowledge is Knowledge.CLAIRVOYANT)


def unknown_jobs(made: Run) -> tuple[list[int], float]:
    """Jobs whose numbers could not be known when a third is complete, and that time."""
    now = float(np.sort(made.schedule.completion)[made.instance.n // 3])
    since = made.instance.arrival if told_at_arrival(made.policy) else made.schedule.completion
    return np.flatnonzero(since > now).tolist(), now


def with_other_secrets(made: Run, jobs: list[int]) -> Instance:
    """Other durations for ``jobs``; where a policy knows durations at arrival, everything else is other too."""
    changes: dict[str, Any] = {"weight": 7, "gpus": 1, "due": 3} if told_at_arrival(made.policy) else {}
    changed = [
        dataclasses.replace(job, duration=(job.duration or 0) + 7 + j % 3, **changes) if j in jobs else job
        for j, job in enumerate(made.instance.jobs)
    ]
    return Instance(changed, made.instance.cluster)


LEARNING = [
    "a-srpt:predictor=group-mean",
    "a-srpt:predictor=global-mean,backfill=unrestricted",
    "spjf:predictor=global-mean",
]


SECRETIVE = [
    f"{policy}{placement}"
    for policy in POLICY_SPECS + LEARNING
    for placement in ([""] if names_nodes(specify(policy).policy) else ["+first-fit", "+consolidated", "+random"])
]


@pytest.mark.parametrize("spec", SECRETIVE)
def test_decisions_do_not_depend_on_what_cannot_be_known(spec: str) -> None:
    changed = 0
    for seed in (821, 836, 887, 928):  # where many jobs arrive late, so that clairvoyants do not know them either
        made = run(random_instance(seed, "2x4", jobs=25), spec)
        jobs, until = unknown_jobs(made)
        other = run(with_other_secrets(made, jobs), spec)
        changed += len(jobs)
        assert prefix(made, until) == prefix(other, until)
    # a round longer than the whole instance decides once, and nothing is unknown any more
    assert changed > 5 or getattr(specify(spec).policy, "round", 0) > 100


@pytest.mark.parametrize("name", POLICIES.names())
def test_a_policy_names_the_knowledge_that_it_assumes(name: str) -> None:
    assert isinstance(Knowledge(POLICIES.get(name)().knowledge), Knowledge)


@pytest.mark.parametrize("name", [name for name in POLICIES.names() if hasattr(POLICIES.get(name), "order")])
def test_an_order_asks_for_no_more_than_the_knowledge_it_names(name: str) -> None:
    policy: Any = POLICIES.get(name)()
    instance = random_instance(5, "2x4")
    policy.order(KnownJobs(instance, policy.knowledge))  # KnowledgeError if it asked for durations
    blind = Instance([dataclasses.replace(job, duration=99.0) for job in instance.jobs], instance.cluster)
    keys = [np.asarray(policy.order(KnownJobs(each, policy.knowledge)).key).tolist() for each in (instance, blind)]
    if policy.knowledge is Knowledge.NON_CLAIRVOYANT:
        assert keys[0] == keys[1]


# -- how it is written ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", POLICIES.names())
def test_a_policy_is_a_dataclass_that_is_made_without_arguments_and_bears_its_name(name: str) -> None:
    kind = POLICIES.get(name)
    policy: Any = kind()
    assert policy.name == name
    assert dataclasses.is_dataclass(kind)
    methods = ("order", "decide", "tasks")
    assert [hasattr(policy, method) for method in methods].count(True) == 1
    field = next(iter(dataclasses.fields(kind)), None)
    if field is not None and (hasattr(policy, "order") or hasattr(policy, "tasks")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(policy, field.name, None)


@pytest.mark.parametrize("spec", [s for s in POLICY_SPECS + LEARNING if not hasattr(specify(s).policy, "order")])
def test_a_policy_with_a_memory_forgets_it_between_two_runs(spec: str) -> None:
    chosen = specify(spec)
    first, second = instances()[0], instances()[2]
    runs = [simulate(each, chosen) for each in (first, second, first)]
    assert rows(runs[0]) == rows(runs[2]) == rows(run(first, spec))
    assert rows(runs[1]) == rows(run(second, spec))


@pytest.mark.parametrize("section", ["Problem", "Knowledge", "Guarantee", "Complexity"])
@pytest.mark.parametrize("name", POLICIES.names())
def test_the_docstring_has_its_sections(name: str, section: str) -> None:
    kind = POLICIES.get(name)
    text = inspect.getdoc(kind) or ""
    assert f"**{section}**" in text
    assert str(kind().knowledge) in text.lower()
    for field in (each for each in dataclasses.fields(kind) if each.init):
        assert f"``{field.name}" in text, f"{field.name} is not explained"


@pytest.mark.parametrize(
    "file", sorted(Path(optsched.policies.__file__).parent.glob("*.py")), ids=lambda file: file.stem
)
def test_one_policy_a_file(file: Path) -> None:
    classes = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ClassDef)]
    registered = [kind for kind in classes if any("register" in ast.unparse(mark) for mark in kind.decorator_list)]
    assert len(registered) <= 1
    if registered:
        assert len(classes) == 1
        name = ast.unparse(registered[0].decorator_list[0]).split("'")[1]
        assert file.stem == name.replace("-", "_")


@pytest.mark.parametrize("cluster", ["1x1", "64x1"])
def test_a_single_job_runs_at_once_alone(cluster: str) -> None:
    instance = Instance([Job("a", arrival=8, duration=3)], cluster)
    for spec in PAIRS:
        assert run(instance, spec).schedule.completion.tolist() == [
            11 + delay_alone(spec, 3, 1, instance.cluster.gpus)
        ], spec
