"""What every registered policy that shares GPUs keeps; a new one is picked up by itself."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from optsched.check.referee import check_schedule, schedule_value
from optsched.errors import KnowledgeError
from optsched.policies import POLICIES
from optsched.policies.simulate import simulate
from optsched.policies.specification import serves, sharing_policies, specify
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference
from optsched.simulation.policy import Knowledge, KnownJobs
from optsched.speeds.gpu_sharing import sharing_rates

# Parameters that show more of a policy than its defaults do.
TELLING = {"sjf-bsbf": ":consolidated=true,joint=true,interval=2", "sjf-ffs": ":width=true"}
SPECS = [spec for name in sharing_policies() for spec in dict.fromkeys([name, name + TELLING.get(name, "")])]
KINDS = Interference(1.5, ("a", "b"), ((1.125, 1.75), (1.25, None)))


def instance(seed: int) -> Instance:
    rng = np.random.default_rng([seed, 66])
    jobs = [
        Job(f"j{k}", float(rng.random() * 20), int(rng.integers(1, 5)), float(rng.exponential(6) + 0.25), model=model)
        for k, model in enumerate(rng.choice(["a", "b"], size=24).tolist())
    ]
    return Instance(jobs, "2x3", interference=KINDS)


def changed(problem: Instance, change: Callable[[Job], Job]) -> Instance:
    return problem.replace(jobs=Instance([change(job) for job in problem.jobs], problem.cluster).table)


def rows(problem: Instance, spec: str, time: Callable[[float], float] = lambda t: t) -> list[Any]:
    made = simulate(problem, spec)
    return sorted((s.job, round(time(s.start), 8), round(time(s.end), 8), s.gpus) for s in made.schedule.segments())


@pytest.mark.parametrize("spec", SPECS)
def test_all_jobs_finish_and_the_referee_agrees(spec: str) -> None:
    for seed in range(3):
        problem = instance(seed)
        made = simulate(problem, spec)
        assert not made.unfinished
        assert made.schedule_class == "gpu-sharing"
        assert check_schedule(problem, made.schedule, value=made.value()) == []
        assert float(schedule_value(problem, made.schedule)) == pytest.approx(made.value(), rel=1e-12)
        assert rows(problem, spec) == rows(problem, spec)


@pytest.mark.parametrize("spec", SPECS)
def test_what_happens_does_not_depend_on_what_will_arrive(spec: str) -> None:
    problem = instance(4)
    cut = float(np.median(problem.arrival))
    later = changed(problem, lambda job: job if job.arrival <= cut else dataclasses.replace(job, gpus=1, duration=0.5))
    until = min(a for a in problem.arrival.tolist() if a > cut)
    begun = [[(row[0], row[1], row[3]) for row in rows(each, spec) if row[1] < until] for each in (problem, later)]
    assert begun[0] == begun[1] != []


@pytest.mark.parametrize("spec", [spec for spec in SPECS if "interval" not in spec])
def test_the_unit_and_the_origin_of_time_do_not_matter(spec: str) -> None:
    problem = instance(5)
    shifted = changed(problem, lambda job: dataclasses.replace(job, arrival=job.arrival + 1024))
    scaled = changed(
        problem, lambda job: dataclasses.replace(job, arrival=job.arrival * 8, duration=(job.duration or 0) * 8)
    )
    assert rows(problem, spec) == rows(shifted, spec, lambda t: t - 1024) == rows(scaled, spec, lambda t: t / 8)


@pytest.mark.parametrize("name", sharing_policies())
def test_it_asks_for_no_more_than_the_knowledge_it_names(name: str) -> None:
    policy: Any = POLICIES.get(name)()
    problem = instance(0)
    alone = sharing_rates(problem).alone
    policy.order(KnownJobs(problem, policy.knowledge, alone))
    if Knowledge(policy.knowledge) is Knowledge.CLAIRVOYANT:
        with pytest.raises(KnowledgeError, match="asked for durations"):
            policy.order(KnownJobs(problem, Knowledge.NON_CLAIRVOYANT, alone))


@pytest.mark.parametrize("name", sharing_policies())
def test_it_cites_its_reference_and_serves_interference_only(name: str) -> None:
    assert "**Reference**" in (inspect.getdoc(POLICIES.get(name)) or "")
    assert serves(specify(name).policy, instance(0))
    assert not serves(specify(name).policy, Instance([Job("a", duration=1)], "1x1"))
