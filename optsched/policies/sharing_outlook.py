"""What jobs yet to come would lose, compiled: as if they were like those that came last, and came at the same rate.

Nobody knows who comes. What is to come in the next t seconds is estimated from the last t seconds, from the first arrival
on (whose job only begins the count) and from `SAMPLE` jobs at most. The job asked about does not count.
"""

from __future__ import annotations

from optsched.compiled import njit
from optsched.compiled.heap import NESTED
from optsched.policies.sharing_gain import seconds_left, seconds_with
from optsched.policies.sharing_gpus import only_job, xi_beside
from optsched.policies.ties import TIE
from optsched.simulation.state import NUMBER, Neighbours, State

SAMPLE = 100  # jobs
MISSES = 0.2  # share of those that would take a closed GPU who find no other (tuned: seeds 101 to 130 of the recipes)
TURNS = 2.0  # a job that suffers more beside another one had better wait


@njit(**NESTED)
def _first_of_sample(s: State, seconds: float) -> int:
    # in the order of arrivals
    i, least = s.engine[0].next, max(1, s.engine[0].next - SAMPLE)
    since = max(s.engine[0].now - seconds, s.jobs[s.jobs[0].nth].arrival)
    while i > least and s.jobs[s.jobs[i - 1].nth].arrival > since:
        i -= 1
    return i


@njit(**NESTED)
def _times(s: State, seconds: float, i: int) -> float:
    # What counts from the i-th arrival on stands for so many times as much in `seconds` to come; 0: all came just now.
    now, since = s.engine[0].now, s.jobs[s.jobs[0].nth].arrival
    if i > 1 and s.engine[0].next - i == SAMPLE:
        since = max(since, s.jobs[s.jobs[i - 1].nth].arrival)
    return seconds / min(seconds, now - since) if now > since else 0.0


@njit(**NESTED)
def to_come(s: State, j: int, seconds: float) -> float:
    """How many jobs are to come in so many seconds."""
    first, count = _first_of_sample(s, seconds), 0
    for i in range(first, s.engine[0].next):
        count += s.jobs[i].nth != j
    return count * _times(s, seconds, first)


@njit(**NESTED)
def closing_loss(s: State, b: Neighbours, j: int, e_a: float, idle: int) -> float:
    """Seconds that jobs to come wait in all, when A closes the shared ones of the GPUs chosen to them.

    A GPU is closed for t seconds, while both run. Of those that come meanwhile, the share of the GPUs that are closed, times
    `MISSES`, waits for t / 2 on average.
    """
    xi, loss, last, seconds = 1.0, 0.0, -1, 0.0
    for i in range(idle, s.jobs[j].gpus):
        xi = max(xi, xi_beside(b, j, only_job(b, s.out[NUMBER, i])))
    for i in range(idle, s.jobs[j].gpus):
        r = only_job(b, s.out[NUMBER, i])
        if r != last:
            closed = min(xi * e_a, xi_beside(b, r, j) * seconds_left(s, s.jobs[r].execution))
            last, seconds = r, closed / 2 * to_come(s, j, closed) if closed > 0 else 0.0
        loss += seconds
    return MISSES * loss / b.gpus.size


@njit(**NESTED)
def holds_back(s: State, b: Neighbours, j: int, weight: float) -> bool:
    """Would jobs to come lose more beside A, all the time it takes, than A has waited and takes? (Never where nobody runs.)

    Those on its share of the GPUs lose (xi - 1) times their own seconds, at most those of A.
    """
    if s.engine[0].active == 0:
        return False
    e_a, loss = seconds_with(b, j, 0), 0.0
    first = _first_of_sample(s, e_a)
    for i in range(first, s.engine[0].next):
        k = s.jobs[i].nth
        if k != j:
            loss += min(e_a, seconds_with(b, k, 0)) * (min(TURNS, xi_beside(b, k, j)) - 1)
    loss *= _times(s, e_a, first) * s.jobs[j].gpus / b.gpus.size
    return bool(weight * loss > (e_a + s.engine[0].now - s.jobs[j].arrival) * (1 + TIE))
