"""The search as a whole: rounds of islands in several processes; the best of a round are where some of the next begin.

With a budget in tries the outcome depends on the seed alone, whatever the number of processes. With one in seconds it is as
far as the processes come.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from joblib import Parallel, delayed

from optsched.adversary.annealing import Found, island
from optsched.adversary.candidate import Candidate
from optsched.adversary.evaluation import Evaluation
from optsched.adversary.method import Watch
from optsched.deadline import NEVER, Deadline

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
        tasks = [(rng.randrange(FAR), part, _begin(found, k)) for k, part in enumerate(_shares(left, share)) if part]
        share = min(TRIES, 2 * share)
        for each in _islands(evaluation, tasks, deadline, workers):
            found.tries += each.tries
            for ratio, candidate in each.elites:
                found.offer(ratio, candidate)
            watch(found, total)
    return found


def random_search(evaluation: Evaluation, *, seed: int = 0, tries: int) -> Found:
    """As many candidates drawn at random, none of them changed: what a search has to beat."""
    rng, found = random.Random(seed), Found()
    while found.tries < tries:
        candidate = evaluation.space.drawn(rng)
        found.tries += 1
        found.offer(evaluation.ratio(candidate), candidate)
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


def _begin(found: Found, k: int) -> list[Candidate]:
    # every other island begins from nothing
    return [candidate for _, candidate in found.elites] if k % 2 else []


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
