"""``perfect``: the truth."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from optsched.policies.predictors import PREDICTORS
from optsched.problem.arrays import Floats
from optsched.simulation.policy import JobFacts


@PREDICTORS.register("perfect")
@dataclass
class Perfect:
    """The true length: lam_o = lam_u = 1, against which every other predictor is measured. O(1) a job."""

    name: ClassVar[str] = "perfect"
    oracle: ClassVar[bool] = True
    learns: ClassVar[bool] = False
    _length: Floats | None = field(default=None, init=False, repr=False)

    def begin(self, jobs: JobFacts) -> None:
        """Read the truth."""
        self._length = jobs.length

    def predict(self, job: int, now: float) -> float:
        """n_j."""
        assert self._length is not None, "begin() comes first"
        return float(self._length[job])

    def observe(self, job: int, now: float, length: float) -> None:
        """Nothing to learn."""
