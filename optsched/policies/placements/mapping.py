"""A mapping of one job's replicas to servers during the search: its iteration time, and its local search.

Replicas of a stage are alike, so a mapping is a count for each (stage, server). Candidates are the eligible servers
with free GPUs, by number. All data is in two tables in the scratch of `optsched.speeds.speed_tables`: nothing is
allocated, and few arrays are passed from function to function, because each costs time in compiling and in every call.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from optsched.compiled import NESTED, njit
from optsched.problem.arrays import Floats, Ints
from optsched.speeds.speed_tables import SpeedTables

FALLS = 1 - 1e-12  # an iteration time is smaller only if it is smaller by more than rounding

# Rows of `whole`, by candidate:
NODE = 0
VACANT = 1  # GPUs that are free and not taken by this job
HELD = 2  # replicas of this job
TWIN = 3  # the candidate before it with the same bandwidths, -1: none
# by stage:
FIRST = 4  # its first replica; one more entry: all replicas
SPREAD = 5  # candidates that hold it: COLUMN[FIRST : FIRST + SPREAD], ascending
LEFT = 6  # replicas the greedy has not placed yet
KEPT_SPREAD = 7
# by replica:
COLUMN = 8
SERVER = 9  # the candidates that the greedy fills, in this order, and how many replicas each takes
SHARE = 10
KEPT_COLUMN = 11  # the best mapping so far
KEPT_COUNT = 12
GROUP_STAGE = 13  # the groups, replicas of one stage on one candidate, at the start of a pass of the local search
GROUP_COLUMN = 14
COUNT = 15  # and the rows after it: replicas of stage s on candidate c in row COUNT + s

# Rows of `real`, by candidate:
INTRA = 0
CROSS = 1
# by stage:
COMPUTE = 2
RING = 3
TIE = 4  # bytes between two replicas of a stage
GAIN = 5  # bytes between a replica and those on the server being filled
LONELY = 6  # bytes between a replica and the others left
# by place in COLUMN:
WAIT = 7


class Mapping(NamedTuple):
    """S stages, C candidates, E edges; ``whole`` and ``real`` have a row for each of the constants above."""

    stages: int
    candidates: int
    factor: float  # 1 + (S-1)/m
    fastest: float  # alpha_min: nothing to gain below it
    whole: Ints
    real: Floats
    edges: Any  # EDGE[E]


@njit(**NESTED)
def new_mapping(t: SpeedTables, job: int, free: Any, eligible: Any) -> Mapping:
    """Return an empty mapping of the job's profile to the eligible free GPUs. O(nodes + stages x candidates).

    Parameters
    ----------
    t
        Tables of speeds, whose scratch the mapping uses.
    job
        Number of the job.
    free
        Free GPUs of every node, i64[N].
    eligible
        Nodes that the job may use, bool[N].
    """
    p = t.jobs[job].profile
    graph, end = t.profiles[p], t.profiles[p + 1]
    base, stages = graph.stage, end.stage - graph.stage
    candidates = 0
    for m in range(free.size):
        if eligible[m] and free[m] > 0:
            candidates += 1
    whole, real = t.scratch, t.scratch_seconds
    x = Mapping(stages, candidates, graph.factor, graph.fastest, whole, real, t.edges[graph.edge : end.edge])
    c = 0
    for m in range(free.size):
        if eligible[m] and free[m] > 0:
            whole[NODE, c], whole[VACANT, c], whole[HELD, c] = m, free[m], 0
            real[INTRA, c], real[CROSS, c] = t.places[m].intra, t.places[m].cross
            d = c - 1
            while d >= 0 and not (real[INTRA, d] == real[INTRA, c] and real[CROSS, d] == real[CROSS, c]):
                d -= 1
            whole[TWIN, c] = d
            c += 1
    whole[FIRST, 0] = 0
    for s in range(stages):
        stage = t.stages[base + s]
        whole[FIRST, s + 1] = whole[FIRST, s] + stage.replicas
        whole[SPREAD, s] = 0
        real[COMPUTE, s], real[RING, s], real[TIE, s] = stage.compute, stage.ring, stage.inner
        for c in range(candidates):
            whole[COUNT + s, c] = 0
    return x


@njit(**NESTED)
def put(x: Mapping, s: int, c: int, n: int) -> None:
    """Put ``n`` more replicas of stage ``s`` on candidate ``c``.

    Parameters
    ----------
    x
        The mapping.
    s
        Stage.
    c
        Candidate.
    n
        Number of replicas.
    """
    w = x.whole
    if w[COUNT + s, c] == 0:
        at = w[FIRST, s] + w[SPREAD, s]
        while at > w[FIRST, s] and w[COLUMN, at - 1] > c:
            w[COLUMN, at] = w[COLUMN, at - 1]
            at -= 1
        w[COLUMN, at] = c
        w[SPREAD, s] += 1
    w[COUNT + s, c] += n
    w[HELD, c] += n
    w[VACANT, c] -= n


@njit(**NESTED)
def take(x: Mapping, s: int, c: int, n: int) -> None:
    """Take ``n`` replicas of stage ``s`` from candidate ``c``.

    Parameters
    ----------
    x
        The mapping.
    s
        Stage.
    c
        Candidate.
    n
        Number of replicas.
    """
    w = x.whole
    w[COUNT + s, c] -= n
    w[HELD, c] -= n
    w[VACANT, c] += n
    if w[COUNT + s, c] == 0:
        w[SPREAD, s] -= 1
        at = w[FIRST, s]
        while w[COLUMN, at] != c:
            at += 1
        while at < w[FIRST, s] + w[SPREAD, s]:
            w[COLUMN, at] = w[COLUMN, at + 1]
            at += 1


@njit(**NESTED)
def clear(x: Mapping) -> None:
    """Remove all replicas from the mapping.

    Parameters
    ----------
    x
        The mapping.
    """
    w = x.whole
    for s in range(x.stages):
        while w[SPREAD, s] > 0:
            c = w[COLUMN, w[FIRST, s] + w[SPREAD, s] - 1]
            take(x, s, c, w[COUNT + s, c])


@njit(**NESTED)
def keep(x: Mapping) -> None:
    """Save this mapping.

    Parameters
    ----------
    x
        The mapping.
    """
    w = x.whole
    for s in range(x.stages):
        w[KEPT_SPREAD, s] = w[SPREAD, s]
        for i in range(w[FIRST, s], w[FIRST, s] + w[SPREAD, s]):
            w[KEPT_COLUMN, i] = w[COLUMN, i]
            w[KEPT_COUNT, i] = w[COUNT + s, w[COLUMN, i]]


@njit(**NESTED)
def recall(x: Mapping) -> None:
    """Restore the saved mapping.

    Parameters
    ----------
    x
        The mapping.
    """
    clear(x)
    w = x.whole
    for s in range(x.stages):
        for i in range(w[FIRST, s], w[FIRST, s] + w[KEPT_SPREAD, s]):
            put(x, s, w[KEPT_COLUMN, i], w[KEPT_COUNT, i])


@njit(**NESTED)
def mapping_pace(x: Mapping, enough: float) -> float:
    """Return alpha of the replicas placed so far, in seconds.

    Replicas that are not placed send nothing, so this is a lower bound until all are placed. Complexity O(sum over
    edges of the spreads of both ends). Terms: `optsched.speeds.stage_graph`.

    Parameters
    ----------
    x
        The mapping.
    enough
        A value from which on alpha does not matter: the result is then only known to be at least this.
    """
    w, f = x.whole, x.real
    ring = 0.0
    for s in range(x.stages):
        first, last = w[FIRST, s], w[FIRST, s] + w[SPREAD, s]
        slowest = np.inf  # link of the ring
        for i in range(first, last):
            f[WAIT, i] = f[COMPUTE, s]
            slowest = min(slowest, f[CROSS, w[COLUMN, i]])
        if w[FIRST, s + 1] > first + 1 and last > first:
            ring = max(ring, f[RING, s] / (slowest if last > first + 1 else f[INTRA, w[COLUMN, first]]))
    longest = 0.0
    for e in range(x.edges.size):  # replicas of neighbouring stages wait for each other
        if x.factor * longest + ring >= enough:
            return enough
        s, u = x.edges[e].tail, x.edges[e].head
        for i in range(w[FIRST, s], w[FIRST, s] + w[SPREAD, s]):
            c = w[COLUMN, i]
            for j in range(w[FIRST, u], w[FIRST, u] + w[SPREAD, u]):
                d = w[COLUMN, j]
                seconds = x.edges[e].pair / (f[INTRA, c] if c == d else min(f[CROSS, c], f[CROSS, d]))
                f[WAIT, i] += seconds * w[COUNT + u, d]
                f[WAIT, j] += seconds * w[COUNT + s, c]
            longest = max(longest, f[WAIT, i])
    for s in range(x.stages):
        for i in range(w[FIRST, s], w[FIRST, s] + w[SPREAD, s]):
            longest = max(longest, f[WAIT, i])
    return x.factor * longest + ring


@njit(**NESTED)
def has_an_equal_before(x: Mapping, d: int, need: int) -> bool:
    """Return True if an empty server before the empty candidate ``d`` has the same bandwidths and enough free GPUs.

    Parameters
    ----------
    x
        The mapping.
    d
        Candidate.
    need
        Free GPUs that are needed.
    """
    w = x.whole
    if w[HELD, d] > 0:
        return False
    d = w[TWIN, d]
    while d >= 0:
        if w[HELD, d] == 0 and w[VACANT, d] >= need:
            return True
        d = w[TWIN, d]
    return False


@njit(**NESTED)
def write_entries(x: Mapping, out_node: Any, out_count: Any) -> int:
    """Write the mapping as entries (node, GPUs) in stage-major order and return their number.

    Parameters
    ----------
    x
        The mapping.
    out_node, out_count
        Output: node and GPUs of every entry.
    """
    w, entries = x.whole, 0
    for s in range(x.stages):
        for i in range(w[FIRST, s], w[FIRST, s] + w[SPREAD, s]):
            m, n = w[NODE, w[COLUMN, i]], w[COUNT + s, w[COLUMN, i]]
            if entries > 0 and out_node[entries - 1] == m:
                out_count[entries - 1] += n
            else:
                out_node[entries] = m
                out_count[entries] = n
                entries += 1
    return entries


# Local search on a mapping: moves of a replica and swaps of two.
#
# Every pass examines the whole neighbourhood and takes the step with the smallest alpha, the first of equals in order of
# (kind, stage, server); it ends when no step lowers alpha. A group is the replicas of one stage on one server.

# A step: (s, c, u, d): a replica of stage s goes from c to d and one of stage u from d to c; u < 0: none; s < 0: no step.
Step = tuple[int, int, int, int]


@njit(**NESTED)
def descend(x: Mapping) -> None:
    """Take the best step while alpha strictly falls. Complexity of a pass O((g C + g^2) x time of one alpha).

    Parameters
    ----------
    x
        The mapping, improved in place.
    """
    alpha, none = mapping_pace(x, np.inf), np.int64(-1)  # typed: literals would have the kernels compiled once more
    w = x.whole
    while alpha > x.fastest:
        groups = 0
        for s in range(x.stages):
            for i in range(w[FIRST, s], w[FIRST, s] + w[SPREAD, s]):
                w[GROUP_STAGE, groups] = s
                w[GROUP_COLUMN, groups] = w[COLUMN, i]
                groups += 1
        step, least = _best_move(x, groups, (none, none, none, none), alpha * FALLS)
        step, least = _best_swap(x, groups, step, least)
        if step[0] < 0:
            break
        _make(x, step)
        alpha = least


@njit(**NESTED)
def _best_move(x: Mapping, groups: int, step: Step, best: float) -> tuple[Step, float]:
    w, one = x.whole, np.int64(1)  # typed, as above
    none: Any = -one
    for i in range(groups):
        s, c = w[GROUP_STAGE, i], w[GROUP_COLUMN, i]
        for d in range(x.candidates):
            if d == c or w[VACANT, d] < one or has_an_equal_before(x, d, one):
                continue
            take(x, s, c, one)
            put(x, s, d, one)
            alpha = mapping_pace(x, best)
            take(x, s, d, one)
            put(x, s, c, one)
            if alpha < best:
                best, step = alpha, (s, c, none, d)
    return step, best


@njit(**NESTED)
def _best_swap(x: Mapping, groups: int, step: Step, best: float) -> tuple[Step, float]:
    w = x.whole
    for i in range(groups):
        s, c = w[GROUP_STAGE, i], w[GROUP_COLUMN, i]
        for j in range(i + 1, groups):
            u, d = w[GROUP_STAGE, j], w[GROUP_COLUMN, j]
            if u == s or d == c:
                continue
            _make(x, (s, c, u, d))
            alpha = mapping_pace(x, best)
            _make(x, (s, d, u, c))
            if alpha < best:
                best, step = alpha, (s, c, u, d)
    return step, best


@njit(**NESTED)
def _make(x: Mapping, step: Step) -> None:
    (s, c, u, d), one = step, np.int64(1)
    take(x, s, c, one)
    if u >= 0:
        take(x, u, d, one)
        put(x, u, c, one)
    put(x, s, d, one)
