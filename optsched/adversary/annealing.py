"""`island`: simulated annealing with a few elites, from random candidates or from given ones. The same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from optsched.adversary.candidate import Candidate
from optsched.adversary.evaluation import Evaluation
from optsched.adversary.moves import crossed, moved
from optsched.deadline import NEVER, Deadline

ELITES = 4
DRAWN = 0.1  # of the tries go to random candidates, where the walk begins
HOT, COLD = 0.08, 0.002  # temperatures: of the logarithm of the ratio
STALE = 60  # tries without a better one, after which a walk goes back to an elite or to a child of two
Ranked = tuple[float, Candidate]


@dataclass
class Found:
    """The best candidates of a search, each with its ratio, the best one first, and how many were tried.

    ``proved``: with up to so many jobs no candidate of the space is worse than the best one here; 0: nobody has proved that.
    """

    elites: list[Ranked] = field(default_factory=list)
    tries: int = 0
    proved: int = 0

    def offer(self, ratio: float, candidate: Candidate) -> bool:
        """Take it in; is it the best so far?"""
        best = not self.elites or ratio > self.elites[0][0]
        if all(candidate != other for _, other in self.elites):
            self.elites = sorted([*self.elites, (ratio, candidate)], key=lambda each: -each[0])[:ELITES]
        return best


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
