"""What every registered policy keeps at its level, with the placements there are; a new one is picked up by itself."""

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
from simulation.instances import random_instance

import optsched.policies
from optsched.check.referee import schedule_value
from optsched.contract.check import CHECKS
from optsched.contract.checks.knowledge import unknown_jobs
from optsched.contract.instances import random_sharing_instance
from optsched.contract.levels import SHARING, TASKS, WHOLE
from optsched.contract.subject import Subject
from optsched.errors import KnowledgeError
from optsched.policies import POLICIES
from optsched.policies.placements import PLACEMENTS
from optsched.policies.simulate import simulate
from optsched.policies.specification import (
    default_placement,
    names_nodes,
    resizes,
    serves,
    sharing_policies,
    specify,
    task_policies,
    whole_job_policies,
)
from optsched.problem.instance import Instance, Job
from optsched.simulation.policy import Knowledge, KnownJobs, Use, uses_of
from optsched.simulation.run import Run
from optsched.simulation.task_policy import TaskJobs
from optsched.speeds.gpu_sharing import sharing_rates
from policies.delays import delay_alone

# Parameters that show more of a policy than its defaults do; policies that are not named here run with the defaults.
TELLING = {
    "a-srpt": ":overtake=2,beta=0.5",
    "fifo": ":skip=true",
    "gavel": ":policy=finish_time_fairness_perf,round=4",
    "hadar": ":round=4,restart=1",
    "hadar-commit": ":round=4",
    "hadar-e": ":copies=1,round=16,overhead=0",
    "immediate-dispatch": ":restart=1",
    "k-way": ":by_size=true",
    "leader-first": ":width=1,caution=0.5",
    "preemptive-wspt": ":restart=1",
    "setf": ":quantum=2",
    "sjf-bsbf": ":consolidated=false,joint=false,by=pair,outlook=0,interval=2",
    "sjf-ffs": ":width=true",
    "srsf": ":k=2,service_includes_comm=true",
    "srtf": ":restart=3",
    "srtf-gpu": ":restart=1",
    "tiresias": ":threshold=24,starvation=1,restart=1,round=4",
    "wspt": ":gpus=true",
}
LEARNING = [
    "a-srpt:predictor=group-mean",
    "a-srpt:predictor=global-mean,overtake=inf",
    "spjf:predictor=global-mean",
]
WHOLE_JOBS = whole_job_policies()
# Such a policy keeps this contract with one copy of a job (see its own tests).
FORKING = [name for name in WHOLE_JOBS if Use.COPIES in uses_of(POLICIES.get(name))]


def told(names: list[str]) -> list[str]:
    """Every policy as it is and as `TELLING` has it."""
    each = ([*([] if name in FORKING else [name]), name + TELLING.get(name, "")] for name in names)
    return [spec for specs in each for spec in dict.fromkeys(specs)]


def pairs(policies: list[str], placements: list[str]) -> list[tuple[str, bool]]:
    """Every policy with every placement, and whether it is of the default tests: there, placements take turns."""
    found, turn = [], 0
    for policy in policies:
        if names_nodes(specify(policy).policy):
            found.append((policy, True))
            continue
        found += [(f"{policy}+{name}", k == turn % len(placements)) for k, name in enumerate(placements)]
        turn += 1
    return found


POLICY_SPECS, SHARING_SPECS, TASK_SPECS = map(told, (WHOLE_JOBS, sharing_policies(), task_policies()))
MADE = pairs(POLICY_SPECS, PLACEMENTS.names())
SECRETIVE = pairs(POLICY_SPECS + LEARNING, ["first-fit", "consolidated", "random"])
SHARED = [name for name in PLACEMENTS.names() if PLACEMENTS.get(name)().shared is not None]
TASK_PAIRS = [f"{policy}+{placement}" for policy in TASK_SPECS for placement in [*SHARED, "lwf:kappa=2"]]
DEFAULT_PAIRS = [spec for spec, default in MADE if default]


