"""The best total utility in rounds by trying everything, in fractions; nothing but the data is taken from optsched."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from functools import cache

from hypothesis import strategies as st

from optsched.models.hadar_rounds import RoundProblem

Cells = tuple[tuple[int, int, int], ...]  # (machine, type, devices)


def ways(problem: RoundProblem, j: int) -> list[tuple[Cells, Fraction]]:
    """Every way to give job j its gang in one round, and the iterations done: the slowest type used rules."""
    places = list(itertools.product(range(problem.machines), range(problem.types)))
    found = []
    for counts in itertools.product(*(range(int(problem.devices[h, r]) + 1) for h, r in places)):
        if sum(counts) != problem.tasks[j]:
            continue
        cells = tuple((h, r, k) for (h, r), k in zip(places, counts, strict=True) if k)
        one_machine = len({h for h, _, _ in cells}) == 1
        table = problem.together if one_machine and problem.together is not None else problem.speed
        slowest = min(Fraction(float(table[j, r])) for _, r, _ in cells)
        if slowest > 0:
            found.append((cells, Fraction(problem.seconds) * int(problem.tasks[j]) * slowest))
    return found


def every_schedule(problem: RoundProblem, j: int) -> Iterator[dict[int, tuple[Cells, Fraction]]]:
    """Every choice of a way, or none, in every round from the arrival on that does the work."""
    rounds = range(int(problem.arrival[j]), problem.rounds)
    for choice in itertools.product([None, *ways(problem, j)], repeat=len(rounds)):
        used = {t: way for t, way in zip(rounds, choice, strict=True) if way is not None}
        if sum(done for _, done in used.values()) >= Fraction(float(problem.work[j])):
            yield used


def best_utility(problem: RoundProblem) -> Fraction:
    """The optimum, jobs left out or not, by all joint allocations of all rounds."""
    options = [ways(problem, j) for j in range(problem.n)]

    @cache
    def best(t: int, left: tuple[Fraction, ...]) -> Fraction:
        if t == problem.rounds:
            return Fraction(0)
        active = [j for j in range(problem.n) if left[j] > 0 and problem.arrival[j] <= t]
        value = Fraction(0)
        for choice in itertools.product(*([None, *options[j]] for j in active)):
            if not _fits(problem, [way[0] for way in choice if way is not None]):
                continue
            after, gained = list(left), Fraction(0)
            for j, way in zip(active, choice, strict=True):
                if way is not None:
                    after[j] = max(Fraction(0), left[j] - way[1])
                    gained += Fraction(float(problem.utility[j, t])) if after[j] == 0 else 0
            value = max(value, gained + best(t + 1, tuple(after)))
        return value

    return best(0, tuple(Fraction(float(work)) for work in problem.work))


def _fits(problem: RoundProblem, taken: list[Cells]) -> bool:
    held: dict[tuple[int, int], int] = {}
    for h, r, k in itertools.chain.from_iterable(taken):
        held[h, r] = held.get((h, r), 0) + k
    return all(k <= problem.devices[cell] for cell, k in held.items())


@st.composite
def tiny_problems(draw: st.DrawFn, *, together: bool | None = None) -> RoundProblem:
    """2 or 3 jobs, up to 2 machines and 2 types with up to 2 devices each, 2 or 3 rounds of 10 s, everything an integer."""
    jobs, rounds = draw(st.sampled_from([(2, 3), (3, 2)]))
    machines, types = draw(st.sampled_from([(1, 2), (2, 1), (2, 2)]))
    speeds = st.lists(st.integers(0, 3), min_size=types, max_size=types)
    several = st.lists(speeds, min_size=jobs, max_size=jobs)
    falling = st.lists(st.integers(0, 9), min_size=rounds, max_size=rounds).map(lambda row: sorted(row, reverse=True))
    differs = draw(st.booleans()) if together is None else together
    room = st.lists(st.integers(0, 2), min_size=types, max_size=types)
    return RoundProblem(
        work=draw(st.lists(st.integers(1, 90), min_size=jobs, max_size=jobs)),
        tasks=draw(st.lists(st.integers(1, 3), min_size=jobs, max_size=jobs)),
        speed=draw(several),
        arrival=draw(st.lists(st.integers(0, rounds - 1), min_size=jobs, max_size=jobs)),
        devices=draw(st.lists(room, min_size=machines, max_size=machines)),
        seconds=10.0,
        utility=draw(st.lists(falling, min_size=jobs, max_size=jobs)),
        together=draw(several) if differs else None,
    )
