"""Requests that all arrive at 0: least-volume and mc-sf are within a constant factor of the optimum.

**Theorem 1** (`LEAST_VOLUME`, `SHORTEST_FIRST`). All requests arrive at 0. The policy believes lengths that are at least
the true ones; with them no peak is above p < M, and volumes are at most gamma times the true ones. Let rho = 2 M / (M - p).
Serving in order of believed volume over weight and stopping at the first request that does not fit gives

    sum w_k C_k  <=  max(gamma rho, 1 + 2 gamma rho / 3) OPT

against all schedules, restarts included. With known lengths, gamma = 1, this is 4 OPT for p = M / 2, and goes to 7/3 OPT as
p / M goes to 0. With equal prompts and weights mc-sf and a-max serve in this order. If lengths are believed up to u and are
at least l = alpha u, then gamma <= 1 / alpha^2: a-max is polynomial in 1 / alpha, as Chen, Ye and Zhou show.

*Proof.* Let t_k be the start of the k-th request in the order, and t < t_k a boundary. After the starts at t some request h,
not behind k, is first in the queue and does not fit: in some round r > t up to its believed end more than M - p cells are
reserved for requests that have started. They are reserved in all rounds t + 1 to r, and for each request one cell more in
every round, so over these rounds more than (M - p) / 2 cells are reserved on average. All of these requests precede h, hence
k. Begin with t = 0 and continue with t = r until r >= t_k: the stretches are disjoint, and what is reserved for a request in
different rounds is part of its believed volume u_i, so (M - p) t_k / 2 < sum_{i<k} u_i, that is

    C_k  <=  (rho / M) sum_{i<k} u_i + o_k                                                              (the audit).

Smith's order is the best for sum_k w_k sum_{i<k} u_i, so this sum is at most gamma times that of the true volumes v_i in
their order. By the bound ``kv-mean-busy-time``, OPT >= sum_k w_k ((1 / M) (sum_{i<k} v_i + v_k / 2) + o_k - mu_k) in that
order. The mean moment mu_k of its cells is largest for s = 0, where it is (4 o_k - 1) / 6, so that o_k - mu_k > o_k / 3.
Hence sum w_k C_k <= gamma rho OPT + (1 - gamma rho / 3) sum w_k o_k, and sum w_k o_k <= OPT. []

**Theorem 2** (`EQUAL_PROMPTS`). All requests arrive at 0, prompts are equal, lengths are known, weights are 1. Then mc-sf
and least-volume have sum C <= 4 OPT. Peaks may reach M.

*Proof.* Both serve in order of o_k. A request is small if its peak is at most M / 2; the small ones come first. Theorem 1
for them alone, where rho <= 4, gives C_k <= (4 / M) sum_{i<k} v_i + o_k. A large request starts at the latest when all
before it have ended. So for a large one C_k <= f + sum of o_i over the large i <= k, where f is the end of some small
request j, or 0. Its volume is above o_i (s + o_i) / 2 > o_i M / 4, so o_i < 4 v_i / M. And f <= (4 / M) sum_{small i} v_i +
o_j - 4 v_j / M, where v_j >= s o_j + o_j^2 / 2. If s >= M / 4 the last two terms are at most 0. If not they are at most o_j
- 2 o_j^2 / M <= M / 8, and o_k > M / 2 - s > M / 4. In both cases

    C_k  <=  (4 / M) sum_{i<k} v_i + (3 / 2) o_k                                                        (the audit).

In the bound of Theorem 1, o_k - mu_k > o_k / 3 and, if k is large, v_k / (2 M) > o_k / 8. Hence 4 OPT >= (4 / M) sum_k
sum_{i<k} v_i + (4 / 3) sum o_k + (1 / 2) sum_{large} o_k, which is above sum C. []

The published constants for equal prompts are 9,216 for mc-sf with p <= M / 2 (Jaillet et al., Theorem 4.3), for predictions
that are up to alpha times too long, too, and 10.67 for another algorithm, GBA. `PAPER` audits the two inequalities of the
first proof.

**Worst cases** are in `optsched.classes.kv_cache.guarantees.serving_families`: `in_step` has ratios up to 2 for mc-sf and
least-volume, so the constant 7/3 for small peaks is not below 2. Without a limit of peaks least-volume has no constant if
prompts differ (`alternating`), and none of the policies has one with arrivals (`arriving_behind`).

**Sorted-f** (`SORTED_F`): 48 OPT by Wang, Ye and Zhou, for the best batches alone, ``exact=true``. **Not here**: a-min is
O(log(1 / alpha)) with a constant that is not explicit; GSA and GBA (61.92 and 10.67 OPT) are not built, since the texts at
hand do not say how they stagger starts.

**Reference** theorems 1 and 2 with their proofs are this project's.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from optsched.classes.kv_cache.problem.requests import requests_of, volumes
from optsched.guarantees.assumptions import all_at_once, all_of, instance_is, policy_is
from optsched.guarantees.guarantee import TightFamily, guarantee, late_findings
from optsched.problem.arrays import Ints
from optsched.problem.instance import Instance
from optsched.simulation.placement import Placement
from optsched.simulation.run import Run

PUBLISHED = Fraction(9216)
EARLIER, EACH = 1536, 24  # constants of the upper bound of its proof


def believed_lengths(policy: Any, instance: Instance) -> Ints | None:
    """Return the lengths that a policy believes, i64[n]; None if they do not follow from the instance.

    Parameters
    ----------
    policy
        A policy with a predictor.
    instance
        Requests.
    """
    requests = requests_of(instance)
    if policy.predictor == "user-limit" and np.isfinite(instance.walltime).all():
        length = instance.walltime
    elif policy.predictor == "perfect":
        length = instance.iterations
    else:
        return None
    believed = np.clip(np.ceil(policy.share * length), 1, requests.cells - requests.prompt)
    return np.asarray(believed, dtype=np.int64)


def _peak(policy: Any, instance: Instance) -> int:
    requests, believed = requests_of(instance), believed_lengths(policy, instance)
    return int((requests.prompt + (requests.output if believed is None else believed)).max())


def _never_shorter(policy: Any, placement: Placement, instance: Instance) -> str | None:
    believed = believed_lengths(policy, instance)
    if believed is None:
        return "lengths are predicted"
    return None if (believed >= requests_of(instance).output).all() else "some answers are longer than predicted"


def _has_room(policy: Any, placement: Placement, instance: Instance) -> str | None:
    return None if _peak(policy, instance) < requests_of(instance).cells else "a peak fills the cache"


_in_order = all_of(
    all_at_once,
    instance_is(lambda instance: not requests_of(instance).affine, "rounds are not of length 1"),
    policy_is(lambda policy: not policy.skip, "it passes over requests that do not fit"),
)
_known = all_of(_in_order, policy_is(lambda policy: policy.predictor == "perfect", "lengths are predicted"))
_bounded = all_of(_in_order, _never_shorter)
_equal_prompts = instance_is(lambda instance: np.ptp(requests_of(instance).prompt) == 0, "prompts differ")
_equal_weights = instance_is(lambda instance: np.ptp(instance.weight) == 0, "weights differ")


def _half(policy: Any, placement: Placement, instance: Instance) -> str | None:
    return None if 2 * _peak(policy, instance) <= requests_of(instance).cells else "a peak is above half the cache"


def _stretch(policy: Any, run: Run) -> Fraction:
    cells = requests_of(run.instance).cells
    return Fraction(2 * cells, cells - _peak(policy, run.instance))


def _believed_volume(policy: Any, instance: Instance) -> Ints:
    requests, believed = requests_of(instance), believed_lengths(policy, instance)
    return requests.volume if believed is None else volumes(requests.prompt, believed)


def _ratio(policy: Any, run: Run) -> Fraction:
    believed, true = _believed_volume(policy, run.instance).tolist(), requests_of(run.instance).volume.tolist()
    factor = _stretch(policy, run) * max(map(Fraction, believed, true))
    return max(factor, 1 + 2 * factor / 3)


def _volume_before(run: Run, volume: Ints) -> Ints:
    """Return the volume of the requests that start no later, without the request itself, whatever the order of ties."""
    begin = run.schedule.completion - requests_of(run.instance).output
    order = np.argsort(begin, kind="stable")
    sums = np.concatenate([[0], np.cumsum(volume[order])])
    return np.asarray(sums[np.searchsorted(begin[order], begin, side="right")] - volume)


def _in_time(policy: Any, run: Run) -> list[str]:
    run = run.relative
    requests, before = requests_of(run.instance), _volume_before(run, _believed_volume(policy, run.instance))
    limit = float(_stretch(policy, run) / requests.cells) * before + requests.output
    return late_findings(run, np.asarray(limit, dtype=np.float64))


def _any_peak_in_time(policy: Any, run: Run) -> list[str]:
    run = run.relative
    requests = requests_of(run.instance)
    limit = 4 / requests.cells * _volume_before(run, requests.volume) + 1.5 * requests.output
    return late_findings(run, np.asarray(limit, dtype=np.float64))


_PROOF = (
    "While a request waits, more than (M - p) / 2 cells are reserved on average for those before it, up to a round in which "
    "the first of the queue does not fit. So it starts by rho / M times their believed volume, and the bound by mean busy "
    "times does the rest."
)
_STEP = "2 in the limit of small peaks, where the theorem has 7/3: the family in-step"
LEAST_VOLUME = guarantee(
    id="least-volume",
    statement="requests at 0, peaks at most p < M, volumes at most gamma times too large | sum w C: least-volume <= "
    "max(R, 1 + 2 R / 3) OPT, R = 2 gamma M / (M - p); 4 OPT for known lengths and p = M / 2",
    notation="one cache of M cells | p_j <= p | sum w_j C_j",
    knowledge="predicted",
    source="optsched",
    status="proved",
    proof=_PROOF,
    objective="total_weighted_flow_time",
    policies=("least-volume",),
    assumptions=all_of(_bounded, _has_room),
    ratio=_ratio,
    audit=_in_time,
    tight=TightFamily(_STEP),
    schedule_class="kv-cache",
)
SHORTEST_FIRST = guarantee(
    id="mc-sf",
    statement="requests at 0, equal prompts, peaks at most p < M, volumes at most gamma times too large | sum C: mc-sf, "
    "a-max <= max(R, 1 + 2 R / 3) OPT, R = 2 gamma M / (M - p)",
    notation="one cache of M cells | s_j = s, p_j <= p | sum C_j",
    knowledge="predicted",
    source="optsched, for the policies of Jaillet et al. and of Chen et al. 2025",
    status="proved",
    proof=f"With equal prompts the order is that of volumes. {_PROOF}",
    objective="total_flow_time",
    policies=("mc-sf", "a-max"),
    assumptions=all_of(_bounded, _equal_prompts, _has_room),
    ratio=_ratio,
    audit=_in_time,
    tight=TightFamily(_STEP),
    schedule_class="kv-cache",
)

EQUAL_PROMPTS = guarantee(
    id="equal-prompts",
    statement="requests at 0, equal prompts | sum C: mc-sf, least-volume <= 4 OPT, whatever the peaks",
    notation="one cache of M cells | s_j = s | sum C_j",
    knowledge="clairvoyant",
    source="optsched, for the policy of Jaillet et al. 2025",
    status="proved",
    proof=(
        "Requests with a peak of at most M / 2 come first, and the theorem mc-sf is about them. A larger request starts at "
        "the latest when those before it have ended, and takes at most 4 / M times its volume."
    ),
    objective="total_flow_time",
    policies=("mc-sf", "least-volume"),
    assumptions=all_of(_known, _equal_prompts, _equal_weights),
    ratio=lambda policy, run: Fraction(4),
    audit=_any_peak_in_time,
    tight=TightFamily("2 in the limit of small peaks: the family in-step"),
    schedule_class="kv-cache",
)
SORTED_F = guarantee(
    id="sorted-f",
    statement="requests at 0, lengths known | sum C: sorted-f with the best batches <= 48 OPT",
    notation="one cache of M cells | s_j | sum C_j",
    knowledge="clairvoyant",
    source="Wang, Ye and Zhou 2025, arXiv 2508.06133",
    status="recollected",
    proof="Each batch has the least sum of lengths over the square of its size among what is left.",
    objective="total_flow_time",
    policies=("sorted-f",),
    assumptions=all_of(_known, policy_is(lambda policy: policy.exact, "batches are not the best ones: exact=true")),
    ratio=lambda policy, run: Fraction(48),
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
