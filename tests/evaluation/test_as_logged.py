"""The schedule that ran: its metrics, what a log says that cannot be, and idle GPUs while jobs wait."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from simulation.instances import random_instance

from optsched.evaluation.advice.savings import queued_by_job
from optsched.evaluation.as_logged import AS_LOGGED, LoggedRun, as_logged
from optsched.evaluation.evaluate import compare, evaluate
from optsched.io.sources import load
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.simulation.run import Run

OTHER = ("policy", "knowledge", "events", "seconds")  # columns in which a log differs from the run that it tells of


def written_out(run: Run, cluster: str | None = None) -> Instance:
    """The instance of a run with the times at which its jobs ran, as a log says them."""
    pieces: list[list[list[float]]] = [[] for _ in range(run.instance.n)]
    for segment in run.schedule.segments():
        pieces[segment.job].append([segment.start, segment.end])
    ran = pl.Series("ran", pieces, dtype=pl.List(pl.List(pl.Float64)))
    return run.instance.replace(jobs=run.instance.table.with_columns(ran), cluster=cluster or run.instance.cluster)


def logged(instance: Instance) -> LoggedRun:
    run = as_logged(instance)
    assert run is not None
    return run


@pytest.mark.parametrize("epoch", [0, 1_500_000_000])
@pytest.mark.parametrize("policy", ["fifo", "srtf"])
def test_a_run_written_out_as_a_log_has_the_metrics_and_ratio_of_the_run(policy: str, epoch: int) -> None:
    instance = random_instance(7, "2x4")
    instance = instance.replace(jobs=instance.table.with_columns(pl.col("arrival") + epoch))
    frame = compare(written_out(simulate(instance, policy)), policy)
    assert frame["policy"].to_list() == [AS_LOGGED, policy]
    assert frame["knowledge"][0] == "not stated"
    first, second = frame.drop(*OTHER, *(name for name in frame.columns if name.startswith("guarantee"))).rows()
    assert first == second


def test_a_log_of_a_preempted_job_says_what_was_lost() -> None:
    jobs = [
        Job("a", gpus=2, duration=3600, ran=((0, 1800), (7200, 10800))),
        Job("b", duration=5400, ran=((1800, 7200),)),
    ]
    run = logged(Instance(jobs, "1x2"))
    assert (run.preemptions, run.schedule_class, run.inconsistencies) == (1, "gang", ())
    assert run.schedule.completion.tolist() == [10800, 7200]
    hours = run.metrics["gpu_hours"]
    assert (hours["busy"], hours["overhead"]) == pytest.approx((2 + 1.5, 1))  # half an hour of two GPUs was done twice
    assert run.metrics["mean_queueing"] == (5400 + 1800) / 2


@pytest.mark.parametrize(
    ("duration", "ran", "lost"),
    [
        (4500, ((0, 3000), (3000, 6000, 2)), 0),  # resized: its duration stands for its GPU-seconds
        (6000, ((0, 3000, 2), (3000, 6000)), 0),  # its duration is the sum of its seconds
        (3000, ((0, 3000), (3000, 6000, 2)), 1 / 3),
        (3000, ((0, 3000), (3000, 6000)), 1 / 2),
    ],
)
def test_a_job_that_changed_its_size_has_lost_nothing(duration: float, ran: Any, lost: float) -> None:
    run = logged(Instance([Job("a", gpus=4, duration=duration, ran=ran)], "1x4"))
    hours, held = run.metrics["gpu_hours"], sum((end - start) * (gpus or [4])[0] for start, end, *gpus in ran) / 3600
    assert (hours["overhead"], hours["waiting"]) == pytest.approx((lost * held, 0))
    assert queued_by_job(run.schedule).tolist() == pytest.approx([lost * held])
    assert run.unfinished == []


def test_a_job_whose_speed_depends_on_its_gpus_is_busy_while_it_holds_them() -> None:
    run = simulate(load("all-four").head(12), "srtf")
    again = logged(written_out(run))
    assert again.inconsistencies == ()
    assert again.value() == run.value()
    held = float(np.dot(run.schedule.gangs, run.schedule.end - run.schedule.start)) / 3600
    assert again.metrics["gpu_hours"]["busy"] == pytest.approx(held)
    assert again.metrics["gpu_hours"]["overhead"] == pytest.approx(0)


GOOD: dict[str, Any] = {"a": {"ran": ((0, 10),)}, "b": {"ran": ((0, 10),)}, "c": {"arrival": 5, "ran": ((10, 20),)}}


@pytest.mark.parametrize(
    ("job", "change", "rule", "detail"),
    [
        ("c", {"arrival": 12}, "arrival", "starts at 10 s, before its submission at 12 s"),
        ("c", {"ran": ((9, 19),)}, "capacity", "starts at 9 s: 3 GPUs are in use, of 2"),
        ("c", {"ran": ((10, 20, 2),)}, "gang", "holds 2 GPUs from 10 s, and its gang is 1"),
        ("c", {"ran": ((10, 15), (14, 20))}, "gang", "starts again at 14 s, before its last piece ends"),
        ("c", {"ran": ((10, 18),)}, "work", "ran for 8 s, and its duration is 10 s"),
    ],
)
def test_what_no_schedule_can_have_is_listed(job: str, change: dict[str, Any], rule: str, detail: str) -> None:
    def of(changes: dict[str, Any]) -> LoggedRun:
        rows = {name: {**fields, **changes.get(name, {})} for name, fields in GOOD.items()}
        return logged(Instance([Job(name, duration=10, **fields) for name, fields in rows.items()], "1x2"))

    assert of({}).inconsistencies == ()
    [found] = of({job: change}).inconsistencies
    assert (found.rule, found.job, found.detail) == (rule, job, detail)
    assert of({job: change}).metrics["gpu_hours"]["overhead"] >= 0


def test_a_log_that_holds_more_than_there_is_keeps_its_times_and_has_a_ratio_below_1() -> None:
    jobs = [Job(str(j), gpus=3, duration=10, ran=((0, 10),)) for j in range(9)]
    report = evaluate(Instance(jobs, "2x2"), "fifo")
    line = report.lines[0]
    assert (line.policy, line.value) == (AS_LOGGED, 90)
    assert line.ratio is not None
    assert line.ratio < 0.5
    assert report.violations == []
    assert report.logged is not None
    assert [found.rule for found in report.logged.inconsistencies] == ["capacity"] * 8
    assert report.logged.schedule.gpu_node.tolist()[:3] == [0, 0, 1]


def test_jobs_without_a_run_are_counted_and_an_instance_without_runs_has_no_row() -> None:
    jobs = [Job("a", duration=10, ran=((0, 10),)), Job("b", duration=10)]
    run = logged(Instance(jobs, "1x1"))
    assert run.unfinished == ["b"]
    assert (run.metrics["finished"], run.metrics["mean_jct"]) == (1, 10)
    assert as_logged(Instance([Job("a", duration=10), Job("b", duration=10, ran=())], "1x1")) is None
    assert as_logged(load("rigid-06-1")) is None


HOURS = 3600.0


def test_spans_in_which_the_next_job_waits_although_it_fits() -> None:
    def job(name: str, arrival: float, start: float, end: float, gpus: int = 1) -> Job:
        return Job(name, arrival * HOURS, gpus, (end - start) * HOURS, ran=((start * HOURS, end * HOURS),))

    outage = [job("a", 0, 0, 2, 4), job("b", 1, 5, 6, 2), job("c", 3, 5.5, 6, 4), job("d", 4, 6, 7)]
    [span] = logged(Instance(outage, "1x4")).idle_spans
    assert (span.start, span.end) == (2 * HOURS, 5 * HOURS)  # from the end of a to the start of b
    assert (span.idle, span.waiting, span.gpu_hours) == (4, 3, 12)
    blocked = [job("a", 0, 0, 9, 2), job("b", 1, 9, 10, 3), job("c", 2, 9, 10)]
    assert logged(Instance(blocked, "1x4")).idle_spans == ()  # two GPUs are idle, and the next job needs three
    assert logged(Instance([job("a", 0, 0.9, 2), job("b", 5, 5, 6)], "1x4")).idle_spans == ()  # less than an hour


def test_random_logs_have_the_idle_spans_that_a_look_at_every_second_finds() -> None:
    rng = np.random.default_rng(53)
    for _ in range(20):
        arrival = rng.integers(0, 20, 12)
        start = arrival + rng.integers(0, 8, 12)
        end = start + rng.integers(1, 5, 12)
        gpus = rng.integers(1, 4, 12)
        rows = zip(arrival * HOURS, start * HOURS, end * HOURS, gpus.tolist(), strict=True)
        jobs = [Job(str(j), r, g, float(c - s), ran=((float(s), float(c)),)) for j, (r, s, c, g) in enumerate(rows)]
        idle = set()
        for hour in range(40):
            waits = [j for j in np.lexsort((np.arange(12), arrival)) if arrival[j] <= hour < start[j]]
            free = 4 - sum(gpus[j] for j in range(12) if start[j] <= hour < end[j])
            if waits and free >= gpus[waits[0]]:
                idle.add(hour)
        long = {hour for hour in idle if {hour - 1, hour + 1} & idle}
        spans = logged(Instance(jobs, "1x4")).idle_spans
        assert {hour for span in spans for hour in range(int(span.start / HOURS), int(span.end / HOURS))} == long
