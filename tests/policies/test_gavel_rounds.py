"""Gavel's round mechanism on small cases, by hand and by properties."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

from optsched.policies.gavel_rounds import RoundDevices, ServiceAccount, priority


def book(share: list[list[float]], length: float = 100.0) -> ServiceAccount:
    made = ServiceAccount(len(share), len(share[0]), length)
    for j in range(len(share)):
        made.arrive(j)
    made.reset(np.arange(len(share)), np.array(share), 0.0)
    return made


def priorities(made: ServiceAccount) -> np.ndarray:
    """Of every job on every type."""
    jobs, types = made.share.shape
    return np.array(
        [[priority(made.share[j, t], made.received[j, t], made.total[t]) for t in range(types)] for j in range(jobs)]
    )


def places(devices: RoundDevices, jobs: list[int]) -> list[tuple[tuple[int, int], ...]]:
    """(node, GPUs there) of each of them."""
    first, node, count = (each.tolist() for each in devices.places(np.array(jobs, dtype=int)))
    held = list(zip(node, count, strict=True))
    return [tuple(held[begin:end]) for begin, end in pairwise(first)]


def test_priorities_are_shares_over_fractions_of_time_received() -> None:
    made = book([[0.5, 0.0], [0.25, 0.75]])
    assert priorities(made).tolist() == [[1.0, 0.0], [0.5, 1.5]]  # all have half a round: f = 1/2
    made.record(*(np.array([x]) for x in (0, 0, 100.0)))  # f = 150/200 and 50/200
    assert priorities(made) == pytest.approx(np.array([[0.5 / 0.75, 0], [0.25 / 0.25, 1.5]]))


def test_deficits_are_settled_at_a_reset() -> None:
    made = book([[0.5], [0.5]])
    made.record(*(np.array([x]) for x in (0, 0, 100.0)))
    made.reset(np.arange(2), np.array([[0.3], [0.7]]), 100.0)
    assert made.deficit.tolist() == [[50 - 100], [50]]
    assert made.received.tolist() == [[50], [50]]
    assert made.total.tolist() == [100]


def test_ties_of_priority_go_by_deficit_then_share_then_arrival() -> None:
    rate, gang, one = np.ones((3, 1)), np.ones(3, dtype=np.int64), np.array([1])
    made = book([[0.5]] * 3)
    assert made.selection(np.arange(3), rate, gang, one, np.array([0])).tolist() == [0, -1, -1]
    made.deficit[2] = 5.0
    assert made.selection(np.arange(3), rate, gang, one, np.array([0])).tolist() == [-1, -1, 0]


def test_who_does_not_fit_is_passed_over() -> None:
    made = book([[0.9], [0.8], [0.0]])
    rate, gang, capacity = np.ones((3, 1)), np.array([4, 2, 1]), np.array([3])
    assert made.selection(np.arange(3), rate, gang, capacity, np.array([0])).tolist() == [-1, 0, 0]


@given(st.integers(0, 10_000))
def test_no_gpu_is_given_twice_and_whoever_could_run_does(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, T = int(rng.integers(1, 12)), int(rng.integers(1, 4))
    made = book(rng.random((n, T)).tolist())
    rate = rng.random((n, T)) * (rng.random((n, T)) < 0.7)
    gang, capacity = rng.integers(1, 5, n), rng.integers(1, 8, T)
    chosen = made.selection(np.arange(n), rate, gang, capacity, rng.permutation(T))
    left = capacity - np.array([gang[chosen == t].sum() for t in range(T)])
    assert (left >= 0).all()
    for m in range(n):
        if chosen[m] >= 0:
            assert rate[m, chosen[m]] > 0
        else:
            assert not ((rate[m] > 0) & (gang[m] <= left)).any()


@given(st.integers(0, 10_000))
def test_the_selection_among_many_is_that_of_a_plain_sort(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, T = int(rng.integers(20, 150)), 2
    made = book(rng.choice([0.0, 0.1, 0.2, 0.4], (n, T)).tolist())  # many ties
    made.deficit[:] = rng.integers(0, 3, (n, T))
    rate, gang, capacity = rng.random((n, T)) * (rng.random((n, T)) < 0.7), rng.integers(1, 4, n), rng.integers(1, 9, T)
    urgency, chosen = priorities(made), [-1] * n
    for t in range(T):
        left = capacity[t]
        for m in sorted(range(n), key=lambda m: (urgency[m, t], made.deficit[m, t], made.share[m, t]), reverse=True):
            if chosen[m] < 0 and rate[m, t] > 0 and gang[m] <= left:
                chosen[m], left = t, left - gang[m]
    assert made.selection(np.arange(n), rate, gang, capacity, np.arange(T)).tolist() == chosen


@given(st.integers(0, 10_000))
def test_devices_suffice_and_are_kept_where_they_are_free(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, pool = rng.integers(1, 5, 8), rng.integers(0, 3, 8)
    devices = RoundDevices(10, pool, size)
    capacity = np.bincount(pool, weights=size, minlength=3).astype(int)
    gangs, before = rng.integers(1, 5, 10), {}
    for _ in range(6):
        jobs, chosen, left = [], [], capacity.copy()
        for j in rng.permutation(10).tolist():
            t = int(rng.integers(0, 3))
            if gangs[j] <= left[t]:
                left[t] -= gangs[j]
                jobs.append(j)
                chosen.append(t)
        kept, moved = devices.give(np.array(jobs, dtype=int), np.array(chosen, dtype=int), gangs[jobs])
        assert sorted([*kept.tolist(), *moved.tolist()]) == sorted(jobs)
        now = dict(zip(jobs, places(devices, jobs), strict=True))
        used = np.zeros(8, dtype=int)
        for j, t in zip(jobs, chosen, strict=True):
            assert sum(count for _, count in now[j]) == gangs[j]
            for node, count in now[j]:
                assert pool[node] == t
                used[node] += count
        assert (used <= size).all()
        assert (devices.free == size - used).all()
        assert all(now[j] == before[j] for j in kept.tolist())
        wide = [j for j in jobs if gangs[j] == max(gangs[k] for k in jobs)]
        for j in wide:  # nobody before them can have taken their devices
            if j in before and pool[before[j][0][0]] == chosen[jobs.index(j)]:
                assert j in kept
        before = now


def test_a_gang_goes_to_one_node_where_one_can_hold_it_larger_gangs_first() -> None:
    devices = RoundDevices(3, np.zeros(3, dtype=int), np.array([2, 4, 2]))
    devices.give(np.array([0, 1, 2]), np.zeros(3, dtype=int), np.array([1, 4, 3]))
    assert places(devices, [0, 1, 2]) == [((2, 1),), ((1, 4),), ((0, 2), (2, 1))]
