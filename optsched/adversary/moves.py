"""How one candidate becomes another: small changes of one number, and moves that keep or make structure.

Bad instances are regular (equal jobs, one long job, arrivals at the moment in which another job ends), and a walk by single
numbers seldom meets regular ones: hence moves that split, merge, repeat, align, scale, swap and tie.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from optsched.adversary.candidate import Candidate, Quantity, Row
from optsched.adversary.space import SearchSpace

Move = Callable[[Candidate, SearchSpace, random.Random], Candidate]
DIVISORS = 1.2, 6.0  # of coarsening


def moved(candidate: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    """A legal neighbour: one to three moves away."""
    while True:
        found = candidate
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            found = rng.choice(MOVES)(found, space, rng)
        found = space.normal(found)
        if found != candidate and space.legal(found):
            return found


def crossed(first: Candidate, second: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    """Some jobs of each of two, in their order."""
    rows = [row for parent in (first, second) for row in parent.jobs if rng.random() < 0.5]
    while len(rows) < max(space.fewest, 1):
        rows.append(rng.choice(first.jobs))
    shared = tuple(rng.choice(pair) for pair in zip(first.shared, second.shared, strict=True))
    return space.normal(Candidate(tuple(rows[: space.jobs]), shared))


def _with(row: Row, c: int, value: int, quantities: Sequence[Quantity]) -> Row:
    return (*row[:c], quantities[c].within(value), *row[c + 1 :])


def _replaced(candidate: Candidate, j: int, row: Row) -> Candidate:
    return candidate._replace(jobs=(*candidate.jobs[:j], row, *candidate.jobs[j + 1 :]))


def _place(candidate: Candidate, space: SearchSpace, rng: random.Random) -> tuple[int, int]:
    return rng.randrange(len(candidate.jobs)), rng.choice(space.varied)


def _room(candidate: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    # one job fewer where one more is too many
    if len(candidate.jobs) < space.jobs:
        return candidate
    j = rng.randrange(len(candidate.jobs))
    return candidate._replace(jobs=candidate.jobs[:j] + candidate.jobs[j + 1 :])


def step(candidate: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    """One number a little up or down."""
    j, c = _place(candidate, space, rng)
    row = candidate.jobs[j]
    return _replaced(candidate, j, _with(row, c, row[c] + rng.choice((-3, -2, -1, 1, 2, 3)), space.quantities))


def redraw(candidate: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    """One number anew."""
    j, c = _place(candidate, space, rng)
    return _replaced(candidate, j, _with(candidate.jobs[j], c, space.quantities[c].drawn(rng), space.quantities))


def scale(candidate: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    """One number, or one of every job, twice or half as large."""
    j, c = _place(candidate, space, rng)
    chosen = range(len(candidate.jobs)) if rng.random() < 0.3 else (j,)
    twice = rng.random() < 0.5
    rows = list(candidate.jobs)
    for k in chosen:
        rows[k] = _with(rows[k], c, rows[k][c] * 2 if twice else rows[k][c] // 2, space.quantities)
    return candidate._replace(jobs=tuple(rows))


def coarsen(candidate: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    """All times divided by one number, which need not be an integer, and rounded: what is nearly regular becomes so."""
    timed = [c for c, each in enumerate(space.quantities) if each.work or each.origin]
    divisor = rng.uniform(*DIVISORS)
    rows = list(candidate.jobs)
    for k, row in enumerate(rows):
        for c in timed:
            row = _with(row, c, round(row[c] / divisor), space.quantities)
        rows[k] = row
    return candidate._replace(jobs=tuple(rows))


def align(candidate: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    """One number of a job as that of another job, or of all."""
    j, c = _place(candidate, space, rng)
    value = candidate.jobs[j][c]
    chosen = set(range(len(candidate.jobs))) if rng.random() < 0.3 else {rng.randrange(len(candidate.jobs))}
    rows = (_with(row, c, value, space.quantities) if k in chosen else row for k, row in enumerate(candidate.jobs))
    return candidate._replace(jobs=tuple(rows))


def meet(candidate: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    """One number the sum or the difference of two others, give or take one: an arrival just before another job's end."""
    j, c = _place(candidate, space, rng)
    (k, first), (i, second) = _place(candidate, space, rng), _place(candidate, space, rng)
    if rng.random() < 0.5:
        i = k
    value = candidate.jobs[k][first] + rng.choice((-1, 1)) * candidate.jobs[i][second] + rng.choice((-1, 0, 0, 1))
    return _replaced(candidate, j, _with(candidate.jobs[j], c, value, space.quantities))


