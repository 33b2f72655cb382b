"""How many bytes every logged all-reduce moved, rebuilt from the starts and ends of all of them: for `optsched.check.tasks`.

A transfer moves from the end of its latency to its own end. While k(t), the largest number of moving transfers on a node of
its gang, is k, it moves 1 / (k b + (k - 1) eta) bytes a second; where ratios are measured, 1/b times the least, over its
nodes, of the product of its ratios beside the others there. Integrated over its time that must be its message: progress
that is counted twice, or a rate that missed a start or an end, shows here. Written apart from the engine, which steps from
event to event; here one job after the other is looked at, over the events of the whole cluster in its lifetime.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from optsched.problem.arrays import Floats, Ints
from optsched.problem.contention import Contention


@dataclass(frozen=True)
class Gangs:
    """The nodes of job j, each once: ``node[offset[j] : offset[j + 1]]``; ``kind`` i64[n] is its row of measured ratios."""

    offset: Ints
    node: Ints
    kind: Ints


def transferred_bytes(contention: Contention, gangs: Gangs, job: Ints, start: Floats, end: Floats) -> Floats:
    """The integral of the rate of each of T transfers, f64[T] bytes; 0 for one that ends before its latency does.

    ``job`` i64[T], ``start`` and ``end`` f64[T] finite seconds. Complexity O(P log P + sum_j m_j L_j) for P (transfer, node)
    pairs, m_j the nodes of job j and L_j the starts and ends in the cluster between its first and its last transfer.
    """
    moved = np.zeros(job.size)
    begin = start + contention.latency
    rows = np.flatnonzero(end > begin)
    if not rows.size:
        return moved
    grid, position = np.unique(np.concatenate([begin[rows], end[rows]]), return_inverse=True)
    first, last = position[: rows.size], position[rows.size :]
    seconds = np.append(np.diff(grid), 0.0)
    counts = _Counts(gangs, job[rows], first, last, 1 + int(gangs.kind.max()) if contention.measured else 1)
    rate = _measured_rate if contention.measured else _linear_rate
    order = np.argsort(job[rows], kind="stable")
    for own in np.split(order, np.flatnonzero(np.diff(job[rows][order])) + 1):
        low, high = int(first[own].min()), int(last[own].max())
        bytes_then = rate(contention, gangs, counts, int(job[rows[own[0]]]), low, high) * seconds[low:high]
        bounds = np.stack([first[own], last[own]], axis=1).reshape(-1) - low
        moved[rows[own]] = np.add.reduceat(np.append(bytes_then, 0.0), bounds)[::2]
    return moved


class _Counts:
    """The number of moving transfers on every node, by kind (or all as one kind), as steps on the grid of times."""

    def __init__(self, gangs: Gangs, job: Ints, first: Ints, last: Ints, kinds: int) -> None:
        self._kinds, self._nodes = kinds, int(gangs.node.max()) + 1
        span = np.diff(gangs.offset)[job]
        row = np.repeat(np.arange(job.size), span)
        node = gangs.node[np.arange(row.size) + np.repeat(gangs.offset[job] - (np.cumsum(span) - span), span)]
        kind = gangs.kind[job[row]] if kinds > 1 else 0
        track = kind * self._nodes + node
        size = int(last.max()) + 1
        key = np.concatenate([track * size + first[row], track * size + last[row]])
        order = np.argsort(key, kind="stable")
        # What begins on a track ends on it: the running sum is 0 again where the next track begins.
        self._after = np.cumsum(np.where(order < row.size, 1, -1)).astype(np.int32)
        key = key[order]
        self._bounds = np.searchsorted(key, np.arange(kinds * self._nodes + 1) * size)
        self._position = key % size

    def window(self, kind: int, node: int, low: int, high: int) -> npt.NDArray[np.int32]:
        """How many transfers move on ``node`` in each of the intervals ``low`` .. ``high`` - 1 of the grid."""
        track = kind * self._nodes + node
        a, b = int(self._bounds[track]), int(self._bounds[track + 1])
        position = self._position[a:b]
        left, right = a + int(np.searchsorted(position, low, "right")), a + int(np.searchsorted(position, high, "left"))
        before = self._after[left - 1] if left > a else 0
        values = np.append(before, self._after[left:right]).astype(np.int32)
        steps = np.diff(np.concatenate([[low], self._position[left:right], [high]]))
        return np.repeat(values, steps)


def _linear_rate(contention: Contention, gangs: Gangs, counts: _Counts, job: int, low: int, high: int) -> Floats:
    most = np.zeros(high - low, dtype=np.int32)
    for node in gangs.node[gangs.offset[job] : gangs.offset[job + 1]].tolist():
        np.maximum(most, counts.window(0, node, low, high), out=most)
    k = np.maximum(np.arange(int(most.max(initial=0)) + 1), 1)
    pace = k * contention.seconds_per_byte + (k - 1) * contention.penalty
    return np.asarray((1.0 / pace)[most])


def _measured_rate(contention: Contention, gangs: Gangs, counts: _Counts, job: int, low: int, high: int) -> Floats:
    own = int(gangs.kind[job])
    least = np.ones(high - low)
    for node in gangs.node[gangs.offset[job] : gangs.offset[job + 1]].tolist():
        kept = np.ones(high - low)
        for kind in range(int(gangs.kind.max()) + 1):
            beside = counts.window(kind, node, low, high) - (kind == own)  # beside itself it keeps its speed
            beside = np.maximum(beside, 0)
            if beside.any():
                kept *= (contention.ratios[own][kind] ** np.arange(int(beside.max()) + 1))[beside]
        np.minimum(least, kept, out=least)
    return least / contention.seconds_per_byte
