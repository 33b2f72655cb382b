"""What a person reads: the smallest candidate, by fewer jobs and smaller numbers, that is nearly as bad as the one found."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from math import gcd

from optsched.adversary.evaluation import Evaluation
from optsched.adversary.space import Candidate, SearchSpace, put
from optsched.deadline import NEVER, Deadline

TOLERANCE = 0.01  # of the ratio may be lost


def shrunk(
    evaluation: Evaluation, candidate: Candidate, tolerance: float = TOLERANCE, deadline: Deadline = NEVER
) -> Candidate:
    """Steps to a smaller candidate for as long as there are any that keep (1 - ``tolerance``) of the ratio of the first.

    Fewer jobs count before smaller numbers. Where a step makes the ratio larger, that one must be kept from then on.
    It ends at the ``deadline`` at the latest.
    O(steps x jobs x quantities) runs.
    """
    space, least = evaluation.space, (1 - tolerance) * evaluation.ratio(candidate)
    while True:
        for smaller in _smaller(space, candidate):
            if deadline.passed:
                return candidate
            # a job that comes earlier than the first one would make all others later
            real = space.legal(smaller) and _size(smaller) < _size(candidate)
            ratio = evaluation.ratio(smaller) if real else 0.0
            if ratio >= least and ratio > 0:
                candidate, least = smaller, max(least, (1 - tolerance) * ratio)
                break
        else:
            return candidate


def _size(candidate: Candidate) -> tuple[int, int]:
    return len(candidate.jobs), candidate.total


def _smaller(space: SearchSpace, candidate: Candidate) -> Iterator[Candidate]:
    """Smaller candidates, those first that are much smaller."""
    for j in range(len(candidate.jobs)):
        yield space.normal(candidate.instead(j))
    yield from _merged(space, candidate)
    yield from _divided(space, candidate)
    yield from _of_all(space, candidate)
    for j, row in enumerate(candidate.jobs):
        for c in space.varied:
            for value in _values(row[c], space.quantities[c].least):
                yield space.normal(candidate.instead(j, put(row, c, value)))
    for c, value in enumerate(candidate.shared):
        for less in _values(value, space.shared[c].least):
            yield candidate._replace(shared=put(candidate.shared, c, less))
    yield from _of_two(space, candidate)


def _merged(space: SearchSpace, candidate: Candidate) -> Iterator[Candidate]:
    # two jobs as one, in the place of either
    rows = candidate.jobs
    summed = [c for c in space.varied if space.quantities[c].work or space.quantities[c].tied]
    for j, row in enumerate(rows):
        for k, other in enumerate(rows):
            if j != k:
                both = tuple(value + other[c] if c in summed else value for c, value in enumerate(row))
                yield space.normal(candidate.instead(j, both).instead(k))


def _of_two(space: SearchSpace, candidate: Candidate) -> Iterator[Candidate]:
    # one less in two jobs at once, where their balance is what counts
    rows = candidate.jobs
    for c, d in product(space.varied, repeat=2):
        for j, k in combinations(range(len(rows)), 2):
            less = list(rows)
            for i, column in ((j, c), (k, d)):
                less[i] = put(less[i], column, less[i][column] - 1)
            yield space.normal(candidate._replace(jobs=tuple(less)))


def _divided(space: SearchSpace, candidate: Candidate) -> Iterator[Candidate]:
    # every time by a common divisor, or by 2 or 3 with rounding
    timed = [c for c in space.varied if space.quantities[c].work or space.quantities[c].origin]
    tied = [c for c in space.varied if space.quantities[c].tied]
    for chosen in (timed, tied, timed + tied):
        common = gcd(*(row[c] for row in candidate.jobs for c in chosen)) if chosen else 0
        for divisor in (common, 3, 2):
            if divisor > 1:
                rows = tuple(
                    tuple(
                        max(space.quantities[c].least, round(value / divisor)) if c in chosen else value
                        for c, value in enumerate(row)
                    )
                    for row in candidate.jobs
                )
                if rows != candidate.jobs:
                    yield space.normal(candidate._replace(jobs=rows))


def _of_all(space: SearchSpace, candidate: Candidate) -> Iterator[Candidate]:
    # a number that several jobs share, in all of them
    for c in space.varied:
        values = [row[c] for row in candidate.jobs]
        for value in sorted({v for v in values if values.count(v) > 1}, reverse=True):
            for less in _values(value, space.quantities[c].least):
                rows = tuple(put(row, c, less) if row[c] == value else row for row in candidate.jobs)
                yield space.normal(candidate._replace(jobs=rows))


def _values(value: int, least: int) -> Iterator[int]:
    """Smaller values, the smallest first."""
    yield from dict.fromkeys(v for v in (least, (value + least) // 2, value - 1) if least <= v < value)
