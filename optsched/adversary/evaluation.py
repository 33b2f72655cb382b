"""Ratio of a candidate: the policy's value over that of a good schedule or of another policy, quickly or with proof.

A search uses quick values; reports come from `confirmed`, by the public API: runs that the referee accepts, and verified
bounds. **Proved**: value / (a value that some schedule reaches) is at most the ratio of the policy on this instance,
whatever the optimum; it is the ratio to the optimum if that is proved. **At most**: value / (verified lower bound).
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
from optsched.evaluation.accepted_run import refereed
from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.guarantees.judge import Judgement, judgements
from optsched.policies.simulate import Specification, simulated_value, specify
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective

KEPT = 200_000  # candidates whose ratio is remembered
ROUNDING = 1e-9  # relative: far more than the rounding errors of a ratio


@dataclass
class Evaluation:
    """Ratios of candidates under one policy; no candidate is run twice.

    ``against``: the other policy, or None for the best schedule that the space knows. ``runs``: number of simulations.
    """

    space: SearchSpace
    policy: Specification
    against: Specification | None
    objective: str
    runs: int = 0
    _known: dict[Candidate, float] = field(default_factory=dict, repr=False)
    _below: dict[Candidate, float] = field(default_factory=dict, repr=False)  # what their ratios are below

    def ratio(self, candidate: Candidate) -> float:
        """Return the ratio of a candidate, at least 0; 0 if a job never finishes, or the denominator is 0.

        Parameters
        ----------
        candidate
            The candidate.
        """
        if candidate not in self._known:
            instance = self.space.instance(candidate)
            value, schedule_class = self._value(instance, self.policy, candidate)
            ratio = self._compared(candidate, instance, value, _is_preemptive(schedule_class))
            return self._remember(self._known, candidate, ratio)
        return self._known[candidate]

    def ratio_above(self, candidate: Candidate, least: float) -> float | None:
        """Return the ratio of a candidate, or None if it is certainly below a number, which takes less time to find out.

        The policy's value and a limit on the other one show it: the ratio is below ``least`` if no schedule reaches
        value / ``least``.

        Parameters
        ----------
        candidate
            The candidate.
        least
            The number; at most 0: the ratio is always returned.
        """
        if candidate not in self._known and self._below.get(candidate, math.inf) <= least:
            return None
        if candidate in self._known or least <= 0 or self.against is not None or get_objective(self.objective).gain:
            return self.ratio(candidate)
        instance = self.space.instance(candidate)
        value, schedule_class = self._value(instance, self.policy, candidate)
        limit, preemptive = value / least * (1 + ROUNDING), _is_preemptive(schedule_class)
        if limit > 0 and not self.space.may_reach(candidate, instance, self.objective, preemptive, limit):
            self._remember(self._below, candidate, least)
            self.runs += 1
            return None
        return self._remember(self._known, candidate, self._compared(candidate, instance, value, preemptive))

    def value(self, candidate: Candidate) -> float:
        """Return the value of the policy's run; nan if a job never finishes.

        Parameters
        ----------
        candidate
            The candidate.
        """
        return self._value(self.space.instance(candidate), self.policy, candidate)[0]

    def fresh(self) -> Evaluation:
        """Return a copy without stored ratios, for another process."""
        return Evaluation(self.space, self.policy, self.against, self.objective)

    def _remember(self, numbers: dict[Candidate, float], candidate: Candidate, number: float) -> float:
        if len(numbers) >= KEPT:
            numbers.clear()
        numbers[candidate] = number
        return number

    def _compared(self, candidate: Candidate, instance: Instance, value: float, preemptive: bool) -> float:
        """Return the ratio of the policy's value to the other one."""
        self.runs += 1
        if math.isnan(value):
            return 0.0
        if self.against is not None:
            other, _ = self._value(instance, self.against, candidate)
        else:
            other = self.space.reached(candidate, instance, self.objective, preemptive)
        if get_objective(self.objective).gain:
            value, other = other, value
        return value / other if other > 0 else 0.0

    def _value(self, instance: Instance, specification: Specification, candidate: Candidate) -> tuple[float, str]:
        # (value, class of schedules) of a policy's run
        policy = self.space.specification(specification, candidate)
        value, schedule_class = simulated_value(instance, policy, self.objective)
        self.space.has_run(policy, instance, self.objective, value)
        return value, schedule_class


def _is_preemptive(schedule_class: str) -> bool:
    # of rigid gangs
    kind = CLASSES.get(schedule_class)
    return kind.rigid and kind.preemptive


@dataclass(frozen=True)
class Confirmed:
    """Confirmed ratio: ``value`` of the policy's run, divided by ``other``.

    ``ratio_to``: ``optimum`` if it is proved, ``schedule`` if a schedule reaches ``other``, or the other policy's name.
    ``most``: the ratio to the verified bound, None if there is none, or none is requested. ``rival``: the other policy.
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
        """The ratio as a fraction, at least 1 if ``other`` is an optimum."""
        gain = get_objective(self.objective).gain
        return self.other / self.value if gain else self.value / self.other

    @property
    def ratio(self) -> float:
        """The ratio as a float."""
        return float(self.exact)


def confirmed(evaluation: Evaluation, candidate: Candidate, name: str, deadline: Deadline = NEVER) -> Confirmed:
    """Return the confirmed ratio of a candidate, to its optimum if that can be proved before the deadline.

    Parameters
    ----------
    evaluation
        Evaluation of candidates.
    candidate
        The candidate.
    name
        Name of the instance.
    deadline
        Latest end.

    Raises
    ------
    SimulationError
        If the referee rejects a run.
    OptschedError
        If the denominator is 0.
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
    rivals = ("srtf", "srtf-gpu") if _is_preemptive(run.schedule_class) else ()  # they preempt, where that is allowed
    proven = OptimumBounds(instance, [run, *(refereed(instance, specify(text)) for text in rivals)])
    shown = proven.bound_for(run, objective)
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
