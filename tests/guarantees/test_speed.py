"""Theorems on faster machines, and on the best order of a linear program: on suites and against exhaustive optima."""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from brute_force import preemptive_optimum
from examples import examples, few
from hypothesis import given, settings, strategies as st

from optsched.check.referee import schedule_value
from optsched.errors import InputError
from optsched.evaluation.suites import suite
from optsched.evaluation.theorem_runs import judge_at_speed, judge_method
from optsched.guarantees.family import family_member
from optsched.guarantees.judge import METHOD_THEOREMS
from optsched.guarantees.speed import SPEED_THEOREMS, SRPT_FASTER, faster
from optsched.guarantees.weighted_completion_times import LP_ORDER
from optsched.io.traces.generate import generate
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.problem.objectives import get_objective
from optsched.solvers.methods.lp_order import LpSchedule


def slower_clock(instance: Instance, times: int) -> Instance:
    """All times that many times as long: they stay integers on faster machines."""
    jobs = [
        dataclasses.replace(job, arrival=job.arrival * times, duration=(job.duration or 0) * times)
        for job in instance.jobs
    ]
    return Instance(jobs, instance.cluster, instance.name, instance.objective)


@settings(max_examples=examples(15))
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4)), min_size=1, max_size=4))
def test_it_holds_against_the_optimum(rows: list[tuple[int, int]]) -> None:
    first = min(r for r, _ in rows)
    instance = Instance([Job(f"{j}", arrival=r - first, duration=p) for j, (r, p) in enumerate(rows)], "1x2")
    best = preemptive_optimum(instance, "total_flow_time")
    thrice = slower_clock(instance, 3)
    found = judge_at_speed(SRPT_FASTER, "srtf", thrice)
    assert found.holds is not False
    run = simulate(faster(thrice, Fraction(3, 2)), "srtf")
    assert schedule_value(run.instance, run.schedule, "total_flow_time") * Fraction(3, 2) <= 3 * best


@pytest.mark.parametrize("phases", [3, 5])
def test_on_its_worst_family_speed_is_all_it_needs(phases: int) -> None:
    member = family_member(f"halving:phases={phases}")
    assert member.reference is not None
    slow = simulate(member.instance, "srtf").value("total_flow_time") / float(member.reference)
    thrice = slower_clock(member.instance, 3)
    fast = simulate(faster(thrice, Fraction(3, 2)), "srtf").value("total_flow_time") / (3 * float(member.reference))
    assert slow > 2
    assert fast <= Fraction(2, 3)
    assert judge_at_speed(SRPT_FASTER, "srtf", thrice).holds is not False


def test_what_it_is_not_about() -> None:
    two = Instance([Job("a", duration=3)], "1x2", objective="total_flow_time")
    with pytest.raises(InputError, match="at least 3/2"):
        judge_at_speed(SRPT_FASTER, "srtf", two, Fraction(5, 4))
    with pytest.raises(InputError, match="about srtf"):
        judge_at_speed(SRPT_FASTER, "sjf", two)
    with pytest.raises(InputError, match="restart"):
        judge_at_speed(SRPT_FASTER, "srtf:restart=1", two)
    with pytest.raises(InputError, match="speed"):
        faster(two, Fraction(0))


def test_a_theorem_that_is_too_good_is_found_out() -> None:
    two = Instance([Job("a", duration=3)], "1x2", objective="total_flow_time")
    assert judge_at_speed(SRPT_FASTER, "srtf", two).holds is True
    wrong = dataclasses.replace(SRPT_FASTER, ratio=lambda speed: 1 / (2 * speed))
    found = judge_at_speed(wrong, "srtf", two)
    assert found.holds is False
    assert found.findings


@pytest.mark.parametrize(
    ("policy", "goal", "speed", "theorem"),
    [
        ("srtf", "total_flow_time", "7/4", "srpt-faster"),
        ("immediate-dispatch", "total_weighted_flow_time", "1.5", "dual-fitting-faster"),
    ],
)
def test_the_command_holds_them_over_a_suite(command: Any, policy: str, goal: str, speed: str, theorem: str) -> None:
    arguments = ("ratio", "machines", "-p", policy, "--objective", goal, "--speed", speed)
    code, out, _ = command(*arguments, "--json")
    document = json.loads(out)
    assert code == 0
    assert (document["speed"], document["objective"]) == (str(Fraction(speed)), goal)
    (row,) = document["policies"]
    assert row["guarantee"]["id"] == theorem
    assert row["guarantee"]["applies"] == len(row["instances"]) > 5
    assert row["guarantee"]["violated"] == []
    for member, instance in suite("machines").instances()[:2]:
        measured = next(each for each in row["instances"] if each["instance"] == member)
        judged = judge_at_speed(SPEED_THEOREMS.get(theorem), policy, instance, Fraction(speed))
        assert measured["guarantee"] == judged.to_json()
        assert measured["value"] == simulate(faster(instance, Fraction(speed)), policy).value(goal)
        assert measured["ratio"] == pytest.approx(measured["value"] / measured["bound"]["value"])


