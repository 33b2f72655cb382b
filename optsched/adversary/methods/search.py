"""``search``: simulated annealing over candidates, from many beginnings, the same for the same seed.

Rounds of islands in several processes; the best of a round are where some of the next begin. With a budget in tries the
outcome depends on the seed alone, whatever the number of processes. With one in seconds it is as far as they come.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence

from joblib import Parallel, delayed

from optsched.adversary.attack_method import Budget, Found, Watch, add_method
from optsched.adversary.evaluation import ROUNDING, Evaluation
from optsched.adversary.space import Candidate, Quantity, Row, SearchSpace, put
from optsched.deadline import NEVER, Deadline

# How one candidate becomes another: small changes of one number, and moves that keep or make structure.
#
# Bad instances are regular (equal jobs, one long job, arrivals at the moment in which another job ends), and a walk by
# single numbers seldom meets regular ones: hence moves that split, merge, repeat, align, scale, swap and tie.

Move = Callable[[Candidate, SearchSpace, random.Random], Candidate]
DIVISORS = 1.2, 6.0  # of coarsening


def moved(candidate: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    """Return a legal neighbour, one to three moves away.

    Parameters
    ----------
    candidate
        The candidate to change.
    space
        Its space.
    rng
        Random number generator.
    """
    while True:
        found = candidate
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            found = rng.choice(MOVES)(found, space, rng)
        found = space.normal(found)
        if found != candidate and space.legal(found):
            return found


def crossed(first: Candidate, second: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    """Return a candidate with some jobs of each of two, in their order.

    Parameters
    ----------
    first
        First parent, whose jobs come first.
    second
        Second parent.
    space
        Their space.
    rng
        Random number generator.
    """
    rows = [row for parent in (first, second) for row in parent.jobs if rng.random() < 0.5]
    rows = rows or [rng.choice(first.jobs)]
    shared = tuple(rng.choice(pair) for pair in zip(first.shared, second.shared, strict=True))
    return space.normal(Candidate(tuple(rows[: space.jobs]), shared))


def _with(row: Row, c: int, value: int, quantities: Sequence[Quantity]) -> Row:
    return put(row, c, quantities[c].within(value))


def _place(candidate: Candidate, space: SearchSpace, rng: random.Random) -> tuple[int, int]:
    return rng.randrange(len(candidate.jobs)), rng.choice(space.varied)


def _room(candidate: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    # one job fewer where one more is too many
    few = len(candidate.jobs) < space.jobs
    return candidate if few else candidate.instead(rng.randrange(len(candidate.jobs)))


def _chosen(candidate: Candidate, rng: random.Random) -> set[int]:
    # all jobs, or one
    jobs = range(len(candidate.jobs))
    return set(jobs) if rng.random() < 0.3 else {rng.choice(jobs)}


def step(candidate: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    """Change one number by 1 to 3, up or down.

    Parameters
    ----------
    candidate
        The candidate to change.
    space
        Its space.
    rng
        Random number generator.
    """
    j, c = _place(candidate, space, rng)
    row = candidate.jobs[j]
    return candidate.instead(j, _with(row, c, row[c] + rng.choice((-3, -2, -1, 1, 2, 3)), space.quantities))


def redraw(candidate: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    """Replace one number by a random one.

    Parameters
    ----------
    candidate
        The candidate to change.
    space
        Its space.
    rng
        Random number generator.
    """
    j, c = _place(candidate, space, rng)
    return candidate.instead(j, _with(candidate.jobs[j], c, space.quantities[c].drawn(rng), space.quantities))


def scale(candidate: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    """Double or halve one number, of one job or of every job.

    Parameters
    ----------
    candidate
        The candidate to change.
    space
        Its space.
    rng
        Random number generator.
    """
    j, c = _place(candidate, space, rng)
    chosen = range(len(candidate.jobs)) if rng.random() < 0.3 else (j,)
    twice = rng.random() < 0.5
    rows = list(candidate.jobs)
    for k in chosen:
        rows[k] = _with(rows[k], c, rows[k][c] * 2 if twice else rows[k][c] // 2, space.quantities)
    return candidate._replace(jobs=tuple(rows))


def coarsen(candidate: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    """Divide all times by one number, which need not be an integer, and round: nearly regular times become regular.

    Parameters
    ----------
    candidate
        The candidate to change.
    space
        Its space.
    rng
        Random number generator.
    """
    timed = [c for c, each in enumerate(space.quantities) if each.work or each.origin]
    divisor = rng.uniform(*DIVISORS)
    rows = list(candidate.jobs)
    for k, row in enumerate(rows):
        for c in timed:
            row = _with(row, c, round(row[c] / divisor), space.quantities)
        rows[k] = row
    return candidate._replace(jobs=tuple(rows))


def align(candidate: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    """Copy one number of a job to another job, or to all jobs.

    Parameters
    ----------
    candidate
        The candidate to change.
    space
        Its space.
    rng
        Random number generator.
    """
    j, c = _place(candidate, space, rng)
    value, chosen = candidate.jobs[j][c], _chosen(candidate, rng)
    rows = (_with(row, c, value, space.quantities) if k in chosen else row for k, row in enumerate(candidate.jobs))
    return candidate._replace(jobs=tuple(rows))


def meet(candidate: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    """Set one number to the sum or the difference of two others, give or take one.

    An example is an arrival just before the end of another job.

    Parameters
    ----------
    candidate
        The candidate to change.
    space
        Its space.
    rng
        Random number generator.
    """
    j, c = _place(candidate, space, rng)
    (k, first), (i, second) = _place(candidate, space, rng), _place(candidate, space, rng)
    if rng.random() < 0.5:
        i = k
    value = candidate.jobs[k][first] + rng.choice((-1, 1)) * candidate.jobs[i][second] + rng.choice((-1, 0, 0, 1))
    return candidate.instead(j, _with(candidate.jobs[j], c, value, space.quantities))


def tie(candidate: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    """Set the weight of a job, or of all jobs, equal to its work.

    All jobs then tie under Smith's rule. If no number can be tied, one number is redrawn.

    Parameters
    ----------
    candidate
        The candidate to change.
    space
        Its space.
    rng
        Random number generator.
    """
    tied = [c for c, each in enumerate(space.quantities) if each.tied]
    works = [c for c, each in enumerate(space.quantities) if each.work]
    if not tied or not works:
        return redraw(candidate, space, rng)
    c, work, chosen = rng.choice(tied), rng.choice(works), _chosen(candidate, rng)
    rows = (_with(row, c, row[work], space.quantities) if k in chosen else row for k, row in enumerate(candidate.jobs))
    return candidate._replace(jobs=tuple(rows))


def repeat(candidate: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    """Insert a copy of a job, next to it or anywhere.

    Parameters
    ----------
    candidate
        The candidate to change.
    space
        Its space.
    rng
        Random number generator.
    """
    kept = _room(candidate, space, rng)
    j = rng.randrange(len(kept.jobs))
    at = j if rng.random() < 0.7 else rng.randint(0, len(kept.jobs))
    return kept._replace(jobs=(*kept.jobs[:at], kept.jobs[j], *kept.jobs[at:]))


def insert(candidate: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    """Insert a random job.

    Parameters
    ----------
    candidate
        The candidate to change.
    space
        Its space.
    rng
        Random number generator.
    """
    kept = _room(candidate, space, rng)
    at = rng.randint(0, len(kept.jobs))
    return kept._replace(jobs=(*kept.jobs[:at], space.row(rng), *kept.jobs[at:]))


def remove(candidate: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    """Remove a job; redraw one number if there is only one job.

    Parameters
    ----------
    candidate
        The candidate to change.
    space
        Its space.
    rng
        Random number generator.
    """
    if len(candidate.jobs) == 1:
        return redraw(candidate, space, rng)
    return candidate.instead(rng.randrange(len(candidate.jobs)))


def swap(candidate: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    """Exchange two rows, or one number of two jobs.

    Parameters
    ----------
    candidate
        The candidate to change.
    space
        Its space.
    rng
        Random number generator.
    """
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
    """Split the work of a job between two jobs, and its weight in proportion.

    If the work is below 2, one number is redrawn.

    Parameters
    ----------
    candidate
        The candidate to change.
    space
        Its space.
    rng
        Random number generator.
    """
    works = [c for c, each in enumerate(space.quantities) if each.work]
    kept = _room(candidate, space, rng)
    j, c = rng.randrange(len(kept.jobs)), rng.choice(works)
    row = kept.jobs[j]
    if row[c] < 2:
        return redraw(candidate, space, rng)
    part = rng.choice((row[c] // 2, rng.randint(1, row[c] - 1)))
    return kept.instead(j, *(_share(row, c, size, space.quantities) for size in (part, row[c] - part)))


def merge(candidate: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    """Replace two jobs by one with the work and the weight of both; redraw one number if there is only one job.

    Parameters
    ----------
    candidate
        The candidate to change.
    space
        Its space.
    rng
        Random number generator.
    """
    if len(candidate.jobs) == 1:
        return redraw(candidate, space, rng)
    j, k = rng.sample(range(len(candidate.jobs)), 2)
    row, other = candidate.jobs[j], candidate.jobs[k]
    for c, each in enumerate(space.quantities):
        if each.work or each.tied:
            row = _with(row, c, row[c] + other[c], space.quantities)
    return candidate.instead(j, row).instead(k)


def change_shared(candidate: Candidate, space: SearchSpace, rng: random.Random) -> Candidate:
    """Change a number that all jobs share; apply `step` if there is none.

    Parameters
    ----------
    candidate
        The candidate to change.
    space
        Its space.
    rng
        Random number generator.
    """
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


DRAWN = 0.1  # of the tries go to random candidates, where the walk begins
HOT, COLD = 0.08, 0.002  # temperatures: of the logarithm of the ratio
STALE = 60  # tries without a better one, after which a walk goes back to an elite or to a child of two


def island(
    evaluation: Evaluation, seed: int, tries: int, given: Sequence[Candidate] = (), deadline: Deadline = NEVER
) -> Found:
    """Search by simulated annealing, with at most ``tries`` tries.

    A worse neighbour is accepted with the probability of Metropolis for the logarithm of the ratio, at a
    temperature that falls geometrically.

    Parameters
    ----------
    evaluation
        Policy, objective and space.
    seed
        Seed of the random number generator.
    tries
        Number of tries.
    given
        Candidates where the search begins; without any, it begins with random ones.
    deadline
        Time at which the search ends at the latest.

    Notes
    -----
    Complexity: O(tries) runs.
    """
    rng, found = random.Random(seed), Found()
    space = evaluation.space

    def tried(candidate: Candidate, least: float = 0.0) -> tuple[float | None, bool]:
        found.tries += 1
        ratio = evaluation.ratio_above(candidate, least)
        return ratio, ratio is not None and found.offer(ratio, candidate)

    for candidate in given:
        tried(candidate)
    begin = max(2, int(DRAWN * tries)) if not given else 0
    while found.tries < begin and (found.tries == 0 or not deadline.passed):
        tried(space.drawn(rng), found.elites[-1][0] if found.full else 0.0)
    if not found.elites:
        return found
    (ratio, here), stale = found.elites[0], 0
    child: Candidate | None = None
    while found.tries < tries and not deadline.passed:
        temperature = HOT * (COLD / HOT) ** (found.tries / tries)
        candidate, child = child or moved(here, space, rng), None
        before, luck = rng.getstate(), rng.random()
        # the ratio matters only if it is among the best, or if the walk goes on from the candidate
        least = min(found.elites[-1][0], ratio * luck**temperature * (1 - ROUNDING)) if found.full else 0.0
        value, best = tried(candidate, least)
        stale = 0 if best else stale + 1
        if value is not None and not 0 < value < ratio:
            rng.setstate(before)  # no luck is needed
        if value is not None and value > 0 and (value >= ratio or luck < (value / ratio) ** (1 / temperature)):
            ratio, here = value, candidate
        if stale >= STALE:
            (ratio, here), stale = rng.choice(found.elites), 0
            if rng.random() < 0.5:
                child, ratio = crossed(here, rng.choice(found.elites)[1], space, rng), 0.0
    return found


ISLANDS = 4  # of a round
TRIES = 400  # of an island
FIRST = 50  # of one in the first round of a search that a clock ends
FAR = 2**32


def search(evaluation: Evaluation, budget: Budget, watch: Watch = lambda found, tries: None) -> Found:
    """Find bad candidates within the budget, by rounds of islands.

    If the budget is given in seconds, the first rounds are short, so that a first result is known soon.

    Parameters
    ----------
    evaluation
        Policy, objective and space.
    budget
        Number of tries or deadline, processes and seed.
    watch
        Function to which the best candidates so far are reported.
    """
    tries, deadline = budget.tries, budget.deadline
    rng, total, found, first = random.Random(budget.seed), tries or 0, Found(), Found()
    share = TRIES if tries is not None else FIRST
    # What is compiled is compiled once, not in every process; and a first candidate is known.
    drawn = evaluation.space.drawn(random.Random(0))
    first.offer(evaluation.ratio(drawn), drawn)
    watch(first, total)
    while (tries is None or found.tries < tries) and not (found.tries and deadline.passed):
        parts, known = [share] * ISLANDS, [candidate for _, candidate in found.elites]
        if tries is not None and (left := tries - found.tries) < ISLANDS * share:
            parts = [left // ISLANDS + (k < left % ISLANDS) for k in range(ISLANDS)]
        # every other island begins from nothing
        tasks = [(rng.randrange(FAR), part, known if k % 2 else [], deadline) for k, part in enumerate(parts) if part]
        share = min(TRIES, 2 * share)
        done: Iterable[Found] = (island(evaluation, *task) for task in tasks)
        if budget.workers > 1:
            parallel = Parallel(n_jobs=budget.workers, return_as="generator")
            done = parallel(delayed(island)(evaluation.fresh(), *task) for task in tasks)
        for each in done:
            found.tries += each.tries
            for ratio, candidate in each.elites:
                found.offer(ratio, candidate)
            watch(found, total)
    return found


add_method("search", "simulated annealing, for any policy; what it finds is bad, and may not be the worst", search)
