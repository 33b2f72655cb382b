"""Where whole jobs contend for the network: what the referee accepts, what bounds and `solve` say; contention only slows."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from examples import few
from simulation.contending_world import ElasticWorld, random_contending_instance, worth
from simulation.plain_policies import Asked
from simulation.test_elastic import Dice, run_elastic
from simulation.test_interfaces import POLICIES, _packed

import optsched as osd
from optsched.bounds import bound
from optsched.check.referee import check_file, check_schedule
from optsched.policies.simulate import simulate
from optsched.problem.contention import Contention
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule

# --- the referee where jobs contend for the network: runs of the engine pass, those that forget contention do not --------


SEEDS = range(8)
FEW_OR_ALL = pytest.mark.parametrize("seeds", [SEEDS[:2], pytest.param(SEEDS[2:], marks=pytest.mark.study)])


@cache
def run(policy: str, seed: int, *, contention: bool = True) -> Schedule:
    made = random_contending_instance(seed)
    made = made if contention else made.replace(contention=None)
    return simulate(made, Asked(_packed, uses=("sharing",)) if policy == "packed" else policy).schedule


def slowed(made: Instance, schedule: Schedule, by: float = 1e-3) -> list[int]:
    """Segments that others on their interfaces slow by so much."""
    beside, alone = worth(made, schedule)[1], worth(made.replace(contention=Contention(1.0, -1.0 + 1e-12)), schedule)[1]
    return [s for s, (x, y) in enumerate(zip(beside, alone, strict=True)) if x < y * (1 - by)]


def rules(schedule: Schedule) -> set[str]:
    return {each.rule for each in check_schedule(schedule.instance, schedule)}


@FEW_OR_ALL
@pytest.mark.parametrize(
    "policy", [*POLICIES, "srtf:restart=2+first-fit", "a-srpt:overtake=0", "makespan-rounds:round=3"]
)
def test_runs_of_the_engine_are_accepted(policy: str, seeds: range) -> None:
    for seed in seeds:
        assert rules(run(policy, seed)) == set()


@FEW_OR_ALL
@pytest.mark.parametrize("policy", ["fifo:skip=true+first-fit", "srtf+random", "sjf-bsbf", "packed"])
def test_runs_without_contention_are_refused_where_jobs_met(policy: str, seeds: range) -> None:
    refused = 0
    for seed in seeds:
        made, schedule = random_contending_instance(seed), run(policy, seed, contention=False)
        forged = dataclasses.replace(schedule, instance=made)
        assert rules(forged) == ({"rate"} if slowed(made, forged, 1e-7) else set())
        refused += bool(slowed(made, forged))
    assert refused > len(seeds) // 3


@pytest.mark.parametrize("policy", ["fifo:skip=true+first-fit", "sjf-bsbf"])
def test_a_little_too_much_work_is_refused(policy: str) -> None:
    forged = 0
    for seed in few(SEEDS, 3):
        schedule = run(policy, seed)
        for s in slowed(schedule.instance, schedule):
            work = schedule.work.copy()
            work[s] *= 1 + 1e-6
            assert "rate" in rules(dataclasses.replace(schedule, work=work))
            forged += 1
    assert forged > 1


def test_an_earlier_end_is_refused_in_a_file_too(tmp_path: Path) -> None:
    seed = next(s for s in SEEDS if slowed(random_contending_instance(s), run("sjf-ffs", s)))
    schedule = run("sjf-ffs", seed)
    path = tmp_path / "schedule.json"
    schedule.save(path)
    assert check_file(path, schedule.instance).holds
    end, s = schedule.end.copy(), slowed(schedule.instance, schedule)[0]
    end[s] -= 1e-4 * (end[s] - schedule.start[s])
    dataclasses.replace(schedule, end=end).save(path)
    said = check_file(path, schedule.instance).violations
    assert {each.rule for each in said} == {"rate"}
    assert "worth" in said[0].message


def test_less_work_is_legal() -> None:
    for seed in SEEDS:
        schedule = run("fifo:skip=true+first-fit", seed)
        later = dataclasses.replace(schedule, start=2 * schedule.start, end=2 * schedule.end)
        assert rules(later) == set()
        assert np.isfinite(later.end).all()


@FEW_OR_ALL
def test_resized_jobs_are_accepted_beside_others_and_refused_where_they_forget_them(seeds: range) -> None:
    refused = 0
    for seed in seeds:
        made = random_contending_instance(seed)
        beside, alone = (
            run_elastic(each, Dice(seed, round=1.0, restart=0.0)).schedule
            for each in (made, made.replace(contention=None))
        )
        assert {each.rule for each in check_schedule(made, beside, schedule_class="elastic")} == set()
        forged = dataclasses.replace(alone, instance=made)
        work, done = worth(made, forged, ElasticWorld)
        slowed = any(x > y * (1 + 1e-7) for x, y in zip(work, done, strict=True))
        assert {each.rule for each in check_schedule(made, forged, schedule_class="elastic")} == (
            {"rate"} if slowed else set()
        )
        refused += slowed
    assert refused > len(seeds) // 2


# --- bounds where whole jobs contend for the network: contention only slows, so that they stay what they are, and hold ---


OBJECTIVES = ("total_flow_time", "total_completion_time", "makespan")


@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(1, 6), marks=pytest.mark.study)])
@pytest.mark.parametrize("policy", ["fifo:skip=true+first-fit", "srtf+random", "sjf-bsbf"])
def test_bounds_hold_and_are_those_without_contention(policy: str, seeds: range) -> None:
    for seed in seeds:
        made = random_contending_instance(seed)
        run = simulate(made, policy)
        for objective in OBJECTIVES:
            low = bound(made, objective, run.schedule_class)
            low.verify(made)
            assert low.value == bound(made.replace(contention=None), objective, run.schedule_class).value
            assert run.value(objective) >= float(low.value) > 0


# --- solving where whole jobs contend for the network: contention only slows, so an optimum in which nobody meets is one


def two_gangs(cluster: str) -> Instance:
    """Two jobs on three GPUs each, of 5 s on one node and 15 s on several: on three nodes of two they meet on one."""
    jobs = [osd.Job(name, gpus=3, iterations=10, profile="net", batch_size=3) for name in "ab"]
    scaling = osd.Scaling(0.5, 0.0, across=1.0)
    return Instance(jobs, cluster, scalings={"net": scaling}, contention=osd.Contention(1e-9, 3e-10))


def test_where_nobody_meets_the_optimum_is_that_without_contention() -> None:
    best = osd.solve(two_gangs("2x3"), "total_flow_time")
    assert (best.status, best.value) == ("optimal", 10.0)
    assert check_schedule(two_gangs("2x3"), best) == []


def test_what_the_referee_refuses_is_no_optimum() -> None:
    made = two_gangs("3x2")
    best = osd.solve(made, "total_flow_time", time_limit=30)
    assert (best.status, best.value, best.bound) == ("limit", None, 30.0)
    assert "contend" in (best.note or "")
    assert osd.simulate(made, "fifo").value("total_flow_time") > 30.0
