"""GPUs that the rules for sharing choose, compiled: the state of a GPU for a job, the choice, and the tests of a gain.

Numbers of GPUs are written to ``state.out[NUMBER]``: those on nodes with fewest jobs first, then by number.
"""

from __future__ import annotations

import numpy as np

from optsched.classes.gpu_sharing.policies.roomy_nodes import list_roomy
from optsched.compiled import NESTED, njit
from optsched.policies.ties import TIE
from optsched.simulation.colocation import Neighbours, xi_beside
from optsched.simulation.records import FREE, NUMBER
from optsched.simulation.state import RunContext, State

IDLE, ALONE = np.int64(0), np.int64(1)  # jobs on a GPU
WHOLE_CLUSTER = np.int64(-1)
MANY = 1 << 30  # jobs on a node


@njit(**NESTED)
def only_job(b: Neighbours, g: int) -> int:
    """Return the job on a GPU that has exactly one.

    Parameters
    ----------
    b
        Jobs on every GPU.
    g
        Number of the GPU.
    """
    return max(b.gpus[g].one, b.gpus[g].other)


@njit(**NESTED)
def largest_batch(s: State, b: Neighbours, j: int) -> int:
    """Return the first option whose memory fits on all GPUs chosen; the caller knows that some option fits.

    Parameters
    ----------
    s
        State of the run, with the GPUs chosen.
    b
        Jobs on every GPU.
    j
        The waiting job.
    """
    least, option = np.inf, 0
    for i in range(s.jobs[j].gpus):
        least = min(least, b.gpus[s.out[NUMBER, i]].free_memory)
    while b.memory[j, option] > least:
        option += 1
    return option


@njit(**NESTED)
def end_of_node(b: Neighbours, node: int) -> int:
    """Return the number after the last GPU of a node.

    Parameters
    ----------
    b
        Jobs on every GPU.
    node
        Number of the node.
    """
    return b.nodes[node + 1].first if node + 1 < b.nodes.size else b.gpus.size


@njit(**NESTED)
def suits(s: State, context: RunContext, b: Neighbours, j: int, g: int, need: float, jobs: int) -> bool:
    """Return True if a GPU holds exactly ``jobs`` jobs, has enough memory free, and is of a type that ``j`` may use.

    Parameters
    ----------
    s
        State of the run.
    context
        Constants of the run.
    b
        Jobs on every GPU.
    j
        The waiting job.
    g
        Number of the GPU.
    need
        Memory that the job needs there, in bytes.
    jobs
        Number of jobs on the GPU.
    """
    gpu = b.gpus[g]
    return bool(gpu.jobs == jobs and gpu.free_memory >= need and context.eligible[s.jobs[j].kind, gpu.node])


@njit(**NESTED)
def holds_alone(s: State, context: RunContext, b: Neighbours, j: int, g: int, need: float, only: int) -> bool:
    """Return True if a GPU with one job, which ``j`` may join, suits ``j`` and is on the node ``only``.

    Parameters
    ----------
    s
        State of the run.
    context
        Constants of the run.
    b
        Jobs on every GPU.
    j
        The waiting job.
    g
        Number of the GPU.
    need
        Memory that the job needs there, in bytes.
    only
        The only node to use, or `WHOLE_CLUSTER`.
    """
    return suits(s, context, b, j, g, need, ALONE) and (only == WHOLE_CLUSTER or b.gpus[g].node == only)


@njit(**NESTED)
def count_idle(s: State, context: RunContext, b: Neighbours, j: int, need: float, only: int) -> int:
    """Return the number of idle GPUs that `take_idle` chooses. O(nodes with room).

    Parameters
    ----------
    s
        State of the run.
    context
        Constants of the run.
    b
        Jobs on every GPU.
    j
        The waiting job.
    need
        Memory that the job needs on a GPU, in bytes.
    only
        The only node to use, or `WHOLE_CLUSTER`.
    """
    if s.engine[0].free == 0:
        return 0
    count, kind = 0, s.jobs[j].kind
    for i in range(list_roomy(s, b) if only == WHOLE_CLUSTER else 1):
        node = b.nodes[i].roomy if only == WHOLE_CLUSTER else only
        if s.pools[FREE, node] > 0 and context.eligible[kind, node] and b.gpus[b.nodes[node].first].capacity >= need:
            count += s.pools[FREE, node]
    return min(count, s.jobs[j].gpus)


