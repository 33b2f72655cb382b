"""Two jobs on a GPU: the rate of each, and the input of the rules that share.

**Rate model**: job A with sub-batch option o on a placement takes pace_A seconds a unit of work alone (those of its
duration, profile, table or scaling) times ``stretch`` (the cost of its sub-steps, `optsched.problem.scaling`: T(m, s,
r) / T of its first option). Next to partners it takes that times the max over its GPUs of xi_{A | partner there}.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.interference import Interference
from optsched.problem.job_speeds import JobSpeeds, SubBatch
from optsched.speeds.duration import seconds_alone

Chain = tuple[SubBatch, ...]


@dataclass(frozen=True, eq=False)
class SharingRates:
    """Arrays of n jobs, O sub-batch options at most, K kinds of jobs.

    ``options`` i64[n] >= 1; ``steps`` i64[n, O] sub-steps; ``memory`` f64[n, O] bytes on each GPU; ``stretch`` f64[n,
    O, 2] >= 1, on one node and over several; ``kind`` i64[n]; ``xi`` f64[K, K] (inf: never together); ``alone``
    f64[n]: e_j, the fewest seconds alone with the first option; ``spans`` i64[n]: 1 if no node that suits the job
    could hold its gang; ``alike`` i64[n]: the first job that differs at most by its arrival, weight and due date.
    """

    options: Ints
    steps: Ints
    memory: Floats
    stretch: Floats
    kind: Ints
    xi: Floats
    alone: Floats
    spans: Ints
    alike: Ints


def sharing_rates(instance: Instance) -> SharingRates:
    """Return the arrays of an instance with interference. O(n + K^2), and O for each class of identical jobs.

    Parameters
    ----------
    instance
        Jobs and a cluster, with interference.

    Raises
    ------
    InputError
        As in `optsched.speeds.duration.seconds_alone`.
    """
    # a row of the tables for all identical jobs of one model; 0: the ways to split their batches are not known
    chains, paces = list[tuple[JobSpeeds, int, Chain]](), 0
    row, pace = np.zeros((2, instance.n), dtype=np.int64)
    for speeds in instance.speeds:
        numbers, pairs = dict[Any, tuple[int, int]](), list[tuple[int, int]]()
        for j in speeds.jobs.tolist():
            key = speeds.alike(j)
            pair = numbers.get(key)
            if pair is None:
                chain = speeds.sub_batches(j)
                chains += [(speeds, j, chain)] * bool(chain)
                paces += 1
                pair = numbers[key] = len(chains) if chain else 0, paces
            pairs.append(pair)
        row[speeds.jobs], pace[speeds.jobs] = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    options = np.array([1, *(len(chain) for *_, chain in chains)], dtype=np.int64)
    shape = options.size, int(options.max())
    steps, memory, stretch = np.ones(shape, dtype=np.int64), np.zeros(shape), np.ones((*shape, 2))
    for k, (speeds, j, chain) in enumerate(chains, 1):
        memory[k] = chain[0].memory
        for o, option in enumerate(chain):
            steps[k, o], memory[k, o] = option.steps, option.memory
        for spans in (False, True):
            first = speeds.split_seconds(j, chain[0], spans)
            for o, option in enumerate(chain[1:], 1):
                stretch[k, o, int(spans)] = max(speeds.split_seconds(j, option, spans) / first, 1.0)
    names = list(dict.fromkeys(instance.kinds))
    position = {name: k for k, name in enumerate(names)}
    kind = np.array([position[name] for name in instance.kinds], dtype=np.int64)
    return SharingRates(
        options[row],
        steps[row],
        np.where(row[:, None] > 0, memory[row], instance.gpu_memory[:, None]),
        stretch[row],
        kind,
        cast(Interference, instance.interference).table(names),  # callers look first
        seconds_alone(instance),
        instance.too_wide.astype(np.int64),
        first_alike(pace, kind, instance.job_class, instance.work, instance.gpu_memory),
    )


def first_alike(*columns: Ints | Floats) -> Ints:
    """Return for every row the first row that is equal in all columns, i64[n]. O(n log n).

    Parameters
    ----------
    *columns
        Values of the rows, [n] each.
    """
    group = np.zeros(columns[0].size, dtype=np.int64)
    for values in columns:
        _, number = np.unique(values, return_inverse=True)
        _, group = np.unique(group * (number.max(initial=0) + 1) + number, return_inverse=True)
    _, first = np.unique(group, return_index=True)
    return first[group].astype(np.int64)
