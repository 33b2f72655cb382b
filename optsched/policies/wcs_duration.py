"""``wcs-duration``: work-conserving, shortest predicted duration first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from optsched.policies import POLICIES
from optsched.policies.predicted_queue import Foreseen, PredictedQueue


@POLICIES.register("wcs-duration")
@dataclass
class WcsDuration(PredictedQueue):
    """Work-conserving, shortest predicted duration first: by n^_j alpha_min, passing over jobs that do not fit.

    **Problem** P | r_j, size_j, online-r_j | sum C_j, speeds from placements. **Knowledge** predicted, by ``predictor``.

    **Guarantee** none. **Counterexample** narrow jobs that keep coming hold a wide one up for ever: n one-GPU jobs
    (release k, length 2) and many short two-GPU jobs on 2 GPUs, a ratio that grows with n. **Complexity** O(log n) an
    event and a placement a kind of jobs. **Reference** a baseline of the A-SRPT study (Luo, Liu, Lee, Shroff, INFOCOM
    2025); its exact definition is this project's own.
    """

    name: ClassVar[str] = "wcs-duration"
    work_conserving: ClassVar[bool] = True

    def key(self, foreseen: Foreseen) -> Any:
        """The order of the queue."""
        return foreseen.seconds
