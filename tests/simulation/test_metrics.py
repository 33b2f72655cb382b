"""Metrics against a slow replay, second by second, of runs with integer data."""

from __future__ import annotations

import dataclasses
import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from examples import few

from optsched.check.referee import check_schedule, schedule_value
from optsched.classes.gpu_sharing.simulation.shared_run import sharing_metrics
from optsched.policies.simulate import simulate, specify
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference
from optsched.problem.objectives import OBJECTIVES
from optsched.problem.scaling import Scaling
from optsched.problem.schedule import Schedule, Segment, SharedSchedule
from optsched.simulation.engine import run_policy
from optsched.simulation.metrics import cluster_utilization, metrics, seconds_running
from simulation.instances import HOMOGENEOUS, MIXED, random_instance
from simulation.shared_world import SharedWorld, random_shared_instance


def replayed_metrics(schedule: Schedule) -> dict[str, Any]:
    """The same numbers by looking at every job in every second, in fractions."""
    instance, segments = schedule.instance, list(schedule.segments())
    n, total = instance.n, instance.cluster.gpus
    last = int(max((segment.end for segment in segments), default=0))
    span = last - int(instance.arrival.min()) if segments else 0  # GPUs are offered from the first arrival on
    work, completion = [0] * n, [None] * n
    busy = overhead = waiting = Fraction(0)
    queueing, active_in = [0] * n, [0] * last
    for second in range(last):
        running = set()
        for segment in segments:
            if segment.start <= second < segment.end:
                gang = len(segment.gpus)
                running.add(segment.job)
                if second < segment.end - segment.work:
                    overhead += gang
                else:
                    busy += gang
                    work[segment.job] += 1
                    if work[segment.job] == instance.duration[segment.job]:
                        completion[segment.job] = second + 1
        for j in range(n):
            if instance.arrival[j] <= second and (completion[j] is None or second < completion[j]):
                active_in[second] += 1
                if j not in running:
                    queueing[j] += 1
    done = [j for j in range(n) if completion[j] is not None]
    jct = {j: completion[j] - int(instance.arrival[j]) for j in done}
    ftf = {}
    for j in done:
        active = Fraction(sum(active_in[int(instance.arrival[j]) : completion[j]]), jct[j])
        alone = int(instance.duration[j]) * max(Fraction(1), active * int(instance.gpus[j]) / total)
        ftf[j] = jct[j] / alone
    waiting = sum((Fraction(queueing[j] * int(instance.gpus[j])) for j in done), Fraction(0))

    def mean(values: Any) -> Fraction:
        values = list(values)
        return Fraction(sum(values), len(values)) if values else Fraction(0)

    slowdown = {j: max(Fraction(1), Fraction(jct[j], max(10, int(instance.duration[j])))) for j in done}

    def percentile(percent: int, of: dict[int, Any] = jct) -> Fraction:
        ordered = sorted(of.values())
        if not ordered:
            return Fraction(0)
        place = Fraction(percent, 100) * (len(ordered) - 1)
        low = math.floor(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (place - low) * (ordered[high] - ordered[low])

    return {
        "mean_jct": mean(jct.values()),
        "p50_jct": percentile(50),
        "p95_jct": percentile(95),
        "p99_jct": percentile(99),
        "makespan": last,
        "total_completion_time": sum(completion[j] for j in done),
        "total_weighted_completion_time": sum(int(instance.weight[j]) * completion[j] for j in done),
        "total_flow_time": sum(jct.values()),
        "max_flow_time": max(jct.values(), default=0),
        "mean_queueing": mean(queueing[j] for j in done),
        "mean_bsld": mean(slowdown.values()),
        "p95_bsld": percentile(95, slowdown),
        "utilization": busy / (total * span) if span else 0,
        "max_ftf": max(ftf.values(), default=0),
        "mean_ftf": mean(ftf.values()),
        "gpu_hours": {
            "busy": busy / 3600,
            "overhead": overhead / 3600,
            "idle": (total * span - busy - overhead) / 3600,
            "waiting": waiting / 3600,
        },
        "finished": len(done),
        "unfinished": n - len(done),
        "jobs": n,
    }


def assert_metrics(schedule: Schedule) -> None:
    mine, other = metrics(schedule), replayed_metrics(schedule)
    assert mine.keys() == other.keys()
    hours, other_hours = mine.pop("gpu_hours"), other.pop("gpu_hours")
    for name, value in {**other, **other_hours}.items():
        # rounding of sums and quotients of a few hundred numbers, no more
        assert {**mine, **hours}[name] == pytest.approx(float(value), rel=1e-12, abs=1e-12), name


@pytest.mark.parametrize(
    "spec", ["fifo", "sjf+consolidated", "srtf:restart=2", "tiresias:threshold=24,restart=1,starvation=1+first-fit"]
)
@pytest.mark.parametrize("seed", few(range(8), 3))
def test_metrics_are_those_of_a_replay_by_the_second(spec: str, seed: int) -> None:
    cluster = MIXED if seed % 2 else HOMOGENEOUS[seed % len(HOMOGENEOUS)]
    chosen = specify(spec)
    run = run_policy(random_instance(200 + seed, cluster), chosen.policy, chosen.placement)
    assert run.metrics == metrics(run.schedule)
    assert_metrics(run.schedule)


def test_sums_and_means_are_over_finished_jobs_and_the_others_are_counted() -> None:
    jobs = [Job("a", gpus=2, duration=4), Job("b", arrival=1, duration=9), Job("c", arrival=2, duration=1, weight=5)]
    schedule = Schedule.from_segments(
        Instance(jobs, "1x3"), [Segment(0, ((0, 0), (0, 1)), 0, 4, 4), Segment(1, ((0, 2),), 1, 8, 7)]
    )
    assert_metrics(schedule)
    found = metrics(schedule)
    assert (found["finished"], found["unfinished"], found["jobs"]) == (1, 2, 3)
    assert (found["mean_jct"], found["makespan"], found["total_weighted_completion_time"]) == (4, 8, 4)


def test_nothing_scheduled_is_all_zeros() -> None:
    instance = Instance([Job("a", duration=4)], "1x3")
    for schedule, left in (
        (Schedule.from_segments(instance, []), 1),
        (Schedule.from_segments(instance.head(0), []), 0),
    ):
        found = metrics(schedule)
        hours = found.pop("gpu_hours")
        assert {name for name, value in {**found, **hours}.items() if value} <= {"unfinished", "jobs"}
        assert (found["unfinished"], found["jobs"]) == (left, left)


# -- copies of a job at once ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", few(range(20), 6))
def test_seconds_in_which_copies_ran_at_once_count_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    instance = Instance([Job(f"{j}", duration=5) for j in range(3)], "9x1")
    spans = [(int(rng.integers(3)), int(a), int(a + d)) for a, d in rng.integers(1, 12, (int(rng.integers(0, 12)), 2))]
    copies = [sum(job == j for job, *_ in spans) for j in range(3)]
    rows = [Segment(j, ((s, 0),), a, b, 5 / copies[j]) for s, (j, a, b) in enumerate(spans)]
    seconds = [len({t for job, a, b in spans if job == j for t in range(a, b)}) for j in range(3)]
    schedule = Schedule.from_segments(instance, rows)
    assert seconds_running(schedule).tolist() == seconds
    waited = [max(b for job, _, b in spans if job == j) - seconds[j] for j in range(3) if copies[j]]
    assert metrics(schedule)["mean_queueing"] == pytest.approx(sum(waited) / max(len(waited), 1))


@pytest.mark.parametrize("spec", ["fifo", "srtf:restart=1", "hadar-e", "immediate-dispatch"])
def test_values_of_all_objectives_are_those_that_the_referee_adds_up(spec: str) -> None:
    made = simulate(random_instance(3, "2x4"), spec)
    for objective in OBJECTIVES.names():
        exact = schedule_value(made.instance, made.schedule, objective)
        assert made.value(objective) == pytest.approx(float(exact), rel=1e-13), objective


def test_cluster_utilization_counts_from_the_first_arrival() -> None:
    instance = Instance([Job("a", arrival=10, gpus=2, duration=6)], "2x2")
    copies = [Segment(0, ((v, 0), (v, 1)), 10, 15, 3) for v in (0, 1)]  # two seconds of overhead each
    schedule = Schedule.from_segments(instance, copies)
    assert cluster_utilization(schedule) == (1.0, 0.6)
    assert cluster_utilization(Schedule.from_segments(instance, copies[:1])) == (0.5, 0.3)
    assert cluster_utilization(Schedule.from_segments(instance, [])) == (0.0, 0.0)
    hours = metrics(schedule)["gpu_hours"]
    assert [hours[key] * 3600 for key in ("busy", "overhead", "waiting")] == pytest.approx([12, 8, 0])
    assert metrics(schedule)["mean_queueing"] == 0


def shared_by_hand() -> SharedSchedule:
    """Two GPUs; ``a`` (10 s) beside ``b`` (4 s) at 2 and 1.25 from 0 to 5 on one of its two, ``c`` later and alone."""
    xi = Interference(3, ("A", "B"), ((1, 2), (1.25, 1)))
    jobs = [
        Job("a", gpus=2, duration=10, model="A"),
        Job("b", duration=4, model="B"),
        Job("c", arrival=10, iterations=2, profile="n", batch_size=2),
    ]
    instance = Instance(jobs, "1x2", interference=xi, scalings={"n": Scaling(1, 1)})
    # a: 2.5 of 10 s by 5, then 7.5 alone; c: 2 iterations of 2 sub-steps of 2 s instead of 3 s
    rows = [
        Segment(0, ((0, 0), (0, 1)), 0, 12.5, 10),
        Segment(1, ((0, 1),), 0, 5, 4),
        Segment(2, ((0, 0),), 12.5, 20.5, 2),
    ]
    return dataclasses.replace(SharedSchedule.from_segments(instance, rows), steps=np.array([1, 1, 2]))


def test_a_shared_gpu_is_busy_once() -> None:
    schedule = shared_by_hand()
    assert check_schedule(schedule.instance, schedule) == []
    found = sharing_metrics(schedule)
    held, total = 2 * 12.5 + 8, 2 * 20.5
    assert found["utilization"] == pytest.approx(held / total)
    assert found["gpu_hours"] == pytest.approx(
        {"busy": held / 3600, "overhead": 0, "idle": (total - held) / 3600, "waiting": 2.5 / 3600}
    )
    assert found["shared_jobs"] == pytest.approx(2 / 3)
    assert found["mean_slowdown"] == pytest.approx((12.5 / 10 + 5 / 4 + 1) / 3)
    assert found["effective_utilization"] == pytest.approx((20 + 4 + 6) / total)
    assert cluster_utilization(schedule) == pytest.approx((held / total, 30 / total))
    assert found["mean_jct"] == pytest.approx((12.5 + 5 + 10.5) / 3)
    assert found["jobs"] == found["finished"] == 3


def test_sharing_metrics_of_random_runs_by_a_second_look() -> None:
    """Presence on every GPU between any two events, added up in fractions."""
    for seed in range(6):
        schedule = SharedWorld(random_shared_instance(seed), seed).schedule()
        found, segments = sharing_metrics(schedule), list(schedule.segments())
        cuts = sorted({t for each in segments for t in (each.start, each.end)})
        held, sharing = Fraction(0), set()
        for low, high in itertools.pairwise(cuts):
            on: dict[tuple[int, int], list[int]] = {}
            for each in segments:
                for gpu in each.gpus if each.start <= low < each.end else ():
                    on.setdefault(gpu, []).append(each.job)
            held += (Fraction(high) - Fraction(low)) * len(on)
            sharing |= {job for jobs in on.values() if len(jobs) > 1 for job in jobs}
        hours = found["gpu_hours"]
        assert hours["busy"] == pytest.approx(float(held) / 3600, rel=1e-9)
        total = schedule.instance.cluster.gpus * (found["makespan"] - schedule.instance.arrival.min()) / 3600
        assert hours["busy"] + hours["overhead"] + hours["idle"] == pytest.approx(total)
        assert 0 <= found["utilization"] <= 1
        assert found["shared_jobs"] == len(sharing) / schedule.instance.n
        assert found["mean_slowdown"] >= 1


def test_sharing_metrics_of_nothing() -> None:
    instance = Instance([], "1x2", interference=Interference())
    found = sharing_metrics(SharedSchedule.from_segments(instance, []))
    assert found["utilization"] == found["shared_jobs"] == found["mean_slowdown"] == found["effective_utilization"] == 0
