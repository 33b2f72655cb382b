"""When sharing never pays: every shared schedule is dominated, job by job, by one that does not share."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference
from optsched.speeds.sharing_gain import most_work, sharing_gains_nothing
from speeds.played_shares import played

F = Fraction


def random_case(rng: np.random.Generator, gpus: int, widths: Sequence[int], least: Fraction):
    """Five jobs whose pair sums are at most 1 / ``least`` * 2, started one by one at random where there is room."""
    n = 5
    release = [F(int(rng.integers(0, 8)), 2) for _ in range(n)]
    alone = [F(int(rng.integers(1, 12)), 3) for _ in range(n)]
    first = {(a, b): least * F(int(rng.integers(6, 11)), 6) for a in range(n) for b in range(a)}
    # 1/x + 1/y = 2 / least exactly, or both as slow as the drawn one
    slow = {(a, b): x for (a, b), x in first.items()}
    slow |= {(b, a): x if rng.random() < 0.5 else 1 / (2 / least - 1 / x) for (a, b), x in first.items()}
    start: list[Fraction] = []
    gangs: list[set[int]] = []
    for j in range(n):
        gang = set(rng.permutation(gpus)[: rng.choice(widths)].tolist())
        for step in range(200):  # the first moment at or after a random one at which nothing is broken
            begin = release[j] + F(int(rng.integers(0, 3)), 2) + F(step, 2)
            try:
                pieces = played([*start, begin], alone[: j + 1], [*gangs, gang], lambda a, b: slow[a, b])
            except AssertionError:
                continue
            break
        start, gangs = [*start, begin], [*gangs, gang]
    return release, alone, gangs, pieces


def work_between(pieces, lo, hi):
    """Of every job."""
    return [sum((min(b, hi) - max(a, lo)) * v for a, b, v in job if min(b, hi) > max(a, lo)) for job in pieces]


def dominated(pieces, machines: int) -> bool:
    """Can ``machines`` gangs at a time do in every interval what is done there, no job on two at once?"""
    points = sorted({t for job in pieces for a, b, _ in job for t in (a, b)})
    for lo, hi in pairwise(points):
        done = work_between(pieces, lo, hi)
        if max(done) > hi - lo or sum(done) > machines * (hi - lo):
            return False
    return True


@pytest.mark.parametrize(
    ("gpus", "widths"), [(1, [1]), (2, [2]), (3, [1]), (4, [2]), (6, [2]), (4, [3, 4]), (7, [5, 6, 7])]
)
def test_what_is_shared_can_be_done_without(gpus: int, widths: list[int]) -> None:
    rng = np.random.default_rng(gpus)
    machines = gpus // widths[0]
    shared = 0
    for _ in range(14):
        release, alone, _, pieces = random_case(rng, gpus, widths, F(2))
        assert work_between(pieces, 0, 10**6) == alone
        assert dominated(pieces, machines)
        shared += any(v < 1 for job in pieces for *_, v in job)
        # one gang at a time: earliest due date meets every completion, by the demand of every interval
        if machines == 1:
            end = [job[-1][1] for job in pieces]
            for lo in release:
                for hi in end:
                    due = [p for r, p, c in zip(release, alone, end, strict=True) if r >= lo and c <= hi]
                    assert sum(due) <= max(hi - lo, 0)
    assert shared > 6
    faster = [dominated(random_case(rng, gpus, widths, F(5, 4))[3], machines) for _ in range(14)]
    assert not all(faster)  # with less interference the same test fails


def test_gangs_that_leave_gpus_idle_gain_from_sharing() -> None:
    ring = [{0, 1}, {1, 2}, {2, 0}]
    for xi in (F(2), F(9, 4)):
        three = played([0] * 3, [F(1)] * 3, ring, lambda a, b, xi=xi: xi)
        assert [job[-1][1] for job in three] == [xi] * 3
        assert not dominated(three, 1)
        six = played([0] * 3 + [xi] * 3, [F(1)] * 6, ring * 2, lambda a, b, xi=xi: xi)
        assert sum(job[-1][1] for job in six) == 9 * xi < 21
    beside = played([0] * 4, [F(1)] * 3 + [F(2)], [*ring, {3}], lambda a, b: F(2))
    assert [job[-1][1] for job in beside] == [2] * 4  # without sharing: one of three at a time


def test_release_dates_without_preemption() -> None:
    def total(*start: int) -> Fraction:
        pieces = played([F(s) for s in start], [F(10), F(1)], [{0}, {0}], lambda a, b: F(2))
        return sum(job[-1][1] for job in pieces)

    assert (total(0, 2), total(3, 2), total(0, 10)) == (15, 16, 21)
    assert sum((3, 11)) < 15  # with preemption


def cluster(widths: Sequence[int], gpus: int, xi: Interference, **changes: str) -> Instance:
    jobs = [Job(f"{j}", gpus=width, duration=1, **changes) for j, width in enumerate(widths)]
    return Instance(jobs, f"1x{gpus}", interference=xi)


def test_when_the_theorem_speaks() -> None:
    two, less = Interference(2), Interference(1.9)
    for widths, gpus, holds in (
        ([1, 1, 1], 3, True),
        ([2, 2, 2], 4, True),
        ([3, 4], 4, True),
        ([2, 2, 2], 3, False),
        ([1, 2], 4, False),
        ([4, 4], 4, True),
    ):
        assert sharing_gains_nothing(cluster(widths, gpus, two)) is holds
        assert not sharing_gains_nothing(cluster(widths, gpus, less))
    assert sharing_gains_nothing(cluster([1], 3, less))


def test_work_of_the_best_pair() -> None:
    table = Interference(9, ("a", "b"), ((1.25, 1.6), (4.0, None)))
    jobs = [Job("0", duration=1, model="a"), Job("1", duration=1, model="b")]
    assert most_work(Instance(jobs, "1x1", interference=table)) == 1 / 1.6 + 1 / 4
    jobs += [Job("2", duration=1, model="b")]
    assert most_work(Instance(jobs, "1x1", interference=table)) == 1 / 1.6 + 1 / 4  # two of b never share
    jobs += [Job("3", duration=1, model="a")]
    assert most_work(Instance(jobs, "1x1", interference=table)) == 1.6
    assert most_work(Instance(jobs, "1x1")) == 0
