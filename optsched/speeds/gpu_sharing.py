"""Two jobs on a GPU: how fast each runs, and when sharing pays.

**Rate model**: job A with sub-batch option o on a placement runs alone at pace_A seconds a unit of work (those of its
duration, profile, table or scaling) times ``stretch`` (what its sub-steps cost, `optsched.problem.scaling`: T(m, s, r)
/ T of its first option), and beside partners at that times max over its GPUs of xi_{A | partner there}.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.job_speeds import JobSpeeds, SubBatch
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
    row, splits = _splits(instance)
    options = np.array([max(len(chain), 1) for chain, _ in splits], dtype=np.int64)
    most = int(options.max(initial=1))
    steps = np.ones((len(splits), most), dtype=np.int64)
    memory, stretch = np.zeros((len(splits), most)), np.ones((len(splits), most, 2))
    for k, (chain, stretches) in enumerate(splits):
        for o, each in enumerate(chain):
            steps[k, o], memory[k, o], stretch[k, o] = each.steps, each.memory, stretches[o]
    names = list(dict.fromkeys(instance.kinds))
    position = {name: k for k, name in enumerate(names)}
    wide = np.where(instance.class_eligible, instance.cluster.node_gpus, 0) if instance.n else np.zeros((0, 1))
    widest = wide.max(axis=1, initial=0)
    return SharingRates(
        options[row],
        steps[row],
        np.where((row == 0)[:, None], instance.gpu_memory[:, None], memory[row]),
        stretch[row],
        np.array([position[name] for name in instance.kinds], dtype=np.int64),
        instance.interference.table(names),
        seconds_alone(instance),
        (instance.gpus > widest[instance.job_class]).astype(np.int64) if instance.n else np.zeros(0, dtype=np.int64),
    )


def _splits(instance: Instance) -> tuple[Ints, list[tuple[tuple[SubBatch, ...], list[list[float]]]]]:
    # (row of every job, i64[n]; of every row the sub-batches and their stretches); row 0: batches that nobody may split
    row = np.zeros(instance.n, dtype=np.int64)
    splits: list[tuple[tuple[SubBatch, ...], list[list[float]]]] = [((), [])]
    for speeds in instance.speeds:
        keys = list(map(speeds.alike, speeds.jobs.tolist()))
        known: dict[Any, int] = {}
        for key, j in dict(zip(keys, speeds.jobs.tolist(), strict=True)).items():
            chain = speeds.sub_batches(j)
            known[key] = len(splits) if chain else 0
            if chain:
                splits.append((chain, _stretches(speeds, j, chain)))
        row[speeds.jobs] = list(map(known.__getitem__, keys))
    return row, splits


def _stretches(speeds: JobSpeeds, j: int, chain: Sequence[SubBatch]) -> list[list[float]]:
    # of every sub-batch, on one node and over several
    both = [[speeds.split_seconds(j, each, spans) for spans in (False, True)] for each in chain]
    return [[max(seconds / whole, 1.0) for seconds, whole in zip(each, both[0], strict=True)] for each in both]
