"""Cheapest paths by the rule of pairs against the plain recursion over all pairs of arcs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings, strategies as st

from optsched.deadline import NEVER
from optsched.solvers.sequence_pairs import PairPaths
from optsched.solvers.sequence_paths import NOTHING, Jobs, cost_of, find_orders, may_follow
from solvers.test_single_machine import machines

Arc = tuple[int, int]


def cheapest_of_all(
    jobs: Jobs, u: np.ndarray, alive: np.ndarray, ends: np.ndarray
) -> tuple[dict[Arc, float], dict[Arc, float]]:
    """Return by arc (start, job) the cheapest path that ends with it, and the cheapest continuation after it."""
    arcs = [(int(s), int(j)) for s, j in zip(*np.nonzero(alive.T), strict=True)]
    price = {(s, j): float(cost_of.py_func(j, s, jobs) - u[j]) for s, j in arcs}

    def follows(before: Arc, after: Arc) -> bool:
        (a, i), (s, j) = before, after
        return i != j and s == max(a + jobs.length[i], jobs.release[j]) and may_follow.py_func(i, a, j, s, jobs)

    best = {arc: price[arc] if arc[0] == jobs.release[arc[1]] else NOTHING for arc in arcs}
    for arc in arcs:
        values = [best[other] + price[arc] for other in arcs if best[other] < NOTHING and follows(other, arc)]
        best[arc] = min([best[arc], *values])
    rest: dict[Arc, float] = {}
    for s, j in reversed(arcs):
        values = [rest[other] + price[other] for other in arcs if other in rest and follows((s, j), other)]
        end = 0.0 if ends[s + jobs.length[j]] else NOTHING
        rest[s, j] = min([end, *(value for value in values if value < NOTHING / 2)])
    return best, rest


@settings(max_examples=60)
@given(machines(5), st.lists(st.integers(-5, 30), min_size=5, max_size=5), st.integers(0, 25), st.data())
def test_lists_of_arcs_have_the_paths_of_the_recursion(machine, u, slack, data) -> None:  # type: ignore[no-untyped-def]
    jobs, n = Jobs.of(machine.rise, machine.base, machine.length, machine.release), machine.length.size
    prices, at = np.array(u[:n], dtype=float), np.arange(machine.horizon + 1)[:, None]
    alive = ((at >= machine.release) & (at + machine.length <= machine.horizon)).T
    for _ in range(data.draw(st.integers(0, 3))):
        alive[data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, machine.horizon))] = False
    ends = np.full(machine.horizon + 1, machine.idle)
    ends[machine.horizon] = True
    best, rest = cheapest_of_all(jobs, prices, alive, ends)
    closing = [best[s, j] for s, j in best if ends[s + machine.length[j]]]
    paths = PairPaths(jobs, alive, machine.idle, NEVER)
    value = paths.cheapest(prices)
    assert value == min([NOTHING, *closing])
    if value < NOTHING:
        assert paths.visits @ machine.length <= machine.horizon
        paths.reduce(prices, value + slack)
        left = {(int(s), int(j)) for s, j in zip(paths.arcs.time[paths.arcs.origin], paths.arcs.job, strict=True)}
        assert left == {arc for arc in best if best[arc] + rest[arc] <= value + slack}
        assert paths.alive().sum() == len(left)
        assert paths.cheapest(prices) == value


def cheapest_with_visits(jobs: Jobs, u: np.ndarray, alive: np.ndarray, counted: list[int], windows) -> float:  # type: ignore[no-untyped-def]
    """Return the value of the cheapest path over the whole horizon that visits the counted jobs once, in known order."""
    horizon, (first, last) = alive.shape[1] - 1, windows
    length = jobs.length

    def completed(i: int, a: int, done: frozenset[int]) -> float:
        end = a + int(length[i])
        if end == horizon:
            return 0.0 if len(done) == len(counted) else NOTHING
        return min([NOTHING, *(value for j in range(length.size) if (value := extended(i, a, j, end, done)) < NOTHING)])

    def extended(i: int, a: int, j: int, s: int, done: frozenset[int]) -> float:
        if not alive[j, s] or not first[j] <= s <= last[j] or j in done:
            return NOTHING
        if i >= 0 and (i == j or not may_follow.py_func(i, a, j, s, jobs)):
            return NOTHING
        if any(q != j and (jobs.before[j, q] if q in done else jobs.before[q, j]) for q in counted):
            return NOTHING
        after = done | {j} if j in counted else done
        return float(cost_of.py_func(j, s, jobs) - u[j]) + completed(j, s, frozenset(after))

    return min(extended(-1, 0, j, 0, frozenset()) for j in range(length.size))


@settings(max_examples=60)
@given(machines(4, 2), st.lists(st.integers(-5, 30), min_size=4, max_size=4), st.integers(0, 30), st.data())
def test_paths_visit_counted_jobs_once(machine, u, slack, data) -> None:  # type: ignore[no-untyped-def]
    """Against a search of all paths, with known orders and windows."""
    n = machine.length.size
    machine = replace(machine, release=0 * machine.release, horizon=int(machine.length.sum()))
    machine = machine.sorted(np.argsort(machine.length, kind="stable"))
    jobs, at = (
        Jobs.of(machine.rise, machine.base, machine.length, machine.release),
        np.arange(machine.horizon + 1)[:, None],
    )
    alive = (at + machine.length <= machine.horizon).T
    first, last = np.zeros(n, dtype=np.int64), machine.horizon - machine.length
    if data.draw(st.booleans()):
        assert find_orders(jobs, first, last, False)
    prices = np.array(u[:n], dtype=float)
    paths, counted = PairPaths(jobs, alive, False, NEVER), data.draw(st.permutations(range(n)))
    for k, job in enumerate(counted):
        paths.count(job, first, last)
        value = paths.cheapest(prices)
        assert value == cheapest_with_visits(jobs, prices, alive, counted[: k + 1], (first, last))
        assert np.all(paths.visits[counted[: k + 1]] == 1)
        paths.reduce(prices, value + slack)
        assert paths.cheapest(prices) == value
    assert np.all(paths.visits == 1)
