"""The fair slowdown: flow times on an equal share by hand and against fractions, value, referee, solver, faces."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bounds.cases import instances
from examples import examples
from hypothesis import given, settings

import optsched as osd
from optsched.check.referee import check_file, check_schedule, schedule_value
from optsched.check.verify_fair_share import equal_share
from optsched.problem.fair_share import fair_flow_times
from optsched.problem.instance import Instance, Job
from optsched.problem.objectives import get_objective
from optsched.report.comparison import evaluate
from optsched.speeds.equal_share import equal_share_times

GOAL = "max_fair_slowdown"
ONE = Instance([Job("a", duration=6), Job("b", duration=3), Job("c", arrival=2, duration=1)], "1x1")


def test_one_machine_by_hand() -> None:
    # a and b at 1/2 until c comes; at 1/3 until c is done at 5; at 1/2 until b is done at 7; a alone until 10
    assert fair_flow_times(ONE).tolist() == [10, 7, 3]


def test_nobody_has_more_gpus_than_its_gang() -> None:
    # of 5 GPUs a has 1 and the others 2 each, half of what they could use, until a and c are done at 6
    jobs = [Job("a", duration=6), Job("b", duration=6, gpus=4), Job("c", duration=3, gpus=4)]
    assert fair_flow_times(Instance(jobs, "1x5")).tolist() == [6, 9, 6]
    assert fair_flow_times(Instance(jobs, "1x9")).tolist() == [6, 6, 3]


def in_fractions(instance: Instance) -> list[Fraction]:
    """Job by job, without rounding: the share is raised step by step until all GPUs are used or nobody can use more."""
    gangs, left, now, stay = instance.gpus.tolist(), dict[int, Fraction](), Fraction(0), [Fraction(0)] * instance.n
    release = [Fraction(r) for r in instance.arrival.tolist()]
    come = sorted(range(instance.n), key=lambda j: release[j])
    while come or left:
        share, free, open_ = dict.fromkeys(left, Fraction(0)), Fraction(instance.cluster.gpus), set(left)
        while open_ and free > 0:
            step = min(free / len(open_), *(gangs[j] - share[j] for j in open_))
            share |= {j: share[j] + step for j in open_}
            free -= step * len(open_)
            open_ = {j for j in open_ if share[j] < gangs[j]}
        ends = [now + left[j] * gangs[j] / share[j] for j in left]
        until = min(ends + [release[j] for j in come[:1]])
        for j in list(left):
            left[j] -= (until - now) * share[j] / gangs[j]
            if left[j] == 0:
                stay[j] = until - release[j]
                del left[j]
        now = until
        while come and release[come[0]] <= now:
            left[come[0]] = Fraction(float(instance.duration[come[0]]))
            come.pop(0)
    return stay


@settings(max_examples=examples(60))
@given(instances(most=6))
def test_they_are_the_processor_sharing_of_the_definition(instance: Instance) -> None:
    found = fair_flow_times(instance)
    assert (found >= instance.duration).all()
    assert found.tolist() == pytest.approx([float(x) for x in in_fractions(instance)], rel=1e-12)
    # the two that are found again are equal to the last bit
    assert list(map(Fraction, found.tolist())) == list(equal_share_times(instance))
    times = ([Fraction(x) for x in column.tolist()] for column in (instance.arrival, instance.duration))
    assert equal_share(next(times), next(times), instance.gpus.tolist(), instance.cluster.gpus) == found.tolist()


def test_a_late_clock_and_another_unit_change_nothing() -> None:
    later = Instance([replace(job, arrival=job.arrival + 2.0**31) for job in ONE.jobs], "1x1")
    finer = Instance([replace(job, arrival=job.arrival / 64, duration=job.duration / 64) for job in ONE.jobs], "1x1")
    assert fair_flow_times(later).tolist() == fair_flow_times(ONE).tolist()
    assert (fair_flow_times(finer) * 64).tolist() == fair_flow_times(ONE).tolist()
    assert osd.bound(later, GOAL).value == osd.bound(ONE, GOAL).value
    osd.bound(later, GOAL).verify(later)


def test_value_bound_and_ratio_by_hand() -> None:
    report = evaluate(ONE, ["fifo", "srtf"], GOAL)
    fifo, srtf = report.lines
    # fifo: a 0-6, b 6-9, c 9-10; srtf: b 0-2, c 2-3 (as short as what is left of b, and later: b 2-3, c 3-4), a 4-10
    assert fifo.value == pytest.approx(8 / 3)
    assert srtf.value == 1
    assert report.certificate is not None
    assert report.certificate.value == 1  # 10 s of work from 0 on: a 10/10, b 10/7 or c 8/3 at the end
    assert (fifo.ratio, srtf.ratio) == (pytest.approx(8 / 3), 1)
    assert schedule_value(ONE, fifo.run.schedule, GOAL) == Fraction(8, 3)
    assert get_objective(GOAL).exact_of(ONE, [6, 9, 10]) == Fraction(8, 3)


def test_the_referee_refuses_another_value(tmp_path: Path) -> None:
    schedule = osd.simulate(ONE, "fifo").schedule
    assert check_schedule(ONE, schedule, objective=GOAL, value=Fraction(8, 3)) == []
    assert check_schedule(ONE, schedule, objective=GOAL, value=8 / 3) == []
    for wrong in (2.6666, Fraction(8, 3) + Fraction(1, 10**20)):
        assert [v.rule for v in check_schedule(ONE, schedule, objective=GOAL, value=wrong)] == ["value"]
    schedule.save(tmp_path / "s.json", objective=GOAL, value=8 / 3)
    assert check_file(tmp_path / "s.json", ONE).holds
    document = json.loads((tmp_path / "s.json").read_text())
    document["value"] = 0.9
    (tmp_path / "s.json").write_text(json.dumps(document))
    assert not check_file(tmp_path / "s.json", ONE).holds


def test_solve_and_the_command_line(command: Any, tmp_path: Path) -> None:
    best = osd.solve(ONE, GOAL)
    assert (best.value, best.status) == (1, "optimal")  # b, c, a
    ONE.save(tmp_path / "i.json")
    asked = ("run", tmp_path / "i.json", "-p", "fifo", "--objective", "max-fair-slowdown", "--json")
    (row,) = command(*asked).document["runs"]
    assert (row["value"], row["bound"]["value"]) == (pytest.approx(8 / 3), 1)
    assert command("bound", tmp_path / "i.json", "--objective", GOAL, "-o", tmp_path / "c.json").code == 0
    assert command("verify", tmp_path / "c.json", "--instance", tmp_path / "i.json").code == 0


def test_no_jobs() -> None:
    nobody = Instance([], "1x1")
    assert fair_flow_times(nobody).size == 0
    assert get_objective(GOAL).of(nobody, np.zeros(0)) == 0
    assert osd.bound(nobody, GOAL).value == 0
