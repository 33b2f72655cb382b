"""`Proven`: what is known for certain about the optimum of an instance, and what stands beside a run."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from optsched.bounds import Certificate, NoBoundError, bound
from optsched.bounds.certificate import GANG_CLASSES, classes_of, rounded_down
from optsched.check import check_schedule, schedule_value
from optsched.errors import InputError, SimulationError
from optsched.instance import Instance
from optsched.objectives import get_objective
from optsched.online.simulate import simulate
from optsched.online.specification import Specification
from optsched.simulation.engine import Progress
from optsched.simulation.run import Run

KNOWN = "known-optimum"  # the kind of bound that the instance states itself
# the classes whose schedules all belong to a class
WITHIN = {
    "gang-nonpreemptive": ("gang-nonpreemptive",),
    "gang": ("gang", "gang-nonpreemptive"),
    "forking": ("forking", "gang", "gang-nonpreemptive"),
    "sharing": ("sharing", "gang", "gang-nonpreemptive"),
    "elastic": ("elastic", "gang", "gang-nonpreemptive"),
}


@dataclass(frozen=True)
class BoundShown:
    """The lower bound beside a run: ``exact`` when it is known to be the optimum of its class of schedules."""

    value: float
    kind: str
    schedule_class: str
    exact: bool
    gain: bool = False

    def on_clock(self, part: Fraction) -> BoundShown:
        """The same bound with what the clock of the log adds to it, still on the safe side."""
        return replace(self, value=rounded_down(Fraction(self.value) + part)) if part else self

    def ratio(self, value: float) -> float | None:
        """``value`` / bound, bound / value of a gain: at least 1; None for nan, and where that divides by 0."""
        if math.isnan(value):
            return None
        if self.gain:
            return self.value / value if value > 0 else None
        if self.value <= 0:
            return 1.0 if value == 0 else None
        return value / self.value

    @property
    def ratio_to(self) -> str:
        """What a ratio is a ratio to."""
        return "optimum" if self.exact else "bound"

    def to_json(self) -> dict[str, Any]:
        """As in ``run --json``."""
        return {"value": self.value, "kind": self.kind, "class": self.schedule_class, "exact": self.exact}


class Proven:
    """Lower bounds (certificates, proved again) and upper bounds (accepted runs, a stated optimum) on the optimum.

    Certificates are made when they are first asked for and kept; ``runs`` are those that the referee accepted. All of it is
    compared counted from the first arrival (`relative`); values that are handed out are on the clock of the instance.
    """

    def __init__(self, instance: Instance, runs: Iterable[Run] = ()) -> None:
        self.instance = instance
        self.runs = tuple(runs)
        self._certificates: dict[tuple[str, str], Certificate | None] = {}
        self._reached: dict[tuple[str, str], bool] = {}

    @cached_property
    def relative(self) -> Proven:
        """The same of `Instance.relative` and its runs; itself where the epoch is 0."""
        if self.instance.epoch == 0:
            return self
        return Proven(self.instance.relative, [run.relative for run in self.runs])

    def _clock_part(self, objective: str) -> Fraction:
        return get_objective(objective).clock_part(self.instance)

    def certificate(self, objective: str, schedule_class: str | None = None) -> Certificate | None:
        """The best verified bound for a class of schedules; one for ``gang`` serves every class of gang schedules.

        Without a class for the one that the instance means: ``sharing`` where jobs may share GPUs, else ``gang``.
        """
        key = objective, self._proved_for(schedule_class)
        if self.relative is not self:
            found = self.relative.certificate(*key)
            return None if found is None else found.on_clock(self.instance)
        if key not in self._certificates:
            self._certificates[key] = verified_bound(self.instance, *key)
        return self._certificates[key]

    def lower(self, objective: str, schedule_class: str | None = None) -> Fraction | None:
        """A verified lower bound on the optimum (of a gain: an upper one), exact.

        A bound on flow time also serves completion time, and back.
        """
        if self.relative is not self:
            found = self.relative.lower(objective, schedule_class)
            return None if found is None else found + self._clock_part(objective)
        wanted = self._proved_for(schedule_class)
        for (known, proved_for), certificate in self._certificates.items():
            between = _shift(self.instance, known, objective)
            if certificate is not None and between is not None and proved_for == wanted:
                return certificate.value + between
        certificate = self.certificate(objective, schedule_class)
        return None if certificate is None else certificate.value

    def _proved_for(self, schedule_class: str | None) -> str:
        # The class of the certificate that serves schedules of a class.
        meant = classes_of(self.instance)[0]
        if schedule_class is None or self.instance.at_task_level:
            return meant
        return "gang" if schedule_class in GANG_CLASSES else schedule_class

    def upper(self, objective: str, schedule_class: str) -> Fraction | None:
        """The best value that a schedule of the class is known to have: of a finished run, or the stated optimum."""
        if self.relative is not self:
            best = self.relative.upper(objective, schedule_class)
            return None if best is None else best + self._clock_part(objective)
        served = WITHIN[schedule_class]
        found = [
            schedule_value(self.instance, run.schedule, objective)
            for run in self.runs
            if run.schedule_class in served and not run.unfinished
        ]
        stated = exact_optimum(self.instance, objective)
        if stated is not None and stated[1] in served:
            found.append(stated[0])
        return (max if get_objective(objective).gain else min)(found, default=None)

    def beside(self, run: Run, objective: str) -> BoundShown | None:
        """The optimum that the instance states for the class of the run, else the certificate."""
        if self.relative is not self:
            shown = self.relative.beside(run.relative, objective)
            return None if shown is None else shown.on_clock(self._clock_part(objective))
        known = stated_optimum(self.instance, objective)
        if known is not None and run.schedule_class == known[1]:
            return BoundShown(known[0], KNOWN, known[1], True, get_objective(objective).gain)
        c = self.certificate(objective, run.schedule_class)
        return None if c is None else BoundShown(c.exact_float, c.kind, c.schedule_class, self._is_reached(c), c.gain)

    def _is_reached(self, certificate: Certificate) -> bool:
        # When the exact value of a finished run is the bound, the bound is the optimum. Only close ones are added up.
        name, floor = certificate.objective, certificate.exact_float
        key = name, certificate.schedule_class
        if key not in self._reached:
            served = (
                r for r in self.runs if r.schedule_class in WITHIN[certificate.schedule_class] and not r.unfinished
            )
            sign = -1 if certificate.gain else 1
            close = (r for r in served if sign * (r.value(name) - floor) <= abs(floor) * 1e-9 + 1e-9)
            values = (schedule_value(self.instance, run.schedule, name) for run in close)
            self._reached[key] = any(value == certificate.value for value in values)
        return self._reached[key]

    def stated_optimum_stands(self, objective: str) -> None:
        """Raise `InputError` when a run or the certificate refutes the optimum that the instance states."""
        if self.relative is not self:
            return self.relative.stated_optimum_stands(objective)
        known = stated_optimum(self.instance, objective)
        if known is None:
            return
        value, schedule_class = known
        slack = 1e-9 * max(1.0, abs(value))
        sign = -1 if get_objective(objective).gain else 1
        served = [r for r in self.runs if r.schedule_class == schedule_class]
        better = [r for r in served if sign * (r.value(objective) - value) < -slack]
        certificate = self.certificate(objective, schedule_class)
        if better or (certificate is not None and sign * (certificate.exact_float - value) > slack):
            bounded = "" if certificate is None else f"a bound is {certificate.exact_float:g}"
            found = f"{better[0].policy} reaches {better[0].value(objective):g}" if better else bounded
            raise InputError(
                f"the optimum that the instance states is refuted: {found}",
                field="optimum",
                value=value,
                legal="none, or a proven one",
            )


def refereed(instance: Instance, specification: Specification, progress: Progress | None = None) -> Run:
    """The run of a policy, accepted by the referee.

    Raises `SimulationError` when the schedule is rejected: a defect of optsched, or of a policy of one's own.
    """
    run = simulate(instance, specification, progress=progress)
    forking, elastic = run.schedule_class == "forking", run.schedule_class == "elastic"
    violations = check_schedule(instance, run.schedule, preemptive=run.preemptive, forking=forking, elastic=elastic)
    # Jobs that never finished are named in the report; what they miss is not the schedule's fault.
    wrong = [v for v in violations if not (v.rule in ("completeness", "work") and run.unfinished)]
    if wrong:
        raise SimulationError(f"the referee rejects the schedule of {run.policy}: {wrong[0].rule}: {wrong[0].message}")
    return run


def verified_bound(instance: Instance, objective: str, schedule_class: str | None = None) -> Certificate | None:
    """The best certificate for an objective, proved again before it is returned; None where no bound is known.

    Without a class: ``sharing`` where jobs may share GPUs, else ``gang``.
    """
    try:
        certificate = bound(instance, objective, schedule_class)
    except NoBoundError:
        return None
    certificate.verify(instance)
    return certificate


def stated_optimum(instance: Instance, objective: str) -> tuple[float, str] | None:
    """(value, class of schedules) of the proven optimum that the instance states for this objective, or None.

    A flow time and its completion time differ by a constant, so that either states the other.
    """
    known = exact_optimum(instance, objective)
    return None if known is None else (float(known[0]), known[1])


def exact_optimum(instance: Instance, objective: str) -> tuple[Fraction, str] | None:
    """As `stated_optimum`, exact."""
    if not instance.optimum:
        return None
    between = _shift(instance, str(instance.optimum["objective"]), objective)
    if between is None:
        return None
    schedule_class = str(instance.optimum.get("class", "gang-nonpreemptive"))
    return Fraction(instance.optimum["value"]) + between, schedule_class


def _shift(instance: Instance, known: str, wanted: str) -> Fraction | None:
    """What turns a value of the objective ``known`` into one of ``wanted``; None where no constant does."""
    have, want = get_objective(known), get_objective(wanted)
    if have.name == want.name:
        return Fraction(0)
    if (have.completion_form or have.name) != (want.completion_form or want.name):
        return None
    weight = instance.weight.tolist() if want.weighted else [1.0] * instance.n
    rows = zip(weight, instance.arrival.tolist(), strict=True)
    constant = sum((Fraction(w) * Fraction(r) for w, r in rows), Fraction(0))
    return constant if have.completion_form else -constant
