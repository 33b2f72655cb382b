"""Two jobs on a GPU: how fast each runs, and when sharing pays.

**Rate model**: job A with sub-batch option o on a placement runs alone at pace_A seconds a unit of work (those of its
duration, profile, table or scaling) times ``stretch`` (what its sub-steps cost, `optsched.problem.scaling`: T(m, s, r)
/ T of its first option), and beside partners at that times max over its GPUs of xi_{A | partner there}.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.speeds.duration import seconds_alone


@dataclass(frozen=True, eq=False)
class SharingRates:
    """n jobs, O sub-batch options at most, K kinds of jobs.

    ``options`` i64[n] >= 1; ``steps`` i64[n, O] sub-steps; ``memory`` f64[n, O] bytes on each GPU; ``stretch``
    f64[n, O, 2] >= 1, on one node and over several; ``kind`` i64[n]; ``xi`` f64[K, K] (inf: never together); ``alone``
    f64[n] e_j, seconds alone with the first option at best; ``spans`` i64[n]: 1 where no node that suits the job could hold
    its gang.
    """

    options: Ints
    steps: Ints
    memory: Floats
    stretch: Floats
    kind: Ints
    xi: Floats
    alone: Floats
    spans: Ints


def sharing_rates(instance: Instance) -> SharingRates:
    """The arrays of an instance with interference. O(n + K^2), and O for jobs that are not alike.

    `InputError` as `seconds_alone`.
    """
    assert instance.interference is not None  # callers look first
    most = max((speeds.splits.steps.shape[1] for speeds in instance.speeds), default=1)
    options, steps = np.ones(instance.n, dtype=np.int64), np.ones((instance.n, most), dtype=np.int64)
    memory, stretch = np.repeat(instance.gpu_memory[:, None], most, axis=1), np.ones((instance.n, most, 2))
    for speeds in instance.speeds:
        splits, known = speeds.splits, speeds.splits.row > 0
        jobs, row, width = speeds.jobs[known], splits.row[known], splits.steps.shape[1]
        options[jobs] = splits.options[row]
        steps[jobs, :width], memory[jobs, :width] = splits.steps[row], splits.memory[row]
        stretch[jobs, :width] = splits.stretch[row]
    names = list(dict.fromkeys(instance.kinds))
    position = {name: k for k, name in enumerate(names)}
    return SharingRates(
        options,
        steps,
        memory,
        stretch,
        np.array([position[name] for name in instance.kinds], dtype=np.int64),
        instance.interference.table(names),
        seconds_alone(instance),
        instance.too_wide.astype(np.int64),
    )
