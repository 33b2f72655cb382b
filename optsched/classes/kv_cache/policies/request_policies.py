"""Policies for requests, from the literature and our own: an order, a rule of admission, and who is thrown out.

The full texts of [W] and [C] could not be read: ``sorted-f`` (whose choice of a batch is ours, unless ``exact=true``),
``a-max`` and ``a-min`` are built from their abstracts and from notes. Left out for that reason: GBA and GSA (Feng et al.,
2026), WAIT (Ao et al., 2025).

References
----------
[J] Jaillet et al., arXiv 2502.07115 (2025). [W] Wang, Ye, Zhou, arXiv 2508.06133 (2025). [C] Chen, Ye, Zhou, arXiv
2508.14544 (2025). [K] Kwon et al., SOSP 2023 (vLLM: preemption by recomputation).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from optsched.classes.kv_cache.problem.requests import volumes
from optsched.classes.kv_cache.simulation.request_policy import (
    ALL,
    NEWEST,
    RANDOM,
    SHORTEST,
    KnownRequests,
    RequestPolicy,
)
from optsched.errors import check_legal
from optsched.policies import POLICIES
from optsched.policies.predictors import predictor
from optsched.problem.arrays import Floats
from optsched.simulation.policy import Knowledge
from optsched.simulation.predictor import Predictor

Ranks = Callable[[KnownRequests], Floats]


@dataclass
class _Predicted(RequestPolicy):
    predictor: str = "perfect"
    skip: bool = False

    knowledge = Knowledge.PREDICTED

    def __post_init__(self) -> None:
        predictor(self.predictor)

    def make_predictor(self) -> Predictor:
        return predictor(self.predictor)


@dataclass
class _Batches(_Predicted):
    exact: bool = False


@dataclass
class _Upper(_Predicted):
    share: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_legal(1 <= self.share <= 1e6, "share", self.share, "from 1 to 1e+06")


@dataclass
class _Lower(_Predicted):
    share: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_legal(0 < self.share <= 1, "share", self.share, "above 0, at most 1")


@dataclass
class _Filling(RequestPolicy):
    alpha: float = 0.3

    knowledge = Knowledge.NON_CLAIRVOYANT
    looks_ahead = False

    def __post_init__(self) -> None:
        check_legal(0 <= self.alpha < 1, "alpha", self.alpha, "at least 0, below 1")
        self.level = 1 - self.alpha


@dataclass
class _Recomputing(_Filling):
    alpha: float = 0.01


@dataclass
class _AtRandom(_Filling):
    alpha: float = 0.2
    beta: float = 0.2
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_legal(0 < self.beta <= 1, "beta", self.beta, "above 0, at most 1")
        check_legal(self.seed >= 0, "seed", self.seed, "an integer >= 0")


_MEANING = {
    "predictor": "Predictor of output tokens, ``NAME[/key=value]...``.",
    "skip": "Pass over requests that do not fit.",
    "exact": "Choose the best batches of requests that arrive together, by dynamic programming.",
    "share": "Believed length over the predicted one: an end of an interval that has the length.",
    "alpha": "Share of the cells that admission leaves free.",
    "beta": "Probability that a request is thrown out.",
    "seed": "Seed of the random numbers.",
}


def queue_order(name: str, form: Any, **rules: Any) -> Callable[[Ranks], Any]:
    """Return a decorator that turns ranks of requests, and what their docstring says, into a policy.

    Parameters
    ----------
    name
        Name of the policy.
    form
        Class from which the policy derives.
    **rules
        Attributes of the policy.
    """

    def registered(rank: Ranks) -> Any:
        text, _, proved = str(rank.__doc__).partition("**Guarantee**")
        head = f"""{text.strip()}

            **Problem** one worker with M cells, requests, online-r_j | sum w_j (C_j - r_j). **Knowledge** {form.knowledge}.

            **Guarantee**{proved.rstrip()} **Complexity** O(running requests) a round, and a request that is considered."""
        doc = [line.strip() for line in head.splitlines()] + ["", "Parameters", "----------"]
        doc += [f"{each.name}\n    {_MEANING[each.name]}" for each in fields(form)]
        members = {"name": name, "ranks": lambda _, requests: rank(requests), "__doc__": "\n".join(doc)}
        return POLICIES.register(name)(type(rank.__name__, (form,), {**members, "__module__": __name__, **rules}))

    return registered


@queue_order("mc-sf", _Predicted)
def _shortest_first(requests: KnownRequests) -> Floats:
    """MC-SF: the shortest predicted answer first; starts what fits in all its rounds, stops at the first that does not.

    **Guarantee** all at 0, equal prompts, lengths known: at most 4 times the optimum (theorem ``equal-prompts``), published
    9,216 [J, Theorem 4.3]; for predictions that are too long: theorem ``mc-sf``. **Counterexample** with different prompts
    the ratio grows with M [W]. **Reference** [J].
    """
    return requests.tokens.astype(np.float64)


@queue_order("mc-fcfs", _Predicted)
def _first_come(requests: KnownRequests) -> Floats:
    """First come, first served; starts what fits in all its rounds, stops at the first that does not (MC-Benchmark).

    **Guarantee** none. **Counterexample** one long answer before many short ones: the ratio grows with M [W]. **Reference**
    [J].
    """
    return requests.arrival


@queue_order("least-volume", _Predicted)
def _least_volume(requests: KnownRequests) -> Floats:
    """The least predicted volume s o + o (o + 1) / 2 over the weight first: Smith's rule of the bound ``kv-busy-time``.

    Starts what fits in all its rounds, stops at the first that does not. With equal prompts it has the order of ``mc-sf``.

    **Guarantee** all at 0, peaks at most half the cache, lengths known: at most 4 times the optimum (theorem
    ``least-volume``); so also for equal prompts and any peaks. **Counterexample** a request with nearly all cells as its
    prompt and one token goes before many short ones. **Reference** own method.
    """
    with np.errstate(divide="ignore"):
        return volumes(requests.prompt, requests.tokens) / requests.weight


@queue_order("sorted-f", _Batches, batches=True)
def _sorted_f(requests: KnownRequests) -> Floats:
    """Batches X of waiting requests with the sum of peaks at most M and a small sum of lengths over |X|^2, shortest first.

    X is the best prefix of 21 orders, by length plus a slope times the peak; the predictor must not learn. With
    ``exact=true`` it is the best set of requests that arrived together, in at most 10^8 steps a batch.

    **Guarantee** ``exact=true``, all at 0, lengths known: at most 48 times the optimum [W]; none is known for prefixes.
    **Counterexample** a request that arrives while a batch is served waits for the last start of it. **Reference** [W].
    """
    return np.full(requests.prompt.size, np.inf)


@queue_order("a-max", _Upper)
def _a_max(requests: KnownRequests) -> Floats:
    """``mc-sf`` with the upper end of an interval that has the length: ``share`` times the prediction.

    **Guarantee** all at 0, equal prompts: a ratio that is polynomial in upper over lower end [C] (theorem ``mc-sf``).
    **Counterexample** wide intervals leave most cells reserved and unused (family ``wide-intervals``). **Reference** [C].
    """
    return requests.tokens.astype(np.float64)


@queue_order("a-min", _Lower, evicts=SHORTEST)
def _a_min(requests: KnownRequests) -> Floats:
    """The lower end of an interval as length; when cells run out, the request with the least known length is thrown out.

    The lower end is ``share`` times the prediction. What a request has reached when it is thrown out becomes its length.

    **Guarantee** all at 0, equal prompts: O(log (upper over lower end)) [C]. **Counterexample** lower ends of 1 throw nearly
    every request out again and again. **Reference** [C].
    """
    return requests.tokens.astype(np.float64)


@queue_order("vllm-fcfs", _Recomputing, evicts=NEWEST)
def _vllm_fcfs(requests: KnownRequests) -> Floats:
    """First come, first served, as vLLM: what fits the next round starts; on overflow the newest is thrown out, recomputed.

    **Guarantee** none. **Counterexample** that of ``mc-fcfs``; tokens are lost, too. **Reference** [K].
    """
    return requests.arrival


@queue_order("alpha-greedy", _Filling, evicts=ALL)
def _alpha_greedy(requests: KnownRequests) -> Floats:
    """Admits in order of arrival up to (1 - alpha) M cells; on overflow all running requests are thrown out.

    In [J] the same requests can throw each other out for ever. Here, if nobody ends between two overflows and nobody arrives
    any more, admission fills half as many cells after each further one, until a request ends.

    **Guarantee** none. **Counterexample** with a small alpha, requests throw each other out many times. **Reference** [J].
    """
    return requests.arrival


@queue_order("alpha-beta", _AtRandom, evicts=RANDOM)
def _alpha_beta(requests: KnownRequests) -> Floats:
    """Admits in order of arrival up to (1 - alpha) M cells; on overflow each is thrown out with probability beta.

    That is repeated until the others fit, without the idle unit of time of [J] after a try that was not enough.

    **Guarantee** none. **Counterexample** that of ``alpha-greedy``. **Reference** [J].
    """
    return requests.arrival
