"""``perfect``: the truth; ``noisy``: the truth, wrong by a controlled factor."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from optsched.errors import check_legal
from optsched.policies.predictors import PREDICTORS, spelled
from optsched.problem.arrays import Floats
from optsched.simulation.predictor import JobFacts


@dataclass
class Oracle:
    """A predictor that reads the true lengths at the beginning, and learns nothing. O(1) a job."""

    oracle: ClassVar[bool] = True
    learns: ClassVar[bool] = False
    _predicted: Floats = field(init=False, repr=False, compare=False)

    def predict(self, job: int, now: float) -> float:
        """Return the prediction made at the beginning.

        Parameters
        ----------
        job
            Number of the job.
        now
            Its release date, in seconds.
        """
        return float(self._predicted[job])

    def observe(self, job: int, now: float, length: float) -> None:
        """Learn nothing.

        Parameters
        ----------
        job
            Number of the job.
        now
            Its completion, in seconds.
        length
            Its length: iterations or seconds.
        """


@PREDICTORS.register("perfect")
@dataclass
class Perfect(Oracle):
    """The true length: lam_o = lam_u = 1, the standard of comparison for every other predictor. O(1) a job."""

    name: ClassVar[str] = "perfect"

    def begin(self, jobs: JobFacts) -> None:
        """Read the true lengths.

        Parameters
        ----------
        jobs
            Facts about the jobs of the run.
        """
        self._predicted = jobs.length


LARGEST = 1e6


@PREDICTORS.register("noisy")
@dataclass
class Noisy(Oracle):
    """n^_j = n_j error^u_j, the u_j independent and uniform in [-1, 1]: lam_o, lam_u <= error. O(1) a job.

    u_j is the j-th draw of a generator seeded with ``seed``. It depends neither on the other jobs nor on the order of
    predictions, and is the same for every ``error``.

    Parameters
    ----------
    error
        Largest factor by which a prediction is wrong.
    seed
        Seed of the random numbers.
    """

    error: float = 2.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_legal(1 <= self.error <= LARGEST, "error", self.error, f"a factor from 1 to {LARGEST:g}")
        check_legal(self.seed >= 0, "seed", self.seed, "an integer >= 0")

    @property
    def name(self) -> str:
        """Name in reports, with parameters."""
        return spelled("noisy", self, always=("error",))

    def begin(self, jobs: JobFacts) -> None:
        """Read the true lengths and multiply them by random factors.

        Parameters
        ----------
        jobs
            Facts about the jobs of the run.
        """
        u = np.random.Generator(np.random.PCG64(self.seed)).uniform(-1, 1, jobs.n)
        self._predicted = jobs.length * self.error**u
