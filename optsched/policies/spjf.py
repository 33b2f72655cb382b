"""``spjf``: shortest predicted job first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from optsched.policies import POLICIES
from optsched.policies.predicted_queue import Foreseen, PredictedQueue


@POLICIES.register("spjf")
@dataclass
class Spjf(PredictedQueue):
    """Shortest predicted job first: by predicted duration n^_j alpha_min, the head blocks.

    **Problem** P | r_j, size_j, online-r_j | sum C_j, speeds from placements. **Knowledge** predicted, by ``predictor``.

    **Guarantee** none. **Counterexample** with gangs as wide as the cluster the head leaves nearly everything idle: a
    factor about G/2. **Complexity** O(log n) an event and a placement a kind of jobs. **Reference** a baseline of the
    A-SRPT study (Luo, Liu, Lee, Shroff, INFOCOM 2025); its exact definition is this project's own.
    """

    name: ClassVar[str] = "spjf"
    work_conserving: ClassVar[bool] = False

    def key(self, foreseen: Foreseen) -> Any:
        """The order of the queue."""
        return foreseen.seconds
