"""The largest flow time: first come, first served on one machine, against brute force and against its own definition."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import combinations

import pytest
from brute_force import preemptive_optimum
from examples import examples
from hypothesis import given, settings, strategies as st

from bounds.cases import instance_of, instances, proved
from optsched.bounds.best_bound import bound
from optsched.bounds.certificate import Certificate
from optsched.check.verify_certificate import served
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.solvers.solve import solve

GOAL = "max_flow_time"
first_come, critical_job = (partial(proved, kind) for kind in ("first-come", "critical-job"))


@settings(max_examples=examples(40))
@given(instances(most=4, kind="short", gpus=1))
def test_it_is_the_optimum_of_one_machine(instance: Instance) -> None:
    certificate = first_come(instance, GOAL)
    assert certificate.value == preemptive_optimum(instance, GOAL)
    if instance.n:
        assert simulate(instance, "fifo").value(GOAL) == certificate.value


jobs_with_due_dates = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5), st.integers(-3, 12)), max_size=6)


@given(jobs_with_due_dates)
def test_the_rule_attains_the_best_set_of_jobs(jobs: list[tuple[int, int, int]]) -> None:
    sets = (some for size in range(1, len(jobs) + 1) for some in combinations(jobs, size))
    best = max((min(r for r, _, _ in s) + sum(p for _, p, _ in s) - max(d for *_, d in s) for s in sets), default=0)
    ends = served([job[:2] for job in jobs], [due for *_, due in jobs])
    assert max([0, *(end - due for (end, _), (*_, due) in zip(ends, jobs, strict=True))]) == max(best, 0)


def test_work_of_a_burst_counts_less_the_seconds_in_which_it_comes() -> None:
    # 24 GPU-seconds in 2 s on 2 GPUs: 12 - 2; a long quiet time before and after
    instance = instance_of([(0.0, 1, 4.0), (100.0, 2, 5.0), (101.0, 1, 4.0), (102.0, 1, 10.0), (900.0, 1, 1.0)], 2)
    assert first_come(instance, GOAL).value == 10
    assert bound(instance, GOAL).value == 10


def test_the_longest_job_alone_proves_its_own_seconds() -> None:
    instance = instance_of([(0.0, 1, 3.0), (2.0, 1, 5.0), (9.0, 1, 4.0)], 2)
    certificate = critical_job(instance, GOAL)
    assert (certificate.value, certificate.data) == (5, {"job": "j1"})
    Certificate(instance.digest, GOAL, "gang", "critical-job", Fraction(4), {"job": "j2"}).verify(instance)


def test_a_late_clock_changes_nothing() -> None:
    rows = [(0, 4), (1, 3), (2, 5), (2, 1), (6, 4)]
    early, late = (Instance([Job(f"{r}-{p}", r + epoch, duration=p) for r, p in rows], "2x1") for epoch in (0, 10**9))
    for instance in (early, late):
        low, best = bound(instance, GOAL), solve(instance, GOAL)
        low.verify(instance)
        assert (low.value, best.value, best.status) == (5, 6, "optimal")


@pytest.mark.parametrize("model", ["rigid-time-indexed", "cp-sat"])
def test_methods_agree(model: str) -> None:
    if model == "cp-sat":
        pytest.importorskip("ortools")
    jobs = [Job("a", 0, 2, 4), Job("b", 0, 1, 3), Job("c", 1, 2, 2), Job("d", 2, 1, 5), Job("e", 5, 3, 1)]
    assert solve(Instance(jobs, "1x3"), GOAL, model=model).value == solve(Instance(jobs, "1x3"), GOAL).value
