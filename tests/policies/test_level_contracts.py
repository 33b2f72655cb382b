"""What every registered policy for jobs with tasks keeps, with every placement that knows shared GPUs, and every policy that
lets whole jobs share GPUs; a new one is picked up by itself.
"""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

import pytest

from optsched.check.referee import schedule_value
from optsched.contract.examine import CHECKS
from optsched.contract.instances import random_sharing_instance
from optsched.contract.levels import TASKS, Subject
from optsched.errors import KnowledgeError
from optsched.policies import POLICIES
from optsched.policies.placements import PLACEMENTS
from optsched.policies.simulate import (
    at_task_level,
    default_placement,
    resizes,
    serves,
    shares_gpus,
    specify,
    task_policies,
)
from optsched.problem.instance import Instance, Job
from optsched.simulation.policy import Knowledge, KnownJobs
from optsched.simulation.task_policy import TaskJobs
from optsched.speeds.gpu_sharing import sharing_rates
from policies.levels import sharing_policies, whole_job_policies

# Parameters that show more of a policy than its defaults do.
TELLING = {
    "leader-first": ":width=1,caution=0.5",
    "srsf": ":k=2,service_includes_comm=true",
    "k-way": ":by_size=true",
    "sjf-bsbf": ":consolidated=false,joint=false,by=pair,outlook=0,interval=2",
    "sjf-ffs": ":width=true",
}
WITH_TASKS, SHARING = (
    [spec for name in names for spec in dict.fromkeys([name, name + TELLING.get(name, "")])]
    for names in (task_policies(), sharing_policies())
)
SHARING += ["unified", "unified:restart=0"]  # one of its forms
SHARED = [name for name in PLACEMENTS.names() if PLACEMENTS.get(name)().shared is not None]
PLACED = [*SHARED, "lwf:kappa=2"]
EVERY = [f"{policy}+{placement}" for policy in WITH_TASKS for placement in PLACED]
IN_TURN = EVERY[:: len(PLACED) + 1]  # every placement with another policy; all pairs are of the study
PAIRS = WITH_TASKS + [pytest.param(e, marks=() if e in IN_TURN else pytest.mark.study) for e in EVERY]
OF_SCHEDULES = ("complete", "deterministic", "feasible")


@cache
def subject(spec: str) -> Subject:
    return Subject(spec)


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


@pytest.mark.parametrize("spec", PAIRS + SHARING)
def test_the_referee_adds_up_the_same_value(spec: str) -> None:
    for made in subject(spec).base:
        assert made.schedule_class == ("gpu-sharing" if spec in SHARING else "task-sharing")
        assert float(schedule_value(made.instance, made.schedule)) == pytest.approx(made.value(), rel=1e-12)


@pytest.mark.parametrize("spec", PAIRS + SHARING)
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
