"""Families of requests on which policies lose much.

`alternating`, `behind_long` and `large_prompts` have ratios that grow with M, as Wang, Ye and Zhou (arXiv 2508.06133, 2025)
show of first come, first served and of the shortest first; `wide_intervals` one that grows with the width of the intervals
that contain the lengths, as Chen, Ye and Zhou (arXiv 2508.14544, 2025) show of a-max. `arriving_behind` is about
arrivals; Jaillet et al. (arXiv 2502.07115, 2025, Theorem 4.1) show that no deterministic policy is below Omega(sqrt n).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optsched.classes.kv_cache.problem.request_schedule import request_schedule
from optsched.classes.kv_cache.problem.requests import request_instance
from optsched.errors import check_legal
from optsched.guarantees.family import Challenge, family
from optsched.guarantees.optimum import stating
from optsched.problem.instance import Instance


@family(
    "equal answers without prompts, which start together and end together",
    policy="least-volume",
    objective="total_flow_time",
    limit="(2 q - 1) / q for many, p = M / q: 2 for small peaks",
    sizes=(2, 3, 4, 6),
)
def in_step(q: int = 4, groups: int = 0) -> Challenge:
    """Build q ``groups`` answers of p = 2 q - 1 tokens for a cache of q p cells; the reference starts one in each round.

    Least-volume and mc-sf start q at a time, the next q when these end: on average half the cache is empty.

    Parameters
    ----------
    q
        Answers that fit at the same time, at least 2.
    groups
        Number of times that q answers start together; 0: p^2.
    """
    check_legal(q >= 2, "q", q, "an integer >= 2")
    check_legal(groups >= 0, "groups", groups, "an integer >= 0")
    length = 2 * q - 1
    n = q * (groups or length * length)
    instance = request_instance([0] * n, [length] * n, q * length, name=f"in-step-{q}")
    return Challenge(instance, Fraction(n * length + n * (n - 1) // 2), request_schedule(instance, np.arange(n)))


@family(
    "answers of one token that may have k of them",
    policy="a-max:predictor=user-limit,share=1",
    objective="total_flow_time",
    limit="(k g + 1) / (g + 1) with M = k and k g requests: k for many, the width of the interval",
    ratio=lambda k, groups: Fraction(k * groups + 1, groups + 1),
    sizes=(2, 4, 16),
)
def wide_intervals(k: int = 4, groups: int = 8) -> Instance:
    """Build k ``groups`` answers of one token with the limit k, for a cache of k cells.

    a-max serves them one by one. In the optimum k complete in every round, since each holds a cell.

    Parameters
    ----------
    k
        Upper end of the interval of lengths, whose lower end is 1.
    groups
        Rounds of the optimum.
    """
    check_legal(k >= 1, "k", k, "an integer >= 1")
    check_legal(groups >= 1, "groups", groups, "an integer >= 1")
    n, least = k * groups, k * groups * (groups + 1) // 2
    instance = request_instance([0] * n, [1] * n, k, limit=[k] * n, name=f"wide-intervals-{k}")
    return instance.replace(optimum=stating(float(least), "total_flow_time", "kv-cache", "a cell for every request"))


@family(
    "two answers that fill the cache, then n short ones",
    policy="mc-fcfs",
    objective="total_flow_time",
    limit="2 n / 7, M = 2 n: no constant",
    sizes=(3, 8, 32),
)
def behind_long(n: int = 8) -> Challenge:
    """Build two requests with peak M = 2 n, and n short ones behind them; the reference serves the short ones first.

    Parameters
    ----------
    n
        Number of short requests, at least 3.
    """
    check_legal(n >= 3, "n", n, "an integer >= 3")
    instance = request_instance([1] * (n + 2), [2 * n - 1] * 2 + [1] * n, 2 * n, name=f"behind-long-{n}")
    return Challenge(instance, Fraction(7 * n - 1))


@family(
    "k prompts that fill the cache and give one token, k^2 requests without a prompt that give two",
    policy="mc-sf",
    objective="total_flow_time",
    limit="2 k / 5, M = 2 k^2: no constant",
    sizes=(2, 4, 8),
)
def large_prompts(k: int = 4) -> Challenge:
    """Build k requests that take the whole cache for a round, and k^2 small ones; the reference serves the small ones first.

    Parameters
    ----------
    k
        Number of large prompts.
    """
    check_legal(k >= 1, "k", k, "an integer >= 1")
    cells, small = 2 * k * k, k * k
    instance = request_instance([cells - 1] * k + [0] * small, [1] * k + [2] * small, cells, name=f"large-prompts-{k}")
    return Challenge(instance, Fraction(2 * small + 2 * k) + Fraction(k * (k + 1), 2))


@family(
    "in turn a long answer and a prompt that fills the cache, of equal volume",
    policy="least-volume",
    objective="total_flow_time",
    limit="2 c / 5 for large c, M about c^2 / 2: no constant if peaks reach M",
    sizes=(4, 8, 16),
)
def alternating(c: int = 8) -> Challenge:
    """Build in turn answers of c tokens and prompts that leave one cell free, all of the same volume.

    Least-volume serves them one by one. The reference serves the large prompts first, then the answers together.

    Parameters
    ----------
    c
        Tokens of a long answer, at least 2.
    """
    check_legal(c >= 2, "c", c, "an integer >= 2")
    volume = c + c * (c + 1) // 2
    cells = volume + 1
    together = cells // (c + 1)
    pairs = together * c
    instance = request_instance([1, volume - 1] * pairs, [c, 1] * pairs, cells, name=f"alternating-{c}")
    batches = together * c * c * (c + 1) // 2
    return Challenge(instance, Fraction(pairs * (pairs + 1), 2) + pairs * pairs + batches)


@family(
    "an answer that fills the cache, and k prompts that fill it, which arrive one round later",
    policy="least-volume",
    objective="total_flow_time",
    limit="2 k / 3, M = k^2: no constant for any policy that starts at once and does not restart",
    sizes=(3, 6, 24),
)
def arriving_behind(k: int = 6) -> Challenge:
    """Build a long answer at 0 and k requests of one token at 1; the reference serves these first, one by one.

    Parameters
    ----------
    k
        Number of large prompts, at least 2.
    """
    check_legal(k >= 2, "k", k, "an integer >= 2")
    cells, arrival = k * k, [0] + [1] * k
    name = f"arriving-behind-{k}"
    instance = request_instance([0] + [cells - 1] * k, [cells] + [1] * k, cells, arrival=arrival, name=name)
    return Challenge(instance, Fraction(k * (k + 1)) / 2 + 1 + k + cells)


Found = tuple[int, tuple[int, ...], tuple[int, ...], int, int]  # cells, prompts, outputs, value of the policy, optimum
# What `optsched attack` found; the optima are proved by the searches cache-states and kv-time-indexed.
LEAST_VOLUME_LOSES: tuple[Found, ...] = (
    (16, (0, 7, 5, 0, 1), (5, 1, 3, 6, 5), 30, 22),  # peaks at most half the cache
    (10, (0, 9, 0, 9, 0), (3, 1, 4, 1, 4), 37, 20),
)
SHORTEST_FIRST_LOSES: tuple[Found, ...] = (
    (24, (6,) * 8, (1, 3, 3, 1, 3, 3, 3, 1), 35, 29),  # equal prompts, peaks at most half the cache
    (12, (0,) * 5, (6, 8, 9, 6, 9), 70, 62),  # equal prompts, peaks above half the cache
    (10, (0, 9, 0, 9, 0, 0, 0), (1,) * 7, 25, 10),
)


def _found(rows: tuple[Found, ...], case: int, name: str) -> Instance:
    check_legal(1 <= case <= len(rows), "case", case, f"an integer from 1 to {len(rows)}")
    cells, prompt, output, _, optimum = rows[case - 1]
    instance = request_instance(prompt, output, cells, name=f"{name}-{case}")
    proofs = "cache-states", "kv-time-indexed"
    return instance.replace(optimum=stating(float(optimum), "total_flow_time", "kv-cache", *proofs))


@family(
    "worst requests for least-volume that attack found",
    policy="least-volume",
    objective="total_flow_time",
    limit="15/11 if no peak is above half the cache, 37/20 without a limit",
    ratio=lambda case: Fraction(*LEAST_VOLUME_LOSES[case - 1][3:]),
    sizes=(1, 2),
)
def worst_least_volume(case: int = 1) -> Instance:
    """Build the instance of a search in the space ``requests``, with its proved optimum.

    Case 1: no peak is above half the cache. Case 2: peaks reach the cache.

    Parameters
    ----------
    case
        Number of the instance.
    """
    return _found(LEAST_VOLUME_LOSES, case, "worst-least-volume")


@family(
    "worst requests for mc-sf that attack found",
    policy="mc-sf",
    objective="total_flow_time",
    limit="35/29 for equal prompts, 5/2 for others",
    ratio=lambda case: Fraction(*SHORTEST_FIRST_LOSES[case - 1][3:]),
    sizes=(1, 2, 3),
)
def worst_mc_sf(case: int = 1) -> Instance:
    """Build the instance of a search in the space ``requests``, with its proved optimum.

    Cases 1 and 2: equal prompts; no peak is above half the cache in case 1. Case 3: different prompts.

    Parameters
    ----------
    case
        Number of the instance.
    """
    return _found(SHORTEST_FIRST_LOSES, case, "worst-mc-sf")
