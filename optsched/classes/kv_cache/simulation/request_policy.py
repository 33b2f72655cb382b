"""`RequestPolicy`: an order of the waiting requests, and rules of admission and of throwing out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from optsched.problem.arrays import Floats, Ints
from optsched.simulation.policy import BasePolicy

NEWEST, ALL, RANDOM, SHORTEST = range(4)  # who is thrown out where the running requests do not fit the next round


class KnownRequests(NamedTuple):
    """Facts about k requests at their arrival: f64[k], but i64[k] for prompts and the lengths that the policy believes."""

    arrival: Floats
    weight: Floats
    prompt: Ints
    tokens: Ints


class RequestPolicy(BasePolicy, ABC):
    """An online algorithm for requests; the engine runs its rules compiled.

    Attributes
    ----------
    looks_ahead
        A request starts if its cells fit in all its rounds up to its believed end, beside those of the running ones up to
        theirs. False: if the cells of the next round are at most ``level`` M, or nothing runs.
    level
        Share of the cells that admission fills without looking ahead.
    skip
        Pass over requests that do not fit. False: the first that does not fit blocks the others.
    share
        Part of the predicted length that is believed. A policy without a predictor believes 1 token.
    evicts
        Who is thrown out if the running requests do not fit the next round: `NEWEST`, the one that started last; `ALL`;
        `RANDOM`, each with probability ``beta``, until the others fit; `SHORTEST`, the one with the least believed length,
        then progress: what it has reached becomes its believed length, and its rank.
    beta
        Probability of `RANDOM`.
    seed
        Seed of `RANDOM`.
    batches
        Serve in batches: when one has started, the next is a set X of waiting requests with the sum of peaks at most M and
        a small sum of lengths over |X|^2, the shortest first. Ranks are infinite.
    exact
        Each X is the best set of requests that arrive together, by dynamic programming. False: the best prefix of some
        orders of all that wait.
    """

    uses: Sequence[str] = ("requests",)
    looks_ahead: bool = True
    level: float = 1.0
    skip: bool = False
    share: float = 1.0
    evicts: int = NEWEST
    beta: float = 1.0
    seed: int = 0
    batches: bool = False
    exact: bool = False

    @abstractmethod
    def ranks(self, requests: KnownRequests) -> Floats:
        """Return the ranks of requests, f64[k]: the waiting request with the least rank is considered first.

        Parameters
        ----------
        requests
            Requests that arrive.
        """
