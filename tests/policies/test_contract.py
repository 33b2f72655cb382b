"""What every registered policy keeps with every registered placement; a new one of either is picked up by itself."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import optsched.policies
from optsched.cli.catalogue_entry import described_parameters
from optsched.contract.checks import CHECKS, unknown_jobs
from optsched.contract.levels import WHOLE, Subject
from optsched.policies import POLICIES, TABLES
from optsched.policies.placements import PLACEMENTS
from optsched.policies.simulate import default_placement, names_nodes, policies_of, specify
from optsched.simulation.policy import Knowledge, Use, class_of, uses_of
from policies.levels import sharing_policies, whole_job_policies

# Parameters that show more of a policy than its defaults do; policies that are not named here run with the defaults.
TELLING = {
    "a-srpt": ":overtake=2,beta=0.5",
    "auction-rounds": ":round=4,restart=1",
    "backfill": ":depth=2,by=sjf,forecast=true",
    "fifo": ":skip=true",
    "gavel": ":policy=finish_time_fairness_perf,round=4",
    "makespan-rounds": ":round=4,restart=1",
    "hadar": ":round=4",
    "hadar-e": ":copies=1,round=16,overhead=0",
    "immediate-dispatch": ":restart=1",
    "k-way": ":by_size=true",
    "leader-first": ":width=1,caution=0.5",
    "preemptive-wspt": ":restart=1",
    "setf": ":quantum=2",
    "sjf-bsbf": ":consolidated=false,joint=false,by=pair,outlook=0,interval=2",
    "sjf-ffs": ":width=true",
    "slurm": ":interval=2,first=1,resolution=0,depth=1,age=1000,size=100,fair=1000,max_age=60,half_life=60",
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
DEFAULT_PAIRS = [spec for spec, default in MADE if default]


# -- jobs with tasks, with every placement that knows shared GPUs, and whole jobs that share GPUs
WITH_TASKS, SHARING = (list(chain(*map(telling, names))) for names in (policies_of("task-sharing"), sharing_policies()))
SHARING += ["unified", "unified:restart=0"]  # one of its forms
SHARED = [name for name in PLACEMENTS.names() if PLACEMENTS.get(name)().shared is not None]
PLACED = [*SHARED, "lwf:kappa=2"]
EVERY = [f"{policy}+{placement}" for policy in WITH_TASKS for placement in PLACED]
IN_TURN = EVERY[:: len(PLACED) + 1]  # every placement with another policy; all pairs are of the study
SHARING_PAIRS = [pytest.param(spec, marks=() if spec in IN_TURN else pytest.mark.study) for spec in EVERY]

LEARNING = ["a-srpt:predictor=group-mean", "a-srpt:predictor=global-mean,overtake=inf", "spjf:predictor=global-mean"]
LEARNING += ["easy-sjbf:walltime=last-two,believe=double", "conservative:walltime=group-mean"]


@cache
def subject(spec: str) -> Subject:
    """A pair under examination: what it does on the instances of its level is run once, and compared with often."""
    return Subject(spec)


def asked(name: str, spec: str) -> bool:
    """Is a check for the pair? Of ours more is asked than of others: who wakes himself does so at times that scale."""
    policy = specify(spec).policy
    if spec in LEARNING:  # from groups, and it knows seconds
        return name in ("knowledge", "memory", "pickles", "parameters")
    if spec in EVERY:  # a policy with other placements
        return name in ("complete", "deterministic", "feasible")
    if (
        name == "unit"
    ):  # are parameters of the policy a number of seconds, so that another unit makes it another policy?
        seconds = ("restart" if subject(spec).level is WHOLE else "interval") in spec or spec == "unified"
        return not (seconds or policy.name in ("setf", "slurm", "tiresias") or getattr(policy, "round", 0))
    # a round makes ties of arrivals that are none; random draws follow the starts; a list is an order
    unordered = spec.startswith("list") or "random" in spec or "round" in spec or subject(spec).level is not WHOLE
    return name != "order" or not unordered


@pytest.mark.parametrize("spec", [*PAIRS, *LEARNING, *WITH_TASKS, *SHARING_PAIRS, *SHARING])
def test_it_keeps_the_contract(spec: str) -> None:
    examined = subject(spec)
    for name, check in CHECKS.items():
        if asked(name, spec):
            assert [each.message for each in check.find(examined)] == [], name
    if examined.level is WHOLE:
        changed = sum(len(unknown_jobs(examined, examined.secret_run(seed))[0]) for seed in WHOLE.seeds)
        # a round longer than the whole instance decides once, and nothing is unknown any more
        assert changed > 5 or getattr(examined.policy, "round", 0) > 100
    else:
        kind = "gpu-sharing" if spec in SHARING else "task-sharing"
        assert {made.schedule_class for made in examined.base} == {kind}


def test_the_default_tests_know_every_policy_and_every_placement() -> None:
    named = {part for spec in DEFAULT_PAIRS for part in spec.split("+")}
    assert named >= {*POLICY_SPECS, *PLACEMENTS.names()}


def test_policies_that_may_stop_jobs_do_so_somewhere() -> None:
    """The instances are crowded enough for that: what is said of preemption above is said of something."""
    found = (spec for spec in DEFAULT_PAIRS if sum(made.preemptions for made in subject(spec).base))
    preemptive = {"srtf", "srtf-gpu", "preemptive-wspt", "setf", "tiresias", "makespan-rounds", "hadar", "gavel"}
    assert {spec.partition(":")[0].partition("+")[0] for spec in found} >= preemptive | {"immediate-dispatch"}


# -- how it is written ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", POLICIES.names())
def test_a_policy_is_a_dataclass_that_is_made_without_arguments_and_bears_its_name(name: str) -> None:
    kind = POLICIES.get(name)
    policy: Any = kind()
    assert policy.name == name
    assert policy.knowledge in set(Knowledge)
    assert dataclasses.is_dataclass(kind)
    methods = ("order", "decide", "tasks", "ranks")
    assert [hasattr(policy, method) for method in methods].count(True) == 1
    field = next(iter(dataclasses.fields(kind)), None)
    if field is not None and (hasattr(policy, "order") or hasattr(policy, "tasks")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(policy, field.name, None)


@pytest.mark.parametrize("name", POLICIES.names())
def test_the_docstring_has_its_sections(name: str) -> None:
    kind = POLICIES.get(name)
    text = inspect.getdoc(kind) or ""
    cited = ("Reference",) if name in (*policies_of("task-sharing"), *sharing_policies()) else ()
    for section in ("Problem", "Knowledge", "Guarantee", "Complexity", *cited):
        assert f"**{section}**" in text
    assert str(kind().knowledge) in text.lower()
    described = described_parameters(kind)
    for field in (field for field in dataclasses.fields(kind) if field.init):
        assert field.name in described or f"``{field.name}" in text, f"{field.name} is not explained"


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


def test_policies_are_of_one_level() -> None:
    others = {*policies_of("gpu-sharing"), *policies_of("elastic")}
    levels = [set(policies_of("task-sharing")), set(policies_of("kv-cache")), set(whole_job_policies()), others]
    assert sum(map(len, levels)) == len(set.union(*levels)) == len(POLICIES.names())
    assert {"sjf-bsbf", "sjf-ffs", "goodput"} <= others
    assert {"ada-srsf", "adadual", "k-way", "srsf"} <= set(policies_of("task-sharing"))
    assert {"first-fit", "list", "lwf", "random"} <= set(SHARED)
    for name in policies_of("task-sharing"):
        assert PLACEMENTS.get(default_placement(POLICIES.get(name)()).partition(":")[0])().shared is not None
        assert not class_of(POLICIES.get(name)).whole
