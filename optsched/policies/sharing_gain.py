"""When sharing pays, compiled: the test of a pair, and that of a job beside all its partners.

Notation of section 3 of the sheet: A new, R running, ``e`` remaining seconds alone, ``xi`` slow-downs.
"""

from __future__ import annotations

from typing import Any

from optsched.compiled import njit
from optsched.compiled.heap import KERNEL
from optsched.policies.sharing_gpus import only_job, xi_beside
from optsched.simulation.state import NUMBER, Neighbours, Site, State


@njit(**KERNEL)
def pair_average(e_a: float, e_r: float, xi_a: float, xi_r: float) -> float:
    """t_con: average completion of A and R when both run together from now on."""
    hat_a, hat_r = xi_a * e_a, xi_r * e_r
    if hat_a >= hat_r:
        return e_a / 2 + (1 - 1 / (2 * xi_a)) * hat_r
    return e_r / 2 + (1 - 1 / (2 * xi_r)) * hat_a


@njit(**KERNEL)
def pair_gains(e_a: float, e_first: float, e_r: float, xi_a: float, xi_r: float) -> bool:
    """t_con < t_seq = e_R + e_first / 2, without quotients: at a threshold that floats hold, the answer is exact.

    ``e_first``: A alone with its first sub-batch, which it would run after waiting.
    """
    if xi_a * e_a >= xi_r * e_r:
        return ((2 * xi_a - 1) * xi_r - 2 * xi_a) * e_r + xi_a * (e_a - e_first) < 0.0
    return (2 * xi_r - 1) * xi_a * e_a < xi_r * (e_r + e_first)


@njit(**KERNEL)
def seconds_left(s: State, x: int) -> float:
    """e_R: seconds that a running job would still take alone, where it is."""
    run = s.executions[x]
    return max(0.0, run.left - (s.world[0].now - run.paid) / (run.pace * run.slow)) * run.pace


@njit(**KERNEL)
def seconds_with(b: Neighbours, j: int, option: int) -> float:
    """e_A: seconds alone of a waiting job with that sub-batch."""
    return b.sharers[j].alone * b.stretch[j, option, b.sharers[j].spans]


@njit(**KERNEL)
def _list_partners(s: State, b: Neighbours, j: int, idle: int) -> int:
    # Different jobs on the GPUs chosen, from `idle` on: candidates with seconds alone, and the slow-down without A.
    count = 0
    for i in range(idle, s.jobs[j].gpus):
        r = only_job(b, s.out[NUMBER, i])
        if b.sharers[r].mark != j:
            b.sharers[r].mark = j
            c = b.candidates[count]
            x = s.jobs[r].execution
            c.job, c.value, c.other = r, seconds_left(s, x), s.executions[x].slow
            count += 1
    for k in range(count):
        b.sharers[b.candidates[k].job].mark = -1
    return count


@njit(**KERNEL)
def _sum_together(b: Neighbours, j: int, e_a: float, count: int) -> float:
    # Completions of A and its partners, added up, when A starts now.
    now, total = 0.0, 0.0
    while True:
        slow, ends = 1.0, -1
        for k in range(count):
            if b.candidates[k].job >= 0:
                slow = max(slow, xi_beside(b, j, b.candidates[k].job))
        step = e_a * slow
        for k in range(count):
            c = b.candidates[k]
            if c.job >= 0:
                takes = c.value * max(c.other, xi_beside(b, c.job, j))
                if takes <= step:
                    step, ends = takes, k
        now += step
        for k in range(count):
            c = b.candidates[k]
            if c.job >= 0:
                c.value = max(0.0, c.value - step / max(c.other, xi_beside(b, c.job, j)))
        total += now
        if ends < 0:
            break
        e_a -= step / slow
        b.candidates[ends].job = -1
    for k in range(count):  # A has ended, these have not
        c = b.candidates[k]
        if c.job >= 0:
            total += now + c.value * c.other
    return total


@njit(**KERNEL)
def select(candidates: Any, low: int, high: int, n: int) -> float:
    """What would be at position ``n`` if the values of ``candidates[low : high + 1]`` were sorted.

    Hoare's FIND, O(high - low) on average; the values change places.
    """
    while low < high:
        pivot, i, j = candidates[(low + high) // 2].value, low, high
        while i <= j:
            while candidates[i].value < pivot:
                i += 1
            while candidates[j].value > pivot:
                j -= 1
            if i <= j:
                one, two = candidates[i].value, candidates[j].value
                candidates[i].value, candidates[j].value = two, one
                i += 1
                j -= 1
        if n <= j:
            high = j
        elif n >= i:
            low = i
        else:
            break
    return float(candidates[n].value)


@njit(**KERNEL)
def _wait_for_gpus(s: State, site: Site, b: Neighbours, j: int) -> float:
    # Seconds until n GPUs that suit A are idle, when nobody else comes: the n-th smallest time at which one is.
    base, count, now = b.gpus.size, 0, s.world[0].now
    for g in range(base):
        gpu = b.gpus[g]
        if site.eligible[s.jobs[j].kind, gpu.node]:
            idle_at = 0.0
            if gpu.one >= 0:
                idle_at = max(idle_at, s.executions[s.jobs[gpu.one].execution].finish - now)
            if gpu.other >= 0:
                idle_at = max(idle_at, s.executions[s.jobs[gpu.other].execution].finish - now)
            b.candidates[base + count].value = idle_at
            count += 1
    return float(select(b.candidates, base, base + count - 1, base + s.jobs[j].gpus - 1))


@njit(**KERNEL)
def joint_gains(s: State, site: Site, b: Neighbours, j: int, option: int, idle: int) -> bool:
    """Is the sum of the completions of ``j`` and its partners less if it starts on the GPUs chosen than if it waits?

    The first ``idle`` GPUs chosen are idle; waiting is for as many idle ones as it needs, while nobody else comes.
    """
    count = _list_partners(s, b, j, idle)
    waiting = _wait_for_gpus(s, site, b, j) + seconds_with(b, j, 0)
    for k in range(count):
        waiting += b.candidates[k].value * b.candidates[k].other
    return _sum_together(b, j, seconds_with(b, j, option), count) < waiting
