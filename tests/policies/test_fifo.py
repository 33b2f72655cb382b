"""FIFO: strict and skipping, its bound at r = 0 and its bad families."""

from __future__ import annotations

from fractions import Fraction

import pytest
from brute_force import optimum
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job

gangs = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 5)), min_size=1, max_size=5)


def test_the_head_of_a_strict_queue_blocks() -> None:
    jobs = [Job("a", gpus=2, duration=4), Job("wide", arrival=1, gpus=3, duration=1), Job("b", arrival=2, duration=1)]
    instance = Instance(jobs, "1x3")
    assert simulate(instance, "fifo").schedule.completion.tolist() == [4, 5, 6]
    assert simulate(instance, "fifo:skip=true").schedule.completion.tolist() == [4, 5, 3]


def test_wide_jobs_may_starve_when_others_skip_them() -> None:
    stream = [Job(str(k), arrival=k, duration=2) for k in range(50)]
    instance = Instance([*stream, Job("wide", arrival=1, gpus=2, duration=1)], "1x2")
    assert simulate(instance, "fifo").schedule.completion[-1] < 10
    assert simulate(instance, "fifo:skip=true").schedule.completion[-1] == 52  # after the last of them


@settings(max_examples=examples(40))
@given(gangs)
def test_skipping_is_within_twice_the_best_makespan_when_all_is_there_at_0(rows: list[tuple[int, int]]) -> None:
    instance = Instance([Job(str(j), gpus=g, duration=d) for j, (g, d) in enumerate(rows)], "1x4")
    assert simulate(instance, "fifo:skip=true").value("makespan") <= 2 * optimum(instance, "makespan")


@pytest.mark.parametrize("m", [2, 4, 8])
def test_strict_loses_a_factor_m_on_its_family(m: int) -> None:
    tiny = Fraction(1, 1024)
    rows = [row for _ in range(m) for row in ((m, float(tiny)), (1, 1.0))]
    instance = Instance([Job(str(j), gpus=g, duration=d) for j, (g, d) in enumerate(rows)], f"1x{m}")
    best = 1 + m * tiny  # all wide jobs, then all narrow ones side by side
    assert simulate(instance, "fifo").value("makespan") == m * (1 + tiny)
    assert simulate(instance, "list:by=widest+count").value("makespan") == best


@pytest.mark.parametrize("n", [4, 16, 64])
def test_flow_time_is_n_times_the_best_in_the_limit(n: int) -> None:
    jobs = [Job("long", duration=n * n), *(Job(str(k), arrival=1, duration=1) for k in range(n))]
    instance = Instance(jobs, "1x1")
    assert simulate(instance, "fifo").value() > n / 3 * simulate(instance, "srtf").value()
