"""Gavel in the engine: against a replay written apart, against the public simulator's numbers, and what it promises."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import few, studied
from interpreted import interpreted

from optsched.check.referee import check_schedule
from optsched.compiled import without_interpreting
from optsched.io.sources import load
from optsched.io.traces.generate import generate
from optsched.models.gavel_allocation import ActiveJobs
from optsched.policies import gavel as gavel_policy
from optsched.policies.gavel import Gavel
from optsched.policies.gavel_allocations import ALLOCATIONS, Setting, analytic_centre
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.problem.throughputs import Throughput, Throughputs
from optsched.simulation.policy import Knowledge
from optsched.simulation.run import Run
from optsched.speeds.type_speeds import type_speeds

# -- a second account: plain loops over dictionaries, no engine, no devices; for nodes of one GPU, only the type matters;
# -- iterations are whole numbers and a round ends when its last job stops, as in the public simulator --------------------


@dataclass
class Replayed:
    completion: list[float]
    rounds: int
    most_used: dict[int, int]  # GPUs of every type


def replay(instance: Instance, policy: str, *, published: bool = False) -> Replayed:
    """Completion times under a policy that knows the types' speeds (they are served in the order v100, p100, k80).

    Published: a job that is chosen before it has a share keeps the GPUs from others and does not run.
    """
    length, reset, speeds = 360.0, 1920.0, type_speeds(instance)
    assert speeds.one_gpu_nodes
    T, rate, cap = len(speeds.types), speeds.together, speeds.capacity
    rule = ALLOCATIONS.get(policy)(Setting(speeds.types, cap.astype(float)))
    gang, arrival = instance.gpus.tolist(), instance.arrival.tolist()
    left = {j: int(work) for j, work in enumerate(instance.work)}
    coming = sorted(range(instance.n), key=lambda j: (arrival[j], j))
    active: list[int] = []
    received: dict[tuple[int, int], float] = {}
    deficit: dict[tuple[int, int], float] = {}
    share: dict[tuple[int, int], float] = {}
    total = dict.fromkeys(range(T), 0.0)
    now, found, first, changed = 0.0, -math.inf, math.nan, False
    made = Replayed([math.nan] * instance.n, 0, dict.fromkeys(range(T), 0))
    while coming or active:
        if not active and coming and arrival[coming[0]] > now:
            now = arrival[coming[0]]
        while coming and arrival[coming[0]] <= now:
            j = coming.pop(0)
            active.append(j)
            changed = True
            received |= {(j, t): length / 2 for t in range(T)}
            deficit |= {(j, t): 0.0 for t in range(T)}
        early = found == first or not any(share.get((j, t), 0.0) for j in active for t in range(T))
        if changed and (now - found >= reset or early):
            ids = np.array(active)
            elapsed, remaining = now - instance.arrival[ids], np.array([float(left[j]) for j in active])
            X = rule.shares(ActiveJobs(ids, rate[ids], instance.gpus[ids], instance.weight[ids], elapsed, remaining))
            for i, j in enumerate(active):
                for t in range(T):
                    owed = share.get((j, t), 0.0) * (now - found) if math.isfinite(found) else 0.0
                    deficit[j, t] += owed - (received[j, t] - length / 2)
                    received[j, t], share[j, t] = length / 2, float(X[i, t])
            total = dict.fromkeys(range(T), len(active) * length / 2)
            found, changed = now, False
            first = now if math.isnan(first) else first
        runs: dict[int, int] = {}
        for t in range(T):
            urgency = {}
            for j in active:
                x = share.get((j, t), 0.0)
                urgency[j] = (x * total[t] / received[j, t] if x > 0 else 0.0, deficit[j, t], x)
            free = int(cap[t])
            for j in sorted(active, key=lambda j: urgency[j], reverse=True):
                if j not in runs and rate[j, t] > 0 and gang[j] <= free:
                    runs[j], free = t, free - gang[j]
            made.most_used[t] = max(made.most_used[t], int(cap[t]) - free)
        if published:
            runs = {j: t for j, t in runs.items() if (j, t) in share}
        end = now
        for j, t in runs.items():
            steps = min(left[j], math.floor(rate[j, t] * length * (1 + 1e-9)))
            stop = now + steps / rate[j, t]
            left[j] -= steps
            received[j, t] += stop - now
            total[t] += stop - now
            end = max(end, stop)
            if left[j] == 0:
                made.completion[j] = stop
                active.remove(j)
                changed = True
        if not runs and coming:
            end = arrival[coming[0]]
        now, made.rounds = end, made.rounds + 1
    return made


# -- the policy -----------------------------------------------------------------------------------------------------------


SMALL, LARGE = "8x1:V100+16x1:P100+24x1:K80", "36x1:V100+36x1:P100+36x1:K80"


def gavel(instance: Instance, policy: str, **parameters: Any) -> Run:
    text = "".join(f",{key}={value}" for key, value in parameters.items())
    return simulate(instance, f"gavel:policy={policy}{text}")


def tabled(seed: int, cluster: str) -> Instance:
    """Jobs on V100, P100 and K80, no two alike; every fifth does not fit on K80."""
    rng = np.random.default_rng([seed, 9])
    table, jobs = {}, []
    for j in range(25):
        gang, rates = int(rng.choice([1, 1, 2, 4])), np.sort(rng.uniform(0.5, 20, 3))[::-1]
        for gpu, rate in zip(("V100", "P100", "K80"), rates.tolist(), strict=True):
            fits = j % 5 > 0 or gpu != "K80"
            table[f"m{j}", gpu, gang] = Throughput(rate * fits, 0.8 * rate * fits)
        jobs.append(
            Job(
                f"j{j}",
                arrival=float(rng.integers(0, 6000)),
                gpus=gang,
                iterations=int(rng.integers(500, 30_000)),
                profile=f"m{j}",
                weight=float(rng.uniform(1, 5)),
            )
        )
    return Instance(jobs, cluster, throughputs=Throughputs(table))


AWARE = [name for name, rule in ALLOCATIONS.items() if rule.aware]


@pytest.mark.parametrize("policy", AWARE)
def test_the_rounds_are_those_of_a_replay_written_apart(policy: str) -> None:
    for seed in (1, 2):
        instance = tabled(seed, "4x1:V100+5x1:P100+6x1:K80")
        other = replay(instance, policy)
        run = gavel(instance, policy)
        # a job waits for others at the end of its round to within rounding: times add up in another order
        assert run.schedule.completion == pytest.approx(other.completion, rel=1e-9)
        assert other.most_used == {0: 4, 1: 5, 2: 6}  # work-conserving, and never more than there is
        published = gavel(instance, policy, as_published="true").schedule.completion
        assert published == pytest.approx(replay(instance, policy, published=True).completion, rel=1e-9)
        assert (published != run.schedule.completion).any()


def test_as_published_a_job_holds_its_gpus_idle_until_it_has_a_share() -> None:
    jobs = [Job("a", duration=5000), Job("b", arrival=50, duration=1000), Job("c", arrival=150, duration=100)]
    instance, rule = Instance(jobs, "3x1"), "max_min_fairness_perf"
    # the shares are computed at 0, at 100 (the second time is immediate) and at 500
    run = gavel(instance, rule, round=100, reset=400)
    assert run.schedule.completion.tolist() == [5000, 1100, 300]
    run = gavel(instance, rule, round=100, reset=400, as_published="true")
    assert run.schedule.completion.tolist() == [5000, 1100, 600]


@pytest.mark.parametrize("policy", ALLOCATIONS.names())
@pytest.mark.parametrize("cluster", few(["4x1:V100+5x1:P100+6x1:K80", "2x4:V100+1x4:P100+3x2:K80"], 1))
def test_every_policy_makes_legal_schedules_of_one_type_a_gang(policy: str, cluster: str) -> None:
    instance = tabled(3, cluster)
    run = gavel(instance, policy, reset=720, restart=5)
    assert run.unfinished == []
    assert check_schedule(instance, run.schedule) == []
    types = instance.cluster.node_type
    for segment in run.schedule.segments():
        assert len({int(types[node]) for node, _ in segment.gpus}) == 1


def test_a_gang_that_no_type_can_hold_never_runs_unless_types_may_be_mixed() -> None:
    jobs = [Job("wide", gpus=4, duration=100), Job("small", gpus=1, duration=1000), Job("twin", gpus=2, duration=50)]
    instance = Instance(jobs, "2x1:V100+2x1:P100")
    run = gavel(instance, "max_min_fairness_perf")
    assert run.unfinished == ["wide"]
    assert run.schedule.completion[1:].tolist() == [1000, 50]
    run = gavel(instance, "max_min_fairness_perf", mixed="true")
    assert run.unfinished == []
    assert run.schedule.completion[0] > run.schedule.completion[1]  # it starves while others need the GPUs


def test_rounds_begin_with_an_arrival_in_an_idle_cluster_and_tick_from_there() -> None:
    jobs = [Job("a", arrival=50, duration=500), Job("b", arrival=60, duration=10), Job("c", arrival=9000, duration=1)]
    run = gavel(Instance(jobs, "2x1"), "max_min_fairness_perf", round=100)
    assert run.schedule.completion.tolist() == [550, 160, 9001]  # b waits for the next round


def test_devices_of_a_finished_job_stay_idle_until_the_round_ends_unless_nothing_runs() -> None:
    jobs = [Job("a", duration=30), Job("b", duration=300), Job("c", arrival=1, duration=10)]
    rule = "max_min_fairness_perf"
    assert gavel(Instance(jobs, "2x1"), rule, round=100).schedule.completion.tolist() == [30, 300, 110]
    assert gavel(Instance(jobs[:1] + jobs[2:], "1x1"), rule, round=100).schedule.completion.tolist() == [30, 40]


def test_a_job_that_goes_on_pays_no_restart_and_one_that_comes_back_does() -> None:
    lone = Instance([Job("a", duration=1000)], "1x1")
    assert gavel(lone, "max_min_fairness_perf", round=100, restart=7).schedule.completion.tolist() == [1000]
    two = Instance([Job("a", duration=300), Job("b", duration=300)], "1x1")
    run = gavel(two, "max_min_fairness_perf", round=100, restart=7)
    assert run.preemptions >= 3
    # the first segment of each is free of it
    assert run.schedule.completion.max() == pytest.approx(600 + 7 * run.preemptions)


def test_shares_become_time_in_the_long_run() -> None:
    # One GPU: a job of twice the weight gets twice the time.
    jobs = [Job("heavy", duration=5000, weight=2), Job("light", duration=5000)]
    run = gavel(Instance(jobs, "1x1:V100"), "max_min_fairness_perf", round=10)
    heavy = sum(min(s.end, 3000) - s.start for s in run.schedule.segments() if s.job == 0 and s.start < 3000)
    assert heavy == pytest.approx(2000, rel=0.01)


def test_notes_are_the_last_shares() -> None:
    instance = tabled(4, "2x1:V100+3x1:P100")
    notes = gavel(instance, "max_min_fairness_perf").notes
    assert set(notes) == {"share_V100", "share_P100"}
    assert all(share.shape == (instance.n,) and (share >= 0).all() for share in notes.values())
    assert notes["share_V100"].max() > 0


def test_knowledge_is_the_policys() -> None:
    assert Gavel().knowledge is Knowledge.NON_CLAIRVOYANT
    needs = {name for name in ALLOCATIONS.names() if Gavel(policy=name).knowledge is Knowledge.CLAIRVOYANT}
    assert needs == {name for name in ALLOCATIONS.names() if not name.startswith("max_")}


# -- compiled and interpreted ---------------------------------------------------------------------------------------------


class ReadableGavel(Gavel):
    """The readable form, which the engine asks at every event."""

    def accelerator(self, jobs: Any) -> Any:
        return None


def require_the_same(seed: int) -> None:
    rng = np.random.default_rng([seed, 54])
    cluster = ("4x1:V100+5x1:P100+6x1:K80", "2x4:V100+1x4:P100+3x2:K80", "3x2", "2x3+1x4")[seed % 4]
    jobs = int(rng.integers(2, 12))
    instance = (
        tabled(seed, cluster).head(jobs) if seed % 4 < 2 else generate("philly-like", seed, jobs=jobs, cluster=cluster)
    )
    slow = 1 if seed % 4 < 2 else 40
    given: dict[str, Any] = {
        "policy": str(rng.choice(ALLOCATIONS.names())),
        "round": slow * float(rng.choice([360.0, 700.0])),
        "reset": slow * float(rng.choice([0.0, 1920.0])),
        "restart": float(rng.choice([0.0, 0.0, 20.0])),
        "mixed": bool(rng.random() < 0.3),
        "as_published": bool(rng.random() < 0.3),
    }
    with without_interpreting():
        compiled = simulate(instance, Gavel(**given))
    for form in (Gavel, ReadableGavel):
        with interpreted(gavel_policy, analytic_centre):
            run = simulate(instance, form(**given))
        for name in ("job", "start", "end", "work", "gpu_offset", "gpu_node", "gpu_index"):
            assert (getattr(run.schedule, name) == getattr(compiled.schedule, name)).all(), (seed, given, name)
        assert all((compiled.notes[name] == shares).all() for name, shares in run.notes.items())
        assert run.events == compiled.events


@pytest.mark.parametrize("first", [pytest.param(0, marks=pytest.mark.compiled), *map(studied, range(60, 2000, 60))])
def test_compiled_and_interpreted_decisions_are_the_same(first: int) -> None:
    for seed in range(first, first + 60):
        require_the_same(seed)


# -- the public simulator's numbers -----------------------------------------------------------------------------------------


def golden(data_dir: Path, trace: str, cluster: str) -> Instance:
    folder = data_dir / "gavel"
    return load(
        f"gavel:{folder / f'{trace}.trace'}", cluster=cluster, throughputs=folder / "simulation_throughputs.json"
    )


FIRST = {
    "max_min_fairness": (19989.26, 77141.28),
    "max_min_fairness_perf": (14622.82, 63944.53),
    "finish_time_fairness_perf": (15009.71, 64971.49),
    "min_total_duration_perf": (22972.65, 61512.58),
    "max_sum_throughput_perf": (17071.66, 63937.31),
}
# Why more than 3 %: where the makespan rule's bisection leaves room, the public tool's solver stops at some point inside (a
# vertex gives + 9 %, the centre - 4 %). (`max_min_fairness` serves the types in an order drawn at random each round: over
# seeds its mean JCT is 2 to 5 % below the one public draw; the default seed is within 3 %.)
LOOSE = {("min_total_duration_perf", "mean_jct"): 0.045}


@pytest.mark.parametrize("policy", few(list(FIRST), 2))
def test_golden_values_of_the_first_trace(data_dir: Path, policy: str) -> None:
    run = gavel(golden(data_dir, "max_min_fairness", SMALL), policy)
    assert run.unfinished == []
    for metric, value in zip(("mean_jct", "makespan"), FIRST[policy], strict=True):
        assert run.metrics[metric] == pytest.approx(value, rel=LOOSE.get((policy, metric), 0.03)), metric


STATIC = {
    "max_min_fairness_perf": (37648.5, 81096.3),
    "finish_time_fairness_perf": (43490.6, 83558.3),
    "min_total_duration_perf": (75018.9, 76382.3),
}


@pytest.mark.release
@pytest.mark.parametrize(
    "policy", [pytest.param(e, marks=() if e == "max_min_fairness_perf" else pytest.mark.study) for e in STATIC]
)
def test_golden_values_of_the_static_trace(data_dir: Path, policy: str) -> None:
    run = gavel(golden(data_dir, "gen_n500_static_seed0_m", LARGE), policy)
    assert (run.metrics["mean_jct"], run.metrics["makespan"]) == pytest.approx(STATIC[policy], rel=0.03)


ARRIVALS = {
    "max_min_fairness": (12926.7, 42636),
    "max_min_fairness_perf": (9511.9, 45000),
    "finish_time_fairness_perf": (9670.7, 45000),
    "min_total_duration_perf": (9992.2, 45000),
    "max_sum_throughput_perf": (9508.7, 44605),
}


@pytest.mark.parametrize("policy", few(list(ARRIVALS), 2))
def test_golden_values_of_the_trace_with_arrivals(data_dir: Path, policy: str) -> None:
    run = gavel(golden(data_dir, "gen_n100_l300_seed0_m", LARGE), policy, as_published="true")
    jct, makespan = ARRIVALS[policy]
    assert run.metrics["makespan"] == pytest.approx(makespan, rel=0.01)
    assert run.metrics["mean_jct"] == pytest.approx(jct, rel=0.023 if policy == "min_total_duration_perf" else 0.002)
