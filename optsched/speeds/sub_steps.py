"""What the sub-steps of gradient accumulation cost the segments of a schedule: memory and time, for a second look at it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance


@dataclass(frozen=True, eq=False)
class SubSteps:
    """S segments. ``legal`` bool[S]: the steps are those of a sub-batch of the job; ``first`` i64[S]: those of its largest.

    ``memory`` f64[S] bytes on each GPU; ``stretch`` f64[S]: seconds of an iteration by those with the largest sub-batch,
    T(m, s, r) / T(m_0, s_0, r) on one node or over several (`optsched.problem.scaling`). Where the steps are invalid,
    or the segment names no job, those of the largest sub-batch.
    """

    legal: npt.NDArray[np.bool_]
    first: Ints
    memory: Floats
    stretch: Floats


def segment_sub_steps(instance: Instance, job: Ints, steps: Ints, gpu_offset: Ints, gpu_node: Ints) -> SubSteps:
    """The costs of ``steps`` i64[S] of segments of ``job`` i64[S] (-1: none) on GPUs as in `segment_paces`.

    A job without a scaling profile has one way to run: 1 step, its ``gpu_memory``. O(K + n B) for batches of B samples.
    """
    size = job.size
    legal, first, stretch = steps == 1, np.ones(size, dtype=np.int64), np.ones(size)
    memory = np.append(instance.gpu_memory, 0.0)[job]
    for s, (j, count) in enumerate(zip(job.tolist(), steps.tolist(), strict=True)):
        chain = () if j < 0 else instance.sub_batches(j)
        if not chain:
            continue
        largest, chosen = chain[0], next((each for each in chain if each.steps == count), None)
        legal[s], first[s] = chosen is not None, largest.steps
        if chosen is None:
            continue
        memory[s] = chosen.memory
        if chosen is not largest:
            spans = np.unique(gpu_node[gpu_offset[s] : gpu_offset[s + 1]]).size > 1
            seconds = [instance.speeds_of(j).split_seconds(j, each, spans) for each in (chosen, largest)]
            stretch[s] = seconds[0] / seconds[1]
    return SubSteps(legal, first, memory, stretch)
