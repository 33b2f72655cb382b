"""What an instance states of its optimum is believed where it is proved: by the index, this process, files beside it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from optsched.bounds import bound
from optsched.check.referee import check_schedule, schedule_value
from optsched.guarantees.optimum import is_proved, proved_here
from optsched.guarantees.optimum_bounds import KNOWN, OptimumBounds
from optsched.io.index import shipped
from optsched.io.sources import load
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.report.comparison import Report, evaluate
from optsched.solvers.solve import solve

LATE = 1.7e9


def later(instance: Instance, seconds: float) -> Instance:
    """The same jobs on a later clock."""
    jobs = [dataclasses.replace(job, arrival=job.arrival + seconds) for job in instance.jobs]
    return Instance(jobs, instance.cluster, instance.name, instance.objective)


def stated(instance: Instance, value: Any, schedule_class: str = "gang-nonpreemptive") -> Instance:
    return instance.replace(
        optimum={"objective": instance.objective, "class": schedule_class, "value": value, "proved_by": ["somebody"]}
    )


def trap() -> Instance:
    """A long job, then a short one: without preemption SJF takes 18 + 9, at best 11 + 2, with it 11 + 2."""
    return Instance(
        [Job("long", duration=9), Job("short", arrival=1, duration=1)], "1x1", "trap", "total_completion_time"
    )


def report_of(instance: Instance, path: Path, *policies: str) -> Report:
    instance.save(path)
    return evaluate(load(path), policies or ("sjf",))


@pytest.mark.parametrize("clock", [0.0, LATE])
def test_a_stated_value_is_no_bound_and_no_optimum(tmp_path: Path, clock: float) -> None:
    instance = later(load("rigid-06-1"), clock + 1)  # no instance of the index
    best = solve(instance).value
    assert best is not None
    for value in (best, best - 0.5):
        report = report_of(stated(instance, value), tmp_path / "i.json")
        (line,) = report.lines
        assert line.bound is not None
        assert line.bound.kind != KNOWN
        assert f"states an optimum of {value:.12g}" in report.note
        proven = OptimumBounds(load(tmp_path / "i.json"))
        assert proven.upper("total_completion_time", "gang-nonpreemptive") is None
    assert report_of(instance, tmp_path / "i.json").note == ""


def test_what_the_index_proves_is_known_by_the_digest(tmp_path: Path) -> None:
    for each in [each for each in shipped() if each.optimum is not None][::9]:
        instance = load(each.name)
        assert each.digest == instance.digest
        assert is_proved(instance)
        assert instance.optimum is not None
        assert not is_proved(stated(instance, instance.optimum["value"] - 0.5))
        assert not is_proved(stated(instance, instance.optimum["value"], "gang"))
        assert not is_proved(later(instance, 1.0))
        instance.replace(name="other").save(tmp_path / "other.json")
        assert is_proved(load(tmp_path / "other.json"))
        assert OptimumBounds(instance).upper(each.objective, "gang-nonpreemptive") == instance.optimum["value"]


def test_what_this_process_proved_is_known() -> None:
    instance = stated(trap(), 13)
    assert not is_proved(instance)
    assert is_proved(proved_here(instance))
    assert not is_proved(stated(trap(), 12))
    assert not is_proved(proved_here(trap()))


@pytest.mark.parametrize("clock", [0.0, LATE])
def test_a_certificate_and_a_schedule_beside_the_file_prove_an_optimum(tmp_path: Path, clock: float) -> None:
    # SJF misses the optimum of the class gang, 12, which SRTF reaches: nothing says so unless its schedule lies beside.
    path, instance = tmp_path / "i.json", later(trap(), clock)
    alone = report_of(instance, path)
    assert [line.bound.exact for line in alone.lines if line.bound] == [False]
    best = simulate(instance, "srtf")
    assert check_schedule(instance, best.schedule) == []
    best.schedule.save(tmp_path / "i.schedule.json")
    bound(instance).save(tmp_path / "i.certificate.json")
    (line,) = evaluate(load(path), ["sjf"]).lines
    assert line.bound is not None
    assert (line.bound.exact, line.bound.ratio_to) == (True, "optimum")
    assert line.bound.value == pytest.approx(float(schedule_value(instance, best.schedule, "total_completion_time")))
    assert OptimumBounds(load(path)).upper("total_completion_time", "gang") == schedule_value(
        instance, best.schedule, "total_completion_time"
    )
    assert OptimumBounds(load(path)).upper("total_completion_time", "gang-nonpreemptive") is None


def test_proofs_beside_the_file_that_do_not_hold_are_named_and_not_used(tmp_path: Path) -> None:
    path, instance = tmp_path / "i.json", trap()
    instance.save(path)
    simulate(instance, "srtf").schedule.save(tmp_path / "i.schedule.json")
    document = json.loads((tmp_path / "i.schedule.json").read_text())
    document["segments"][-1]["end"] -= 2
    (tmp_path / "i.schedule.json").write_text(json.dumps(document))
    (tmp_path / "i.certificate.json").write_text("{")
    report = evaluate(load(path), ["sjf"])
    assert [line.bound.exact for line in report.lines if line.bound] == [False]
    assert "i.schedule.json" in report.note
    assert "i.certificate.json" in report.note
    assert OptimumBounds(load(path)).upper("total_completion_time", "gang") is None
