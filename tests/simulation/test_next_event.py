"""The next event: heaps and clocks against looking through all; moments that are one but for rounding; lists of jobs."""

from __future__ import annotations

import dataclasses
import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from examples import few, studied
from hypothesis import given, strategies as st

from optsched.policies.placements import PLACEMENTS
from optsched.policies.simulate import simulate, specify
from optsched.problem.instance import Instance, Job
from optsched.simulation.engine import run_policy
from optsched.simulation.entry_points import JobLists
from optsched.simulation.next_event import (
    ENTRY,
    before,
    clear_clock,
    insert,
    last_of_instant,
    lower,
    new_clocks,
    next_tick,
    remove,
    set_clock,
    shortened,
    shortened_keys,
)
from optsched.simulation.records import DONE, FUTURE, RUNNING, WAITING
from simulation.instances import HOMOGENEOUS, MIXED, random_instance, replayed


@given(
    st.integers(0, 2),
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0.0, 0.5, 1.0, np.inf])), min_size=1, max_size=12),
    st.lists(st.integers(0, 11), max_size=80),
)
def test_an_indexed_heap_always_shows_the_smallest_and_knows_every_place(
    base: int, ranks: list[tuple[int, float]], steps: list[int]
) -> None:
    n = len(ranks)
    heap = np.zeros(base + n, dtype=ENTRY)
    heap["number"] = -7
    slot = np.full(n, -1, dtype=np.int64)
    size, held = 0, set()
    for step in steps:
        item = step % n
        if item in held:
            held.remove(item)
            size = remove(heap, base, size, item, slot)
        else:
            held.add(item)
            size = insert(heap, base, size, *ranks[item], item, slot)
        numbers = heap["number"]
        assert size == len(held)
        assert set(numbers[base : base + size].tolist()) == held
        assert [slot[i] >= 0 for i in range(n)] == [i in held for i in range(n)]
        assert all(numbers[base + slot[i]] == i for i in held)
        if held:
            assert numbers[base] == min(held, key=lambda i: (*ranks[i], i))
    assert (heap["number"][:base] == -7).all()


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=12), st.lists(st.integers(0, 4), max_size=30))
def test_the_reverse_order_stands_first_and_sinks_when_it_is_lowered(keys: list[int], falls: list[int]) -> None:
    heap, slot = np.zeros(len(keys), dtype=ENTRY), np.full(len(keys), -1, dtype=np.int64)
    size, now = 0, list(map(float, keys))
    for i, key in enumerate(now):
        size = insert(heap, 0, size, 0, -key, ~i, slot)
    for fall in falls:  # of the greatest
        first = ~int(heap[0].number)
        assert first == max(range(size), key=lambda i: (now[i], i))
        now[first] -= fall
        lower(heap, 0, size, 0, -now[first], slot)
        assert [~int(heap[slot[i]].number) for i in range(size)] == list(range(size))
    for _ in keys:
        first = ~int(heap[0].number)
        size = remove(heap, 0, size, ~first, slot)
        assert all((now[i], i) < (now[first], first) for i in range(len(keys)) if slot[i] >= 0)


@pytest.mark.parametrize(
    ("one", "two", "expected"), [(0, 1, True), (1, 0, False), (2, 0, False), (0, 2, True), (3, 0, False), (0, 0, False)]
)
def test_before_compares_level_then_key_then_index(one: int, two: int, expected: bool) -> None:
    level, key = [0, 0, 1, 0], [1.0, 1.0, 0.0, 2.0]
    entry = np.array([(key[two], level[two], two)], dtype=ENTRY)[0]
    assert before(level[one], key[one], one, entry) is expected


@pytest.mark.parametrize("executions", [1, 2, 3, 7, 8, 33])
def test_the_first_of_all_clocks_stands_in_front(executions: int) -> None:
    rng, clocks, now = random.Random(executions), new_clocks(executions), {}
    for _ in range(500):
        x = rng.randrange(executions)
        if rng.random() < 0.4:
            clear_clock(clocks, x)
            now.pop(x, None)
        else:  # few different times: of several at once the one of the least job
            now[x] = (float(rng.randrange(4)), rng.randrange(100))
            set_clock(clocks, x, *now[x])
        first = min(now.values(), default=(math.inf, 0))
        assert (clocks[1].key, clocks[1].number) == first


# -- simultaneous events, of preemptive runs with decimal times, against the plain reference in fractions ----------------

SPECS = (
    "srtf",
    "srtf:restart=100",
    "srtf-gpu:restart=0.3",
    "tiresias:threshold=2.4,restart=0.7",
    "tiresias:threshold=2.4,starvation=2",
    "tiresias:threshold=2.4,round=0.4,restart=0.1",
)
PLACED = ("count", "first-fit", "consolidated")


def decimal_instance(seed: int) -> Instance:
    """Arrivals and durations in tenths, thirds or sevenths, which no float holds: sums that should meet miss by an ulp."""
    rng = np.random.default_rng([seed, 99])
    base = random_instance(seed, MIXED if seed % 3 == 0 else HOMOGENEOUS[seed % 5], jobs=14)
    parts, span = float(rng.choice([10, 10, 10, 3, 7])), int(rng.choice([5, 20, 60]))
    jobs = [
        dataclasses.replace(
            job, arrival=int(rng.integers(0, span)) / parts, duration=int(rng.integers(1, 13)) / parts, due=None
        )
        for job in base.jobs
    ]
    return Instance(jobs, base.cluster, f"decimal-{seed}").relative