def test_the_command_below_the_least_speed_and_with_illegal_ones(command: Any) -> None:
    slow = command(
        "ratio", "machines-2-06-1", "-p", "srtf", "--speed", "5/4", "--objective", "total_flow_time", "--json"
    )
    assert json.loads(slow[1])["policies"][0]["guarantee"] is None
    assert "5/4 times as fast" in command("ratio", "machines-2-06-1", "-p", "srtf", "--speed", "1.25")[1]
    for text in ("0", "1/0", "-1", "1e9", "fast"):
        assert "speed" in command("ratio", "machines-2-06-1", "-p", "srtf", "--speed", text).refusal
    assert command("ratio", "machines-2-06-1", "-p", "srtf", "--speed", "2", "--errors", "1,2")[0] == 2


def test_what_is_kept_says_how_to_run_it_again(command: Any, tmp_path: Path) -> None:
    code, _, err = command("ratio", "machines-2-06-1", "-p", "srtf", "--speed", "3/2", "-o", str(tmp_path / "kept"))
    assert code == 0
    assert "--speed 3/2" in " ".join(err.split())


# -- the best order of a linear program -----------------------------------------------------------------------------------


def check_suite(name: str) -> None:
    for member, instance in suite(name).instances():
        found = judge_method(LP_ORDER, instance)
        assert found.holds is True, (member, found.findings)


@pytest.mark.parametrize("name", few(["single-06-1", "single-weighted-12-1", "tardiness-08-1", "single-15-1"], 2))
def test_it_holds_on_instances_of_one_machine(name: str) -> None:
    check_suite(name)


@pytest.mark.study
@pytest.mark.parametrize("name", ["single", "single-weighted", "tardiness"])
def test_it_holds_on_every_instance_of_a_suite(name: str) -> None:
    check_suite(name)


@pytest.mark.study
@pytest.mark.parametrize("seed", range(40))
def test_it_holds_on_poisson_arrivals(seed: int) -> None:
    instance = generate("poisson", seed, jobs=60)
    jobs = [Job(job.id, job.arrival, 1, job.duration, weight=1 + k % 5) for k, job in enumerate(instance.jobs)]
    assert judge_method(LP_ORDER, Instance(jobs, "1x1")).holds is True


rows = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 4), st.integers(0, 3)), min_size=1, max_size=4)


@settings(max_examples=examples(20))
@given(rows, st.sampled_from([0.0, 1e6]))
def test_within_the_factor_of_the_preemptive_optimum(jobs: list[tuple[int, int, int]], epoch: float) -> None:
    first = min(r for r, *_ in jobs)
    instance = Instance([Job(f"{j}", epoch + r - first, 1, p, weight=w) for j, (r, p, w) in enumerate(jobs)], "1x1")
    best, found = preemptive_optimum(instance.relative, LP_ORDER.objective), judge_method(LP_ORDER, instance)
    assert found.holds is True
    assert found.value is not None
    assert found.bound is not None
    moved = get_objective(LP_ORDER.objective).clock_part(instance)
    assert Fraction(found.bound) <= best + moved <= found.value
    assert Fraction(found.value) - moved <= LP_ORDER.ratio * best * (1 + Fraction(1, 10**9))


def test_a_worse_order_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [Job("long", 0, 1, 50), *(Job(f"{j}", 0, 1, 1) for j in range(9))]
    instance = Instance(jobs, "1x1")
    backwards = LpSchedule.one_after_the_other
    monkeypatch.setattr(LpSchedule, "one_after_the_other", lambda self, order: backwards(self, sorted(order)))
    found = judge_method(LP_ORDER, instance)
    assert found.holds is False
    assert "after 3 M_j" in found.findings[0]


def test_it_is_told_and_refuses_what_it_is_not_about(command: Any) -> None:
    code, out, _ = command("list", "guarantees", "lp-order")
    assert code == 0
    assert "--model lp-order" in out
    assert METHOD_THEOREMS.names() == ["lp-order"]
    with pytest.raises(InputError, match="more than one machine"):
        judge_method(LP_ORDER, Instance([Job("a", duration=3), Job("b", duration=2)], "1x2"))
