"""The referee of shared GPUs on random runs: those of a right simulator pass, those with wrong speeds do not.

Beside it, the integral of every job's speed in exact fractions, moment by moment, for verdicts on both sides of the line.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from examples import examples, few
from hypothesis import given, settings, strategies as st
from simulation.plain_policies import OneByOne
from simulation.shared_world import SharedWorld, random_shared_instance

import optsched.classes.gpu_sharing.simulation.shared_run as shared_run
from optsched.check.referee import check_schedule
from optsched.policies.placements import PLACEMENTS
from optsched.problem.instance import Instance
from optsched.problem.schedule import SharedSchedule
from optsched.simulation.engine import run_policy
from optsched.simulation.policy import Start, View
from optsched.speeds.partner_rates import SharingRates, sharing_rates

SEEDS = range(12)


@given(st.integers(0, 10_000), st.integers(0, 10_000))
@settings(max_examples=examples(40))
def test_right_runs_pass(seed: int, choices: int) -> None:
    instance = random_shared_instance(seed)
    schedule = SharedWorld(instance, choices).schedule()
    assert check_schedule(instance, schedule) == []


def exact_seconds_alone(schedule: SharedSchedule, s: int) -> Fraction:
    """What the stay of a segment is worth alone, in fractions: every elementary interval, every GPU."""
    instance, segments = schedule.instance, list(schedule.segments())
    mine, table = segments[s], instance.interference
    assert table is not None
    cuts = sorted({t for each in segments for t in (each.start, each.end) if mine.start <= t <= mine.end})
    total = Fraction(0)
    for low, high in itertools.pairwise(cuts):
        beside = [each for each in segments if each is not mine and each.start <= low and each.end >= high]
        xi = [
            table.slowdown(instance.kinds[mine.job], instance.kinds[each.job])
            for each in beside
            if set(each.gpus) & set(mine.gpus)
        ]
        total += (Fraction(high) - Fraction(low)) / max(map(Fraction, [1, *xi]))
    return total


@pytest.mark.parametrize("seed", few(range(6), 3))
def test_the_line_is_where_the_exact_integral_says(seed: int) -> None:
    """Each job with 1e-7 more and less work than its stay is exactly worth, at 1 s a unit."""
    instance = random_shared_instance(seed, 10)
    schedule = SharedWorld(instance, seed).schedule()
    judged = 0
    for s in range(len(schedule)):
        if schedule.job[s] in instance.jobs_at("scalings"):
            continue
        exact = exact_seconds_alone(schedule, s)
        for factor, holds in ((1 - 1e-7, True), (1 + 1e-7, False)):
            work = schedule.work.copy()
            work[s] = float(exact) * factor
            judged_work = dataclasses.replace(schedule, work=work)
            broken = [v for v in check_schedule(instance, judged_work) if v.rule == "rate"]
            assert (broken == []) == holds, (s, factor, broken)
            assert all(v.segment == s for v in broken)
            judged += 1
    assert judged


class Anywhere(OneByOne):
    """A policy of one's own: any GPUs that are possible, with any sub-batch, or nothing while somebody runs."""

    name, knowledge = "anywhere", "non-clairvoyant"

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def key(self, view: View, job: int) -> float:
        return 0.0

    def choose(self, view: View, job: int) -> Start | None:
        option = self.rng.randrange(view.options(job))
        places = [*view.idle(job), *view.open(job, option)]
        if len(places) < GANG[job] or (view.running and self.rng.random() < 0.3):
            return None
        return Start(job, gpus=self.rng.sample(places, GANG[job]), option=option)


GANG: list[int] = []


def run(instance: Instance, seed: int) -> SharedSchedule:
    GANG[:] = instance.gpus.tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # kinds without measurements
        schedule = run_policy(instance, Anywhere(seed), PLACEMENTS.get("count")()).schedule
    assert isinstance(schedule, SharedSchedule)
    return schedule


@given(st.integers(0, 10_000), st.integers(0, 10_000))
@settings(max_examples=examples(25))
def test_whatever_a_policy_chooses_in_the_engine_passes(seed: int, choices: int) -> None:
    instance = random_shared_instance(seed)
    assert check_schedule(instance, run(instance, choices)) == []


def _changed(**changes: Callable[[SharingRates], Any]) -> Callable[[Instance], SharingRates]:
    def rates(instance: Instance) -> SharingRates:
        right = sharing_rates(instance)
        return dataclasses.replace(right, **{name: change(right) for name, change in changes.items()})

    return rates


WRONG_RATES = {
    "xi transposed": (_changed(xi=lambda r: np.ascontiguousarray(r.xi.T)), "rate"),
    "xi of one kind forgotten": (
        _changed(xi=lambda r: np.where(np.arange(len(r.xi))[:, None] == 0, 1.0, r.xi)),
        "rate",
    ),
    "no interference": (_changed(xi=lambda r: np.ones_like(r.xi)), "rate"),
    "forbidden pairs allowed": (_changed(xi=lambda r: np.where(np.isfinite(r.xi), r.xi, 1e3)), "memory"),
    "a stretch of 1": (_changed(stretch=lambda r: np.ones_like(r.stretch)), "rate"),
    "no memory": (_changed(memory=lambda r: np.zeros_like(r.memory)), "memory"),
    "memory of the smallest sub-batch": (
        _changed(memory=lambda r: np.repeat(r.memory.min(axis=1, keepdims=True), r.memory.shape[1], axis=1)),
        "memory",
    ),
    "steps off by one": (_changed(steps=lambda r: r.steps + 1), "batch"),
    "kinds mixed up": (_changed(kind=lambda r: (r.kind + 1) % len(r.xi)), "rate"),
}


@pytest.mark.parametrize("wrong", WRONG_RATES)
def test_the_engine_with_wrong_rates_does_not(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rates, rule = WRONG_RATES[wrong]
    monkeypatch.setattr(shared_run, "sharing_rates", rates)
    assert any(
        rule in {v.rule for v in check_schedule(instance, run(instance, 0))}
        for instance in map(random_shared_instance, SEEDS)
    )
