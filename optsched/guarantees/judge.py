"""Judgements: whether a guarantee holds for a run, given the bounds on the optimum that are proven.

Each theorem is judged on its own objective and under its own assumptions. **holds**: value <= ratio x verified lower bound.
**violated**: value > ratio x proven upper bound on the optimum, or a per-job inequality of the proof fails. Otherwise
**open**: the bounds are too weak to decide. Only a violation is an error. For a gain
(`optsched.problem.objectives.Utility`) the conditions are ratio x value >= verified upper bound, and ratio x value < the
value that some schedule certainly reaches.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from optsched.bounds.certificate import rounded_down
from optsched.check.referee import schedule_value
from optsched.classes import classes_of
from optsched.guarantees.guarantee import GUARANTEES, MISSED, ROUNDING, Guarantee, Statement
from optsched.policies.simulate import Specification
from optsched.problem.atomic_files import file_name, is_source
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective
from optsched.problem.schedule import Schedule
from optsched.registry import Registry
from optsched.simulation.run import Run


class ProvenOptimum(Protocol):
    """Proven bounds on the optimum of an instance; `optsched.evaluation.optimum_bounds.OptimumBounds` implements it."""

    instance: Instance

    def clock_part(self, objective: str) -> Fraction:
        """Return the part of a value that the clock of the instance adds to one counted from the first arrival.

        Parameters
        ----------
        objective
            Name of the objective.
        """
        ...

    def lower(self, objective: str, schedule_class: str | None = None) -> Fraction | None:
        """Return a verified lower bound on the optimum (for a gain, an upper one); None if no bound is known.

        Parameters
        ----------
        objective
            Name of the objective.
        schedule_class
            The class of schedules. Default: the class that the instance means.
        """
        ...

    def upper(self, objective: str, schedule_class: str, beyond: Fraction | None = None) -> Fraction | None:
        """Return the best value that a known schedule of the class certainly reaches; None if no schedule is known.

        Parameters
        ----------
        objective
            Name of the objective.
        schedule_class
            The class of schedules.
        beyond
            If given, only a better value than this is of interest.
        """
        ...


@dataclass(frozen=True)
class Judgement:
    """The verdict of a theorem on a run.

    Parameters
    ----------
    id
        Name of the theorem.
    objective
        The theorem's objective.
    ratio
        The theorem's factor.
    value
        The value of the run in the theorem's objective; None if a job never finished.
    bound
        The bound on the optimum that the value is compared with; None if no bound is known.
    holds
        True if the guarantee is kept, False if it is violated, None if the bounds are too weak to decide.
    policy
        The policy as it is written.
    findings
        Reasons for a violation.
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
        """``holds``, ``VIOLATED`` or ``open``."""
        return {True: "holds", False: "VIOLATED", None: "open"}[self.holds]

    @property
    def complaint(self) -> str:
        """One line that names the policy, the theorem and the reasons."""
        return f"{self.policy} breaks the guarantee {self.id!r}: {'; '.join(self.findings)}"

    def to_json(self) -> dict[str, Any]:
        """Return the judgement as it is written in ``run --json``."""
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
    """Return the judgement of a theorem on a run.

    Parameters
    ----------
    theorem
        The theorem.
    ratio
        Its factor for this run.
    numbers
        (value, bound), in the theorem's objective.
    kept
        True if these numbers show that the guarantee is kept.
    policy
        The policy as it is written.
    findings
        Reasons for a violation; if there are any, the guarantee is violated.
    """
    reasons = tuple(findings)
    holds = False if reasons else True if kept else None
    return Judgement(theorem.id, theorem.objective, float(ratio), *numbers, holds, policy, reasons)


def judge(theorem: Guarantee, policy: Any, run: Run, proven: ProvenOptimum) -> Judgement:
    """Judge whether a theorem that applies holds for a run.

    Value and bounds are compared on a clock that starts at the first arrival, where every ratio is the largest. The values
    of the judgement are on the clock of the instance. Complexity: O(n log n) in addition to the certificate, which
    ``proven`` makes once for each objective.

    Parameters
    ----------
    theorem
        The theorem.
    policy
        The policy that ran.
    run
        Its run.
    proven
        Proven bounds on the optimum of the instance.
    """
    run, moved, gain = run.relative, proven.clock_part(theorem.objective), get_objective(theorem.objective).gain
    ratio = theorem.ratio(policy, run)
    if not math.isfinite(ratio):
        raise ValueError(f"the guarantee {theorem.id!r} gives the ratio {ratio} for a run of {run.policy}")
    findings = list(theorem.audit(policy, run))
    certified = proven.lower(theorem.objective, theorem.schedule_class)
    bounds = None if certified is None else certified - moved, theorem.proves(policy, run)
    lower = max((bound for bound in bounds if bound is not None), default=None)
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


