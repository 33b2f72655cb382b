"""Requests that all arrive at 0: least-volume and mc-sf are within 4 times the optimum if no peak is above half the cache.

**Theorem**. All requests arrive at 0, lengths are known, and no peak is above p < M. Let rho = 2 M / (M - p). Serving in
order of v_k / w_k (volume over weight) and stopping at the first request that does not fit gives

    sum w_k C_k  <=  max(rho, 1 + 2 rho / 3) OPT,   which is 4 OPT for p = M / 2, and goes to 7/3 OPT as p / M goes to 0,

against all schedules, restarts included. With equal prompts and weights mc-sf serves in this order, so it holds for mc-sf.

*Proof.* Let t_k be the start of the k-th request in the order, and t < t_k a boundary. After the starts at t some request h,
not behind k, is first in the queue and does not fit: in some round r in t + 1, ..., t + o_h the requests that have started
hold more than M - p_h >= M - p cells. They all run in the rounds t + 1 to r, and each holds one cell more in every round, so
over these rounds they hold more than (M - p) / 2 cells on average. All of them precede h, hence k. Begin with t = 0 and
continue with t = r until r >= t_k: the stretches are disjoint, so (M - p) t_k / 2 < sum_{i<k} v_i, that is

    C_k  <=  (rho / M) sum_{i<k} v_i + o_k                                                              (the audit).

By the bound ``kv-mean-busy-time``, OPT >= sum_k w_k ((1 / M) (sum_{i<k} v_i + v_k / 2) + o_k - mu_k). The mean moment mu_k
of its cells is largest for s = 0, where it is (4 o_k - 1) / 6, so that o_k - mu_k > o_k / 3. Hence sum w_k C_k <= rho OPT +
(1 - rho / 3) sum w_k o_k, and sum w_k o_k <= OPT. []

The published constant for mc-sf with equal prompts and p <= M / 2 is 9,216 (Jaillet et al., Theorem 4.3), for predictions
that are up to alpha times too long, too. `PAPER` audits the two inequalities of its proof.

**No constant without a limit of peaks**: `alternating` for least-volume. **Arrivals**: `arriving_behind` for policies that
start what fits at once and do not restart; Jaillet et al. (Theorem 4.1) have Omega(sqrt n) for all. **Different prompts**:
`large_prompts` for mc-sf, `behind_long` for mc-fcfs; the ratios grow as Wang, Ye and Zhou show. **Not here**: their theorem
about ``sorted-f`` (48 OPT) is for the best batches, which the policy does not compute; those about ``a-min`` and ``a-max``
have no explicit constants; those about GSA and GBA (61.92 and 10.67 OPT) are about policies that are not built.

**Reference** theorem and proof are this project's; families after Wang, Ye and Zhou, arXiv 2508.06133 (2025).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from optsched.classes.kv_cache.problem.requests import request_instance, requests_of
from optsched.errors import check_legal
from optsched.guarantees.assumptions import all_at_once, all_of, instance_is, policy_is
from optsched.guarantees.family import Challenge, family
from optsched.guarantees.guarantee import TightFamily, guarantee, in_time
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.simulation.run import Run

PUBLISHED = Fraction(9216)
EARLIER, EACH = 1536, 24  # constants of the upper bound of its proof


def _peak(instance: Instance) -> int:
    requests = requests_of(instance)
    return int((requests.prompt + requests.output).max())


_known = all_of(
    all_at_once,
    instance_is(lambda instance: not requests_of(instance).affine, "rounds are not of length 1"),
    policy_is(lambda policy: policy.predictor == "perfect", "lengths are predicted"),
    policy_is(lambda policy: not policy.skip, "it passes over requests that do not fit"),
)
_equal_prompts = instance_is(lambda instance: np.ptp(requests_of(instance).prompt) == 0, "prompts differ")
_room = instance_is(lambda instance: _peak(instance) < requests_of(instance).cells, "a peak fills the cache")
_half = instance_is(
    lambda instance: 2 * _peak(instance) <= requests_of(instance).cells,
    "a peak is above half the cache",
)


def _stretch(run: Run) -> Fraction:
    requests = requests_of(run.instance)
    return Fraction(2 * requests.cells, requests.cells - _peak(run.instance))


def _ratio(policy: Any, run: Run) -> Fraction:
    return max(_stretch(run), 1 + 2 * _stretch(run) / 3)


def _latest(run: Run) -> Floats:
    """Return the latest completions of the theorem, whatever the order of ties."""
    requests, volume = requests_of(run.instance), requests_of(run.instance).volume
    begin = run.schedule.completion - requests.output
    order = np.argsort(begin, kind="stable")
    # requests that start at the same boundary are in any order: count all that start no later, but the request itself
    sums = np.concatenate([[0], np.cumsum(volume[order])])
    before = sums[np.searchsorted(begin[order], begin, side="right")] - volume
    return np.asarray(float(_stretch(run) / requests.cells) * before + requests.output)


_PROOF = (
    "While a request waits, those before it hold more than (M - p) / 2 cells on average up to a round in which the first of "
    "the queue does not fit. So it starts by rho / M times their volume, and the bound by mean busy times does the rest."
)
LEAST_VOLUME = guarantee(
    id="least-volume",
    statement="requests at 0, peaks at most p < M | sum w C: least-volume <= max(rho, 1 + 2 rho / 3) OPT, "
    "rho = 2 M / (M - p); 4 OPT for p = M / 2",
    notation="one cache of M cells | p_j <= p | sum w_j C_j",
    knowledge="clairvoyant",
    source="optsched",
    status="proved",
    proof=_PROOF,
    objective="total_weighted_flow_time",
    policies=("least-volume",),
    assumptions=all_of(_known, _room),
    ratio=_ratio,
    audit=in_time(_latest),
    tight=TightFamily("not known to be tight"),
    schedule_class="kv-cache",
)
SHORTEST_FIRST = guarantee(
    id="mc-sf",
    statement="requests at 0, equal prompts, peaks at most p < M | sum C: mc-sf <= max(rho, 1 + 2 rho / 3) OPT, "
    "rho = 2 M / (M - p); 4 OPT for p = M / 2",
    notation="one cache of M cells | s_j = s, p_j <= p | sum C_j",
    knowledge="clairvoyant",
    source="optsched, for the policy of Jaillet et al. 2025",
    status="proved",
    proof=f"With equal prompts the order is that of volumes. {_PROOF}",
    objective="total_flow_time",
    policies=("mc-sf",),
    assumptions=all_of(_known, _equal_prompts, _room),
    ratio=_ratio,
    audit=in_time(_latest),
    tight=TightFamily("not known to be tight"),
    schedule_class="kv-cache",
)


def paper_sums(output: Ints, volume: Ints) -> tuple[int, int]:
    """Return S = sum_o n_o sum_{o' <= o} n_{o'} vol_{o'} and D = sum_o n_o o of the paper's proof.

    Parameters
    ----------
    output
        Output tokens, i64[n].
    volume
        Volumes of requests with equal prompts, i64[n].
    """
    order = np.argsort(output, kind="stable")
    sums = np.concatenate([[0], np.cumsum(volume[order])])
    return int(sums[np.searchsorted(output[order], output, side="right")].sum()), int(output.sum())


def _paper_inequalities(policy: Any, run: Run) -> list[str]:
    run = run.relative
    requests = requests_of(run.instance)
    earlier, alone = paper_sums(requests.output, requests.volume)
    value = Fraction(float(run.schedule.completion.sum()))
    most = Fraction(EARLIER * earlier, requests.cells) + EACH * alone
    least = Fraction(earlier, 6 * requests.cells) + Fraction(alone, 6)
    findings = []
    if value > most:
        findings.append(f"sum C = {float(value):.9g} is above (1536 / M) S + 24 D = {float(most):.9g}")
    if value < least:
        findings.append(f"sum C = {float(value):.9g} is below S / (6 M) + D / 6 = {float(least):.9g}")
    return findings


PAPER = guarantee(
    id="mc-sf-published",
    statement="requests at 0, equal prompts, peaks at most M / 2 | sum C: mc-sf <= 9216 OPT",
    notation="one cache of M cells | s_j = s, p_j <= M / 2 | sum C_j",
    knowledge="clairvoyant",
    source="Jaillet, Jiang, Mellou, Molinaro, Podimata and Zhou 2025, Theorem 4.3",
    status="recollected",
    proof=(
        "mc-sf <= (1536 / M) S + 24 D and OPT >= S / (6 M) + D / 6, S = sum_o n_o sum_{o' <= o} n_{o'} vol_{o'}, "
        "D = sum_o n_o o."
    ),
    objective="total_flow_time",
    policies=("mc-sf",),
    assumptions=all_of(_known, _equal_prompts, _half),
    ratio=lambda policy, run: PUBLISHED,
    audit=_paper_inequalities,
    tight=TightFamily("far from tight: see the theorem mc-sf"),
    schedule_class="kv-cache",
)


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
