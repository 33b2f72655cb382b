"""Schedules that the referee accepts within its tolerance claim nothing by it: not against optima, nor against bounds."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import few

import optsched as osd
from check import exact_referee, forged_schedules
from optsched.check.certain_times import certain_value
from optsched.check.referee import check_file, check_schedule, schedule_value
from optsched.classes import class_stated
from optsched.contract.instances import random_sharing_instance, random_task_instance
from optsched.evaluation.measured_ratio import BoundShown
from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.io.library import best_known
from optsched.io.submission import check_submission
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.problem.schedule import Schedule, Segment

SHAVED = 0.9e-9  # of a segment: the referee forgives 1e-9


def shaved(schedule: Schedule, rows: Any = slice(None)) -> Schedule:
    """Segments that end a little before all their work can be done."""
    end = schedule.end.copy()
    end[rows] -= SHAVED * (schedule.end - schedule.start)[rows]
    return replace(schedule, end=end)


@pytest.mark.parametrize(("name", "optimum"), [("rigid-12-1", 291), ("gangs-8-50-11", 20_389)])
def test_a_shaved_optimum_improves_and_refutes_nothing(name: str, optimum: int, tmp_path: Path, command: Any) -> None:
    instance = osd.load(name)
    schedule = shaved(kept_schedule(name))
    assert check_schedule(instance, schedule, preemptive=False) == []
    assert schedule_value(instance, schedule) < optimum
    assert certain_value(instance, schedule, preemptive=False) == optimum
    schedule.save(tmp_path / "shaved.json")
    assert check_file(tmp_path / "shaved.json", instance).holds
    submission = check_submission(tmp_path / "shaved.json")
    assert (submission.value, submission.improves, submission.closes) == (optimum, False, False)
    assert submission.verdict.endswith(f"{optimum} equals the best value known of {name}, {optimum}")
    done = command("library", "check", tmp_path / "shaved.json", "--json")
    assert (done.code, json.loads(done.out)["value"], json.loads(done.out)["improves"]) == (0, optimum, False)


def kept_schedule(name: str) -> Schedule:
    best = best_known(name).schedule
    assert best is not None
    return best


def test_real_times_are_within_rounding_of_the_best_value_known(tmp_path: Path) -> None:
    name = "types-utility-06-11"
    best = best_known(name)
    assert best.schedule is not None
    shaved(best.schedule).save(tmp_path / "shaved.json")
    found = check_submission(tmp_path / "shaved.json")
    assert (found.violations, found.improves, found.closes) == ((), False, False)
    assert "is within rounding of, and does not improve, the best value known of types-utility-06-11" in found.verdict


def test_a_schedule_that_improves_by_more_than_was_shaved_improves_by_the_rest(tmp_path: Path) -> None:
    instance = Instance([Job("a", duration=3), Job("b", duration=5)], "1x1", objective="total_completion_time")
    schedule = shaved(Schedule.from_starts(instance, [0, 3]))
    assert certain_value(instance, schedule, preemptive=False) == 11
    late = shaved(Schedule.from_starts(instance, [0.5, 3.5]))
    assert certain_value(instance, late, preemptive=False) == 12


@pytest.mark.parametrize("seed", range(12))
def test_no_shaved_schedule_is_certainly_below_the_optimum(seed: int) -> None:
    """SRPT on one machine is optimal: whichever of its segments are shaved, how and in what order."""
    rng = np.random.default_rng(seed)
    jobs = [Job(f"{j}", arrival=int(rng.integers(0, 30)), duration=int(rng.integers(1, 12))) for j in range(8)]
    instance = Instance(jobs, "1x1", objective="total_completion_time")
    run = simulate(instance, "srtf")
    optimum = schedule_value(instance, run.schedule)
    assert certain_value(instance, run.schedule) == optimum
    for _ in range(5):
        forged = shaved(run.schedule, rng.random(len(run.schedule)) < 0.6)
        start = np.maximum(forged.start - rng.choice([0.0, 8e-15], forged.start.size), instance.arrival[forged.job])
        forged = replace(forged, start=start)
        if check_schedule(instance, forged) == []:
            certain = certain_value(instance, forged)
            assert certain is not None
            assert optimum <= certain <= optimum * (1 + Fraction(1, 10**8))


def test_a_pause_of_rounding_saves_no_restart() -> None:
    # The gap is one that the referee takes for going on; in fractions the job goes on only where nobody came between.
    instance = Instance([Job("a", duration=1 / 3, restart=1)], "1x1", objective="makespan")
    parts = [
        Segment(0, ((0, 0),), 0, 0.1, 0.1),
        Segment(0, ((0, 0),), np.nextafter(0.1, 1), 1 / 3 + 3e-17, 1 / 3 - 0.1),
    ]
    schedule = Schedule.from_segments(instance, parts)
    assert check_schedule(instance, schedule) == []
    assert certain_value(instance, schedule) == pytest.approx(Fraction(1, 3), rel=1e-14)


def test_forged_schedules_of_every_class_are_certain_of_no_less_than_they_add_up_to(tmp_path: Path) -> None:
    path, accepted, exact = tmp_path / "s.json", 0, 0
    for case, documents in forged_schedules.cases(5, len(few(range(120), 12)), 6):
        for document in (case.document, *documents):
            path.write_text(json.dumps(document))
            if not check_file(path, case.instance).holds:
                continue
            schedule = Schedule.load(path, case.instance)
            preemptive = document.get("preemptive") is not False
            stated = {schedule.stated, *(name for name, fact in document.items() if fact is True)}
            kind = class_stated(case.instance, stated, preemptive).name
            value = schedule_value(case.instance, schedule)
            certain = certain_value(case.instance, schedule, schedule_class=kind, preemptive=preemptive)
            accepted += 1
            assert certain is None or value <= certain
            if exact_referee.verdict(forged_schedules.ENGINE, case.jobs, case.models, document) == "legal":
                exact += 1
                assert certain is not None
                assert certain <= value * (1 + Fraction(1, 10**12))
    assert accepted > 12
    assert exact > 1


@pytest.mark.parametrize("policy", ["sjf-bsbf", "sjf-ffs", "unified"])
def test_what_the_engine_makes_of_shared_gpus_is_certain_up_to_the_rounding_of_floats(policy: str) -> None:
    for seed in range(4):
        run = simulate(random_sharing_instance(seed), policy)
        certain, value = certain_value(run.instance, run.schedule), schedule_value(run.instance, run.schedule)
        assert certain is not None
        assert value <= certain <= value * (1 + Fraction(1, 10**11))


def test_tasks_are_certain_up_to_all_that_is_forgiven() -> None:
    for seed in range(3):
        run = simulate(random_task_instance(seed), "srsf")
        certain, value = certain_value(run.instance, run.schedule), schedule_value(run.instance, run.schedule)
        assert certain is not None
        assert value <= certain <= value * (1 + Fraction(1, 10**5))


def test_a_shaved_schedule_beside_the_file_is_no_better_optimum(tmp_path: Path) -> None:
    """Else a theorem whose ratio is 1, which an optimal run just keeps, would be said to be violated."""
    instance = osd.load("rigid-12-1").replace(optimum=None)
    path = tmp_path / "i.json"
    instance.save(path)
    best = kept_schedule("rigid-12-1")
    shaved(best).save(tmp_path / "i.schedule.json")
    read = osd.load(path)
    assert OptimumBounds(read).stored.refused == ()
    assert OptimumBounds(read).upper("total_completion_time", "gang-nonpreemptive") == 291


def test_a_schedule_beside_the_file_whose_times_were_rounded_down_is_worth_the_whole_work(tmp_path: Path) -> None:
    instance = Instance([Job("a", duration=1), Job("b", duration=1 + 2**-31)], "1x2", objective="makespan")
    assert certain_value(instance, Schedule.from_starts(instance, [0, 0]), preemptive=False) == 1 + Fraction(1, 2**31)
    schedule = Schedule.from_starts(instance, [0, 0])
    early = replace(schedule, end=np.array([1.0, 1.0]))
    assert check_schedule(instance, early, preemptive=False) == []
    path = tmp_path / "i.json"
    instance.save(path)
    early.save(tmp_path / "i.schedule.json")
    proven = OptimumBounds(osd.load(path))
    assert proven.upper("makespan", "gang-nonpreemptive") == 1 + Fraction(1, 2**31)


@pytest.mark.parametrize(("gain", "value", "wrong"), [(False, 290.9999998776, 289.0), (True, 291.0000001, 293.0)])
def test_no_ratio_is_below_one_by_what_is_forgiven(gain: bool, value: float, wrong: float) -> None:
    bound = BoundShown(291.0, "known-optimum", "gang-nonpreemptive", True, gain)
    assert bound.ratio(value) == 1.0
    assert (bound.ratio(wrong) or 1.0) < 1  # a bound that is false shows
