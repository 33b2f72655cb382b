"""What every registered policy of the task level keeps with every placement that knows shared GPUs."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

import pytest

from optsched.check.referee import schedule_value
from optsched.contract.checks import CHECKS
from optsched.contract.levels import TASKS
from optsched.contract.subject import Subject
from optsched.errors import KnowledgeError
from optsched.policies import POLICIES
from optsched.policies.placements import PLACEMENTS
from optsched.policies.specification import (
    at_task_level,
    default_placement,
    resizes,
    shares_gpus,
    specify,
    task_policies,
    whole_job_policies,
)
from optsched.simulation.policy import Knowledge
from optsched.simulation.task_policy import TaskJobs

# Parameters that show more of a policy than its defaults do.
TELLING = {"leader-first": ":width=1,caution=0.5", "srsf": ":k=2,service_includes_comm=true", "k-way": ":by_size=true"}
SPECS = [spec for name in task_policies() for spec in dict.fromkeys([name, name + TELLING.get(name, "")])]
SHARED = [name for name in PLACEMENTS.names() if PLACEMENTS.get(name)().shared is not None]
PAIRS = [f"{policy}+{placement}" for policy in SPECS for placement in [*SHARED, "lwf:kappa=2"]]


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


@pytest.mark.parametrize("check", ["complete", "deterministic", "feasible"])
@pytest.mark.parametrize("spec", PAIRS)
def test_all_jobs_finish_and_the_referee_agrees(spec: str, check: str) -> None:
    assert [each.message for each in CHECKS.get(check).find(subject(spec))] == []


@pytest.mark.parametrize("spec", PAIRS)
def test_the_referee_adds_up_the_same_value(spec: str) -> None:
    for made in subject(spec).base:
        assert made.schedule_class == "task-sharing"
        assert float(schedule_value(made.instance, made.schedule)) == pytest.approx(made.value(), rel=1e-12)


# the order of the jobs in the file is asked of whole jobs only
@pytest.mark.parametrize("check", ["clock", "knowledge", "memory", "names", "parameters", "pickles", "unit"])
@pytest.mark.parametrize("spec", SPECS)
def test_the_contract_is_kept(spec: str, check: str) -> None:
    assert not CHECKS.get(check).exempt(subject(spec))
    assert [each.message for each in CHECKS.get(check).find(subject(spec))] == []


@pytest.mark.parametrize("name", task_policies())
def test_it_asks_for_no_more_than_the_knowledge_it_names(name: str) -> None:
    policy: Any = POLICIES.get(name)()
    instance = TASKS.instances()[0]
    policy.tasks(TaskJobs(instance, policy.knowledge))
    if Knowledge(policy.knowledge) is Knowledge.CLAIRVOYANT:
        with pytest.raises(KnowledgeError, match="asked for iterations"):
            policy.tasks(TaskJobs(instance, Knowledge.NON_CLAIRVOYANT))


@pytest.mark.parametrize("name", task_policies())
def test_it_cites_its_reference(name: str) -> None:
    assert "**Reference**" in (inspect.getdoc(POLICIES.get(name)) or "")


def test_text_names_policy_and_placement() -> None:
    assert specify("ada-srsf").placement.name == "lwf"
    assert specify("ada-srsf").text == "ada-srsf"
    assert specify("srsf:k=2+lwf:kappa=4").placement.shared.numbers == (4.0,)  # type: ignore[union-attr]
