"""Prices of GPU types, and of single jobs' time, from the dual of the fluid makespan problem.

**Primal** (Gavel's makespan LP, Narayanan et al., OSDI 2020; y_jo seconds that j spends in its mode o: a_o seconds a unit of
work, n_o GPUs of the type t_o):

    min T   s.t.   sum_o y_jo / a_o >= work_j;   sum_o y_jo <= T;   sum_j,o: t_o = t n_o y_jo <= G_t T;   y >= 0.

**Dual** (q_t a second of one GPU of type t, z_j a second of job j's own time, u_j a unit of its work):

    max sum_j work_j u_j   s.t.   u_j <= a_o (z_j + n_o q_t(o));   sum_j z_j + sum_t G_t q_t <= 1;   all >= 0.

Jobs of one kind share their u where they have no z; only the jobs that would take longest alone get a z of their own. Any
q, z >= 0 are feasible after scaling: rounding costs a little value and no validity. Solved by HiGHS as scipy brings it.
"""

from __future__ import annotations

import numpy as np

from optsched.bounds.modes import Modes
from optsched.problem.arrays import Floats, Ints


def fluid_prices(
    modes: Modes, kind_work: Floats, own_kind: Ints | None = None, own_work: Floats | None = None
) -> tuple[Floats, Floats]:
    """(q f64[T], z f64[m]) for ``kind_work`` f64[K] units of work by kind, beside m jobs with prices of their own.

    ``own_kind`` i64[m] and ``own_work`` f64[m] are their kinds and works. All ones and zeros where HiGHS gives up.
    """
    from scipy.optimize import linprog  # imported where it is used: it takes longer than most runs
    from scipy.sparse import csr_array

    own_kind = np.zeros(0, dtype=np.int64) if own_kind is None else own_kind
    own_work = np.zeros(0) if own_work is None else own_work
    kinds, types, own = len(modes.by_kind), len(modes.types), own_kind.size
    # columns: q_t, z_j, u of kinds, u of single jobs; a row for every mode of a kind or job
    kind_of = np.concatenate([np.arange(kinds), own_kind])
    count = np.diff(modes.start)[kind_of]
    row = np.repeat(np.arange(kind_of.size), count)
    mode = np.arange(row.size) - np.repeat(np.cumsum(count) - count - modes.start[kind_of], count)
    fastest = modes.least(modes.pace)[kind_of]
    pace = modes.pace[mode] / fastest[row]  # u in units of a job's fastest pace: numbers near 1
    line = np.arange(row.size)
    with_z = row >= kinds
    entries = np.concatenate([np.ones(row.size), -pace * modes.gpus[mode], -pace[with_z]])
    columns = np.concatenate([types + own + row, modes.gpu_type[mode], types + row[with_z] - kinds])
    lines = np.concatenate([line, line, line[with_z]])
    norm = np.concatenate([modes.capacity.astype(np.float64), np.ones(own)])
    size = types + own + kinds + own
    lines = np.concatenate([lines, np.full(norm.size, row.size)])
    columns = np.concatenate([columns, np.arange(norm.size)])
    matrix = csr_array((np.concatenate([entries, norm]), (lines, columns)), shape=(row.size + 1, size))
    seconds = np.concatenate([kind_work, own_work]) * fastest
    gain = np.concatenate([np.zeros(types + own), seconds / max(float(seconds.max(initial=0.0)), 1e-300)])
    limit = np.zeros(row.size + 1)
    limit[-1] = 1.0
    found = linprog(-gain, A_ub=matrix, b_ub=limit, bounds=(0, None), method="highs")
    if found.x is None:
        return np.ones(types), np.zeros(own)
    return np.maximum(found.x[:types], 0.0), np.maximum(found.x[types : types + own], 0.0)
