"""Jobs with tasks beside jobs at other speeds are whole jobs: as `optsched.at_job_level` makes them, and with all others."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optsched as osd
from optsched.check.referee import check_schedule
from optsched.classes import classes_of
from optsched.errors import InputError
from optsched.problem.instance import Instance
from optsched.speeds.kinds.tasks import TaskSpeeds, WholeIterations
from optsched.verifier.judgement import verify
from optsched.verifier.refusal import UNJUDGED, Refused


@cache
def both(seed: int) -> tuple[Instance, Instance]:
    """(with tasks, at the job level), each beside one job with a duration."""
    tasks = osd.generate("ada-srsf", seed, jobs=25)
    other = osd.Job("other", float(np.median(tasks.arrival)), 2, duration=30.0)
    made = osd.at_job_level(tasks)
    return tasks.replace(jobs=[*tasks.jobs, other]), made.replace(jobs=[*made.jobs, other])


@cache
def of_all_kinds() -> Instance:
    four = osd.load("all-four", limit=60)
    tasks = {"net": osd.IterationTasks(forward=0.1, backward=0.2, message=2e8)}
    jobs = [osd.Job(f"t{k}", 600.0 * k, 2 + k % 3, iterations=4000, profile="net", gpu_memory=4e9) for k in range(8)]
    return four.replace(jobs=[*four.jobs, *jobs], tasks=tasks)


@pytest.mark.parametrize("policy", ["fifo", "srtf:restart=3+first-fit", "a-srpt:overtake=0", "tiresias"])
def test_they_run_as_jobs_at_the_job_level_do(policy: str) -> None:
    for seed in (1, 2):
        mixed, whole = both(seed)
        found, expected = (osd.simulate(each, policy).schedule for each in (mixed, whole))
        assert found.completion.tolist() == expected.completion.tolist()
        assert check_schedule(mixed, found) == []
        alone = osd.simulate(mixed.replace(contention=osd.Contention(8e-10, -8e-10 + 1e-20)), policy).schedule
        assert alone.completion.sum() < found.completion.sum()  # they meet on the network


def test_bounds_are_those_of_the_job_level() -> None:
    mixed, whole = both(1)
    assert {*classes_of(mixed), "elastic"} == {*classes_of(whole)}  # a gang with tasks is never resized
    for schedule_class in classes_of(mixed):
        proof = osd.bound(mixed, "total_flow_time", schedule_class)
        proof.verify(mixed)
        assert proof.value == osd.bound(whole, "total_flow_time", schedule_class).value


def test_files_hold_them(tmp_path: Path) -> None:
    mixed, _ = both(1)
    for name in ("i.json", "i.parquet"):
        mixed.save(tmp_path / name)
        assert osd.load(tmp_path / name) == mixed
    assert mixed.digest != both(1)[1].digest


@pytest.mark.parametrize("policy", ["fifo:skip=true", "makespan-rounds", "sjf-bsbf", "goodput"])
def test_all_five_kinds_of_speeds_run_together(policy: str) -> None:
    made = of_all_kinds()
    kinds = ("profiles", "throughputs", "scalings", "tasks", "duration")
    assert all(made.jobs_at(kind).size for kind in kinds)
    run = osd.simulate(made, policy)
    assert run.unfinished == []
    assert check_schedule(made, run, schedule_class=run.schedule_class, preemptive=run.preemptive) == []
    rigid = {len(row.gpus) for row in run.schedule.segments() if row.job == made.n - 1}
    assert rigid == {int(made.gpus[-1])}


def test_the_level_is_that_of_all_jobs() -> None:
    mixed, _ = both(1)
    assert not mixed.at_task_level
    assert [type(each) for each in mixed.speeds][-1] is WholeIterations
    again = mixed.replace(jobs=mixed.jobs[:-1])
    assert again.at_task_level
    assert [type(each) for each in again.speeds] == [TaskSpeeds]
    with pytest.raises(InputError, match="schedules tasks"):
        osd.simulate(mixed, "srsf:k=1")


def test_what_is_not_legal_names_the_job() -> None:
    mixed, _ = both(1)
    with pytest.raises(InputError, match=r"may send a message over the network"):
        mixed.replace(contention=None)
    half = osd.Job("half", 0.0, 1, iterations=1.5, profile=next(iter(mixed.tasks)))
    with pytest.raises(InputError, match=r"iterations = 1.5: invalid .expected: a whole number"):
        mixed.replace(jobs=[*mixed.jobs, half])
    with pytest.raises(InputError, match="unknown model"):
        mixed.replace(jobs=[*mixed.jobs, osd.Job("slip", 0.0, 1, iterations=1, profile="no-such-net")])


def test_the_verifier_without_optsched_does_not_judge_them() -> None:
    mixed, _ = both(1)
    proof = osd.bound(mixed, "total_flow_time", "gang")
    documents = [json.loads(json.dumps(each.to_json())) for each in (proof, mixed)]
    with pytest.raises(Refused) as refused:
        verify(*documents)
    assert refused.value.rule == UNJUDGED
    proof.verify(mixed)  # told how fast they are


def test_a_command_takes_jobs_with_tasks_as_whole_jobs(tmp_path: Path, command: Any) -> None:
    source = ("contention-cluster", "--limit", "12", "--job-level", "--json")
    made = osd.at_job_level(osd.load("contention-cluster", limit=12))
    assert osd.load("contention-cluster", limit=12, job_level=True) == made
    assert command("run", "-p", "fifo", "-o", tmp_path, *source).value == osd.simulate(made, "fifo").value()
    (schedule,) = tmp_path.glob("schedule*")
    assert command("verify", schedule, "--instance", *source).document["holds"]
