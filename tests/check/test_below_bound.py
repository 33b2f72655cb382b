"""A schedule that keeps the rules and is better than a proven bound: the referee says so, in every class."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import optsched.check.referee
from optsched.check.feasibility import Violations
from optsched.check.referee import check_file
from optsched.problem.instance import Instance, Job

FLAGS: list[dict[str, Any]] = [{}, {"preemptive": False}, {"forking": True}, {"sharing": True}]


@pytest.mark.parametrize("flags", FLAGS, ids=str)
@pytest.mark.parametrize(
    "objective", ["total_flow_time", "makespan", "total_weighted_tardiness", "total_utility", "max_fair_slowdown"]
)
def test_a_hole_in_all_other_rules_shows(
    flags: dict[str, Any], objective: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [Job(name, duration=60.5, due=10.0) for name in "abc"]
    instance = Instance(jobs, "1x1", interference=1.5)
    rows = [{"job": name, "gpus": [[0, 0]], "start": 0, "end": 1, "work": 60.5} for name in "abc"]
    head = {"format": "optsched-schedule/1", "instance": instance.digest, "objective": objective}
    path = tmp_path / "schedule.json"
    path.write_text(json.dumps({**head, **flags, "segments": rows}))
    for rule in ("judge", "judge_sharing"):
        monkeypatch.setattr(optsched.check.referee, rule, lambda *_, **__: Violations())
    if flags.get("forking") and objective == "total_utility":
        assert check_file(path, instance).holds  # there is no bound on it for copies
        return
    (violation,) = check_file(path, instance).violations
    assert violation.rule == "value"
    assert "than any schedule of the class" in violation.message


@pytest.mark.parametrize("epoch", [0.0, 1.7e9, 1e12])
def test_an_optimal_schedule_is_not_better_than_its_bound(epoch: float, tmp_path: Path) -> None:
    """One after the other on one GPU is optimal; ends are rounded to the clock, and the bound is exact."""
    jobs = [Job(str(k), arrival=epoch, duration=0.1 + 0.01 * k) for k in range(200)]
    instance, now, rows = Instance(jobs, "1x1"), epoch, []
    for job in jobs:
        assert job.duration is not None
        rows.append({"job": job.id, "gpus": [[0, 0]], "start": now, "end": now + job.duration, "work": job.duration})
        now += job.duration
    path = tmp_path / "schedule.json"
    path.write_text(json.dumps({"format": "optsched-schedule/1", "instance": instance.digest, "segments": rows}))
    assert check_file(path, instance).violations == ()