def also_long(found: list[tuple[str, bool]]) -> list[Any]:
    """The pairs as parameters: those that are not of the default tests are for the study."""
    return [spec if default else pytest.param(spec, marks=pytest.mark.study) for spec, default in found]


PAIRS = also_long(MADE)


def is_ordered(spec: str) -> bool:
    """A round makes ties of arrivals that are none; random draws depend on the order of starts; a list is an order."""
    return not spec.startswith("list") and "random" not in spec and "round" not in spec


def asked() -> list[Any]:
    """(policy, check): what is asked of which; the order of the jobs in the file matters to whole jobs only."""
    always = [(spec, True) for spec in POLICY_SPECS + LEARNING]
    tasks = {"complete": TASK_PAIRS, "deterministic": TASK_PAIRS, "feasible": TASK_PAIRS}
    found = []
    for check in CHECKS.names():
        whole = {
            "knowledge": SECRETIVE,
            "order": [(spec, default) for spec, default in MADE if is_ordered(spec)],
            "unit": [(spec, True) for spec in POLICY_SPECS],
            **dict.fromkeys(("memory", "parameters", "pickles"), always),
        }.get(check, MADE)
        others = [] if check == "order" else SHARING_SPECS + tasks.get(check, TASK_SPECS)
        for spec, default in [*whole, *((spec, True) for spec in others)]:
            found.append(pytest.param(spec, check, marks=[] if default else pytest.mark.study))
    return found


@cache
def subject(spec: str) -> Subject:
    """A pair under examination: what it does on the instances of its level is run once, and compared again and again."""
    return Subject(spec)


def has_seconds(spec: str) -> bool:
    """Are parameters of the policy a number of seconds, so that another unit makes it another policy?"""
    policy = specify(spec).policy
    own = bool(getattr(policy, "round", 0) or getattr(policy, "interval", 0))
    return "restart" in spec or policy.name in ("setf", "tiresias") or own


@pytest.mark.parametrize(("spec", "check"), asked())
def test_the_contract_is_kept(spec: str, check: str) -> None:
    examined, kept = subject(spec), CHECKS.get(check)
    if check == "unit" and has_seconds(spec):
        assert kept.exempt(examined)
        return
    # policies that wake themselves, which the public check lets off: ours wake at times that scale
    assert check in ("unit", "order") or not kept.exempt(examined)
    assert [each.message for each in kept.find(examined)] == []
    if check == "knowledge" and examined.level is WHOLE:
        changed = sum(len(unknown_jobs(examined, examined.secret_run(seed))[0]) for seed in WHOLE.seeds)
        # a round longer than the whole instance decides once, and nothing is unknown any more
        assert changed > 5 or getattr(specify(spec).policy, "round", 0) > 100


def test_every_policy_is_of_one_level_and_every_placement_is_asked() -> None:
    resizing = [name for name, each in POLICIES.items() if resizes(each)]
    assert sorted([*WHOLE_JOBS, *sharing_policies(), *task_policies(), *resizing]) == sorted(POLICIES.names())
    named = {part for spec in DEFAULT_PAIRS for part in spec.split("+")}
    assert named >= {*POLICY_SPECS, *PLACEMENTS.names()}
    assert {"first-fit", "list", "lwf", "random"} <= set(SHARED)
    for name in task_policies():
        assert default_placement(POLICIES.get(name)()).partition(":")[0] in SHARED


# -- schedules ------------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("spec", PAIRS)
def test_a_checker_that_shares_nothing_with_the_referee_agrees(spec: str) -> None:
    for made in subject(spec).base:
        assert problems(made) == []
        assert made.schedule.policy == made.policy == spec


@pytest.mark.parametrize("spec", PAIRS)
def test_only_a_preemptive_policy_preempts_and_counts_how_often(spec: str) -> None:
    for instance, made in zip(WHOLE.instances(), subject(spec).base, strict=True):
        job = made.schedule.job
        assert made.preemptions == job.size - instance.n  # a job that was stopped has a segment more
        if made.schedule_class == "gang-nonpreemptive":
            assert made.preemptions == 0
            assert sorted(job.tolist()) == list(range(instance.n))
            assert np.array_equal(made.schedule.work, instance.duration[job])


