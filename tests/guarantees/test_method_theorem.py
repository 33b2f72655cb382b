"""The theorem on the best order of a linear program, on suites and against exhaustion."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from brute_force import preemptive_optimum
from examples import examples, few
from hypothesis import given, settings, strategies as st

from optsched.errors import InputError
from optsched.guarantees.alpha_points import LP_ORDER
from optsched.guarantees.judge import METHOD_THEOREMS
from optsched.guarantees.suites import suite
from optsched.io.traces.generate import generate
from optsched.problem.instance import Instance, Job
from optsched.problem.objectives import get_objective
from optsched.solvers.methods.lp_order import LpSchedule


def check_suite(name: str) -> None:
    for member, instance in suite(name).instances():
        found = LP_ORDER.judge(instance)
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
    assert LP_ORDER.judge(Instance(jobs, "1x1")).holds is True


rows = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 4), st.integers(0, 3)), min_size=1, max_size=4)


@settings(max_examples=examples(20))
@given(rows, st.sampled_from([0.0, 1e6]))
def test_within_the_factor_of_the_preemptive_optimum(jobs: list[tuple[int, int, int]], epoch: float) -> None:
    first = min(r for r, *_ in jobs)
    instance = Instance([Job(f"{j}", epoch + r - first, 1, p, weight=w) for j, (r, p, w) in enumerate(jobs)], "1x1")
    best, found = preemptive_optimum(instance.relative, LP_ORDER.objective), LP_ORDER.judge(instance)
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
    found = LP_ORDER.judge(instance)
    assert found.holds is False
    assert "after 3 M_j" in found.findings[0]


def test_it_is_told_and_refuses_what_it_is_not_about(command: Any) -> None:
    code, out, _ = command("list", "guarantees", "lp-order")
    assert code == 0
    assert "--model lp-order" in out
    assert METHOD_THEOREMS.names() == ["lp-order"]
    with pytest.raises(InputError, match="more than one machine"):
        LP_ORDER.judge(Instance([Job("a", duration=3), Job("b", duration=2)], "1x2"))
