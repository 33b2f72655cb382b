"""Objectives against their definitions, in floats and in fractions; the gain and the quotient among them."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bounds.cases import instances
from examples import examples
from hypothesis import given, settings, strategies as st

import optsched as osd
from optsched.bounds.certificate import CertificateError
from optsched.check.referee import check_file, check_schedule, schedule_value
from optsched.errors import InputError
from optsched.evaluation.evaluate import evaluate
from optsched.guarantees.optimum import proved_here
from optsched.problem.fair_share import fair_flow_times
from optsched.problem.instance import Instance, Job
from optsched.problem.objectives import OBJECTIVES, get_objective, objective_of
from optsched.speeds.equal_share import equal_share_times
from optsched.verifier.exact_numbers import integers
from optsched.verifier.fair_share_proof import equal_share

DEFINITION = {
    "total_completion_time": lambda rows: sum(c for c, r, w, d in rows),
    "total_weighted_completion_time": lambda rows: sum(w * c for c, r, w, d in rows),
    "total_flow_time": lambda rows: sum(c - r for c, r, w, d in rows),
    "total_weighted_flow_time": lambda rows: sum(w * (c - r) for c, r, w, d in rows),
    "makespan": lambda rows: max((c for c, r, w, d in rows), default=0),
    "max_flow_time": lambda rows: max((c - r for c, r, w, d in rows), default=0),
    "total_weighted_tardiness": lambda rows: sum(w * max(c - d, 0) for c, r, w, d in rows if d is not None),
}
Rows = list[tuple[int, int, int, int | None]]
rows_of_integers = st.lists(
    st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(0, 9), st.none() | st.integers(-9, 99)), max_size=8
)


def columns(rows: Rows) -> tuple[Any, ...]:
    c, r, w = (np.array([row[i] for row in rows], dtype=np.float64) for i in range(3))
    return c, r, w, np.array([math.inf if row[3] is None else row[3] for row in rows], dtype=np.float64)


def test_the_suite_knows_every_objective() -> None:
    # a gain, and a quotient: tested on their own below
    assert {*DEFINITION, "total_utility", "max_fair_slowdown"} == set(OBJECTIVES.names())


@pytest.mark.parametrize("name", DEFINITION)
@given(rows=rows_of_integers)
def test_value_and_exact_are_the_definition(name: str, rows: Rows) -> None:
    objective = get_objective(name)
    completion, *rest = columns(rows)
    expected = DEFINITION[name](rows)
    assert objective.value(completion, *rest) == expected
    exact = objective.exact(completion.tolist(), *rest)
    assert isinstance(exact, Fraction)
    assert exact == expected


@given(rows=rows_of_integers)
def test_exact_takes_fractions_and_floats_as_they_are(rows: Rows) -> None:
    _, *rest = columns(rows)
    thirds = [Fraction(row[0], 3) for row in rows]
    assert get_objective("total_completion_time").exact(thirds, *rest) == sum(thirds, Fraction(0))
    tenths = [row[0] / 10 for row in rows]
    assert get_objective("total_completion_time").exact(tenths, *rest) == sum(map(Fraction, tenths), Fraction(0))


@pytest.mark.parametrize("name", DEFINITION)
def test_a_job_without_a_completion_time_makes_the_value_nan(name: str) -> None:
    completion, *rest = columns([(3, 0, 1, 5), (4, 0, 1, None)])
    completion[0] = math.nan
    assert math.isnan(get_objective(name).value(completion, *rest))


def test_only_flow_objectives_have_a_completion_form_and_three_are_maxima() -> None:
    forms = {name: objective.completion_form for name, objective in OBJECTIVES.items() if objective.completion_form}
    assert forms == {
        "total_flow_time": "total_completion_time",
        "total_weighted_flow_time": "total_weighted_completion_time",
    }
    maxima = [name for name, objective in OBJECTIVES.items() if objective.maximum]
    assert sorted(maxima) == ["makespan", "max_fair_slowdown", "max_flow_time"]


def test_names_may_be_written_with_hyphens_and_unknown_ones_are_one_line() -> None:
    assert get_objective("total-flow-time") is get_objective("total_flow_time")
    with pytest.raises(InputError, match=r"no objective named 'makespam'; did you mean makespan"):
        get_objective("makespam")


def test_the_objective_meant_is_the_named_one_else_the_instances_own_else_flow_time() -> None:
    job = Job("a", duration=1)
    assert objective_of(Instance([job], "1x1")).name == "total_flow_time"
    own = Instance([job], "1x1", objective="makespan")
    assert objective_of(own).name == "makespan"
    assert objective_of(own, "total_completion_time").name == "total_completion_time"


def test_of_reads_the_instances_columns() -> None:
    instance = Instance([Job("a", duration=2, weight=3, due=1), Job("b", arrival=1, duration=1)], "1x1")
    completion = np.array([2.0, 3.0])
    assert get_objective("total_weighted_tardiness").of(instance, completion) == 3
    assert get_objective("total_weighted_flow_time").exact_of(instance, [Fraction(2), Fraction(3)]) == 8


# -- Total utility, the objective that is maximised: value, exact value, referee, bound from above, ratio bound / value.


JOBS = [Job("a", duration=2, weight=3), Job("b", arrival=1, duration=4), Job("c", arrival=1, duration=1)]


def test_value_and_bound_by_hand() -> None:
    instance = Instance(JOBS, "1x1", objective="total_utility")
    report = evaluate(instance, ["fifo", "sjf"])
    fifo, sjf = report.lines
    # fifo: a 0-2, b 2-6, c 6-7; sjf: a 0-2, c 2-3, b 3-7
    assert fifo.value == pytest.approx(3 * 2 / 2 + 4 / 5 + 1 / 6)
    assert sjf.value == pytest.approx(3 * 2 / 2 + 4 / 6 + 1 / 2)
    assert report.certificate.value == 3 + 1 + 1  # every job alone
    assert fifo.ratio == pytest.approx(5 / fifo.value)
    assert sjf.bound.gain
    value = schedule_value(instance, sjf.run.schedule)
    assert abs(value - (3 + Fraction(4, 6) + Fraction(1, 2))) < Fraction(1, 2**95)
    assert get_objective("total_utility").exact_of(instance, [2, 7, 3]) == value


def test_the_referee_and_the_verifier_know_the_value() -> None:
    instance = Instance(JOBS, "1x1", objective="total_utility")
    schedule = osd.simulate(instance, "sjf").schedule
    assert check_schedule(instance, schedule, value=3 + 4 / 6 + 1 / 2) == []
    assert [v.rule for v in check_schedule(instance, schedule, value=4.2)] == ["value"]
    certificate = osd.bound(instance)
    certificate.verify(instance)
    for wrong in (Fraction(4), Fraction(6)):
        with pytest.raises(CertificateError):
            replace(certificate, value=wrong).verify(instance)


def test_a_stated_optimum_is_refuted_from_both_sides() -> None:
    for value in (4.0, 5.5):  # a run reaches more; no schedule can
        stated = {"objective": "total_utility", "class": "gang-nonpreemptive", "value": value}
        instance = Instance(JOBS, "1x1", objective="total_utility", optimum=stated)
        with pytest.raises(osd.InputError, match="refuted"):
            evaluate(instance, ["sjf"])
    stated = {"objective": "total_utility", "class": "gang-nonpreemptive", "value": 3 + 4 / 6 + 1 / 2}
    best = proved_here(Instance(JOBS, "1x1", objective="total_utility", optimum=stated))
    report = evaluate(best, ["sjf", "fifo"])
    assert report.lines[0].ratio == pytest.approx(1)
    assert report.lines[1].ratio == pytest.approx((3 + 4 / 6 + 1 / 2) / (3 + 4 / 5 + 1 / 6))


def test_an_exact_value_is_accepted_and_a_stay_of_no_length_is_no_crash(tmp_path: Path) -> None:
    instance = Instance([Job("a", duration=1), Job("b", duration=2)], "1x1", objective="total_utility")
    schedule = osd.simulate(instance, "fifo").schedule
    assert check_schedule(instance, schedule, value=Fraction(5, 3)) == []
    assert [v.rule for v in check_schedule(instance, schedule, value=Fraction(5, 3) + Fraction(1, 10**20))] == ["value"]
    schedule.save(tmp_path / "s.json", objective="total_utility", value=5 / 3)
    document = json.loads((tmp_path / "s.json").read_text())
    assert check_file(tmp_path / "s.json", instance).holds
    document["segments"][0]["end"] = 0
    (tmp_path / "s.json").write_text(json.dumps(document))
    assert "rate" in [v.rule for v in check_file(tmp_path / "s.json", instance).violations]


def test_weight_0_is_worth_nothing_and_policies_are_compared_by_it() -> None:
    instance = Instance([Job("a", duration=1, weight=0), Job("b", duration=2)], "1x1", objective="total_utility")
    assert osd.solve(instance).value == pytest.approx(1.0)  # the job that is worth nothing comes last
    report = evaluate(instance, ["fifo", "hadar-e:round=4,overhead=0"])
    assert report.lines[0].value == pytest.approx(2 / 3)
    assert report.lines[1].bound is None or report.lines[1].run.schedule_class == "gang"


# -- The fair slowdown: flow times on an equal share by hand and against fractions, value, referee, solver, faces ---------


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
    release, unit = integers(instance.arrival.tolist())
    lengths, gangs = instance.duration.tolist(), instance.gpus.tolist()
    assert equal_share(release, unit, lengths, gangs, instance.cluster.gpus) == found.tolist()


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