def meant(value: float) -> Any:
    """The fraction that a float of these tests stands for."""
    return Fraction(value).limit_denominator(1000) if np.isfinite(value) else value


def assert_segments_agree(seed: int) -> None:
    instance = decimal_instance(seed)
    for spec in SPECS:
        policy: Any = specify(spec).policy
        for placement in PLACED:
            made = run_policy(instance, policy, PLACEMENTS.get(placement)())
            for task in replayed(instance, policy, placement, exact=meant).tasks:
                rows = made.schedule.job == task.index
                mine = np.sort(np.column_stack([made.schedule.start[rows], made.schedule.end[rows]]), axis=0)
                other = np.array([[float(a), float(b)] for a, b, *_ in task.segments]).reshape(-1, 2)
                where = f"{instance.name}, {spec}+{placement}, job {task.index}"
                assert mine.shape == other.shape, where  # no segment of an ulp
                assert np.allclose(mine, other, rtol=1e-9, atol=1e-9), where


@pytest.mark.parametrize("seed", [*few(range(20), 6), *map(studied, range(1000, 1200))])
def test_preemptive_runs_with_ties_are_those_of_exact_arithmetic(seed: int) -> None:
    assert_segments_agree(seed)  # 18 runs each


def test_an_arrival_that_misses_a_completion_by_an_ulp_is_no_event_of_its_own() -> None:
    # a ends at 0.1 + 0.2, an ulp after c comes at 0.3: c is more important than b, which nobody may start between them.
    assert 0.1 + 0.2 > 0.3
    jobs = [Job("z", duration=0.1), Job("a", duration=0.2), Job("b", arrival=0.2, duration=5), Job("c", 0.3, 1, 1.0)]
    made = simulate(Instance(jobs, "1x1"), "srtf:restart=100")
    assert made.preemptions == 0
    assert made.schedule.completion.tolist() == pytest.approx([0.1, 0.3, 6.3, 1.3])


def test_what_one_instant_is() -> None:
    assert last_of_instant(0.0) == 0.0
    for t in (1e-9, 0.3, 1.0, 12345.678, 1e12):
        assert t < last_of_instant(t) < t * (1 + 1e-13)
        assert last_of_instant(t * 8) == last_of_instant(t) * 8  # whatever the unit
    for period in (0.1, 0.3, 7.7):
        for k in range(1, 200):
            boundary = float(k * Fraction(str(period)))
            for t in (boundary, np.nextafter(boundary, 0), np.nextafter(boundary, np.inf)):
                assert next_tick(t, 0.0, period) == pytest.approx(boundary, rel=1e-14)
            assert next_tick(boundary + period / 2, 0.0, period) == pytest.approx(boundary + period, rel=1e-14)


def test_keys_that_rounding_tells_apart_are_one() -> None:
    keys = np.array([0.3, 0.1 + 0.2, 0.0, -5.0, np.inf, -np.inf, 1e300, 2.0**31 + 1])
    short = shortened_keys(keys)
    assert short[0] == short[1]
    assert short[2:].tolist() == keys[2:].tolist() or short[6] == pytest.approx(1e300)
    assert short.tolist() == [shortened(key) for key in keys.tolist()]
    assert (shortened_keys(keys[:4] * 1024) == short[:4] * 1024).all()


# -- The lists of jobs that wait and run, beside a look at all jobs -------------------------------------------------------


@pytest.mark.parametrize("seed", few(range(8), 3))
@pytest.mark.parametrize("asked_after", [0, 5, 10**9])
def test_lists_kept_up_to_date_are_what_a_look_at_all_jobs_finds(seed: int, asked_after: int) -> None:
    rng = random.Random(seed)
    order = np.random.default_rng(seed).permutation(20)
    status = np.full(20, FUTURE)
    lists = JobLists(order, status)
    came = 0
    for step in range(200):
        arrived, finished = [], []
        while came < 20 and rng.random() < 0.2:
            arrived.append(int(order[came]))
            came += 1
        running = [j for j in range(20) if status[j] == RUNNING]
        if running and rng.random() < 0.2:
            finished.append(rng.choice(running))
        status[arrived], status[finished] = WAITING, DONE
        lists.refresh(arrived, finished)
        for j in range(20):
            if status[j] == WAITING and rng.random() < 0.3:
                status[j] = RUNNING
                lists.started(j)
            elif status[j] == RUNNING and rng.random() < 0.2:
                status[j] = WAITING
                lists.stopped(j)
        if step >= asked_after:
            found = {kind: [j for j in order.tolist() if status[j] == kind] for kind in (WAITING, RUNNING)}
            assert lists.waiting == found[WAITING]
            assert lists.running == found[RUNNING]
            assert lists.active.tolist() == [j for j in order.tolist() if status[j] in (WAITING, RUNNING)]


def test_no_jobs() -> None:
    empty = np.zeros(0, dtype=np.int64)
    assert JobLists(empty, empty).waiting == JobLists(empty, empty).active.tolist() == []
