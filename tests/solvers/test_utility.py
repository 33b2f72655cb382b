"""The most total utility: schedules that the referee accepts, below a certificate, and near what can be told by hand."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

import optsched as osd
from optsched.check.referee import check_schedule
from optsched.solvers import utility
from optsched.solvers.session import Progress

GAIN = "total_utility"


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(utility, "FIRST", 60)
    monkeypatch.setattr(utility, "MOST", 60)


def require_sound(instance: osd.Instance, found: osd.Solution) -> None:
    assert found.schedule is not None
    assert found.certificate is not None
    assert check_schedule(instance, found.schedule) == []
    found.certificate.verify(instance)
    stay = [
        Fraction(float(c)) - Fraction(float(r))
        for c, r in zip(found.schedule.completion, instance.arrival, strict=True)
    ]
    gained = sum(
        Fraction(float(w)) * Fraction(float(x)) / s
        for w, x, s in zip(instance.weight, instance.work, stay, strict=True)
    )
    assert found.value == pytest.approx(float(gained), rel=1e-9)
    assert found.value_exact <= found.bound_exact
    assert found.gap == pytest.approx((found.bound - found.value) / found.value)


@pytest.mark.parametrize("seed", range(4))
def test_types_and_gangs(seed: int) -> None:
    instance = osd.generate("hetero-small", seed=seed, jobs=8)
    reports = list[Progress]()
    found = osd.solve(instance, GAIN, progress=reports.append)
    require_sound(instance, found)
    assert found.gap < 0.5  # sixty rounds are few
    made = found.schedule
    assert made is not None
    free = {*made.end.tolist(), *instance.arrival.tolist()}
    assert set(made.start.tolist()) <= free  # whoever starts was not there before, or waited for somebody
    assert all(math.isnan(r.incumbent) or r.incumbent <= r.bound for r in reports)
    for policy in ("srtf", "fifo", "sjf"):
        assert osd.simulate(instance, policy).value(GAIN) <= found.bound


def test_one_after_another_shortest_first() -> None:
    # on one GPU the shortest first: 1/1 + 2/3 + 3/6; nobody does better. In rounds alone all would start late
    jobs = [osd.Job(str(p), 0.0, 1, float(p)) for p in (3, 1, 2)]
    instance = osd.Instance(jobs, "1x1")
    found = osd.solve(instance, GAIN)
    require_sound(instance, found)
    assert found.value == pytest.approx(1 + 2 / 3 + 3 / 6, rel=1e-9)
    assert "the optimum is at most" in found.text


def test_the_clock_of_a_log_has_no_part_in_it() -> None:
    def at(epoch: float) -> osd.Instance:
        return osd.Instance([osd.Job(str(j), epoch + j / 4, 1, 1.0 + j) for j in range(4)], "1x2")

    now, later = osd.solve(at(0.0), GAIN), osd.solve(at(2.0**30), GAIN)
    assert now.value == later.value
    assert now.bound == pytest.approx(later.bound, rel=1e-9)
    require_sound(at(2.0**30), later)


def test_nobody_waits_where_there_is_a_gpu_for_everybody() -> None:
    instance = osd.Instance([osd.Job(str(j), 0.0, 1, float(j + 1)) for j in range(3)], "1x4")
    found = osd.solve(instance, GAIN)
    assert found.status == "optimal"
    assert found.value == found.bound == 3


def test_what_it_does_not_take() -> None:
    instance = osd.generate("hetero-small", seed=1)
    for options in ({"model": "disjunctive"}, {"horizon": 10.0}):
        with pytest.raises(osd.InputError, match="total_utility is maximised"):
            osd.solve(instance, GAIN, **options)  # type: ignore[arg-type]
    slow = osd.Instance([osd.Job("a", 0.0, 1, 3.0, restart=2.0)], "1x1")
    with pytest.raises(osd.InputError, match="restarts"):
        osd.solve(slow, GAIN)
