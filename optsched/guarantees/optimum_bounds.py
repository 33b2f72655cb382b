"""`OptimumBounds`: what is known for certain about the optimum of an instance, and what a run is compared with."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from optsched.bounds import Certificate, NoBoundError, bound
from optsched.bounds.certificate import rounded_down
from optsched.check.certain_times import MOST_FORGIVEN, CertainTimes, certain_times
from optsched.check.referee import check_file, check_schedule, schedule_value
from optsched.classes import CLASSES, NONPREEMPTIVE, PREEMPTIVE, offered, usual_class
from optsched.errors import InputError, SimulationError
from optsched.guarantees.optimum import exact_optimum, is_proved, shift
from optsched.policies.simulate import Specification, simulate
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective
from optsched.problem.schedule import Schedule
from optsched.simulation.engine import Advance
from optsched.simulation.run import Run

KNOWN = "known-optimum"  # the kind of bound: an optimum that the instance states and this installation proved


@dataclass(frozen=True)
class BoundShown:
    """The lower bound beside a run: ``exact`` when it is known to be the optimum of its class of schedules."""

    value: float
    kind: str
    schedule_class: str
    exact: bool
    gain: bool = False

    def ratio(self, value: float) -> float | None:
        """``value`` / bound, bound / value of a gain: at least 1; None for nan, and where that divides by 0.

        A value that is better than the bound by what the referee forgives has the ratio 1.
        """
        if math.isnan(value):
            return None
        over, under = (self.value, value) if self.gain else (value, self.value)
        if under <= 0:
            return 1.0 if over == 0 and not self.gain else None
        return 1.0 if 1 - float(MOST_FORGIVEN) <= over / under < 1 else over / under

    @property
    def ratio_to(self) -> str:
        """What a ratio is a ratio to."""
        return "optimum" if self.exact else "bound"

    def to_json(self) -> dict[str, Any]:
        """As in ``run --json``."""
        return {"value": self.value, "kind": self.kind, "class": self.schedule_class, "exact": self.exact}


class OptimumBounds:
    """Lower bounds (certificates, proved again) and upper bounds (accepted runs, schedules) on the optimum.

    Certificates are made when they are first asked for and kept (``strong``: those that take up to a minute, too); ``runs``
    are those that the referee accepted. Proofs beside the instance file count once they are proved again. A stated optimum
    counts only where this installation proved it (`optsched.guarantees.optimum`). All of it is compared counted from the
    first arrival; values that are handed out are on the clock of the instance.
    """

    def __init__(self, instance: Instance, runs: Iterable[Run] = (), *, strong: bool = False) -> None:
        self.instance, self.strong = instance, strong
        self.runs = tuple(runs)
        self._local, self._runs = instance.relative, [run.relative for run in self.runs]
        self._certificates: dict[tuple[str, str], Certificate | None] = {}  # of `_local`, as all that follows
        self._reached: dict[tuple[str, str], bool] = {}
        self._certain: dict[int, CertainTimes] = {}  # by schedule

    @cached_property
    def stored(self) -> StoredCertificates:
        """The proofs beside the instance file."""
        return stored_certificates_of(self.instance)

    @cached_property
    def _is_proved(self) -> bool:
        return is_proved(self.instance)

    def note(self, objective: str) -> str:
        """What to say of an optimum that is only stated, and of proofs that do not hold; empty where there is nothing."""
        stated, lines = exact_optimum(self.instance, objective), list(self.stored.refused)
        if stated is not None and not self._is_proved:
            what = f"the file states an optimum of {float(stated[0]):.12g} (class {stated[1]}), not proved here"
            lines.append(f"{what}: `optsched solve` proves one")
        return "; ".join(lines)

    def clock_part(self, objective: str) -> Fraction:
        """What the clock of the instance adds to values that are counted from the first arrival."""
        return get_objective(objective).clock_part(self.instance)

    def certificate(self, objective: str, schedule_class: str | None = None) -> Certificate | None:
        """The best verified bound for a class of schedules; one for ``gang`` serves every class of gang schedules.

        Without a class for the one that the instance means: the sharing one where jobs may share GPUs, else ``gang``.
        """
        found = self._certificate(objective, schedule_class)
        return None if found is None else found.on_clock(self.instance)

    def _certificate(self, objective: str, schedule_class: str | None) -> Certificate | None:
        key = objective, self._proved_for(schedule_class)
        if key not in self._certificates:
            every = [verified_bound(self._local, *key, strong=self.strong), *self._certificates_beside(*key)]
            sign = -1 if get_objective(objective).gain else 1
            known = [each for each in every if each is not None]
            self._certificates[key] = max(known, key=lambda each: sign * each.value, default=None)
        return self._certificates[key]

    def _certificates_beside(self, objective: str, schedule_class: str) -> list[Certificate]:
        every = self.stored.certificates
        mine = [each for each in every if (each.objective, each.schedule_class) == (objective, schedule_class)]
        # the times of others count from the zero of the clock
        counted = [each for each in mine if each.epoch == self.instance.epoch]
        part, digest = self.clock_part(objective), self._local.digest
        return [replace(each, instance=digest, value=each.value - part, epoch=0.0) for each in counted]

    def _reaches(self, objective: str, schedule_class: str, beyond: Fraction | None) -> Iterator[Fraction]:
        """What schedules of a class certainly reach (`optsched.check.certain_times`): finished runs, and those beside the
        instance file. ``beyond``: only of those whose times add up to something better, which is never worse.
        """
        sign = -1 if get_objective(objective).gain else 1
        for own, instance, schedule in self._schedules(schedule_class):
            part = Fraction(0) if instance is self._local else self.clock_part(objective)
            if beyond is not None and sign * (schedule_value(instance, schedule, objective) - part - beyond) >= 0:
                continue
            certain = self._certain_times(own, instance, schedule).value(objective)
            if certain is not None:
                yield certain - part

    def _schedules(self, schedule_class: str) -> Iterator[tuple[str, Instance, Schedule]]:
        # (class, instance on whose clock it counts, schedule)
        yield from ((run.schedule_class, self._local, run.schedule) for run in self._finished(schedule_class))
        beside = self.stored.schedules
        yield from (
            (own, self.instance, schedule) for own, schedule in beside if own in CLASSES.get(schedule_class).within
        )

    def _certain_times(self, own: str, instance: Instance, schedule: Schedule) -> CertainTimes:
        if id(schedule) not in self._certain:
            self._certain[id(schedule)] = certain_times(instance, schedule, schedule_class=own)
        return self._certain[id(schedule)]

    def _finished(self, schedule_class: str) -> list[Run]:
        return [
            run for run in self._runs if run.schedule_class in CLASSES.get(schedule_class).within and not run.unfinished
        ]

    def _known(self, objective: str) -> tuple[Fraction, str] | None:
        # (value, class of schedules) of the optimum that the instance states and that this installation proved
        return exact_optimum(self._local, objective) if self._is_proved else None

    def lower(self, objective: str, schedule_class: str | None = None) -> Fraction | None:
        """A verified lower bound on the optimum (of a gain: an upper one), exact.

        A bound on flow time also serves completion time, and back.
        """
        part, wanted = self.clock_part(objective), self._proved_for(schedule_class)
        for (known, proved_for), certificate in self._certificates.items():
            between = shift(self._local, known, objective)
            if certificate is not None and between is not None and proved_for == wanted:
                return certificate.value + between + part
        certificate = self._certificate(objective, schedule_class)
        return None if certificate is None else certificate.value + part

    def _proved_for(self, schedule_class: str | None) -> str:
        # The class of the certificate that serves schedules of a class.
        meant = usual_class(self.instance)
        return meant.name if schedule_class is None or meant.only else CLASSES.get(schedule_class).certified

    def upper(self, objective: str, schedule_class: str, beyond: Fraction | None = None) -> Fraction | None:
        """The best value that a schedule of the class certainly reaches: a finished run, or one beside the instance file; or
        the optimum that was proved. ``beyond``: only a schedule whose times add up to more than that is looked at.
        """
        part = self.clock_part(objective)
        found = list(self._reaches(objective, schedule_class, None if beyond is None else beyond - part))
        known = self._known(objective)
        if known is not None and known[1] in CLASSES.get(schedule_class).within:
            found.append(known[0])
        best = (max if get_objective(objective).gain else min)(found, default=None)
        return None if best is None else best + part

    def beside(self, run: Run, objective: str) -> BoundShown | None:
        """The optimum that was proved for the class of the run, else the certificate."""
        part, known = self.clock_part(objective), self._known(objective)

        def on_clock(value: float) -> float:  # still on the safe side
            return rounded_down(Fraction(value) + part) if part else value

        if known is not None and run.schedule_class == known[1]:
            return BoundShown(on_clock(float(known[0])), KNOWN, known[1], True, get_objective(objective).gain)
        c = self._certificate(objective, run.schedule_class)
        if c is None:
            return None
        return BoundShown(on_clock(c.exact_float), c.kind, c.schedule_class, self._is_reached(c), c.gain)

    def _is_reached(self, certificate: Certificate) -> bool:
        # When what a schedule certainly reaches is the bound, the bound is the optimum.
        key = name, schedule_class = certificate.objective, certificate.schedule_class
        if key not in self._reached:
            sign, served = -1 if certificate.gain else 1, self._finished(schedule_class)
            floor = certificate.exact_float
            # only close ones are added up
            close = any(sign * (run.value(name) - floor) <= abs(floor) * 1e-9 + 1e-9 for run in served)
            beyond = certificate.value + sign * Fraction(abs(floor) * 1e-9 + 1e-9)
            found = self._reaches(name, schedule_class, beyond) if close or self.stored.schedules else ()
            self._reached[key] = certificate.value in found
        return self._reached[key]

    def stated_optimum_stands(self, objective: str) -> None:
        """Raise `InputError` when a run or the certificate refutes the optimum that the instance states."""
        known = exact_optimum(self._local, objective)
        if known is None:
            return
        value, schedule_class = float(known[0]), known[1]
        slack = 1e-9 * max(1.0, abs(value))
        sign = -1 if get_objective(objective).gain else 1
        served = [r for r in self._runs if r.schedule_class == schedule_class]
        better = [r for r in served if sign * (r.value(objective) - value) < -slack]
        certain = ((r, self._certain_times(schedule_class, self._local, r.schedule).value(objective)) for r in better)
        better = [r for r, reached in certain if reached is not None and sign * (reached - known[0]) < -slack]
        certificate = self._certificate(objective, schedule_class)
        if better or (certificate is not None and sign * (certificate.exact_float - value) > slack):
            bounded = "" if certificate is None else f"a bound is {certificate.exact_float:g}"
            found = f"{better[0].policy} reaches {better[0].value(objective):g}" if better else bounded
            raise InputError(
                f"the optimum that the instance states is refuted: {found}",
                field="optimum",
                value=value,
                legal="none, or a proven one",
            )


def refereed(instance: Instance, specification: Specification, progress: Advance | None = None) -> Run:
    """The run of a policy, accepted by the referee.

    Raises `SimulationError` when the schedule is rejected: a defect of optsched, or of a policy of one's own.
    """
    return accepted(simulate(instance, specification, progress=progress))


def accepted(run: Run) -> Run:
    """The run, whoever made it, if the referee accepts its schedule; else `SimulationError`, naming the rule."""
    kind = run.schedule_class
    violations = check_schedule(run.instance, run.schedule, schedule_class=kind, preemptive=run.preemptive)
    # Jobs that never finished are named in the report; what they miss is not the schedule's fault.
    wrong = [v for v in violations if not (v.rule in ("completeness", "work") and run.unfinished)]
    if wrong:
        raise SimulationError(f"the referee rejects the schedule of {run.policy}: {wrong[0].rule}: {wrong[0].message}")
    return run


def verified_bound(
    instance: Instance, objective: str, schedule_class: str | None = None, *, strong: bool = False
) -> Certificate | None:
    """The best certificate for an objective, proved again before it is returned; None where no bound is known.

    Without a class: the sharing one where jobs may share GPUs, else ``gang``. ``strong``: as of `optsched.bound`.
    """
    try:
        certificate = bound(instance, objective, schedule_class, strong=strong)
    except NoBoundError:
        return None
    certificate.verify(instance)
    return certificate


# Proofs beside an instance file: ``NAME.certificate.json`` and ``NAME.schedule.json`` (or ``.parquet``) of ``NAME.json``.
#
# A certificate is a lower bound on the optimum, a schedule an upper one; where the two meet, that is the optimum. Both are
# read only after the referee has proved them anew from the instance, so that nobody has to be believed.

NO_COPIES = ("forking",)  # classes that no stored schedule is of
CERTIFICATE, SCHEDULES = ".certificate.json", (".schedule.json", ".schedule.parquet")


@dataclass(frozen=True)
class StoredCertificates:
    """What holds: certificates, and schedules with the class that they belong to. ``refused``: why others do not."""

    certificates: tuple[Certificate, ...] = ()
    schedules: tuple[tuple[str, Schedule], ...] = ()
    refused: tuple[str, ...] = ()


def stored_certificates_of(instance: Instance) -> StoredCertificates:
    """The proofs beside the file that ``instance`` was read from; none where it was not read from one."""
    if instance.file is None:
        return StoredCertificates()
    certificates, schedules, refused = list[Certificate](), list[tuple[str, Schedule]](), list[str]()
    file = Path(instance.file)
    for path in (file.with_name(file.stem + suffix) for suffix in (CERTIFICATE, *SCHEDULES)):
        if not path.is_file():
            continue
        try:
            verdict = check_file(path, instance, refused=NO_COPIES)
            if not verdict.holds:
                refused.append(f"{path}: {verdict.violations[0].rule}: {verdict.violations[0].message}")
            elif verdict.kind == "certificate":
                certificates.append(Certificate.load(path))
            else:
                schedules.append((_class_of(path, instance), Schedule.load(path, instance)))
        except InputError as error:
            refused.append(str(error))
    return StoredCertificates(tuple(certificates), tuple(schedules), tuple(refused))


def _class_of(path: Path, instance: Instance) -> str:
    # Without preemption if it passes as such; schedules that share GPUs or resize gangs are of their own class.
    larger = [made for made in offered(instance) if made.usual or made.widths]
    if larger:
        return larger[0].name
    return NONPREEMPTIVE if check_file(path, instance, preemptive=False, refused=NO_COPIES).holds else PREEMPTIVE
