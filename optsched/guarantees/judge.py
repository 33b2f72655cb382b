"""Is a guarantee kept? Each on its own objective and under its own assumptions, against what is proven.

**holds**: value <= ratio x verified lower bound. **violated**: value > ratio x proven upper bound on the optimum, or a
per-job inequality of the proof fails. Otherwise **open**: the bound is too weak to tell. Only a violation is an error.
Of a gain (`optsched.problem.objectives.Utility`): ratio x value >= verified upper bound, or < what some schedule is
proven to reach.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from optsched.bounds.certificate import rounded_down
from optsched.check.referee import schedule_value
from optsched.guarantees.guarantee import GUARANTEES, MISSED, ROUNDING, Guarantee, Statement
from optsched.guarantees.optimum_bounds import OptimumBounds
from optsched.policies.simulate import Specification
from optsched.problem.files import file_name, is_source
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective
from optsched.problem.schedule import Schedule
from optsched.registry import Registry
from optsched.simulation.run import Run
from optsched.solvers.solution import Solution
from optsched.solvers.solve import solve


@dataclass(frozen=True)
class Judgement:
    """The verdict of a theorem on a run; ``value`` and ``bound`` are of the theorem's own objective.

    ``holds``: True (kept), False (violated; ``findings`` say how) or None (open). ``ratio`` is the theorem's factor.
    """

    id: str
    objective: str
    ratio: float
    value: float | None
    bound: float | None
    holds: bool | None
    policy: str = ""
    findings: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """The verdict in one word."""
        return {True: "holds", False: "VIOLATED", None: "open"}[self.holds]

    @property
    def complaint(self) -> str:
        """One line with policy, theorem and findings."""
        return f"{self.policy} breaks the guarantee {self.id!r}: {'; '.join(self.findings)}"

    def to_json(self) -> dict[str, Any]:
        """Return the judgement as in ``run --json``."""
        fields = ("id", "objective", "ratio", "value", "bound", "holds")
        return {name: getattr(self, name) for name in fields}


def judgement(
    theorem: Statement,
    ratio: Fraction | float,
    numbers: tuple[float | None, float | None],
    kept: bool | None,
    policy: str,
    findings: Iterable[str],
) -> Judgement:
    """Return the judgement of a theorem from its parts; any finding makes it violated.

    Parameters
    ----------
    theorem
        The theorem.
    ratio
        Its factor.
    numbers
        Value and bound.
    kept
        Whether these show that the ratio is kept.
    policy
        Name of the policy.
    findings
        What is wrong, in words.
    """
    found = tuple(findings)
    holds = False if found else True if kept else None
    return Judgement(theorem.id, theorem.objective, float(ratio), *numbers, holds, policy, found)


def judge(theorem: Guarantee, policy: Any, run: Run, proven: OptimumBounds) -> Judgement:
    """Check a theorem that applies against a run of a policy.

    Value and bound are compared in times from the first arrival, where every ratio is largest; the values of the
    judgement are on the clock of the instance. Complexity O(n log n) beyond the certificate, which ``proven`` makes
    once for each objective.

    Parameters
    ----------
    theorem
        The theorem.
    policy
        The policy.
    run
        Its run.
    proven
        What is proven about the optimum.
    """
    run, moved, gain = run.relative, proven.clock_part(theorem.objective), get_objective(theorem.objective).gain
    ratio = theorem.ratio(policy, run)
    if not math.isfinite(ratio):
        raise ValueError(f"the guarantee {theorem.id!r} gives the ratio {ratio} for a run of {run.policy}")
    findings = list(theorem.audit(policy, run))
    found = proven.lower(theorem.objective, theorem.schedule_class)
    known = None if found is None else found - moved, theorem.proves(policy, run)
    lower = max((each for each in known if each is not None), default=None)
    value, kept = None, False
    if run.unfinished:
        findings += [f"job {job!r} never finishes" for job in run.unfinished[:1]]
    else:
        value = schedule_value(run.instance, run.schedule, theorem.objective)
        meant = value - _missed(run, theorem.objective)
        # integers throughout: nothing was rounded, and a tight family must reach its ratio and not a bit more
        completion = run.schedule.completion
        integral = run.instance.integral and (completion == np.floor(completion)).all()
        factor = Fraction(ratio) * (1 + Fraction(0 if isinstance(ratio, Fraction | int) and integral else ROUNDING))
        kept = lower is not None and (factor * value >= lower if gain else meant <= factor * lower)
        if not kept:
            beyond = factor * value if gain else meant / factor
            best = proven.upper(theorem.objective, theorem.schedule_class, beyond + moved)
            upper = None if best is None else best - moved
            if upper is not None and (factor * value < upper if gain else meant > factor * upper):
                missed = _missed_by(gain, float(value), float(ratio), float(upper))
                findings.append(f"{theorem.objective} {missed}")
    shown = None if value is None else float(value + moved)
    bound = None if lower is None else float(lower) if gain else rounded_down(lower + moved)
    return judgement(theorem, ratio, (shown, bound), kept, run.policy, findings)


def judgements(specification: Specification, run: Run, proven: OptimumBounds) -> tuple[Judgement, ...]:
    """Return the judgement of every theorem that applies and whose factor is finite for the run.

    Parameters
    ----------
    specification
        Policy and placement.
    run
        Their run.
    proven
        What is proven about the optimum.
    """
    policy, placement, instance = specification.policy, specification.placement, run.instance.relative
    applying = (theorem for _, theorem in GUARANTEES.items() if theorem.applies(policy, placement, instance))
    promising = (theorem for theorem in applying if math.isfinite(theorem.ratio(policy, run.relative)))
    return tuple(judge(theorem, policy, run, proven) for theorem in promising)


def chosen(judged: Sequence[Judgement], objective: str) -> Judgement | None:
    """Return the judgement to show next to a value: a violation, else one of its objective, else the strongest.

    Parameters
    ----------
    judged
        Judgements.
    objective
        Name of the objective.
    """
    return min(judged, key=lambda j: (j.holds is not False, j.objective != objective, j.ratio), default=None)


def violated(judged: Iterable[Judgement]) -> list[Judgement]:
    """Return the judgements that do not hold.

    Parameters
    ----------
    judged
        Judgements.
    """
    return [each for each in judged if each.holds is False]


def _missed(run: Run, objective: str) -> Fraction:
    # What completions that were read on a late clock may add up to beyond what was meant; nothing for a run of the engine.
    goal, moment = get_objective(objective), MISSED * Fraction(run.schedule.resolution)
    if moment == 0 or goal.maximum or goal.gain:
        return moment
    return moment * (sum(map(Fraction, run.instance.weight.tolist())) if goal.weighted else run.instance.n)


def _missed_by(gain: bool, value: float, ratio: float, upper: float) -> str:
    if gain:
        return f"is {value:.12g}; {ratio:.6g} times that is less than an optimum of at least {upper:.12g}"
    if upper <= 0:
        return f"is {value:.12g}, the optimum {upper:.12g}"
    most = f"an optimum of at most {upper:.12g} ({value / upper:.6g} times)"
    return f"is {value:.12g}, more than {ratio:.6g} times {most}"


def save_violation(instance: Instance, judgement: Judgement, folder: str | os.PathLike[str] = ".") -> Path:
    """Write ``violated-<theorem>-<policy>-<digest>.json`` into a folder and return its path.

    ``optsched run FILE -p POLICY`` repeats the run. The same violation gives the same file.

    Parameters
    ----------
    instance
        The instance of the run.
    judgement
        The judgement.
    folder
        The folder.
    """
    path = Path(folder) / f"violated-{judgement.id}-{file_name(judgement.policy)}-{instance.digest[:8]}.json"
    if not is_source(path):  # the run was that of a saved violation: there it is
        instance.save(path)
    return path


# A theorem about a method of `optsched.solve` that knows everything in advance and is no policy.


@dataclass(frozen=True, kw_only=True)
class MethodTheorem(Statement):
    """A theorem on a method: its schedule costs at most ``ratio`` times the optimum, even of schedules that preempt.

    Attributes
    ----------
    method
        Name of the method.
    ratio
        The factor.
    proves
        Function of an instance that returns a lower bound on its optimum, with times from the first arrival; by the
        proof the ratio holds against it, too.
    audit
        Function of an instance that names the jobs for which an inequality of the proof does not hold.
    """

    method: str
    ratio: Fraction
    proves: Callable[[Instance], Fraction]
    audit: Callable[[Instance], list[str]]
    knowledge: str = "offline"

    def judge(self, instance: Instance, found: Schedule | None = None) -> Judgement:
        """Check the theorem against the schedule that the method finds: holds, violated or open, as for a guarantee.

        Value and bound are compared in times from the first arrival, where every ratio is largest; the values of the
        judgement are on the clock of the instance.

        Parameters
        ----------
        instance
            Jobs and a cluster.
        found
            Schedule of the method, if it has run.

        Raises
        ------
        InputError
            The method does not apply.
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
        kept = value <= self.ratio * (1 + Fraction(ROUNDING)) * lower
        moved = get_objective(self.objective).clock_part(instance)
        numbers = float(value + moved), rounded_down(lower + moved)
        return judgement(self, self.ratio, numbers, kept, self.method, findings)


METHOD_THEOREMS: Registry[MethodTheorem] = Registry("theorem on a method", package="optsched.guarantees")
method_theorem = METHOD_THEOREMS.maker(MethodTheorem, lambda theorem: theorem.id)


def judge_method(instance: Instance, solution: Solution) -> Judgement | None:
    """Return the judgement of the theorem on the method that found a solution; None if there is none on its objective.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    solution
        The solution.
    """
    about = (theorem for _, theorem in METHOD_THEOREMS.items() if theorem.method == solution.model)
    theorem = next((each for each in about if each.objective == solution.objective), None)
    return None if theorem is None or solution.schedule is None else theorem.judge(instance, solution.schedule)
