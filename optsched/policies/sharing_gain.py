"""When sharing pays, compiled: the test of a pair, and that of a job beside all its partners.

Notation: A the new job, R a running one, ``e`` remaining seconds alone, ``xi`` slow-downs.
"""

from __future__ import annotations

from optsched.compiled import NESTED, njit
from optsched.policies.sharing_gpus import only_job, xi_beside
from optsched.policies.ties import TIE
from optsched.simulation.state import NUMBER, Neighbours, State


@njit(**NESTED)
def pair_average(e_a: float, e_r: float, xi_a: float, xi_r: float) -> float:
    """t_con: average completion of A and R when both run together from now on."""
    hat_a, hat_r = xi_a * e_a, xi_r * e_r
    if hat_a >= hat_r:
        return e_a / 2 + (1 - 1 / (2 * xi_a)) * hat_r
    return e_r / 2 + (1 - 1 / (2 * xi_r)) * hat_a


@njit(**NESTED)
def pair_loss(e_a: float, e_first: float, e_r: float, xi_a: float, xi_r: float) -> float:
    """2 t_con - e_R - e_first: what both lose by each other; where A ends first the floats are the same for every e_R."""
    if xi_a * e_a >= xi_r * e_r:
        return e_a - e_first + ((2 - 1 / xi_a) * xi_r - 1) * e_r
    return (2 - 1 / xi_r) * xi_a * e_a - e_first


@njit(**NESTED)
def pair_gains(e_a: float, e_first: float, e_r: float, xi_a: float, xi_r: float) -> bool:
    """t_con < t_seq = e_R + e_first / 2, without quotients: at a threshold that floats hold, the answer is exact.

    ``e_first``: A alone with its first sub-batch, which it would run after waiting.
    """
    if xi_a * e_a >= xi_r * e_r:
        return ((2 * xi_a - 1) * xi_r - 2 * xi_a) * e_r + xi_a * (e_a - e_first) < 0.0
    return (2 * xi_r - 1) * xi_a * e_a < xi_r * (e_r + e_first)


@njit(**NESTED)
def seconds_left(s: State, x: int) -> float:
    """e_R: seconds that a running job would still take alone, where it is."""
    run = s.executions[x]
    return max(0.0, run.left - (s.engine[0].now - run.paid) / (run.pace * run.slow)) * run.pace


@njit(**NESTED)
def seconds_with(b: Neighbours, j: int, option: int) -> float:
    """e_A: seconds alone of a waiting job with that sub-batch."""
    return b.sharers[j].alone * b.stretch[j, option, b.sharers[j].spans]


@njit(**NESTED)
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


@njit(**NESTED)
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


@njit(**NESTED)
def joint_gains(s: State, b: Neighbours, j: int, e_a: float, idle: int, wait: float, loss: float) -> bool:
    """Is the sum of the completions of ``j`` and its partners, and a ``loss``, less if it starts on the GPUs chosen?

    It would take ``e_a`` there alone; or it waits for so many seconds, then runs alone. The first ``idle`` GPUs are idle.
    """
    count = _list_partners(s, b, j, idle)
    waiting = wait + seconds_with(b, j, 0)
    for k in range(count):
        waiting += b.candidates[k].value * b.candidates[k].other
    return _sum_together(b, j, e_a, count) + loss < waiting * (1 - TIE)