@njit(**NESTED)
def take_idle(s: State, context: RunContext, b: Neighbours, j: int, need: float, only: int) -> int:
    """Choose idle GPUs for a job, those on nodes with fewest jobs first, up to its gang; return their number.

    O(nodes) for every number of jobs that occurs on nodes with idle GPUs; mostly the first is enough.

    Parameters
    ----------
    s
        State of the run; the GPUs are written to it.
    context
        Constants of the run.
    b
        Jobs on every GPU.
    j
        The waiting job.
    need
        Memory that the job needs on a GPU, in bytes.
    only
        The only node to use, or `WHOLE_CLUSTER`.
    """
    n, level, chosen = s.jobs[j].gpus, 0, 0
    first, last = (0, b.nodes.size) if only == WHOLE_CLUSTER else (only, only + 1)
    while level < MANY and s.engine[0].free > 0:
        more = MANY
        for node in range(first, last):
            if s.pools[FREE, node] == 0 or b.nodes[node].jobs < level:
                continue
            if b.nodes[node].jobs > level:
                more = min(more, b.nodes[node].jobs)
                continue
            for g in range(b.nodes[node].first, end_of_node(b, node)):
                if chosen < n and suits(s, context, b, j, g, need, IDLE):
                    s.out[NUMBER, chosen] = g
                    chosen += 1
            if chosen == n:
                return chosen
        level = more
    return chosen


@njit(**NESTED)
def take_open(s: State, context: RunContext, b: Neighbours, j: int, found: int, need: float, only: int) -> int:
    """Choose GPUs with one job, in the same order, after those already chosen; return the number of all. O(GPUs).

    Parameters
    ----------
    s
        State of the run; the GPUs are written to it.
    context
        Constants of the run.
    b
        Jobs on every GPU.
    j
        The waiting job.
    found
        Number of GPUs already chosen.
    need
        Memory that the job needs on a GPU, in bytes.
    only
        The only node to use, or `WHOLE_CLUSTER`.
    """
    first, last = 0, b.gpus.size
    if only != WHOLE_CLUSTER:
        first, last = b.nodes[only].first, end_of_node(b, only)
    end = found
    for g in range(first, last):
        if suits(s, context, b, j, g, need, ALONE) and xi_beside(b, j, only_job(b, g)) < np.inf:
            end = _insert(s, b, g, found, end, s.jobs[j].gpus)
    return end


@njit(**NESTED)
def take_open_of(
    s: State, context: RunContext, b: Neighbours, j: int, r: int, found: int, need: float, only: int
) -> int:
    """Choose the open GPUs of a running job, in the same order; return the number of all. O(its GPUs).

    Parameters
    ----------
    s
        State of the run; the GPUs are written to it.
    context
        Constants of the run.
    b
        Jobs on every GPU.
    j
        The waiting job.
    r
        The running job.
    found
        Number of GPUs already chosen.
    need
        Memory that the waiting job needs on a GPU, in bytes.
    only
        The only node to use, or `WHOLE_CLUSTER`.
    """
    end, x = found, s.jobs[r].execution
    for i in range(s.executions[x].entries):
        g = s.parts[x * s.engine[0].width + i].pool
        if holds_alone(s, context, b, j, g, need, only):
            end = _insert(s, b, g, found, end, s.jobs[j].gpus)
    return end


@njit(**NESTED)
def _insert(s: State, b: Neighbours, g: int, begin: int, end: int, n: int) -> int:
    # Insert into those chosen from `begin` to `end`, which are in order, if it is among the first n; returns their end.
    if end < n:
        end += 1
    elif not _is_before(b, g, s.out[NUMBER, n - 1]):
        return end
    k = end - 1
    while k > begin and _is_before(b, g, s.out[NUMBER, k - 1]):
        s.out[NUMBER, k] = s.out[NUMBER, k - 1]
        k -= 1
    s.out[NUMBER, k] = g
    return end


@njit(**NESTED)
def _is_before(b: Neighbours, one: int, two: int) -> bool:
    # of GPUs: fewest jobs on the node, then the number
    more = b.nodes[b.gpus[one].node].jobs - b.nodes[b.gpus[two].node].jobs
    return bool(more < 0 or (more == 0 and one < two))


# The tests of a gain: that of a pair, and that of a job with all its partners.
#
# Notation: A the new job, R a running one, ``e`` remaining seconds alone, ``xi`` slow-downs.


