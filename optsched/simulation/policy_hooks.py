"""A policy in plain Python during one run: its predictor, what that said, and what the policy notes down."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optsched.errors import KnowledgeError, OptschedError, SimulationError
from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance
from optsched.simulation.policy import JobFacts, KnownJobs, Order, Predictor, View


def blamed(error: BaseException, policy: str, now: float) -> BaseException:
    """``error`` of a policy that was asked at ``now``, to be raised: it says whose it is, and when.

    A policy's own exception stays what it is, with a note ("policy NAME at T s"); what it may not do is put into words.
    """
    where = f"policy {policy} at {now:.12g} s"
    if isinstance(error, KnowledgeError):
        return KnowledgeError(f"{where}: {error}")
    if isinstance(error, OptschedError):
        return error
    if isinstance(error, SystemExit):
        return SimulationError(f"{where}: SystemExit: a policy may not end the program")
    error.add_note(where)
    return error


class PolicyHooks:
    """The optional parts of a `Policy`: ``begin``, ``make_predictor``, ``accelerator``, ``notes``.

    The predictor hears of a job's length when the job completes, and is asked for one when the job arrives; completions of
    one instant come before its arrivals.
    """

    def __init__(self, policy: Any, instance: Instance) -> None:
        self.policy, self.instance = policy, instance
        make = getattr(policy, "make_predictor", None)
        self._predictor: Predictor | None = None if make is None else make()
        self.predicted: Floats | None = None
        if self._predictor is not None:
            revealed = bool(getattr(self._predictor, "oracle", False))
            self._predictor.begin(JobFacts(instance, revealed=revealed))
            self.predicted = np.full(instance.n, np.nan)

    def begin(self, view: View) -> None:
        """A new run: the policy forgets the last one."""
        if not hasattr(self.policy, "begin"):
            return
        try:
            self.policy.begin(view)
        except (Exception, SystemExit) as error:
            raise blamed(error, self.policy.name, self.instance.zero) from error.__cause__

    def hear(self, now: float, arrived: list[int], finished: list[int]) -> None:
        """What happened at ``now``."""
        if self._predictor is None or self.predicted is None:
            return
        try:
            for j in finished:
                self._predictor.observe(j, now, float(self.instance.work[j]))
            for j in arrived:
                self._predict(self._predictor, self.predicted, j, now)
        except (Exception, SystemExit) as error:
            raise blamed(error, self.policy.name, now + self.instance.zero) from error.__cause__

    def _predict(self, predictor: Predictor, predicted: Floats, j: int, now: float) -> None:
        length = predictor.predict(j, now)
        if not (math.isfinite(length) and length > 0):
            raise SimulationError(
                f"predictor {predictor.name} at {now + self.instance.zero:.12g} s: "
                f"job {self.instance.ids[j]!r} is predicted to have the length {length!r} (expected: a finite number > 0)"
            )
        predicted[j] = length

    def accelerator(self, jobs: KnownJobs) -> Order | None:
        """The policy's decisions in compiled form, if it has one, and needs no predictor that learns during the run."""
        make = getattr(self.policy, "accelerator", None)
        if make is None or getattr(self._predictor, "learns", self._predictor is not None):
            return None
        if self._predictor is not None and self.predicted is not None:
            for j, now in enumerate(self.instance.arrival.tolist()):
                self._predict(self._predictor, self.predicted, j, now)
        jobs.predicted = self.predicted
        found: Order | None = make(jobs)
        return found

    def results(self) -> dict[str, Any]:
        """What a `Run` keeps of it."""
        notes: dict[str, Floats] = self.policy.notes() if hasattr(self.policy, "notes") else {}
        times = tuple(getattr(self.policy, "noted_times", ()))
        return {"predicted": self.predicted, "notes": notes, "noted_times": times}
