"""What every registered policy keeps with every registered placement; a new one of either is picked up by itself."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulation.instances import random_instance

import optsched.policies
from optsched.check.referee import schedule_value
from optsched.contract.examine import CHECKS, unknown_jobs
from optsched.contract.instances import random_sharing_instance
from optsched.contract.levels import TASKS, WHOLE, Subject
from optsched.errors import KnowledgeError
from optsched.policies import POLICIES, TABLES
from optsched.policies.placements import PLACEMENTS
from optsched.policies.simulate import (
    at_task_level,
    default_placement,
    names_nodes,
    resizes,
    serves,
    shares_gpus,
    specify,
    task_policies,
)
from optsched.problem.instance import Instance, Job
from optsched.simulation.policy import Knowledge, KnownJobs, Use, uses_of
from optsched.simulation.run import Run
from optsched.simulation.task_policy import TaskJobs
from optsched.speeds.gpu_sharing import sharing_rates
from policies.levels import sharing_policies, whole_job_policies

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
# A policy that forks keeps this contract with one copy of a job (see its own tests). Such a policy, like some others, names
# its nodes itself.
WHOLE_JOBS = whole_job_policies()
FORKING = [name for name in WHOLE_JOBS if Use.COPIES in uses_of(POLICIES.get(name))]


def telling(name: str) -> list[str]:
    """The policy as it is, and so that it shows more."""
    return list(dict.fromkeys([*([] if name in FORKING else [name]), name + TELLING.get(name, "")]))


POLICY_SPECS = list(chain(*map(telling, WHOLE_JOBS)))


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


def also_long(found: list[tuple[str, bool]]) -> list[Any]:
    """The pairs as parameters: those that are not of the default tests are for the study."""
    return [spec if default else pytest.param(spec, marks=pytest.mark.study) for spec, default in found]


MADE = pairs(POLICY_SPECS, PLACEMENTS.names())
PAIRS = also_long(MADE)
LEARNING = ["a-srpt:predictor=group-mean", "a-srpt:predictor=global-mean,overtake=inf", "spjf:predictor=global-mean"]
DEFAULT_PAIRS = [spec for spec, default in MADE if default]


@cache
def subject(spec: str) -> Subject:
    """A pair under examination: what it does on `WHOLE.instances` is run once, and compared with again and again."""
    return Subject(spec)


def base(spec: str) -> tuple[Run, ...]:
    return subject(spec).base


def instances() -> tuple[Instance, ...]:
    return WHOLE.instances()


def broken(name: str, spec: str) -> list[str]:
    """What a check of the contract finds."""
    assert not CHECKS.get(name).exempt(subject(spec))
    return [each.message for each in CHECKS.get(name).find(subject(spec))]


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


def test_the_default_tests_know_every_policy_and_every_placement() -> None:
    named = {part for spec in DEFAULT_PAIRS for part in spec.split("+")}
    assert named >= {*POLICY_SPECS, *PLACEMENTS.names()}


# -- schedules ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", PAIRS)
def test_a_checker_that_shares_nothing_with_the_referee_agrees(spec: str) -> None:
    for instance, made in zip(instances(), base(spec), strict=True):
        assert problems(made) == []
        assert made.schedule.policy == made.policy == spec
        job = made.schedule.job
        assert made.preemptions == job.size - instance.n  # a job that was stopped has a segment more
        if made.schedule_class == "gang-nonpreemptive":
            assert made.preemptions == 0
            assert sorted(job.tolist()) == list(range(instance.n))
            assert np.array_equal(made.schedule.work, instance.duration[job])
        hours = made.metrics["gpu_hours"]
        asked = float(np.dot(instance.gpus, instance.duration)) / 3600
        assert hours["busy"] == pytest.approx(asked, rel=1e-12)
        assert min(hours["overhead"], hours["idle"]) > -1e-12
        total = instance.cluster.gpus * (made.metrics["makespan"] - instance.arrival.min()) / 3600
        assert hours["busy"] + hours["overhead"] + hours["idle"] == pytest.approx(total, rel=1e-12)


def test_policies_that_may_stop_jobs_do_so_somewhere() -> None:
    """The instances are crowded enough for that: what is said of preemption above is said of something."""
    found = (spec for spec in DEFAULT_PAIRS if sum(made.preemptions for made in base(spec)))
    preemptive = {"srtf", "srtf-gpu", "preemptive-wspt", "setf", "tiresias", "hadar", "hadar-commit", "gavel"}
    assert {spec.partition(":")[0].partition("+")[0] for spec in found} >= preemptive | {"immediate-dispatch"}


# -- invariances ----------------------------------------------------------------------------------------------------------


def has_seconds(spec: str) -> bool:
    """Are parameters of the policy a number of seconds, so that another unit makes it another policy?"""
    policy = specify(spec).policy
    return "restart" in spec or policy.name in ("setf", "tiresias") or bool(getattr(policy, "round", 0))


def asked(name: str, spec: str) -> bool:
    """Is a check for the pair? Of ours more is asked than of others: who wakes himself does so at times that scale."""
    if name == "unit":
        return not has_seconds(spec)
    if (
        name == "order"
    ):  # a round makes ties of arrivals that are none; random draws follow the starts; a list is an order
        return not (spec.startswith("list") or "random" in spec or "round" in spec)
    return name != "knowledge"  # of which more is asked below


@pytest.mark.parametrize("spec", PAIRS)
def test_it_keeps_the_contract(spec: str) -> None:
    for name, check in CHECKS.items():
        if asked(name, spec):
            assert [each.message for each in check.find(subject(spec))] == [], name


@pytest.mark.parametrize("spec", LEARNING)
def test_what_has_learned_forgets_and_goes_to_other_processes(spec: str) -> None:
    for name in ("memory", "pickles", "parameters"):
        assert broken(name, spec) == []


# -- knowledge ------------------------------------------------------------------------------------------------------------

SECRETIVE = also_long(pairs(POLICY_SPECS + LEARNING, ["first-fit", "consolidated", "random"]))


@pytest.mark.parametrize("spec", SECRETIVE)
def test_decisions_do_not_depend_on_what_cannot_be_known(spec: str) -> None:
    examined = subject(spec)
    assert broken("knowledge", spec) == []
    changed = sum(len(unknown_jobs(examined, examined.secret_run(seed))[0]) for seed in WHOLE.seeds)
    # a round longer than the whole instance decides once, and nothing is unknown any more
    assert changed > 5 or getattr(specify(spec).policy, "round", 0) > 100


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
    assert policy.knowledge in set(Knowledge)
    assert dataclasses.is_dataclass(kind)
    methods = ("order", "decide", "tasks")
    assert [hasattr(policy, method) for method in methods].count(True) == 1
    field = next(iter(dataclasses.fields(kind)), None)
    if field is not None and (hasattr(policy, "order") or hasattr(policy, "tasks")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(policy, field.name, None)


@pytest.mark.parametrize("name", POLICIES.names())
def test_the_docstring_has_its_sections(name: str) -> None:
    kind = POLICIES.get(name)
    text = inspect.getdoc(kind) or ""
    for section in ("Problem", "Knowledge", "Guarantee", "Complexity"):
        assert f"**{section}**" in text
    assert str(kind().knowledge) in text.lower()
    for field in (each for each in dataclasses.fields(kind) if each.init):
        assert f"``{field.name}" in text, f"{field.name} is not explained"


@pytest.mark.parametrize(
    "file", sorted(Path(optsched.policies.__file__).parent.glob("*.py")), ids=lambda file: file.stem
)
def test_one_policy_a_file_that_is_no_table(file: Path) -> None:
    nodes = list(ast.walk(ast.parse(file.read_text())))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    rows = [row for row in functions if any("_order(" in ast.unparse(mark) for mark in row.decorator_list)]
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    registered = [kind for kind in classes if any("register" in ast.unparse(mark) for mark in kind.decorator_list)]
    assert len(rows) + len(registered) <= 1 or file.stem in TABLES
    for mark in (each.decorator_list[0] for each in (*rows, *registered)):
        assert file.stem in TABLES or file.stem == ast.unparse(mark).split("'")[1].replace("-", "_")


# -- jobs with tasks, with every placement that knows shared GPUs, and whole jobs that share GPUs ---------------------------


WITH_TASKS, SHARING = (list(chain(*map(telling, names))) for names in (task_policies(), sharing_policies()))
SHARING += ["unified", "unified:restart=0"]  # one of its forms
SHARED = [name for name in PLACEMENTS.names() if PLACEMENTS.get(name)().shared is not None]
PLACED = [*SHARED, "lwf:kappa=2"]
EVERY = [f"{policy}+{placement}" for policy in WITH_TASKS for placement in PLACED]
IN_TURN = EVERY[:: len(PLACED) + 1]  # every placement with another policy; all pairs are of the study
SHARING_PAIRS = WITH_TASKS + [pytest.param(e, marks=() if e in IN_TURN else pytest.mark.study) for e in EVERY]
OF_SCHEDULES = ("complete", "deterministic", "feasible")


def test_policies_are_of_one_level() -> None:
    others = {name for name, each in POLICIES.items() if shares_gpus(each) or resizes(each)}
    levels = [set(task_policies()), set(whole_job_policies()), others]
    assert sum(map(len, levels)) == len(set.union(*levels)) == len(POLICIES.names())
    assert {"sjf-bsbf", "sjf-ffs", "goodput"} <= others
    assert {"ada-srsf", "adadual", "k-way", "srsf"} <= set(task_policies())
    assert {"first-fit", "list", "lwf", "random"} <= set(SHARED)
    for name in task_policies():
        assert PLACEMENTS.get(default_placement(POLICIES.get(name)()).partition(":")[0])().shared is not None
        assert at_task_level(POLICIES.get(name))


@pytest.mark.parametrize("spec", SHARING_PAIRS + SHARING)
def test_the_referee_adds_up_the_same_value(spec: str) -> None:
    for made in subject(spec).base:
        assert made.schedule_class == ("gpu-sharing" if spec in SHARING else "task-sharing")
        assert float(schedule_value(made.instance, made.schedule)) == pytest.approx(made.value(), rel=1e-12)


@pytest.mark.parametrize("spec", SHARING_PAIRS + SHARING)
def test_the_contract_is_kept(spec: str) -> None:
    schedules_only = spec not in WITH_TASKS + SHARING  # a policy with other placements
    for name, check in CHECKS.items():
        if name == "order" or (schedules_only and name not in OF_SCHEDULES):  # order is asked of whole jobs only
            continue
        assert bool(check.exempt(subject(spec))) == (name == "unit" and ("interval" in spec or spec == "unified"))
        assert check.exempt(subject(spec)) or [each.message for each in check.find(subject(spec))] == [], name


@pytest.mark.parametrize("name", task_policies())
def test_a_policy_of_tasks_asks_for_no_more_than_the_knowledge_it_names(name: str) -> None:
    policy: Any = POLICIES.get(name)()
    instance = TASKS.instances()[0]
    policy.tasks(TaskJobs(instance, policy.knowledge))
    if Knowledge(policy.knowledge) is Knowledge.CLAIRVOYANT:
        with pytest.raises(KnowledgeError, match="asked for iterations"):
            policy.tasks(TaskJobs(instance, Knowledge.NON_CLAIRVOYANT))


@pytest.mark.parametrize("name", sharing_policies())
def test_a_policy_that_shares_asks_for_no_more_and_serves_interference_only(name: str) -> None:
    policy: Any = POLICIES.get(name)()
    problem = random_sharing_instance(0)
    alone = sharing_rates(problem).alone
    policy.order(KnownJobs(problem, policy.knowledge, alone))
    if Knowledge(policy.knowledge) is Knowledge.CLAIRVOYANT:
        with pytest.raises(KnowledgeError, match="asked for durations"):
            policy.order(KnownJobs(problem, Knowledge.NON_CLAIRVOYANT, alone))
    assert serves(policy, problem)
    assert not serves(policy, Instance([Job("a", duration=1)], "1x1"))


@pytest.mark.parametrize("name", [*task_policies(), *sharing_policies()])
def test_it_cites_its_reference(name: str) -> None:
    assert "**Reference**" in (inspect.getdoc(POLICIES.get(name)) or "")


def test_text_names_policy_and_placement() -> None:
    assert specify("ada-srsf").placement.name == "lwf"
    assert specify("ada-srsf").text == "ada-srsf"
    assert specify("srsf:k=2+lwf:kappa=4").placement.shared.numbers == (4.0,)  # type: ignore[union-attr]
