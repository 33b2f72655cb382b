"""The virtual machine of A-SRPT against SRPT by a scan from event to event, in fractions."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest
from examples import few
from hypothesis import example, given, strategies as st

from optsched.policies.a_srpt import VirtualMachine
from policies.a_srpt_model import srpt_points

BETAS = [Fraction(1, 10), Fraction(1, 4), Fraction(1, 2), Fraction(1)]
ROWS = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 8)), min_size=1, max_size=7)


def drive(release: list[float], length: list[float], beta: float) -> tuple[list[float], list[int]]:
    """Beta points and their order, with the machine woken exactly when it says."""
    machine, point, order = VirtualMachine(beta), [math.nan] * len(release), []
    coming = sorted(range(len(release)), key=lambda j: (release[j], j))
    while coming or len(machine):
        now = min([machine.next_event(), *(release[j] for j in coming[:1])])
        for time, j in machine.advance(now):
            assert math.isnan(point[j])
            assert time == now  # it says when, and it has just been asked
            point[j] = time
            order.append(j)
        while coming and release[coming[0]] <= now:
            machine.release(coming[0], now, length[coming.pop(0)])
    assert machine.next_event() == math.inf
    return point, order


@given(ROWS, st.sampled_from(BETAS))
@example([(0, 4), (2, 2)], Fraction(1))  # equal remaining: no preemption
@example([(0, 4), (2, 1), (2, 1), (3, 1)], Fraction(1, 2))
@example([(3, 2), (0, 5), (0, 5), (1, 5)], Fraction(1, 4))
@example([(0, 1), (1, 1), (0, 1)], Fraction(1, 10))
@example([(0, 1), (1, 1), (0, 1)], Fraction(1, 4))
def test_it_is_srpt_with_beta_points(rows: list[tuple[int, int]], beta: Fraction) -> None:
    release, length = [float(r) for r, _ in rows], [float(p) for _, p in rows]
    expected = srpt_points([r for r, _ in rows], [Fraction(p) for _, p in rows], beta)
    point, order = drive(release, length, float(beta))
    # With 1/10 an end may round to just before an arrival, and of two equal jobs the other goes first.
    assert sorted(point) == pytest.approx(sorted(map(float, expected)), rel=1e-14)
    if beta.denominator != 10:  # dyadic: not a single rounding
        assert [Fraction(x) for x in point] == expected
        assert [point[j] for j in order] == sorted(point)


def test_it_preempts_only_for_strictly_less() -> None:
    machine = VirtualMachine()
    machine.release(5, 0.0, 4.0)
    assert machine.advance(1.0) == []
    machine.release(2, 1.0, 3.0)  # as much as job 5 has left, and a smaller name: still no reason to preempt
    assert machine.next_event() == 4.0
    assert machine.advance(2.0) == []
    machine.release(9, 2.0, math.nextafter(2.0, 0))
    assert machine.next_event() == 2.0 + math.nextafter(2.0, 0)
    assert [j for _, j in machine.advance(100.0)] == [9, 5, 2]
    assert len(machine) == 0


def test_of_equal_jobs_that_wait_the_smaller_name_is_served() -> None:
    machine = VirtualMachine()
    for j in (7, 3, 5):
        machine.release(j, 0.0, 2.0)
    assert machine.advance(6.0) == [(2.0, 7), (4.0, 3), (6.0, 5)]  # 7 came first and was never preempted


def test_no_event_is_announced_twice_or_forgotten_when_it_is_asked_rarely() -> None:
    rng = random.Random(5)
    for beta in (0.25, 0.5, 1.0):
        rows = [(rng.randrange(20), rng.randrange(1, 9)) for _ in range(9)]
        machine, seen = VirtualMachine(beta), []
        for r, j in sorted((r, j) for j, (r, _) in enumerate(rows)):
            seen += machine.advance(r)  # only at releases, as if nobody had woken it
            machine.release(j, float(r), float(rows[j][1]))
        seen += machine.advance(1e9)
        point, order = drive([float(r) for r, _ in rows], [float(p) for _, p in rows], beta)
        assert seen == [(point[j], j) for j in order]  # and it says when each was, however late it is asked


def test_a_job_shorter_than_the_clock_can_tell_is_reported_at_once() -> None:
    machine = VirtualMachine()
    machine.release(0, 1e9, 1e-8)
    assert machine.next_event() == 1e9
    assert machine.advance(1e9) == [(1e9, 0)]


class Counted(float):
    """A number that counts how often it is compared."""

    comparisons = 0

    def __lt__(self, other: float) -> bool:
        Counted.comparisons += 1
        return float(self) < float(other)

    def __gt__(self, other: float) -> bool:
        Counted.comparisons += 1
        return float(self) > float(other)

    __hash__ = float.__hash__


@pytest.mark.parametrize("waiting", few([10, 1000, 100, 10_000], 2))
def test_the_work_of_an_event_grows_with_the_logarithm_of_the_queue(waiting: int) -> None:
    rng, machine = random.Random(1), VirtualMachine()
    Counted.comparisons = 0
    for j in range(waiting):
        machine.release(j, 0.0, Counted(1 + rng.random()))
    assert Counted.comparisons <= waiting * (2 + math.log2(waiting))
    Counted.comparisons = 0
    machine.next_event()
    assert Counted.comparisons <= 1
    events = 0
    while len(machine) > waiting // 2:
        machine.advance(machine.next_event())
        events += 1
    assert events == waiting - waiting // 2
    assert Counted.comparisons <= events * (4 + 2 * math.log2(waiting))
