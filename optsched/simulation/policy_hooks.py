"""A policy in plain Python during one run: its predictor, what that said, and what the policy notes down."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optsched.errors import SimulationError
from optsched.problem.instance import Instance
from optsched.simulation.policy import Floats, JobFacts, Predictor, View


class PolicyHooks:
    """The optional parts of a `Policy`: ``begin``, ``make_predictor``, ``notes``.

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
        if hasattr(self.policy, "begin"):
            self.policy.begin(view)

    def hear(self, now: float, arrived: list[int], finished: list[int]) -> None:
        """What happened at ``now``."""
        if self._predictor is None or self.predicted is None:
            return
        for j in finished:
            self._predictor.observe(j, now, float(self.instance.work[j]))
        for j in arrived:
            length = self._predictor.predict(j, now)
            if not (math.isfinite(length) and length > 0):
                raise SimulationError(
                    f"predictor {self._predictor.name} at {now + self.instance.zero:.12g} s: "
                    f"job {self.instance.ids[j]!r} is predicted to have the length {length!r} (legal: a finite number > 0)"
                )
            self.predicted[j] = length

    def told(self) -> dict[str, Any]:
        """What a `Run` keeps of it."""
        notes = self.policy.notes() if hasattr(self.policy, "notes") else {}
        times = tuple(getattr(self.policy, "noted_times", ()))
        return {"predicted": self.predicted, "notes": notes, "noted_times": times}