@njit(**NESTED)
def pair_average(e_a: float, e_r: float, xi_a: float, xi_r: float) -> float:
    """Return t_con: the average completion of A and R if both run together from now on.

    Parameters
    ----------
    e_a, e_r
        Seconds that A and R take alone.
    xi_a, xi_r
        Slow-downs of A and R next to each other.
    """
    hat_a, hat_r = xi_a * e_a, xi_r * e_r
    if hat_a >= hat_r:
        return e_a / 2 + (1 - 1 / (2 * xi_a)) * hat_r
    return e_r / 2 + (1 - 1 / (2 * xi_r)) * hat_a


@njit(**NESTED)
def pair_loss(e_a: float, e_first: float, e_r: float, xi_a: float, xi_r: float) -> float:
    """Return 2 t_con - e_R - e_first, the loss of both jobs by sharing.

    If A ends first, the floats are the same for every e_R.

    Parameters
    ----------
    e_a, e_first
        Seconds that A takes alone with the sub-batch tested, and with its first one.
    e_r
        Seconds that R takes alone.
    xi_a, xi_r
        Slow-downs of A and R next to each other.
    """
    if xi_a * e_a >= xi_r * e_r:
        return e_a - e_first + ((2 - 1 / xi_a) * xi_r - 1) * e_r
    return (2 - 1 / xi_r) * xi_a * e_a - e_first


@njit(**NESTED)
def pair_gains(e_a: float, e_first: float, e_r: float, xi_a: float, xi_r: float) -> bool:
    """Return True if t_con < t_seq = e_R + e_first / 2.

    There are no quotients, so the answer is exact at a threshold that floats represent exactly.

    Parameters
    ----------
    e_a, e_first
        Seconds that A takes alone with the sub-batch tested, and with its first one, which it would use after waiting.
    e_r
        Seconds that R takes alone.
    xi_a, xi_r
        Slow-downs of A and R next to each other.
    """
    if xi_a * e_a >= xi_r * e_r:
        return ((2 * xi_a - 1) * xi_r - 2 * xi_a) * e_r + xi_a * (e_a - e_first) < 0.0
    return (2 * xi_r - 1) * xi_a * e_a < xi_r * (e_r + e_first)


@njit(**NESTED)
def seconds_left(s: State, x: int) -> float:
    """Return e_R: the seconds that a running job would still take alone, on its present GPUs.

    Parameters
    ----------
    s
        State of the run.
    x
        Number of the execution.
    """
    run = s.executions[x]
    return max(0.0, run.left - (s.engine[0].now - run.paid) / (run.pace * run.slow)) * run.pace


@njit(**NESTED)
def seconds_with(b: Neighbours, j: int, option: int) -> float:
    """Return e_A: the seconds that a waiting job takes alone with a sub-batch.

    Parameters
    ----------
    b
        Jobs on every GPU.
    j
        The waiting job.
    option
        Number of the sub-batch.
    """
    return b.sharers[j].alone * b.stretch[j, option, b.sharers[j].spans]


@njit(**NESTED)
def joint_gains(s: State, b: Neighbours, j: int, e_a: float, idle: int, wait: float, loss: float) -> bool:
    """Return True if starting a job on the GPUs chosen reduces the sum of completions of it and its partners.

    The loss is added to the sum. The alternative is to wait and then to run alone.

    Parameters
    ----------
    s
        State of the run, with the GPUs chosen.
    b
        Jobs on every GPU.
    j
        The waiting job A.
    e_a
        Seconds that A takes alone on the GPUs chosen.
    idle
        Number of the chosen GPUs that are idle; they come first.
    wait
        Seconds until A could run alone.
    loss
        Loss of jobs yet to come, in seconds.
    """
    count = 0  # different jobs on the GPUs: candidates with their seconds alone, and their slow-down without A
    for i in range(idle, s.jobs[j].gpus):
        r = only_job(b, s.out[NUMBER, i])
        if b.sharers[r].mark != j:
            b.sharers[r].mark = j
            c = b.candidates[count]
            x = s.jobs[r].execution
            c.job, c.value, c.other = r, seconds_left(s, x), s.executions[x].slow
            count += 1
    waiting = wait + seconds_with(b, j, 0)
    for k in range(count):
        b.sharers[b.candidates[k].job].mark = -1
        waiting += b.candidates[k].value * b.candidates[k].other
    now, together, ends, most = 0.0, 0.0, 0, waiting * (1 - TIE)
    while ends >= 0:  # from one end to the next when A starts now, until it is A that ends
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
        together += now
        if together + loss >= most:
            return False
        if ends >= 0:
            e_a -= step / slow
            b.candidates[ends].job = -1
    for k in range(count):  # these jobs have not ended
        c = b.candidates[k]
        if c.job >= 0:
            together += now + c.value * c.other
    return together + loss < most
