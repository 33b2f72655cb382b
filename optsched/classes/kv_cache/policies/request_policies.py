"""Policies for requests, from the literature and our own: an order, a rule of admission, and who is thrown out.

Built from their papers' abstracts and from notes, since the full texts of [W] and [C] could not be read: ``sorted-f`` [W]
(the choice of a batch is ours: the best prefix in 21 orders), ``a-max`` and ``a-min`` [C]. Left out for that reason: GBA and
GSA (Feng et al., 2026), WAIT (Ao et al., 2025).

References
----------
[J] Jaillet et al., arXiv 2502.07115 (2025). [W] Wang, Ye, Zhou, arXiv 2508.06133 (2025). [C] Chen, Ye, Zhou, arXiv
2508.14544 (2025).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from optsched.classes.kv_cache.simulation.request_policy import (
    ALL,
    NEWEST,
    RANDOM,
    SHORTEST,
    KnownRequests,
    RequestPolicy,
    ServingRules,
)
from optsched.errors import check_legal
from optsched.policies import POLICIES
from optsched.policies.predictors import predictor
from optsched.problem.arrays import Floats
from optsched.simulation.policy import Knowledge
from optsched.simulation.predictor import Predictor


@dataclass
class Predicting(RequestPolicy):
    """A policy that reserves the cells of a predicted length; if that is too short, the newest requests are thrown out.

    Parameters
    ----------
    predictor
        Predictor of output tokens, ``NAME[/key=value]...``.
    skip
        Pass over requests that do not fit.
    """

    predictor: str = "perfect"
    skip: bool = False

    knowledge = Knowledge.PREDICTED

    def __post_init__(self) -> None:
        predictor(self.predictor)
        self.rules = ServingRules(skip=self.skip)

    def make_predictor(self) -> Predictor:
        """Return the predictor of a run."""
        return predictor(self.predictor)


@POLICIES.register("mc-sf")
@dataclass
class ShortestFirst(Predicting):
    """MC-SF: the shortest predicted answer first; starts what fits in all its rounds, stops at the first that does not.

    **Problem** one worker with M cells, requests, online-r_j | sum (C_j - r_j). **Knowledge** predicted.

    **Guarantee** all at 0, equal prompts, predictions in [o, alpha o], M >= 2 max (s + prediction): at most 9,216 times the
    optimum [J, Theorem 4.3]. **Counterexample** with different prompts the ratio grows with M [W]. **Complexity** O(running
    requests) a round, O(tokens) a request that is considered. **Reference** [J].

    Parameters
    ----------
    predictor
        Predictor of output tokens, ``NAME[/key=value]...``.
    skip
        Pass over requests that do not fit.
    """

    name = "mc-sf"

    def ranks(self, requests: KnownRequests) -> Floats:
        """Return predicted lengths; ties go by arrival.

        Parameters
        ----------
        requests
            Requests that arrive.
        """
        return requests.tokens.astype(np.float64)


@POLICIES.register("mc-fcfs")
@dataclass
class FirstCome(Predicting):
    """First come, first served; starts what fits in all its rounds (MC-Benchmark).

    **Problem** one worker with M cells, requests, online-r_j | sum (C_j - r_j). **Knowledge** predicted.

    **Guarantee** none. **Counterexample** a long answer before many short ones: the ratio grows with M [W]. **Complexity** as
    of ``mc-sf``. **Reference** [J].

    Parameters
    ----------
    predictor
        Predictor of output tokens, ``NAME[/key=value]...``.
    skip
        Pass over requests that do not fit.
    """

    name = "mc-fcfs"

    def ranks(self, requests: KnownRequests) -> Floats:
        """Return arrivals.

        Parameters
        ----------
        requests
            Requests that arrive.
        """
        return requests.arrival


@POLICIES.register("least-volume")
@dataclass
class LeastVolume(Predicting):
    """The least predicted volume s o + o (o + 1) / 2 over the weight first; starts what fits in all its rounds.

    It is Smith's rule of the bound ``kv-mean-busy-time``. With equal prompts it has the order of ``mc-sf``.

    **Problem** one worker with M cells, requests, online-r_j | sum w_j (C_j - r_j). **Knowledge** predicted.

    **Guarantee** none is proved; at most 1.11 times the bound on batches of the Azure trace. **Counterexample** one large
    request keeps a small one of slightly more volume waiting. **Complexity** as of ``mc-sf``. **Reference** own method.

    Parameters
    ----------
    predictor
        Predictor of output tokens, ``NAME[/key=value]...``.
    skip
        Pass over requests that do not fit.
    """

    name = "least-volume"

    def ranks(self, requests: KnownRequests) -> Floats:
        """Return predicted volumes over weights.

        Parameters
        ----------
        requests
            Requests that arrive.
        """
        with np.errstate(divide="ignore"):
            return requests.volume / requests.weight


@POLICIES.register("sorted-f")
@dataclass
class SortedF(Predicting):
    """Batches X of waiting requests with the sum of peaks at most M and a small sum of lengths over |X|^2, shortest first.

    **Problem** one worker with M cells, requests, online-r_j | sum (C_j - r_j). **Knowledge** predicted.

    **Guarantee** all at 0, lengths known, the best X: at most 48 times the optimum [W]. Here X is the best prefix of 21
    orders by length plus a slope times peak, so that the guarantee does not apply. **Counterexample** requests that arrive
    while a batch is served wait for its last start. **Complexity** as of ``mc-sf``, and O(n) a batch. **Reference** [W].

    Parameters
    ----------
    predictor
        Predictor of output tokens that does not learn, ``NAME[/key=value]...``.
    skip
        Pass over requests that do not fit.
    """

    name = "sorted-f"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.rules = ServingRules(skip=self.skip, batches=True)

    def ranks(self, requests: KnownRequests) -> Floats:
        """Return infinity: a request has a rank once it is in a batch.

        Parameters
        ----------
        requests
            Requests that arrive.
        """
        return np.full(requests.prompt.size, np.inf)


@dataclass
class Interval(Predicting):
    """A policy that knows an interval of the length of an answer, from ``low`` to ``high`` times a prediction.

    Parameters
    ----------
    predictor
        Predictor of output tokens, ``NAME[/key=value]...``.
    skip
        Pass over requests that do not fit.
    low
        Lower end over the prediction.
    high
        Upper end over the prediction.
    """

    low: float = 0.5
    high: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_legal(0 < self.low <= 1, "low", self.low, "above 0, at most 1")
        check_legal(1 <= self.high <= 1e6, "high", self.high, "from 1 to 1e+06")

    def ranks(self, requests: KnownRequests) -> Floats:
        """Return the ends of the intervals that the policy believes in.

        Parameters
        ----------
        requests
            Requests that arrive.
        """
        return requests.tokens.astype(np.float64)


@POLICIES.register("a-max")
@dataclass
class AMax(Interval):
    """``mc-sf`` with the upper end of the interval of a length.

    **Problem** one worker with M cells, requests, online-r_j | sum (C_j - r_j). **Knowledge** predicted.

    **Guarantee** all at 0, equal prompts: a ratio that is polynomial in upper over lower end [C]. **Counterexample** wide
    intervals leave most cells reserved and unused. **Complexity** as of ``mc-sf``. **Reference** [C].

    Parameters
    ----------
    predictor
        Predictor of output tokens, ``NAME[/key=value]...``.
    skip
        Pass over requests that do not fit.
    low
        Lower end over the prediction; not used.
    high
        Upper end over the prediction.
    """

    name = "a-max"

    def believed(self, predicted: Floats) -> Floats:
        """Return the upper ends.

        Parameters
        ----------
        predicted
            Predicted lengths.
        """
        return np.floor(predicted * self.high)


@POLICIES.register("a-min")
@dataclass
class AMin(Interval):
    """The lower end of the interval as length; when cells run out, the request with the least known length is thrown out.

    What a request has reached becomes its length when it is thrown out. Ties go by progress.

    **Problem** one worker with M cells, requests, online-r_j | sum (C_j - r_j). **Knowledge** predicted.

    **Guarantee** all at 0, equal prompts: O(log (upper over lower end)) [C]. **Counterexample** lower ends of 1 throw nearly
    every request out again and again. **Complexity** as of ``mc-sf``, for every start. **Reference** [C].

    Parameters
    ----------
    predictor
        Predictor of output tokens, ``NAME[/key=value]...``.
    skip
        Pass over requests that do not fit.
    low
        Lower end over the prediction.
    high
        Upper end over the prediction; not used.
    """

    name = "a-min"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.rules = ServingRules(skip=self.skip, evicts=SHORTEST)

    def believed(self, predicted: Floats) -> Floats:
        """Return the lower ends.

        Parameters
        ----------
        predicted
            Predicted lengths.
        """
        return np.ceil(predicted * self.low)


class Filling(RequestPolicy):
    """A policy that admits requests in order of arrival while cells are free, without looking ahead."""

    knowledge = Knowledge.NON_CLAIRVOYANT
    evicts: ClassVar[int] = NEWEST

    def ranks(self, requests: KnownRequests) -> Floats:
        """Return arrivals.

        Parameters
        ----------
        requests
            Requests that arrive.
        """
        return requests.arrival


@POLICIES.register("vllm-fcfs")
@dataclass
class RecomputingFirstCome(Filling):
    """First come, first served, as vLLM: what fits the next round starts; on overflow the newest is thrown out, recomputed.

    **Problem** one worker with M cells, requests, online-r_j | sum (C_j - r_j). **Knowledge** non-clairvoyant.

    **Guarantee** none. **Counterexample** as of ``mc-fcfs``; tokens are lost, too. **Complexity** O(running requests) a
    round. **Reference** Kwon et al., SOSP 2023 (vLLM: preemption by recomputation).

    Parameters
    ----------
    watermark
        Share of the cells that admission leaves free.
    """

    watermark: float = 0.01

    name = "vllm-fcfs"

    def __post_init__(self) -> None:
        check_legal(0 <= self.watermark < 1, "watermark", self.watermark, "at least 0, below 1")
        self.rules = ServingRules(looks_ahead=False, level=1 - self.watermark)


@POLICIES.register("alpha-greedy")
@dataclass
class AlphaGreedy(Filling):
    """Admits in order of arrival up to (1 - alpha) M cells; on overflow all running requests are thrown out.

    If they are thrown out for ever, the run ends, and the others are unfinished.

    **Problem** one worker with M cells, requests, online-r_j | sum (C_j - r_j). **Knowledge** non-clairvoyant.

    **Guarantee** none. **Counterexample** with a small alpha, requests throw each other out for ever. **Complexity**
    O(running requests) a round. **Reference** [J].

    Parameters
    ----------
    alpha
        Share of the cells that admission leaves free.
    """

    alpha: float = 0.3

    name = "alpha-greedy"
    evicts = ALL

    def __post_init__(self) -> None:
        check_legal(0 <= self.alpha < 1, "alpha", self.alpha, "at least 0, below 1")
        self.rules = ServingRules(looks_ahead=False, level=1 - self.alpha, evicts=ALL)


@POLICIES.register("alpha-beta")
@dataclass
class AlphaBeta(Filling):
    """Admits in order of arrival up to (1 - alpha) M cells; on overflow each is thrown out with probability beta.

    That is repeated until the others fit. The idle unit of time of [J] after a try that was not enough is left out: every
    running request makes a token in every round.

    **Problem** one worker with M cells, requests, online-r_j | sum (C_j - r_j). **Knowledge** non-clairvoyant.

    **Guarantee** none. **Counterexample** as of ``alpha-greedy``. **Complexity** O(running requests) a round. **Reference**
    [J].

    Parameters
    ----------
    alpha
        Share of the cells that admission leaves free.
    beta
        Probability that a request is thrown out.
    seed
        Seed of the random numbers.
    """

    alpha: float = 0.2
    beta: float = 0.2
    seed: int = 0

    name = "alpha-beta"

    def __post_init__(self) -> None:
        check_legal(0 <= self.alpha < 1, "alpha", self.alpha, "at least 0, below 1")
        check_legal(0 < self.beta <= 1, "beta", self.beta, "above 0, at most 1")
        check_legal(self.seed >= 0, "seed", self.seed, "an integer >= 0")
        level = 1 - self.alpha
        self.rules = ServingRules(looks_ahead=False, level=level, evicts=RANDOM, chance=self.beta, seed=self.seed)
