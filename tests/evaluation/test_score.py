"""`score`: the sentence, the bounds next to a schedule, groups of jobs, and schedules in files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from simulation.instances import random_instance

from optsched.errors import InputError
from optsched.evaluation.evaluate import evaluate
from optsched.evaluation.quick_bounds import least_bounded_slowdown, least_queued_hours
from optsched.evaluation.score import RejectedSchedule, in_words, score
from optsched.io.sources import load
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.problem.schedule import Schedule

WEEK = 7 * 86400
LOG = Instance(
    [
        Job("a", 0, 4, 100, user="ann", ran=((0, 100),)),
        Job("b", 10, 1, 5, user="bob", ran=((100, 105),)),
        Job("c", WEEK, 3, 50, user="ann", ran=((WEEK, WEEK + 50),)),
        Job("d", WEEK, 4, 50, ran=((WEEK + 50, WEEK + 100),)),
    ],
    "1x4",
)


def test_a_simulated_schedule_has_the_dates_of_its_log(tmp_path: Path) -> None:
    days = [f"j{day},2017-10-{day + 1:02d} 00:00:00,{30 * 86400},1" for day in range(31)]
    (tmp_path / "october.csv").write_text("\n".join(["id,submitted,duration,gpus", *days]) + "\n")
    jobs = load(
        f"csv:{tmp_path / 'october.csv'}",
        columns={"arrival": "submitted", "duration": "duration", "gpus": "gpus"},
        cluster="1x1",
    )
    result = score(simulate(jobs, "fifo").schedule)  # it ends in April 2020
    assert result.sentence.startswith("the jobs of these 4 weeks (2017-10-01 to 2017-10-31) took ")


def test_the_sentence_of_a_small_log() -> None:
    result = score(LOG)
    assert result.line.value == 100 + 95 + 50 + 100
    bound = result.line.bound
    assert bound is not None
    assert bound.value <= 255  # b first, and c before d
    most = int(np.ceil(345 - bound.value))
    assert result.sentence.startswith(
        "the jobs of these 7 days took 345 job-seconds from submission to completion, at most 1."
    )
    assert result.sentence.endswith(f"times the best possible; at most {most} of them were avoidable")
    assert repr(result) == f"Score({result.sentence})"
    assert result.inconsistencies == result.idle_spans == ()


def test_groups_by_hand() -> None:
    result = score(LOG)
    assert result.keys == ("size", "week", "user")
    size = result.by("size")
    assert size["size"].to_list() == ["1", "3-4"]
    assert size["jobs"].to_list() == [1, 3]
    assert size["mean_queueing"].to_list() == [90, pytest.approx(50 / 3)]
    assert size["total_flow_time"].to_list() == [95, 250]
    assert size["bound"].to_list() == [5, 250]  # alone: c, then d; b has the cluster for itself
    week = result.by("week")
    assert week["week"].to_list() == [1, 2]
    assert week["mean_bsld"].to_list() == [(1 + 95 / 10) / 2, (1 + 2) / 2]
    assert week["queued_gpu_hours"].to_list() == [90 / 3600, 4 * 50 / 3600]
    user = result.by("user")  # whose jobs stayed longest comes first
    assert user["user"].to_list() == ["ann", None, "bob"]
    assert user["gpu_hours"].to_list() == [550 / 3600, 200 / 3600, 5 / 3600]
    with pytest.raises(InputError, match=r"no such groups .*expected: size, week, user"):
        result.by("group")


def test_the_document_has_everything_and_is_json() -> None:
    document = json.loads(json.dumps(score(LOG).to_json(), allow_nan=False))
    assert (document["policy"], document["knowledge"], document["value"]) == ("as logged", "not stated", 345)
    assert document["ratio"] == pytest.approx(345 / document["bound"]["value"])
    assert document["avoidable"] == pytest.approx(345 - document["bound"]["value"])
    queued, slowdown = document["queued_gpu_hours"], document["mean_bsld"]
    assert queued["value"] == pytest.approx((90 + 200) / 3600)
    assert queued["avoidable"] == pytest.approx(queued["value"] - queued["bound"])
    assert slowdown["value"] == pytest.approx((1 + 9.5 + 1 + 2) / 4)
    assert slowdown["ratio"] == pytest.approx(slowdown["value"] / slowdown["bound"])
    assert set(document["by"]) == {"size", "week", "user"}
    assert document["inconsistencies"] == {"count": 0, "by_rule": {}, "listed": []}


def test_jobs_that_never_ran_are_left_out_and_named() -> None:
    extra = pl.concat(
        [LOG.table, LOG.table[:1].with_columns(id=pl.lit("never"), ran=pl.lit(None, LOG.table["ran"].dtype))]
    )
    result = score(LOG.replace(jobs=extra))
    assert (result.left_out, result.instance.n, result.line.value) == (("never",), 4, 345)
    with pytest.raises(InputError, match="no job says when it ran"):
        score("rigid-06-1")


def test_a_log_below_the_bound_says_so() -> None:
    wrong = Instance([Job(str(j), duration=10, ran=((0, 10),)) for j in range(9)], "1x1")
    result = score(wrong)
    assert result.below_bound
    assert result.avoidable is None
    sentence = (
        "the jobs of these 10 seconds took 90 job-seconds from submission to completion, which is better than the bound "
        "450: up to 9 GPUs were in use at once, and the cluster has 1"
    )
    assert result.sentence == sentence
    assert len(result.inconsistencies) == 8


def test_a_value_that_is_the_bound_is_optimal() -> None:
    result = score(Instance([Job("a", 0, 1, 10, ran=((0, 10),))], "1x2"), objective="makespan")
    assert result.optimal
    assert result.sentence == "makespan of the jobs of these 10 seconds is 10 seconds, which is optimal"
    early = score(Instance([Job("a", 5, 1, 10, ran=((5, 10), (9, 15)))], "1x2"))
    assert early.line.optimal
    assert not early.optimal  # no schedule runs a job twice at once


def test_a_group_of_all_jobs_has_the_bound_of_the_schedule() -> None:
    jobs = [Job(str(k), 0, 3, 10, ran=((10 * k, 10 * k + 10),)) for k in range(9)]  # one gang at a time
    result = score(Instance(jobs, "1x4"))
    assert result.by("week")["ratio"].to_list() == result.by("size")["ratio"].to_list() == [result.line.ratio]


@pytest.mark.parametrize("goal", ["total_completion_time", "makespan", "total_utility"])
def test_other_objectives_have_a_sentence(goal: str) -> None:
    result = score(LOG, objective=goal)
    assert result.sentence.startswith(f"{goal} of the jobs of these 7 days is ")
    assert ("best possible is" in result.sentence) == (goal == "total_utility")
    assert (" seconds, which is optimal" in result.sentence) == (goal == "makespan")


def test_numbers_of_the_sentence_are_rounded_to_the_side_of_the_truth() -> None:
    assert in_words(690_527_007) == "690.5 million"
    assert in_words(437_027_817.3, "up") == "437.1 million"
    assert in_words(1_100_000_000) == "1.10 billion"
    assert in_words(89.5, "up") == "89.5"
    assert in_words(66.5287, "up") == "66.6"  # as in the tables


@pytest.mark.parametrize("seed", range(8))
def test_no_policy_is_below_the_bounds_on_queueing_and_slowdown(seed: int) -> None:
    instance = random_instance(seed, "2x4")
    queued, slowdown = least_queued_hours(instance), least_bounded_slowdown(instance)
    assert queued is not None
    assert queued >= 0
    for run in (simulate(instance, policy) for policy in ("fifo", "sjf", "srtf", "srtf:restart=2", "wspt")):
        hours = run.metrics["gpu_hours"]
        assert hours["waiting"] + hours["overhead"] >= queued * (1 - 1e-12)
        assert run.metrics["mean_bsld"] >= slowdown * (1 - 1e-12)


def test_the_bounds_on_queueing_and_slowdown_by_hand() -> None:
    jobs = [Job(str(j), 0, 2, 3600) for j in range(3)]  # one after the other on both GPUs: they wait 0, 1, 2 hours
    instance = Instance(jobs, "1x2")
    assert least_queued_hours(instance) == pytest.approx(6)
    assert least_bounded_slowdown(instance) == pytest.approx(2)
    assert least_bounded_slowdown(Instance([Job("a", duration=1)], "1x1")) == 1
    [line] = evaluate(instance, "fifo").lines
    assert line.avoidable_queueing == pytest.approx(0)


def test_a_schedule_in_memory_or_in_a_file_has_the_score_of_its_run(tmp_path: Path) -> None:
    run = simulate("rigid-06-1", "fifo")
    run.schedule.save(tmp_path / "s.json")
    starts = dict(zip(run.jobs["id"], run.jobs["start"], strict=True))
    (tmp_path / "starts.json").write_text(json.dumps({"starts": starts}))
    of: list[Any] = [run, run.schedule]
    results = [score(each) for each in of] + [
        score(tmp_path / name, "rigid-06-1") for name in ("s.json", "starts.json")
    ]
    assert {(result.line.value, result.line.ratio) for result in results} == {(205, results[0].line.ratio)}
    assert all(result.run.metrics == run.metrics for result in results)


def test_a_schedule_that_the_referee_rejects_has_no_score(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"starts": [0, 0, 0, 0, 0, 0]}')
    with pytest.raises(RejectedSchedule, match=r"^the referee rejects the schedule: arrival: .* \(and \d+ more\)$"):
        score(tmp_path / "s.json", "rigid-06-1")
    with pytest.raises(RejectedSchedule, match="the referee rejects the schedule: arrival"):
        score(Schedule.from_starts(LOG, [0, 200, 300, 400]))


# --- whole logs -------------------------------------------------------------------------------------------------------


@pytest.mark.study
def test_the_schedule_that_ran_at_kth(data_dir: Path) -> None:
    result = score(load(f"swf:{data_dir / 'swf' / 'KTH-SP2.swf'}", walltimes="cut"))
    metrics, bound = result.run.metrics, result.line.bound
    assert bound is not None
    assert (result.instance.n, result.line.value) == (28_481, 690_527_007)
    assert [f"{metrics[name]:.3f}" for name in ("mean_queueing", "mean_bsld")] == ["15385.255", "192.970"]
    assert f"{metrics['p95_bsld']:.1f}" == "415.8"
    assert (f"{bound.value:.2f}", f"{result.line.ratio:.3f}") == ("253499189.68", "2.724")
    assert result.sentence == (
        "the jobs of these 11 months (1996-09-23 to 1997-08-29) took 690.5 million job-seconds from submission to "
        "completion, at most 2.73 times the best possible; at most 437.1 million of them were avoidable"
    )


@pytest.mark.study
def test_philly_with_the_starts_of_a_run_has_the_row_of_the_run_and_tampered_rows_are_listed(
    data_dir: Path, tmp_path: Path
) -> None:
    run = simulate(load(f"philly:{data_dir / 'philly' / 'philly.csv'}", cluster="60x8", skip_bad=True), "fifo")
    log = run.instance.table.select("id", "arrival", "gpus", "duration")
    log = log.with_columns(start=pl.Series(run.jobs["start"]), end=pl.Series(run.jobs["end"]))
    log.write_csv(tmp_path / "log.csv")
    written = f"csv:{tmp_path / 'log.csv'}"
    ran, replayed = evaluate(load(written, cluster="60x8"), "fifo").lines
    assert ran.run.metrics == replayed.run.metrics == run.metrics
    assert (ran.value, ran.ratio) == (replayed.value, replayed.ratio)
    late = log.filter(pl.col("start") > pl.col("arrival") + 3600)["id"].to_list()[:3]
    sooner = pl.when(pl.col("id").is_in(late)).then(pl.col("arrival") - 60)
    tampered = log.with_columns(start=sooner.otherwise("start"))
    tampered = tampered.with_columns(end=pl.col("start") + pl.col("duration"))
    tampered.write_csv(tmp_path / "log.csv")
    found = score(load(written, cluster="60x8")).inconsistencies
    assert {entry.job for entry in found if entry.rule == "arrival"} == set(late)
    assert any(entry.rule == "capacity" for entry in found)
