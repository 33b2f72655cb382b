"""`RequestPolicy`: an order of the waiting requests, and rules of admission and of throwing out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from optsched.classes.kv_cache.problem.requests import volumes
from optsched.errors import KnowledgeError
from optsched.problem.arrays import Floats, Ints
from optsched.simulation.policy import BasePolicy

NEWEST, ALL, RANDOM, SHORTEST = range(4)  # who is thrown out where the running requests do not fit the next round


@dataclass(frozen=True, kw_only=True)
class ServingRules:
    """Rules of a policy, which the engine runs compiled.

    Attributes
    ----------
    looks_ahead
        A request starts if its cells fit in all its rounds up to its believed end, beside those of the running ones up to
        their believed ends. False: it starts if the cells of the next round are at most ``level`` M, or nothing runs.
    skip
        Pass over waiting requests that do not fit. False: the first that does not fit blocks the others.
    level
        Share of the cells that admission fills without looking ahead.
    evicts
        Who is thrown out if the running requests do not fit the next round: `NEWEST`, the one that started last;
        `ALL`; `RANDOM`, each with probability ``chance``, again and again until the others fit; `SHORTEST`, the one with
        the least believed length, then progress, whose believed length becomes what it has reached.
    chance
        Probability of `RANDOM`.
    seed
        Seed of `RANDOM`.
    batches
        Serve in batches: when a batch has started, the next is the set X of waiting requests with the sum of peaks at most
        M and a small sum of lengths over the square of their number; ``ranks`` are then not used.
    """

    looks_ahead: bool = True
    skip: bool = False
    level: float = 1.0
    evicts: int = NEWEST
    chance: float = 1.0
    seed: int = 0
    batches: bool = False


class KnownRequests:
    """Facts about some requests at their arrival, as arrays [k].

    Parameters
    ----------
    arrival
        Arrivals, f64[k].
    prompt
        Prompt tokens, i64[k].
    weight
        Weights, f64[k].
    believed
        Believed output tokens, i64[k]; None if the policy has no predictor.
    """

    def __init__(self, arrival: Floats, prompt: Ints, weight: Floats, believed: Ints | None) -> None:
        self.arrival, self.prompt, self.weight, self._believed = arrival, prompt, weight, believed

    @property
    def tokens(self) -> Ints:
        """Believed output tokens, i64[k]; `KnowledgeError` if the policy has no predictor."""
        if self._believed is None:
            raise KnowledgeError("a policy without a predictor asked for output tokens")
        return self._believed

    @property
    def volume(self) -> Ints:
        """Believed volumes, i64[k]."""
        return volumes(self.prompt, self.tokens)


class RequestPolicy(BasePolicy, ABC):
    """An online algorithm for requests."""

    uses: Sequence[str] = ("requests",)
    rules: ServingRules = ServingRules()

    @abstractmethod
    def ranks(self, requests: KnownRequests) -> Floats:
        """Return the ranks of requests, f64[k]: the waiting request with the least rank is considered first.

        Parameters
        ----------
        requests
            Requests that arrive.
        """

    def believed(self, predicted: Floats) -> Floats:
        """Return the output tokens that the policy reserves cells for, f64[k]; default: the predicted ones.

        Parameters
        ----------
        predicted
            Lengths by the predictor, f64[k].
        """
        return predicted