def tie(candidate: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    """The weight of a job, or of all jobs, equal to its work: then Smith's rule has nothing but ties."""
    tied = [c for c, each in enumerate(space.quantities) if each.tied]
    works = [c for c, each in enumerate(space.quantities) if each.work]
    if not tied or not works:
        return redraw(candidate, space, rng)
    c, work = rng.choice(tied), rng.choice(works)
    chosen = set(range(len(candidate.jobs))) if rng.random() < 0.3 else {rng.randrange(len(candidate.jobs))}
    rows = (_with(row, c, row[work], space.quantities) if k in chosen else row for k, row in enumerate(candidate.jobs))
    return candidate._replace(jobs=tuple(rows))


def repeat(candidate: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    """A job once more, beside the first one or anywhere."""
    kept = _room(candidate, space, rng)
    j = rng.randrange(len(kept.jobs))
    at = j if rng.random() < 0.7 else rng.randint(0, len(kept.jobs))
    return kept._replace(jobs=(*kept.jobs[:at], kept.jobs[j], *kept.jobs[at:]))


def insert(candidate: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    """A random job more."""
    kept = _room(candidate, space, rng)
    at = rng.randint(0, len(kept.jobs))
    return kept._replace(jobs=(*kept.jobs[:at], space.row(rng), *kept.jobs[at:]))


def remove(candidate: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    """A job less."""
    if len(candidate.jobs) <= max(space.fewest, 1):
        return redraw(candidate, space, rng)
    j = rng.randrange(len(candidate.jobs))
    return candidate._replace(jobs=candidate.jobs[:j] + candidate.jobs[j + 1 :])


def swap(candidate: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    """Two jobs change places, or one number of them."""
    j, c = _place(candidate, space, rng)
    k = rng.randrange(len(candidate.jobs))
    rows = list(candidate.jobs)
    if rng.random() < 0.5:
        rows[j], rows[k] = rows[k], rows[j]
    else:
        a, b = rows[j], rows[k]
        rows[j] = _with(a, c, b[c], space.quantities)
        if j != k:
            rows[k] = _with(b, c, a[c], space.quantities)
    return candidate._replace(jobs=tuple(rows))


def split(candidate: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    """The work of a job on two jobs, and of its weight a part in proportion."""
    works = [c for c, each in enumerate(space.quantities) if each.work]
    kept = _room(candidate, space, rng)
    j, c = rng.randrange(len(kept.jobs)), rng.choice(works)
    row = kept.jobs[j]
    if row[c] < 2:
        return redraw(candidate, space, rng)
    part = rng.choice((row[c] // 2, rng.randint(1, row[c] - 1)))
    first, second = (_share(row, c, size, space.quantities) for size in (part, row[c] - part))
    return kept._replace(jobs=(*kept.jobs[:j], first, second, *kept.jobs[j + 1 :]))


def merge(candidate: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    """Two jobs as one with the work, and the weight, of both."""
    if len(candidate.jobs) <= max(space.fewest, 1):
        return redraw(candidate, space, rng)
    j, k = rng.sample(range(len(candidate.jobs)), 2)
    row, other = candidate.jobs[j], candidate.jobs[k]
    for c, each in enumerate(space.quantities):
        if each.work or each.tied:
            row = _with(row, c, row[c] + other[c], space.quantities)
    rows = list(candidate.jobs)
    rows[j] = row
    del rows[k]
    return candidate._replace(jobs=tuple(rows))


def change_shared(candidate: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    """A number that all jobs share."""
    if not space.shared:
        return step(candidate, space, rng)
    c = rng.randrange(len(space.shared))
    value = candidate.shared[c] + rng.choice((-1, 1)) if rng.random() < 0.5 else space.shared[c].drawn(rng)
    return candidate._replace(shared=_with(candidate.shared, c, value, space.shared))


def _share(row: Row, c: int, size: int, quantities: Sequence[Quantity]) -> Row:
    whole = row[c]
    for k, each in enumerate(quantities):
        if k == c or each.tied:
            row = _with(row, k, row[k] * size // whole if k != c else size, quantities)
    return row


MOVES: tuple[Move, ...] = (
    step, step, redraw, scale, coarsen, align, meet, tie, repeat, insert, remove, swap, split, merge, change_shared,
)  # fmt: skip
