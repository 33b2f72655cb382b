"""`OptimumBounds`: verified lower and upper bounds on the optimum of an instance, by class of schedules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cached_property

from optsched.bounds import Certificate, NoBoundError, bound
from optsched.bounds.certificate import rounded_down
from optsched.check.certain_times import CertainTimes, certain_times
from optsched.check.referee import schedule_value
from optsched.classes import CLASSES, usual_class
from optsched.errors import InputError
from optsched.evaluation.measured_ratio import BoundShown
from optsched.evaluation.stored_certificates import StoredCertificates, stored_certificates_of
from optsched.guarantees.optimum import exact_optimum, is_proved, shift
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective
from optsched.problem.schedule import Schedule
from optsched.simulation.run import Run

KNOWN = "known-optimum"  # the kind of bound: an optimum that the instance states and this installation proved


class OptimumBounds:
    """Verified lower bounds (certificates) and upper bounds (accepted runs, schedules) on the optimum of an instance.

    The class makes a certificate when it is first asked for, verifies it and keeps it. Proofs stored next to the instance
    file count once they are verified. An optimum that the instance states counts only if this installation proved it
    (`optsched.guarantees.optimum`). Values are compared on a clock that starts at the first arrival; values that are
    returned are on the clock of the instance.

    Parameters
    ----------
    instance
        Jobs and the cluster.
    runs
        Runs that the referee has accepted.
    strong
        True to compute the bounds that take up to a minute, too.
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
        """The verified proofs next to the instance file."""
        return stored_certificates_of(self.instance)

    @cached_property
    def _is_proved(self) -> bool:
        return is_proved(self.instance)

    def note(self, objective: str) -> str:
        """Return a remark on a stated optimum that is not proved here and on stored proofs that do not hold.

        Parameters
        ----------
        objective
            Name of the objective.

        Returns
        -------
        str
            Empty if there is nothing to say.
        """
        stated, lines = exact_optimum(self.instance, objective), list(self.stored.refused)
        if stated is not None and not self._is_proved:
            what = f"the file states an optimum of {float(stated[0]):.12g} (class {stated[1]}), not proved here"
            lines.append(f"{what}: `optsched solve` proves one")
        return "; ".join(lines)

    def clock_part(self, objective: str) -> Fraction:
        """Return the part of a value that the clock of the instance adds to one counted from the first arrival.

        Parameters
        ----------
        objective
            Name of the objective.
        """
        return get_objective(objective).clock_part(self.instance)

    def certificate(self, objective: str, schedule_class: str | None = None) -> Certificate | None:
        """Return the best verified certificate for a class of schedules; None if no bound is known.

        A certificate for ``gang`` serves every class of gang schedules.

        Parameters
        ----------
        objective
            Name of the objective.
        schedule_class
            The class of schedules. Default: the class that the instance means, which is the sharing one if jobs may share
            GPUs, else ``gang``.
        """
        found = self._certificate(objective, schedule_class)
        return None if found is None else found.on_clock(self.instance)

    def _certificate(self, objective: str, schedule_class: str | None) -> Certificate | None:
        key = objective, self._proved_for(schedule_class)
        if key not in self._certificates:
            candidates = [verified_bound(self._local, *key, strong=self.strong), *self._stored_for(*key)]
            sign = -1 if get_objective(objective).gain else 1
            verified = [certificate for certificate in candidates if certificate is not None]
            self._certificates[key] = max(verified, key=lambda certificate: sign * certificate.value, default=None)
        return self._certificates[key]

    def _stored_for(self, objective: str, schedule_class: str) -> list[Certificate]:
        wanted = [c for c in self.stored.certificates if (c.objective, c.schedule_class) == (objective, schedule_class)]
        # the times of others count from the zero of the clock
        counted = [c for c in wanted if c.epoch == self.instance.epoch]
        part, digest = self.clock_part(objective), self._local.digest
        return [replace(c, instance=digest, value=c.value - part, epoch=0.0) for c in counted]

    def _reaches(self, objective: str, schedule_class: str, beyond: Fraction | None) -> Iterator[Fraction]:
        """Yield the values that finished runs and stored schedules of a class certainly reach.

        `optsched.check.certain_times` computes them. With ``beyond``, only schedules whose times add up to a better value
        than that are examined.
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
        """Return a verified lower bound on the optimum (for a gain, an upper one), exact; None if no bound is known.

        A bound on flow time also serves completion time, and vice versa.

        Parameters
        ----------
        objective
            Name of the objective.
        schedule_class
            The class of schedules. Default: the class that the instance means.
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
        """Return the best value that a schedule of the class certainly reaches; None if no schedule is known.

        The schedule is a finished run or one stored next to the instance file; a proved optimum counts, too.

        Parameters
        ----------
        objective
            Name of the objective.
        schedule_class
            The class of schedules.
        beyond
            If given, only a schedule whose times add up to a better value than this is examined.
        """
        part = self.clock_part(objective)
        found = list(self._reaches(objective, schedule_class, None if beyond is None else beyond - part))
        known = self._known(objective)
        if known is not None and known[1] in CLASSES.get(schedule_class).within:
            found.append(known[0])
        best = (max if get_objective(objective).gain else min)(found, default=None)
        return None if best is None else best + part

    def bound_for(self, run: Run, objective: str) -> BoundShown | None:
        """Return the bound with which a run is compared; None if no bound is known.

        It is the optimum if one was proved for the class of the run, else the best certificate.

        Parameters
        ----------
        run
            A run on the instance.
        objective
            Name of the objective.
        """
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

    def check_stated_optimum(self, objective: str) -> None:
        """Check that no run and no certificate refutes the optimum that the instance states.

        Parameters
        ----------
        objective
            Name of the objective.

        Raises
        ------
        InputError
            The stated optimum is refuted.
        """
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


def verified_bound(
    instance: Instance, objective: str, schedule_class: str | None = None, *, strong: bool = False
) -> Certificate | None:
    """Return the best certificate for an objective, verified; None if no bound is known.

    Parameters
    ----------
    instance
        Jobs and the cluster.
    objective
        Name of the objective.
    schedule_class
        The class of schedules. Default: the sharing one if jobs may share GPUs, else ``gang``.
    strong
        True to compute the bounds that take up to a minute, too (see `optsched.bound`).
    """
    try:
        certificate = bound(instance, objective, schedule_class, strong=strong)
    except NoBoundError:
        return None
    certificate.verify(instance)
    return certificate