def test_policies_that_may_stop_jobs_do_so_somewhere() -> None:
    """The instances are crowded enough for that: what is said of preemption above is said of something."""
    found = (spec for spec in DEFAULT_PAIRS if sum(made.preemptions for made in subject(spec).base))
    preemptive = {"srtf", "srtf-gpu", "preemptive-wspt", "setf", "tiresias", "hadar", "hadar-commit", "gavel"}
    assert {spec.partition(":")[0].partition("+")[0] for spec in found} >= preemptive | {"immediate-dispatch"}


@pytest.mark.parametrize("spec", PAIRS)
def test_work_and_gpus_are_conserved_at_every_instant(spec: str) -> None:
    # GPUs in use never exceed what is there (checked GPU by GPU above); here: the sums that the metrics report.
    for instance, made in zip(WHOLE.instances(), subject(spec).base, strict=True):
        hours = made.metrics["gpu_hours"]
        asked = float(np.dot(instance.gpus, instance.duration)) / 3600
        assert hours["busy"] == pytest.approx(asked, rel=1e-12)
        assert min(hours["overhead"], hours["idle"]) > -1e-12
        total = instance.cluster.gpus * (made.metrics["makespan"] - instance.arrival.min()) / 3600
        assert hours["busy"] + hours["overhead"] + hours["idle"] == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("spec", SHARING_SPECS + TASK_PAIRS)
def test_runs_share_gpus_and_the_referee_adds_up_the_same_value(spec: str) -> None:
    for made in subject(spec).base:
        assert made.schedule_class == {SHARING: "gpu-sharing", TASKS: "task-sharing"}[subject(spec).level]
        assert float(schedule_value(made.instance, made.schedule)) == pytest.approx(made.value(), rel=1e-12)


# -- knowledge ------------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("name", [*sharing_policies(), *task_policies()])
def test_where_jobs_share_it_asks_for_no_more_either(name: str) -> None:
    policy: Any = POLICIES.get(name)()
    blind = Knowledge.NON_CLAIRVOYANT

    def ask(knowledge: Knowledge) -> None:
        if hasattr(policy, "tasks"):
            policy.tasks(TaskJobs(TASKS.instances()[0], knowledge))
        else:
            instance = random_sharing_instance(0)
            policy.order(KnownJobs(instance, knowledge, sharing_rates(instance).alone))

    ask(policy.knowledge)
    if Knowledge(policy.knowledge) is Knowledge.CLAIRVOYANT:
        with pytest.raises(KnowledgeError, match=r"asked for (durations|iterations)"):
            ask(blind)


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


@pytest.mark.parametrize("section", ["Problem", "Knowledge", "Guarantee", "Complexity"])
@pytest.mark.parametrize("name", POLICIES.names())
def test_the_docstring_has_its_sections(name: str, section: str) -> None:
    kind = POLICIES.get(name)
    text = inspect.getdoc(kind) or ""
    assert f"**{section}**" in text
    assert str(kind().knowledge) in text.lower()
    for field in (each for each in dataclasses.fields(kind) if each.init):
        assert f"``{field.name}" in text, f"{field.name} is not explained"


@pytest.mark.parametrize("name", [*sharing_policies(), *task_policies()])
def test_where_jobs_share_it_cites_its_reference_and_serves_them_only(name: str) -> None:
    assert "**Reference**" in (inspect.getdoc(POLICIES.get(name)) or "")
    instance = TASKS.instances()[0] if name in task_policies() else random_sharing_instance(0)
    assert serves(specify(name).policy, instance)
    assert not serves(specify(name).policy, Instance([Job("a", duration=1)], "1x1"))


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
    for spec, _ in MADE:
        assert simulate(instance, spec).schedule.completion.tolist() == [
            11 + delay_alone(spec, 3, 1, instance.cluster.gpus)
        ], spec
