"""`SharedSchedule`: a schedule in which two jobs may be on a GPU, and what sub-steps every job runs in."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from optsched.schedule import Schedule


@dataclass(frozen=True, eq=False)
class SharedSchedule(Schedule):
    """One segment a job; segments of different jobs may overlap on a GPU, at most two at a time.

    ``steps`` i64[S]: sub-steps of gradient accumulation in an iteration of the segment (1: the whole batch at once). They
    decide memory and speed (`optsched.scaling`), together with the partners of every moment (`optsched.interference`).
    """

    steps: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
