"""`MethodTheorem`: a theorem about a method of `optsched.solve` that knows everything in advance and is no policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from optsched.bounds.certificate import rounded_down
from optsched.check.referee import schedule_value
from optsched.guarantees.guarantee import ROUNDING, Statement
from optsched.guarantees.judge import Judgement
from optsched.guarantees.optimum_bounds import OptimumBounds
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective
from optsched.problem.schedule import Schedule
from optsched.registry import Registry
from optsched.solvers.solution import Solution
from optsched.solvers.solve import solve


@dataclass(frozen=True, kw_only=True)
class MethodTheorem(Statement):
    """What ``method`` finds costs at most ``ratio`` times the optimum of ``objective``, even of schedules that preempt.

    Everything else is as in `optsched.guarantees.guarantee.Guarantee`, of an instance instead of a run: ``proves`` is a
    lower bound on its optimum, times counted from the first arrival, of which the proof says the same; ``audit`` names the
    jobs for which an inequality of the proof does not hold.
    """

    method: str
    ratio: Fraction
    proves: Callable[[Instance], Fraction]
    audit: Callable[[Instance], list[str]]
    knowledge: str = "offline"

    def judge(self, instance: Instance, found: Schedule | None = None) -> Judgement:
        """Hold it against what the method finds, ``found`` where it has run: holds, violated or open, as for a guarantee.

        Both are compared counted from the first arrival, where every ratio is the largest; the values of the judgement are
        on the clock of the instance. Raises `InputError` where the method does not apply.
        """
        local = instance.relative
        found = solve(local, self.objective, model=self.method).schedule if found is None else found.relative
        if found is None:
            raise AssertionError("a method that keeps the best of some schedules has one")
        value, own = schedule_value(local, found, self.objective), self.proves(local)
        certified = OptimumBounds(local).lower(self.objective, "gang")
        lower = own if certified is None else max(certified, own)
        findings = self.audit(local)
        if value > self.ratio * (1 + Fraction(ROUNDING)) * own:
            findings.append(f"{self.objective} is {float(value):.12g}, more than the proof allows: {float(own):.12g}")
        holds = False if findings else True if value <= self.ratio * (1 + Fraction(ROUNDING)) * lower else None
        moved, ratio = get_objective(self.objective).clock_part(instance), float(self.ratio)
        numbers = float(value + moved), rounded_down(lower + moved)
        return Judgement(self.id, self.objective, ratio, *numbers, holds, self.method, tuple(findings))


METHOD_THEOREMS: Registry[MethodTheorem] = Registry("theorem on a method", package="optsched.guarantees")
method_theorem = METHOD_THEOREMS.maker(MethodTheorem, lambda theorem: theorem.id)


def judge_method(instance: Instance, solution: Solution) -> Judgement | None:
    """What the theorem on the method that found this solution says of it; None where there is none on its objective."""
    about = (theorem for _, theorem in METHOD_THEOREMS.items() if theorem.method == solution.model)
    theorem = next((each for each in about if each.objective == solution.objective), None)
    return None if theorem is None or solution.schedule is None else theorem.judge(instance, solution.schedule)
