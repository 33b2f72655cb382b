"""What every registered policy that shares GPUs keeps; a new one is picked up by itself."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

import pytest

from optsched.check.referee import schedule_value
from optsched.contract.check import CHECKS
from optsched.contract.instances import random_sharing_instance
from optsched.contract.subject import Subject
from optsched.errors import KnowledgeError
from optsched.policies import POLICIES
from optsched.policies.specification import serves, sharing_policies, specify
from optsched.problem.instance import Instance, Job
from optsched.simulation.policy import Knowledge, KnownJobs
from optsched.speeds.gpu_sharing import sharing_rates

# Parameters that show more of a policy than its defaults do.
TELLING = {"sjf-bsbf": ":consolidated=false,joint=false,by=pair,outlook=0,interval=2", "sjf-ffs": ":width=true"}
SPECS = [spec for name in sharing_policies() for spec in dict.fromkeys([name, name + TELLING.get(name, "")])]
SPECS += ["unified", "unified:restart=0"]  # one of its forms


@cache
def subject(spec: str) -> Subject:
    return Subject(spec)


# the order of the jobs in the file is asked of whole jobs only
@pytest.mark.parametrize("check", [name for name in CHECKS.names() if name != "order"])
@pytest.mark.parametrize("spec", SPECS)
def test_the_contract_is_kept(spec: str, check: str) -> None:
    examined = CHECKS.get(check)
    assert bool(examined.exempt(subject(spec))) == (check == "unit" and ("interval" in spec or spec == "unified"))
    assert examined.exempt(subject(spec)) or [each.message for each in examined.find(subject(spec))] == []


@pytest.mark.parametrize("spec", SPECS)
def test_runs_share_gpus_and_the_referee_adds_up_the_same_value(spec: str) -> None:
    for made in subject(spec).base:
        assert made.schedule_class == "gpu-sharing"
        assert float(schedule_value(made.instance, made.schedule)) == pytest.approx(made.value(), rel=1e-12)


@pytest.mark.parametrize("name", sharing_policies())
def test_it_asks_for_no_more_than_the_knowledge_it_names(name: str) -> None:
    policy: Any = POLICIES.get(name)()
    problem = random_sharing_instance(0)
    alone = sharing_rates(problem).alone
    policy.order(KnownJobs(problem, policy.knowledge, alone))
    if Knowledge(policy.knowledge) is Knowledge.CLAIRVOYANT:
        with pytest.raises(KnowledgeError, match="asked for durations"):
            policy.order(KnownJobs(problem, Knowledge.NON_CLAIRVOYANT, alone))


@pytest.mark.parametrize("name", sharing_policies())
def test_it_cites_its_reference_and_serves_interference_only(name: str) -> None:
    assert "**Reference**" in (inspect.getdoc(POLICIES.get(name)) or "")
    assert serves(specify(name).policy, random_sharing_instance(0))
    assert not serves(specify(name).policy, Instance([Job("a", duration=1)], "1x1"))
