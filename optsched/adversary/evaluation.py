"""What a candidate is worth: the policy's value divided by that of a good schedule, or of another policy."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from optsched.adversary.candidate import Candidate
from optsched.adversary.space import SearchSpace
from optsched.policies.simulate import simulate
from optsched.policies.specification import Specification
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective
from optsched.simulation.run import Run

KEPT = 200_000  # candidates whose ratio is remembered


@dataclass
class Evaluation:
    """The ratio of candidates under one policy; the same candidate is never run twice.

    ``against``: the other policy, or None for the best schedule that the space knows. ``runs`` counts what was simulated.
    """

    space: SearchSpace
    policy: Specification
    against: Specification | None
    objective: str
    runs: int = 0
    _known: dict[Candidate, float] = field(default_factory=dict, repr=False)

    def ratio(self, candidate: Candidate) -> float:
        """At least 0; 0 where a job never finished, or nothing is there to divide by."""
        if candidate not in self._known:
            if len(self._known) >= KEPT:
                self._known.clear()
            self._known[candidate] = self._measured(candidate)
        return self._known[candidate]

    def value(self, candidate: Candidate) -> float:
        """That of the policy's run; nan where a job never finished."""
        return self._run(self.space.instance(candidate), self.policy, candidate).value(self.objective)

    def fresh(self) -> Evaluation:
        """The same without what it remembers: for another process."""
        return Evaluation(self.space, self.policy, self.against, self.objective)

    def _measured(self, candidate: Candidate) -> float:
        instance = self.space.instance(candidate)
        run = self._run(instance, self.policy, candidate)
        self.runs += 1
        value = run.value(self.objective)
        if math.isnan(value):
            return 0.0
        if self.against is not None:
            other = self._run(instance, self.against, candidate).value(self.objective)
        else:
            other = self.space.reached(candidate, instance, self.objective, run.schedule_class == "gang")
        if get_objective(self.objective).gain:
            value, other = other, value
        return value / other if other > 0 else 0.0

    def _run(self, instance: Instance, specification: Specification, candidate: Candidate) -> Run:
        return simulate(instance, self.space.specification(specification, candidate))
