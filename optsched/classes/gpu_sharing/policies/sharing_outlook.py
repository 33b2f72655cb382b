"""The loss of jobs yet to come, compiled: as if they were like the latest arrivals, and came at the same rate.

The jobs of the next t seconds are estimated from the last t seconds, from the first arrival on (whose job only begins
the count) and from at most `SAMPLE` jobs. The job that is tested does not count.
"""

from __future__ import annotations

from optsched.classes.gpu_sharing.policies.sharing_gpus import only_job, seconds_left, seconds_with
from optsched.compiled import NESTED, njit
from optsched.policies.ties import TIE
from optsched.simulation.colocation import Neighbours, xi_beside
from optsched.simulation.records import NUMBER
from optsched.simulation.state import State

SAMPLE = 100  # jobs
MISSES = 0.2  # share of the jobs for a closed GPU that find no other one (tuned: seeds 101 to 130 of the recipes)
TURNS = 2.0  # a job that is slowed more by another one should wait


@njit(**NESTED)
def _start_of_sample(s: State) -> int:
    # position in the order of arrivals of the first job that may count
    return int(max(1, s.engine[0].next - SAMPLE))


@njit(**NESTED)
def may_count(s: State, b: Neighbours, j: int) -> bool:
    """Return True if the job itself may be among the latest arrivals.

    Parameters
    ----------
    s
        State of the run.
    b
        Jobs on every GPU.
    j
        The waiting job.
    """
    return bool(b.sharers[j].rank >= _start_of_sample(s))


@njit(**NESTED)
def _first_of_sample(s: State, seconds: float) -> int:
    # position, in the order of arrivals, of the first job that arrived within that number of seconds
    low, high = _start_of_sample(s), int(s.engine[0].next)
    since = max(s.engine[0].now - seconds, s.jobs[s.jobs[0].nth].arrival)
    while low < high:
        middle = (low + high) // 2
        if s.jobs[s.jobs[middle].nth].arrival > since:
            high = middle
        else:
            low = middle + 1
    return low


@njit(**NESTED)
def _times(s: State, seconds: float, i: int) -> float:
    # Factor by which arrivals from the i-th on are scaled to the next `seconds`; 0: all arrived just now.
    now, since = s.engine[0].now, s.jobs[s.jobs[0].nth].arrival
    if i > 1 and s.engine[0].next - i == SAMPLE:
        since = max(since, s.jobs[s.jobs[i - 1].nth].arrival)
    return seconds / min(seconds, now - since) if now > since else 0.0


@njit(**NESTED)
def to_come(s: State, rank: int, seconds: float) -> float:
    """Return the expected number of jobs that arrive in the next seconds. O(log of the sample).

    Parameters
    ----------
    s
        State of the run.
    rank
        Place in the order of arrivals of the waiting job, which does not count.
    seconds
        Length of the time ahead, in seconds.
    """
    first = _first_of_sample(s, seconds)
    count = s.engine[0].next - first
    if first <= rank < s.engine[0].next:
        count -= 1
    return count * _times(s, seconds, first)


@njit(**NESTED)
def latest(s: State) -> int:
    """Return the place in the order of arrivals of the latest job; `to_come` is least for it, since it would always count.

    Parameters
    ----------
    s
        State of the run.
    """
    return int(s.engine[0].next - 1)


@njit(**NESTED)
def closing_loss(s: State, b: Neighbours, j: int, rank: int, e_a: float, idle: int) -> float:
    """Return the total waiting time that A causes jobs to come, by closing the GPUs that it shares.

    A GPU is closed for t seconds, while both jobs run. Of the jobs that arrive meanwhile, the share of the GPUs that
    are closed, times `MISSES`, waits for t / 2 on average.

    Parameters
    ----------
    s
        State of the run, with the GPUs chosen.
    b
        Jobs on every GPU.
    j
        The waiting job A.
    rank
        Place in the order of arrivals of the job that does not count.
    e_a
        Seconds that A takes alone.
    idle
        Number of the chosen GPUs that are idle; they come first.
    """
    xi, loss, last, seconds = 1.0, 0.0, -1, 0.0
    for i in range(idle, s.jobs[j].gpus):
        xi = max(xi, xi_beside(b, j, only_job(b, s.out[NUMBER, i])))
    for i in range(idle, s.jobs[j].gpus):
        r = only_job(b, s.out[NUMBER, i])
        if r != last:
            closed = min(xi * e_a, xi_beside(b, r, j) * seconds_left(s, s.jobs[r].execution))
            last, seconds = r, closed / 2 * to_come(s, rank, closed) if closed > 0 else 0.0
        loss += seconds
    return MISSES * loss / b.gpus.size


@njit(**NESTED)
def holds_back(s: State, b: Neighbours, j: int, weight: float) -> bool:
    """Return True if jobs to come would lose more next to A, while it runs, than A has waited and takes.

    False if no job runs. The jobs to come that share GPUs with A lose (xi - 1) times their own seconds, but at most
    those of A.

    Parameters
    ----------
    s
        State of the run.
    b
        Jobs on every GPU.
    j
        The waiting job A.
    weight
        Factor of the loss of the jobs to come.
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
