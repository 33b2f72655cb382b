"""The search as a whole: rounds of islands in several processes; the best of a round are where some of the next begin.

With a budget in tries the outcome depends on the seed alone, whatever the number of processes. With one in seconds it is as
far as the processes come.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator

from joblib import Parallel, delayed

from optsched.adversary.annealing import Found, island
from optsched.adversary.candidate import Candidate
from optsched.adversary.evaluation import Evaluation

ISLANDS = 4  # of a round
TRIES = 400  # of an island
FAR = 2**32

Advance = Callable[[int, int], None]


def search(
    evaluation: Evaluation,
    *,
    seed: int = 0,
    tries: int | None = None,
    seconds: float = math.inf,
    workers: int = 1,
    progress: Advance | None = None,
) -> Found:
    """The worst candidates found with so many ``tries`` (None: any number), within ``seconds``.

    ``progress`` is called with (tries done, all tries; 0 where nobody knows how many there will be).
    """
    rng, total, found = random.Random(seed), tries or 0, Found()
    _get_ready(evaluation, workers if seconds < math.inf else 1)
    deadline = time.time() + seconds
    while (tries is None or found.tries < tries) and time.time() < deadline:
        left = None if tries is None else tries - found.tries
        tasks = [(rng.randrange(FAR), share, _begin(found, k)) for k, share in enumerate(_shares(left)) if share]
        for each in _islands(evaluation, tasks, deadline, workers):
            found.tries += each.tries
            for ratio, candidate in each.elites:
                found.offer(ratio, candidate)
            if progress is not None:
                progress(found.tries, total)
    return found


def random_search(evaluation: Evaluation, *, seed: int = 0, tries: int) -> Found:
    """As many candidates drawn at random, none of them changed: what a search has to beat."""
    rng, found = random.Random(seed), Found()
    while found.tries < tries:
        candidate = evaluation.space.drawn(rng)
        found.tries += 1
        found.offer(evaluation.ratio(candidate), candidate)
    return found


def _shares(left: int | None) -> list[int]:
    # the tries of the islands of a round
    if left is None or left >= ISLANDS * TRIES:
        return [TRIES] * ISLANDS
    return [left // ISLANDS + (k < left % ISLANDS) for k in range(ISLANDS)]


def _get_ready(evaluation: Evaluation, workers: int) -> None:
    # What is compiled is compiled once, and processes are there, before the clock starts.
    first = evaluation.space.drawn(random.Random(0))
    evaluation.ratio(first)
    if workers > 1:
        Parallel(n_jobs=workers)(delayed(evaluation.fresh().ratio)(first) for _ in range(workers))


def _begin(found: Found, k: int) -> list[Candidate]:
    # every other island begins from nothing
    return [candidate for _, candidate in found.elites] if k % 2 else []


def _islands(
    evaluation: Evaluation, tasks: list[tuple[int, int, list[Candidate]]], deadline: float, workers: int
) -> Iterator[Found]:
    if workers == 1:
        for seed, share, given in tasks:
            yield island(evaluation, seed, share, given, deadline)
        return
    running = Parallel(n_jobs=workers, return_as="generator")(
        delayed(island)(evaluation.fresh(), seed, share, given, deadline) for seed, share, given in tasks
    )
    yield from running
