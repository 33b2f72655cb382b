"""Total utility, the objective that is maximised: value, exact value, referee, bound from above, ratio bound / value."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import optsched as osd
from optsched.bounds.certificate import CertificateError
from optsched.check.referee import check_file, check_schedule, schedule_value
from optsched.guarantees.optimum import proved_here
from optsched.problem.instance import Instance, Job
from optsched.problem.objectives import get_objective
from optsched.report.comparison import evaluate

JOBS = [Job("a", duration=2, weight=3), Job("b", arrival=1, duration=4), Job("c", arrival=1, duration=1)]


def test_value_and_bound_by_hand() -> None:
    instance = Instance(JOBS, "1x1", objective="total_utility")
    report = evaluate(instance, ["fifo", "sjf"])
    fifo, sjf = report.lines
    # fifo: a 0-2, b 2-6, c 6-7; sjf: a 0-2, c 2-3, b 3-7
    assert fifo.value == pytest.approx(3 * 2 / 2 + 4 / 5 + 1 / 6)
    assert sjf.value == pytest.approx(3 * 2 / 2 + 4 / 6 + 1 / 2)
    assert report.certificate is not None
    assert report.certificate.value == 3 + 1 + 1  # every job alone
    assert fifo.ratio == pytest.approx(5 / fifo.value)
    assert sjf.bound is not None
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
