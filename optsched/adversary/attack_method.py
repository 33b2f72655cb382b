"""`AttackMethod`: a method to find the worst instance of a space; a new one is one file in ``adversary/methods``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from optsched.adversary.evaluation import Evaluation
from optsched.adversary.space import Candidate
from optsched.deadline import NEVER, Deadline
from optsched.registry import Registry

TOLERANCE = 0.01  # of the ratio may be lost
TOLERANCE_LEGAL = "a number from 0 to below 1"
ELITES = 4  # candidates that a search keeps


@dataclass
class Found:
    """Best candidates of a search with their ratios, the best one first, and the number of tries.

    ``proved``: with at most this number of jobs no candidate of the space is worse than the first one; 0: not proved.
    """

    elites: list[tuple[float, Candidate]] = field(default_factory=list)
    tries: int = 0
    proved: int = 0

    @property
    def full(self) -> bool:
        """True if there are as many candidates as a search keeps: the ratio of any other one must be above the last."""
        return len(self.elites) == ELITES

    def offer(self, ratio: float, candidate: Candidate) -> bool:
        """Add a candidate, and return whether it is the best so far.

        Parameters
        ----------
        ratio
            Its ratio.
        candidate
            The candidate.
        """
        best = not self.elites or ratio > self.elites[0][0]
        if all(candidate != other for _, other in self.elites):
            self.elites = sorted([*self.elites, (ratio, candidate)], key=lambda each: -each[0])[:ELITES]
        return best


Watch = Callable[[Found, int], None]  # what was found so far; all tries, 0 where nobody knows how many there will be


@dataclass(frozen=True)
class Budget:
    """Budget of a search: a ``deadline``, a number of ``tries`` (None: any), ``workers`` processes, and a ``seed``."""

    deadline: Deadline = NEVER
    tries: int | None = None
    seed: int = 0
    workers: int = 1


@dataclass(frozen=True)
class AttackMethod:
    """A method: ``run(evaluation, budget, watch)`` finds bad candidates and reports them to ``watch``.

    ``usual``: default sizes of a space. ``tolerance``: default part of the ratio that a smaller instance may lose.
    """

    name: str
    summary: str
    run: Callable[[Evaluation, Budget, Watch], Found]
    usual: Mapping[str, int] = field(default_factory=dict)
    tolerance: float = TOLERANCE


METHODS: Registry[AttackMethod] = Registry("method of attack", package="optsched.adversary.methods")
add_method = METHODS.maker(AttackMethod, lambda method: method.name)
