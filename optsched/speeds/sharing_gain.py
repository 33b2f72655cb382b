"""Does sharing GPUs gain anything over the best preemptive schedule that does not share? When it never does.

**Theorem**. Let 1/xi_{a|b} + 1/xi_{b|a} <= 1 for every two jobs that may share a GPU (two that take turns or worse; xi =
2). GPUs are alike and any job may use any of them; preemption and migration cost nothing. If

* all gangs have the same width n and n divides the number of GPUs G (one-GPU jobs; jobs that all need every GPU), or
* every gang is wider than 2 G / 3,

then for every schedule with sharing there is one without, preemptive, in which no job ends later. So sharing cannot lower
any objective that does not fall when a job ends later: sum w_j C_j, sum of flow times, makespan, tardiness.

Proof. On a GPU with jobs a and b the speeds of both add up to at most 1/xi_{a|b} + 1/xi_{b|a} <= 1, alone to at most 1; a
gang has one speed v_j <= 1 on all its GPUs. Sub-steps of gradient accumulation only slow a job down. (1) Width n: adding
up over GPUs, sum n v_j <= G, hence sum v_j <= G/n, a whole number q. Between two events speeds are constant, so that by
McNaughton's wrap-around q gangs at a time do the same work in the same interval, each job on at most one gang at any
moment. (2) Any two gangs meet on a GPU, and since at most two jobs are on a GPU, three of them (more than 2 G places)
never run at once: sum v_j <= 1. Again time is divided in every interval, one job at a time.

**With equal releases** and sum w_j C_j preemption does not help on parallel machines (McNaughton 1959), nor does it on
one machine: there sharing does not beat the best order without preemption either, in the first case, nor in the second.
With release dates it can, as a substitute for preemption: xi = 2, a job of 10 s at 0, one of 1 s at 2. Sum of completions
15 when the second starts at 2 beside the first, 16 and 21 in the two orders (14 with preemption).

**Not so with other gangs**, where sharing fills GPUs that no gang fits on: three jobs of 2 GPUs and p seconds on G = 3
run one at a time, makespan 3 p; pairwise on one GPU each they all run at 1/xi, makespan xi p < 3 p for xi < 3. Sum of
completions of six such jobs: 9 xi p against 21 p, less for xi < 7/3, although 1/xi + 1/xi < 1 from xi > 2 on. Widths that
are powers of two do not help: with a fourth job of one GPU on G = 4 the three do the same beside it.

Source: this project.
"""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np

from optsched.problem.instance import Instance

__all__ = ["most_work", "sharing_gains_nothing"]


def most_work(instance: Instance) -> float:
    """max of 1/xi_{a|b} + 1/xi_{b|a} over pairs of jobs that may share a GPU, seconds of work a second; 0: none may.

    Pairs of kinds; of one kind only where two jobs have it. The memory of a GPU is not looked at. O(n + K^2).
    """
    if instance.interference is None:
        return 0.0
    kinds = sorted(set(instance.kinds), key=str)
    counts = {kind: instance.kinds.count(kind) for kind in kinds}
    xi = instance.interference.table(kinds)
    pairs = combinations_with_replacement(range(len(kinds)), 2)
    sums = [1 / xi[a, b] + 1 / xi[b, a] for a, b in pairs if a != b or counts[kinds[a]] > 1]
    return float(max(sums, default=0.0))


def sharing_gains_nothing(instance: Instance) -> bool:
    """Do the assumptions of the theorem hold, so that some preemptive schedule without sharing is as good for every job?

    False says nothing: sharing may gain or not. Jobs of known duration on any GPU, or gangs that take all of them.
    """
    width, total = instance.gpus, instance.cluster.gpus
    if instance.n < 2:
        return True
    alike = instance.unrestricted and not bool(np.isnan(instance.duration).any())
    if not alike and not bool((width == total).all()):
        return False
    even = bool((width == width[0]).all()) and total % int(width[0]) == 0
    return (even or bool((3 * width > 2 * total).all())) and most_work(instance) <= 1.0
