"""What it costs to resume a job, where the job says so itself: every preemptive policy pays it, and no other start does."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optsched.bounds import BOUNDS
from optsched.contract.instances import random_instance
from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.guarantees.assumptions import no_restart_cost
from optsched.guarantees.judge import judgements
from optsched.policies import POLICIES
from optsched.policies.placements import PLACEMENTS
from optsched.policies.simulate import simulate, specify
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.scaling import Scaling
from optsched.problem.throughputs import Throughput, Throughputs
from optsched.registry import parameters_of
from optsched.simulation.policy import Use, uses_of
from optsched.verifier.judgement import verify as verify_alone
from optsched.verifier.refusal import Refused
from policies.levels import whole_job_policies

USUAL = 2.0
ROUNDS = {
    "auction-rounds": "round=4",
    "gavel": "round=4",
    "makespan-rounds": "round=4",
    "hadar": "round=8",
    "setf": "quantum=4",
    "tiresias": "threshold=4",
}
GANGS = [name for name in whole_job_policies() if Use.COPIES not in uses_of(POLICIES.get(name))]


def spelled(name: str) -> str:
    """The policy in rounds that suit jobs of some seconds, with a restart of its own where it has one."""
    own = f"restart={USUAL}" if "restart" in parameters_of(POLICIES.get(name)) else ""
    text = ",".join(filter(None, [ROUNDS.get(name, ""), own]))
    return f"{name}:{text}" if text else name


def with_restarts(instance: Instance, seed: int) -> Instance:
    """Every third job says that resuming costs nothing, every third that it costs 1 to 3 s, the others say nothing."""
    rng = np.random.default_rng(seed)
    says: list[Any] = [0.0, None, 3.0]
    return Instance(
        [replace(job, restart=says[j % 3] and float(rng.integers(1, 4))) for j, job in enumerate(instance.jobs)],
        instance.cluster,
    )


def overheads(run: Any) -> list[list[tuple[float, float]]]:
    """(seconds held without progress, work) of every segment of every job, in order; jobs run at full speed."""
    found: list[list[tuple[float, float]]] = [[] for _ in range(run.instance.n)]
    for s in sorted(run.schedule.segments(), key=lambda s: s.start):
        found[s.job].append((s.end - s.start - s.work, s.work))
    return found


def test_every_preemptive_policy_pays_what_the_job_says_and_else_its_own() -> None:
    resumed: dict[str, set[str]] = {}
    for name in GANGS:
        usual = USUAL if "restart" in parameters_of(POLICIES.get(name)) else 0.0
        for seed in (16, 21, 30, 32):
            instance = with_restarts(random_instance(seed, "2x2", jobs=30), seed)
            for j, segments in enumerate(overheads(simulate(instance, spelled(name)))):
                own = float(instance.restart[j])
                for k, (lost, work) in enumerate(segments):
                    cost = 0.0 if k == 0 else usual if math.isnan(own) else own
                    if work > 1e-9:
                        assert lost == pytest.approx(cost, abs=1e-9), (name, seed, j, k)
                    else:  # stopped before it was over
                        assert lost <= cost + 1e-9, (name, seed, j, k)
                    if k and work > 1e-9:
                        resumed.setdefault(name, set()).add("usual" if math.isnan(own) else "own" if own else "free")
    expected = {"srtf", "srtf-gpu", "preemptive-wspt", "setf", "tiresias", "gavel", "immediate-dispatch"}
    assert {name for name, seen in resumed.items() if seen == {"own", "usual", "free"}} >= expected
    assert {name for name, seen in resumed.items() if "own" in seen} >= {*expected, "makespan-rounds", "hadar"}


@pytest.mark.parametrize(("own", "ends"), [(None, 108), (7, 112), (0, 105)])
def test_by_hand(own: float | None, ends: float) -> None:
    jobs = [Job("long", duration=100, restart=own), Job("short", arrival=10, duration=5)]
    assert simulate(Instance(jobs, "1x1"), "srtf:restart=3").schedule.completion.tolist() == [ends, 15]


@pytest.mark.parametrize(("policy", "ends"), [("tiresias:restart=3,first=true", 17), ("tiresias:restart=3", 10)])
def test_a_first_start_costs_as_much_where_the_policy_charges_it_at_all(policy: str, ends: float) -> None:
    assert simulate(Instance([Job("a", duration=10, restart=7)], "1x1"), policy).schedule.completion[0] == ends


def test_a_checkpoint_is_read_at_the_least_storage_bandwidth_of_the_cluster() -> None:
    slow, fast = (NodeGroup(gpus=2, storage_bandwidth=speed) for speed in (2e9, 5e9))
    jobs = [
        Job("read", duration=1, checkpoint=14e9),
        Job("stated", duration=1, checkpoint=14e9, restart=1),
        Job("silent", duration=1),
    ]
    assert Instance(jobs, Cluster((fast, slow))).restart.tolist() == pytest.approx([7, 1, math.nan], nan_ok=True)
    for cluster in (Cluster((fast, NodeGroup(gpus=2))), Cluster((NodeGroup(gpus=2), fast)), Cluster.parse("2x2")):
        assert Instance(jobs, cluster).restart.tolist() == pytest.approx([math.nan, 1, math.nan], nan_ok=True)
    long = replace(jobs[0], duration=100)
    run = simulate(Instance([long, Job("b", arrival=10, gpus=4, duration=5)], Cluster((fast, slow))), "srtf:restart=3")
    assert run.schedule.completion.tolist() == [112, 15]


def test_elastic_jobs_pay_their_own_and_the_overhead_is_theirs() -> None:
    scaling = Scaling(0.0, 1.0, iterations=((8, 10.0),))
    jobs = [
        Job("a", gpus=1, iterations=300, profile="s", batch_size=8, restart=5),
        Job("b", arrival=100, gpus=1, iterations=30, profile="s", batch_size=8),
    ]
    instance = Instance(jobs, "1x2", scalings={"s": scaling})
    run = simulate(instance, "goodput:restart=30")
    starts, schedule = np.array([5.0, 30.0]), run.schedule
    held, gangs = schedule.end - schedule.start, schedule.gangs
    paid = np.minimum(starts[schedule.job], held)
    assert run.metrics["gpu_hours"]["overhead"] == pytest.approx(float(gangs @ paid) / 3600)
    first = schedule.job == 0
    assert len(schedule) > 2  # somebody was resized
    rate = schedule.work[first] / (held[first] - 5)
    assert rate == pytest.approx(gangs[first] / 8)  # r GPUs do r / 8 iterations a second once 5 s are over


def test_an_auction_weighs_the_restart_of_the_job_that_it_would_move() -> None:
    def preempted(restart: float) -> int:
        jobs = [Job("long", duration=1000, restart=restart), Job("short", arrival=15, duration=30)]
        run = simulate(Instance(jobs, "1x1"), "auction-rounds:round=10,restart=1")
        assert run.unfinished == []
        return run.preemptions

    assert preempted(1) == 1
    assert preempted(0) == 1  # its own cost, not the policy's


def test_gavel_pauses_only_jobs_that_resume_for_nothing() -> None:
    # iterations of 3 s in rounds of 10 s: it stops after 9 s, unless that would cost it something
    def ends(restart: float | None) -> float:
        speeds = Throughputs({("net", "V100", 1): Throughput(1 / 3)})
        jobs = [Job("a", iterations=6, profile="net", restart=restart), Job("other", duration=100)]
        run = simulate(Instance(jobs, "2x1:V100", throughputs=speeds), "gavel:round=10")
        return float(run.schedule.completion[0])

    assert ends(None) == pytest.approx(19)  # 9 s, a second of rest, 9 s
    assert ends(0) == pytest.approx(19)
    assert ends(2) == pytest.approx(18)


def test_hadar_sets_the_jobs_own_aside_and_keeps_its_dual() -> None:
    rng = np.random.default_rng(5)
    says = [None, 1.0, 3.0, 9.0]  # one that no round of 8 s has room for
    jobs = [
        Job(f"j{k}", arrival=float(rng.integers(0, 40)), gpus=int(rng.integers(1, 3)), duration=float(rng.integers(3, 40)),
            restart=says[k % 4])
        for k in range(16)
    ]  # fmt: skip
    instance = Instance(jobs, "4x1")
    run = simulate(instance, "hadar:round=8,restart=2")
    assert run.unfinished == []
    planned = np.asarray(run.notes["hadar_utility"]) > 0
    assert planned.sum() > 4
    assert not planned[3::4].any()
    assert not np.isfinite(np.asarray(run.notes["hadar_first"])[3::4]).any()
    judged = judgements(specify("hadar:round=8,restart=2"), run, OptimumBounds(instance, [run]))
    assert judged
    assert all(judgement.holds is not False for judgement in judged)


def test_theorems_without_restart_costs_ask_the_jobs_too() -> None:
    policy, count = POLICIES.get("srtf")(), PLACEMENTS.get("count")()
    free, costly = (Instance([Job("a", duration=3, restart=own)], "1x1") for own in (0, 1))
    assert no_restart_cost(policy, count, free) is None
    assert no_restart_cost(policy, count, costly) == "a restart costs time"
    assert no_restart_cost(POLICIES.get("srtf")(restart=1.0), count, free) == "a restart costs time"


def test_bounds_of_such_files_are_verified_without_optsched(tmp_path: Path) -> None:
    jobs = [Job("a", duration=3, restart=2.5), Job("b", duration=4, checkpoint=4e9), Job("c", duration=5)]
    instance = Instance(jobs, Cluster((NodeGroup(gpus=1, storage_bandwidth=2e9),)))
    certificate = BOUNDS.get("srpt").build(instance, "total_completion_time", "gang")
    assert certificate is not None
    instance.save(tmp_path / "i.json")
    document = json.loads((tmp_path / "i.json").read_text())
    verify_alone(certificate.to_json(), document)
    document["jobs"][0]["restart"] = 2
    with pytest.raises(Refused):
        verify_alone(certificate.to_json(), document)
