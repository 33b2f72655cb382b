"""What a candidate is worth: the policy's value over that of a good schedule or of another policy; quickly, and proved.

A search trusts quick ways to values; what is reported comes from `confirmed`, by the public API: runs that the referee
accepts, bounds proved again. **Proved**: value / (a value that some schedule reaches) is at most the ratio of the policy on
this instance, whatever the optimum; it is the ratio to the optimum where that was proved. **At most**: value / (verified
lower bound).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from optsched.adversary.space import Candidate, SearchSpace
from optsched.check.referee import schedule_value
from optsched.classes import CLASSES
from optsched.deadline import NEVER, Deadline
from optsched.errors import OptschedError
from optsched.guarantees.judge import Judgement, judgements
from optsched.guarantees.optimum_bounds import OptimumBounds, refereed
from optsched.policies.simulate import Specification, simulate, specify
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
            other = self.space.reached(candidate, instance, self.objective, _is_preemptive(run))
        if get_objective(self.objective).gain:
            value, other = other, value
        return value / other if other > 0 else 0.0

    def _run(self, instance: Instance, specification: Specification, candidate: Candidate) -> Run:
        return simulate(instance, self.space.specification(specification, candidate))


def _is_preemptive(run: Run) -> bool:
    # of rigid gangs
    kind = CLASSES.get(run.schedule_class)
    return kind.rigid and kind.preemptive


@dataclass(frozen=True)
class Confirmed:
    """``value`` of the policy's run; ``other``: what it is divided by.

    ``ratio_to``: ``optimum`` where that was proved, ``schedule`` where a schedule reaches ``other``, or the other policy's
    name. ``most``: the ratio to the verified bound, None where there is none, or none is asked for. ``rival``: that policy.
    """

    instance: Instance
    policy: Specification
    objective: str
    value: Fraction
    other: Fraction
    ratio_to: str
    most: float | None
    judged: tuple[Judgement, ...]
    rival: Specification | None = None

    @property
    def exact(self) -> Fraction:
        """The ratio, at least 1 where the other is an optimum."""
        gain = get_objective(self.objective).gain
        return self.other / self.value if gain else self.value / self.other

    @property
    def ratio(self) -> float:
        """The same as a float."""
        return float(self.exact)


def confirmed(evaluation: Evaluation, candidate: Candidate, name: str, deadline: Deadline = NEVER) -> Confirmed:
    """What is proved of a candidate; its optimum, where it can be proved before the ``deadline``.

    Raises `SimulationError` when the referee rejects a run, `OptschedError` when nothing is there to divide by.
    """
    space, objective = evaluation.space, evaluation.objective
    instance = space.instance(candidate, name).replace(objective=objective)
    policy = space.specification(evaluation.policy, candidate)
    run = refereed(instance, policy)
    value = schedule_value(instance, run.schedule, objective)
    if evaluation.against is not None:
        rival = space.specification(evaluation.against, candidate)
        other = _there(schedule_value(instance, refereed(instance, rival).schedule, objective))
        return Confirmed(instance, policy, objective, value, other, evaluation.against.text, None, (), rival)
    instance, found = space.proved(instance, objective, deadline)
    run = refereed(instance, policy)
    rivals = ("srtf", "srtf-gpu") if _is_preemptive(run) else ()  # they preempt, where that is allowed
    proven = OptimumBounds(instance, [run, *(refereed(instance, specify(text)) for text in rivals)])
    shown = proven.beside(run, objective)
    reached = [each for each in (proven.upper(objective, run.schedule_class), found) if each is not None]
    best = max if get_objective(objective).gain else min
    other, judged = _there(best(reached, default=value)), judgements(policy, run, proven)
    most = None if shown is None else shown.ratio(float(value))
    known = shown is not None and Fraction(shown.value) == other
    return Confirmed(instance, policy, objective, value, other, "optimum" if known else "schedule", most, judged)


def _there(value: Fraction) -> Fraction:
    if value <= 0:
        raise OptschedError("the best schedule costs nothing: there is no ratio")
    return value
