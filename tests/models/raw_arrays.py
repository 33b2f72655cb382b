"""The formulations as arrays built directly with numpy and scipy: a second method.

Written from the mathematics in the formulations' docstrings, with the plain horizon ``max r + sum p`` for every job and
every row written out; nothing is taken from `optsched.models`. Times are integers (the disjunctive one: any floats).
Columns come in the order that each docstring states.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
EXACTLY = {"mip_rel_gap": 0.0}


@dataclass
class RawProgram:
    """min c x + offset, row_lower <= A x <= row_upper, lower <= x <= upper."""

    c: Floats
    A: sp.csc_array
    row_lower: Floats
    row_upper: Floats
    lower: Floats
    upper: Floats
    integer: npt.NDArray[np.bool_]
    offset: float = 0.0

    def solve(self, *, relax: bool = False) -> float:
        """The optimum, by scipy's HiGHS."""
        rows, bounds = LinearConstraint(self.A, self.row_lower, self.row_upper), Bounds(self.lower, self.upper)
        found = milp(self.c, constraints=rows, bounds=bounds, integrality=self.integer & (not relax), options=EXACTLY)
        assert found.status == 0, found.message
        return float(found.fun) + self.offset


def time_indexed(
    release: Ints, duration: Ints, gpus: Ints, total: int, cost_of: Floats, *, horizon: int | None = None
) -> RawProgram:
    """Columns (j, t) for t = r_j .. H - p_j, job by job; rows: n assignments, then H capacities.

    ``cost_of[j]`` is the price of one slot of completion time. With ``gpus`` all 1 this is the machine formulation.
    """
    H = int(release.max() + duration.sum()) if horizon is None else horizon
    count = H - duration - release + 1
    job = np.repeat(np.arange(release.size), count)
    column = np.arange(job.size)
    start = column - np.repeat(np.cumsum(count) - count, count) + release[job]
    # a column stands in its job's row and in the p_j rows of the slots it covers
    length = 1 + duration[job]
    indptr = np.concatenate([[0], np.cumsum(length)])
    within = np.arange(indptr[-1]) - np.repeat(indptr[:-1], length)
    owner = np.repeat(column, length)
    rows = np.where(within == 0, job[owner], release.size + start[owner] + within - 1)
    data = np.where(within == 0, 1.0, gpus[job[owner]].astype(np.float64))
    n = release.size
    A = sp.csc_array((data, rows.astype(np.int32), indptr.astype(np.int32)), shape=(n + H, column.size))
    return RawProgram(
        c=cost_of[job] * (start + duration[job]),
        A=A,
        row_lower=np.concatenate([np.ones(n), np.full(H, -np.inf)]),
        row_upper=np.concatenate([np.ones(n), np.full(H, float(total))]),
        lower=np.zeros(column.size),
        upper=np.full(column.size, np.inf),
        integer=np.ones(column.size, dtype=bool),
    )


def positional(release: Floats, duration: Floats) -> RawProgram:
    """Columns x[j, k] (job by job), then start[k]; rows once, filled, released, follows; objective sum C_j."""
    n = release.size
    x = np.arange(n * n).reshape(n, n)
    start = n * n + np.arange(n)
    jj, kk = (index.reshape(-1) for index in np.indices((n, n)))
    tail = kk < n - 1
    rows = [jj, n + kk, 2 * n + kk, 2 * n + np.arange(n), (3 * n + kk)[tail], 3 * n + np.arange(n - 1)]
    columns = [x[jj, kk], x[jj, kk], x[jj, kk], start, x[jj, kk][tail], start[:-1]]
    # start[k] - sum r x >= 0;  start[k+1] - start[k] - sum p x[., k] >= 0
    data = [np.ones(n * n), np.ones(n * n), -release[jj], np.ones(n), -duration[jj][tail], -np.ones(n - 1)]
    rows.append(3 * n + np.arange(n - 1))
    columns.append(start[1:])
    data.append(np.ones(n - 1))
    size = n * n + n
    A = sp.csc_array((np.concatenate(data), (np.concatenate(rows), np.concatenate(columns))), shape=(4 * n - 1, size))
    return RawProgram(
        c=np.concatenate([np.zeros(n * n), np.ones(n)]),
        A=A,
        row_lower=np.concatenate([np.ones(2 * n), np.zeros(2 * n - 1)]),
        row_upper=np.concatenate([np.ones(2 * n), np.full(2 * n - 1, np.inf)]),
        lower=np.zeros(size),
        upper=np.full(size, np.inf),
        integer=np.concatenate([np.ones(n * n, dtype=bool), np.zeros(n, dtype=bool)]),
        offset=float(duration.sum()),
    )


def disjunctive(release: Floats, duration: Floats, weight: Floats) -> RawProgram:
    """Columns start[j], then before[i, j] for i < j; one big M for all rows; objective sum w_j C_j."""
    n = release.size
    first, second = np.triu_indices(n, 1)
    pairs = np.arange(first.size)
    big = float(release.max() + duration.sum())
    ones = np.ones(pairs.size)
    # start[j] - start[i] - M before >= p_i - M;   start[i] - start[j] + M before >= p_j
    rows = np.concatenate([pairs, pairs, pairs, pairs + pairs.size, pairs + pairs.size, pairs + pairs.size])
    columns = np.concatenate([second, first, n + pairs, first, second, n + pairs])
    data = np.concatenate([ones, -ones, -big * ones, ones, -ones, big * ones])
    A = sp.csc_array((data, (rows, columns)), shape=(2 * pairs.size, n + pairs.size))
    return RawProgram(
        c=np.concatenate([weight, np.zeros(pairs.size)]),
        A=A,
        row_lower=np.concatenate([duration[first] - big, duration[second]]),
        row_upper=np.full(2 * pairs.size, np.inf),
        lower=np.concatenate([release, np.zeros(pairs.size)]),
        upper=np.concatenate([np.full(n, big), np.ones(pairs.size)]),
        integer=np.concatenate([np.zeros(n, dtype=bool), np.ones(pairs.size, dtype=bool)]),
        offset=float(weight @ duration),
    )
