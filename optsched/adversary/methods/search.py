"""``search``: simulated annealing over candidates, from many beginnings, the same for the same seed.

Rounds of islands in several processes; the best of a round are where some of the next begin. With a budget in tries the
outcome depends on the seed alone, whatever the number of processes. With one in seconds it is as far as they come.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from joblib import Parallel, delayed

from optsched.adversary.candidate import Candidate
from optsched.adversary.evaluation import Evaluation
from optsched.adversary.method import Budget, Found, Watch, add_method
from optsched.adversary.moves import crossed, moved
from optsched.deadline import NEVER, Deadline

DRAWN = 0.1  # of the tries go to random candidates, where the walk begins
HOT, COLD = 0.08, 0.002  # temperatures: of the logarithm of the ratio
STALE = 60  # tries without a better one, after which a walk goes back to an elite or to a child of two


def island(
    evaluation: Evaluation, seed: int, tries: int, given: Sequence[Candidate] = (), deadline: Deadline = NEVER
) -> Found:
    """Search with so many tries, no longer than until ``deadline``.

    A worse neighbour is taken with the probability of Metropolis for the logarithm of the ratio, at a temperature that falls
    geometrically. O(tries) runs.
    """
    rng, found = random.Random(seed), Found()
    space = evaluation.space

    def tried(candidate: Candidate) -> tuple[float, bool]:
        found.tries += 1
        ratio = evaluation.ratio(candidate)
        return ratio, found.offer(ratio, candidate)

    for candidate in given:
        tried(candidate)
    begin = max(2, int(DRAWN * tries)) if not given else 0
    while found.tries < begin and (found.tries == 0 or not deadline.passed):
        tried(space.drawn(rng))
    if not found.elites:
        return found
    (ratio, here), stale = found.elites[0], 0
    child: Candidate | None = None
    while found.tries < tries and not deadline.passed:
        temperature = HOT * (COLD / HOT) ** (found.tries / tries)
        candidate, child = child or moved(here, space, rng), None
        value, best = tried(candidate)
        stale = 0 if best else stale + 1
        if value > 0 and (value >= ratio or rng.random() < (value / ratio) ** (1 / temperature)):
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


def search(
    evaluation: Evaluation,
    *,
    seed: int = 0,
    tries: int | None = None,
    deadline: Deadline = NEVER,
    workers: int = 1,
    watch: Watch = lambda found, tries: None,
) -> Found:
    """The worst candidates found with so many ``tries`` (None: any number), no longer than until ``deadline``.

    Where no number says what a round is, the first rounds are short: something is then known soon.
    """
    rng, total, found = random.Random(seed), tries or 0, Found()
    first, share = _get_ready(evaluation), TRIES if tries is not None else FIRST
    watch(first, total)
    while (tries is None or found.tries < tries) and not (found.tries and deadline.passed):
        left = None if tries is None else tries - found.tries
        parts, known = _shares(left, share), [candidate for _, candidate in found.elites]
        # every other island begins from nothing
        tasks = [(rng.randrange(FAR), part, known if k % 2 else []) for k, part in enumerate(parts) if part]
        share = min(TRIES, 2 * share)
        for each in _islands(evaluation, tasks, deadline, workers):
            found.tries += each.tries
            for ratio, candidate in each.elites:
                found.offer(ratio, candidate)
            watch(found, total)
    return found


def _shares(left: int | None, most: int) -> list[int]:
    # the tries of the islands of a round
    if left is None or left >= ISLANDS * most:
        return [most] * ISLANDS
    return [left // ISLANDS + (k < left % ISLANDS) for k in range(ISLANDS)]


def _get_ready(evaluation: Evaluation) -> Found:
    # What is compiled is compiled once, not in every process; and a first candidate is known.
    first, found = evaluation.space.drawn(random.Random(0)), Found()
    found.offer(evaluation.ratio(first), first)
    return found


def _islands(
    evaluation: Evaluation, tasks: list[tuple[int, int, list[Candidate]]], deadline: Deadline, workers: int
) -> Iterator[Found]:
    if workers == 1:
        for seed, share, given in tasks:
            yield island(evaluation, seed, share, given, deadline)
        return
    running = Parallel(n_jobs=workers, return_as="generator")(
        delayed(island)(evaluation.fresh(), seed, share, given, deadline) for seed, share, given in tasks
    )
    yield from running


def run(evaluation: Evaluation, budget: Budget, watch: Watch) -> Found:
    """The worst candidates met within the budget."""
    return search(
        evaluation,
        seed=budget.seed,
        tries=budget.tries,
        deadline=budget.deadline,
        workers=budget.workers,
        watch=watch,
    )


add_method("search", "simulated annealing, for any policy; what it finds is bad, and may not be the worst", run)
