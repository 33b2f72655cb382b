"""Who is on a GPU with whom: the stays of jobs that share GPUs, cut where a partner comes or goes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optsched.problem.arrays import Bools, Floats, Ints

NOBODY = -1
LANES = 2


@dataclass(frozen=True, eq=False)
class Cells:
    """C pieces of rows: GPU ``index`` of ``node`` i64[C] from ``left`` to ``right`` f64[C], with the same jobs on it.

    ``upper``, ``lower`` i64[C]: the segments in its two lanes; one of them `NOBODY` where a job is alone.
    """

    node: Ints
    index: Ints
    left: Floats
    right: Floats
    upper: Ints
    lower: Ints

    @property
    def shared(self) -> Bools:
        """Which of them have two jobs, bool[C]."""
        return np.asarray((self.upper != NOBODY) & (self.lower != NOBODY))


def shared_cells(start: Floats, end: Floats, gpu_offset: Ints, node: Ints, index: Ints) -> Cells:
    """The cells of S segments with K (segment, GPU) pairs, by GPU and time.

    A job takes the first lane that is free, and keeps it; of more than two jobs at once, which is invalid, the last one
    hides the others of its lane. O(K log K).
    """
    segment = np.repeat(np.arange(start.size), np.diff(gpu_offset))
    size = segment.size
    moment = np.concatenate([end[segment], start[segment]])
    pair = np.concatenate([np.arange(size), np.arange(size)])
    starts = np.arange(2 * size) >= size
    real = np.concatenate([end[segment] > start[segment]] * 2)
    order = np.lexsort((pair, starts, moment, index[pair], node[pair]))  # at one moment, ends first
    order = order[real[order]]
    rows: list[tuple[int, int, float, float, int, int]] = []
    lanes, since, here = [NOBODY] * LANES, 0.0, (-1, -1)
    columns = moment[order], segment[pair[order]], starts[order], node[pair[order]], index[pair[order]]
    for now, s, begins, h, g in zip(*(column.tolist() for column in columns), strict=True):
        if (h, g) != here:
            lanes, here = [NOBODY] * LANES, (h, g)
        if now > since and lanes != [NOBODY] * LANES:
            rows.append((h, g, since, now, *lanes))
        if begins:
            lanes[lanes.index(NOBODY) if NOBODY in lanes else LANES - 1] = s
        elif s in lanes:
            lanes[lanes.index(s)] = NOBODY
        since = now
    nodes, indices, left, right, upper, lower = zip(*rows, strict=True) if rows else [()] * 6
    ints = [np.array(column, dtype=np.int64) for column in (nodes, indices, upper, lower)]
    return Cells(ints[0], ints[1], np.array(left, dtype=float), np.array(right, dtype=float), ints[2], ints[3])