def judgements(specification: Specification, run: Run, proven: ProvenOptimum) -> tuple[Judgement, ...]:
    """Judge every theorem that applies to a run; a theorem whose factor is infinite for it is left out.

    Parameters
    ----------
    specification
        The policy that ran, and its placement.
    run
        Its run.
    proven
        Proven bounds on the optimum of the instance.
    """
    policy, placement, instance = specification.policy, specification.placement, run.instance.relative
    theorems = GUARANTEES.items(classes_of(instance))
    applying = (theorem for _, theorem in theorems if theorem.applies(policy, placement, instance))
    promising = (theorem for theorem in applying if math.isfinite(theorem.ratio(policy, run.relative)))
    return tuple(judge(theorem, policy, run, proven) for theorem in promising)


def chosen(judged: Sequence[Judgement], objective: str) -> Judgement | None:
    """Return the judgement to show with a value: a violation, else one on its objective, else the strongest.

    Parameters
    ----------
    judged
        Judgements of one run.
    objective
        The objective of the value.
    """
    return min(judged, key=lambda j: (j.holds is not False, j.objective != objective, j.ratio), default=None)


def violated(judged: Iterable[Judgement]) -> list[Judgement]:
    """Return the judgements that do not hold.

    Parameters
    ----------
    judged
        Judgements of a run.
    """
    return [judgement for judgement in judged if judgement.holds is False]


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
    """Write the instance of a violation to ``violated-<theorem>-<policy>-<digest>.json`` and return the path.

    ``optsched run FILE -p POLICY`` repeats the run. The same violation gives the same file.

    Parameters
    ----------
    instance
        The instance of the run.
    judgement
        The violation.
    folder
        The folder of the file.
    """
    path = Path(folder) / f"violated-{judgement.id}-{file_name(judgement.policy)}-{instance.digest[:8]}.json"
    if not is_source(path):  # the run was that of a saved violation: there it is
        instance.save(path)
    return path


# A theorem about a method of `optsched.solve` that knows everything in advance and is no policy.


@dataclass(frozen=True, kw_only=True)
class MethodTheorem(Statement):
    """A theorem: a schedule of ``method`` costs at most ``ratio`` x the optimum, even of schedules that preempt.

    Parameters
    ----------
    method
        The name of a method of `optsched.solve`.
    ratio
        The factor.
    proves
        Instance -> lower bound on its optimum, with times counted from the first arrival; the proof says that the schedule
        costs at most ``ratio`` times this bound.
    audit
        Instance -> jobs for which an inequality of the proof does not hold, in words.
    knowledge
        What the method knows.
    """

    method: str
    ratio: Fraction
    proves: Callable[[Instance], Fraction]
    audit: Callable[[Instance], list[str]]
    knowledge: str = "offline"

    def judge(self, instance: Instance, schedule: Schedule, certified: Fraction | None) -> Judgement:
        """Judge whether the theorem holds for a schedule that the method found.

        Value and bound are compared on a clock that starts at the first arrival, where every ratio is the largest. The
        values of the judgement are on the clock of the instance.

        Parameters
        ----------
        instance
            Jobs and the cluster.
        schedule
            The schedule of the method.
        certified
            A verified lower bound on the optimum with preemption, on the clock of ``instance.relative``; None if no bound
            is known.
        """
        local = instance.relative
        value, proved = schedule_value(local, schedule.relative, self.objective), self.proves(local)
        lower = proved if certified is None else max(certified, proved)
        findings = self.audit(local)
        if value > self.ratio * (1 + Fraction(ROUNDING)) * proved:
            findings.append(
                f"{self.objective} is {float(value):.12g}, more than the proof allows: {float(proved):.12g}"
            )
        kept = value <= self.ratio * (1 + Fraction(ROUNDING)) * lower
        moved = get_objective(self.objective).clock_part(instance)
        numbers = float(value + moved), rounded_down(lower + moved)
        return judgement(self, self.ratio, numbers, kept, self.method, findings)


METHOD_THEOREMS: Registry[MethodTheorem] = Registry("theorem on a method", package="optsched.guarantees")
method_theorem = METHOD_THEOREMS.maker(MethodTheorem, lambda theorem: theorem.id)
