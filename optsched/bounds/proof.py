"""`prove`: hand a certificate to the stand-alone verifier (`optsched.verifier`), in this process.

The verifier reads the parts of the instance as a file has them, and its jobs by columns. What it cannot read there it is
given: the speeds of jobs that come from a model that it does not know, or from measured steps of a scaling profile. Kinds
of somebody's own relaxation or theorem come with the function that the verifier calls in their place
(`optsched.bounds.relaxation`).
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable
from copy import copy
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import polars as pl

from optsched.bounds.best_bound import lower_bound
from optsched.bounds.certificate import RULES, Certificate, CertificateError, Proof, Verifier, register_kind
from optsched.problem.instance import Instance
from optsched.speeds.duration import paces
from optsched.speeds.goodput_rates import Goodputs
from optsched.speeds.partner_rates import sharing_rates
from optsched.speeds.type_speeds import type_speeds
from optsched.verifier import judgement
from optsched.verifier.certified_case import Case
from optsched.verifier.class_table import CLASSES
from optsched.verifier.refusal import KIND, Refused, need
from optsched.verifier.stated_instance import LABELS, NUMBERS, StatedJobs
from optsched.verifier.stated_speeds import Speed

MOST_STEPS = 60_000_000  # of prices: some seconds; methods of this program find more than strangers may send
READ = ("duration", "throughputs", "profiles")  # models of speeds that the verifier reads, and scalings and tasks


class GivenSpeeds:
    """The parts of an instance that the verifier is given (`optsched.verifier.stated_speeds.SpeedSource`).

    ``given``: the jobs whose speeds it cannot read.

    Parameters
    ----------
    instance
        Instance.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.models = [model.name for model in instance.models if model.name not in (*READ, "scalings", "tasks")]
        self.models += [] if instance.at_task_level else ["tasks"]
        self.measured = {name for name, scaling in instance.scalings.items() if scaling.measured is not None}
        profiles = instance.table["profile"].to_list() if self.measured else []
        self.given = {j for name in self.models for j in instance.jobs_at(name).tolist()}
        self.given |= {
            j for j in instance.jobs_at("scalings").tolist() if self.measured and profiles[j] in self.measured
        }

    def document(self) -> dict[str, Any]:
        """Return the instance as a file has it, without its jobs and without the parts that are given otherwise."""
        instance = self.instance
        parts = {model.name: model.to_json() for model in instance.models if model.name not in self.models}
        if self.measured:
            parts["scalings"] = {k: part for k, part in parts["scalings"].items() if k not in self.measured}
        for name in ("contention", "interference"):
            physics = getattr(instance, name)
            parts[name] = None if physics is None else physics.to_json()
        return {"cluster": instance.cluster.to_json(), **{name: part for name, part in parts.items() if part}}

    def stated_jobs(self) -> StatedJobs:
        """Return the jobs by columns."""
        instance, table = self.instance, self.instance.table
        numbers = {name: self._numbers(table[name]) for name in NUMBERS}
        if self.given:
            memory = numbers["gpu_memory"] or array("d", [math.nan]) * instance.n
            for j in self.given:
                memory[j] = float(instance.gpu_memory[j])  # a model may know more of it
            numbers["gpu_memory"] = memory
        none: list[Any] = [None] * instance.n
        labels = {name: none if _is_silent(table[name]) else table[name].to_list() for name in LABELS}
        return StatedJobs(list(instance.ids), instance.gpus.tolist(), dict(numbers), labels)

    def _numbers(self, column: pl.Series) -> array[float] | None:
        return None if _is_silent(column) else array("d", column.fill_null(math.nan).to_numpy().tobytes())

    @cached_property
    def _types(self) -> tuple[tuple[str, ...], list[list[float]], list[float]]:
        known = type_speeds(self.instance)
        together, spread = known.reachable
        best = [
            [max(pair) for pair in zip(*rates, strict=True)]
            for rates in zip(together.tolist(), spread.tolist(), strict=True)
        ]
        return known.types, best, paces(self.instance)[0].tolist()

    @cached_property
    def _goodputs(self) -> Goodputs:
        goodputs = Goodputs(self.instance)
        goodputs.require_few()
        return goodputs

    def speed(self, job: int, *, elastic: bool) -> Speed:
        """Return the speed of a job. Float rates become float seconds, which are taken as exact.

        Parameters
        ----------
        job
            Index of the job, one of ``given``.
        elastic
            True if rates on any number of GPUs are wanted.
        """
        types, best, least = self._types
        pace = {name: 1.0 / rate for name, rate in zip(types, best[job], strict=True) if rate > 0}
        goodput = self._goodputs.of(job) if elastic else None
        if goodput is None:
            return Speed(pace, least[job], [] if self.instance.speeds_of(job).elastic else None)
        sizes = self.instance.cluster.node_gpus[self.instance.eligible(job)].tolist()
        places = tuple(sorted(sizes, reverse=True))
        return Speed(pace, least[job], [(r, goodput.limit(r, places)) for r in range(1, sum(places) + 1)])

    @cached_property
    def _sharing(self) -> Any:
        return sharing_rates(self.instance)

    def needs(self, job: int) -> set[tuple[Fraction, Fraction]]:
        """Return (bytes, stretch) of the sub-batches of a job, the least of one node and several.

        Parameters
        ----------
        job
            Index of the job, one of ``given``.
        """
        rates = self._sharing
        some = range(int(rates.options[job]))
        return {(Fraction(float(rates.memory[job, o])), Fraction(float(rates.stretch[job, o].min()))) for o in some}


def _is_silent(column: pl.Series) -> bool:
    return column.null_count() == len(column)


_last: dict[tuple[str, str, Fraction], Case] = {}  # the next certificate is of the same instance, as a rule


def _case(instance: Instance, schedule_class: str, epoch: Fraction) -> Case:
    key = instance.digest, schedule_class, epoch
    case = _last.get(key)
    if case is None:
        _last.clear()  # first: a case of a million jobs takes much memory
        source = GivenSpeeds(instance)
        need(schedule_class in CLASSES, f"the verifier does not know the class {schedule_class!r}", KIND)
        case = CLASSES[schedule_class].case(source.document(), instance.digest, epoch, source)
        case.most_steps = MOST_STEPS
        _last[key] = case
    return case


def prove(certificate: Certificate, instance: Instance, theorem: Any = None, machine: Any = None) -> None:
    """Prove a certificate from the instance, exactly.

    Parameters
    ----------
    certificate
        Certificate of the instance.
    instance
        Instance.
    theorem
        Function of a `Case` and the data that takes the place of the verifier's theorem.
    machine
        Function of a `Case` and the data that takes the place of the verifier's machine.

    Raises
    ------
    CertificateError
        If the bound does not follow.
    """
    document = certificate.to_json()
    try:
        proposition = theorem or judgement.theorem_of(document)
        case = _case(instance, certificate.schedule_class, Fraction(certificate.epoch))
        if machine is not None:
            case = copy(case)
            case.machine = partial(machine, case)  # type: ignore[method-assign]
        judgement.prove(document, case, proposition)
    except Refused as refused:
        raise CertificateError(refused.rule if refused.rule in RULES else "value", str(refused)) from None


Find = Callable[[Instance, str, str], Proof | None]  # (instance, objective, schedule class) -> (value, data)


def proved_bound(
    name: str,
    *,
    objectives: Iterable[str],
    classes: Iterable[str],
    statement: str,
    strong: bool = False,
    verifier: Verifier = prove,
) -> Callable[[Find], Find]:
    """Return a decorator that registers a finder of proofs as a bound, and the kind of its certificates, under one name.

    Parameters
    ----------
    name
        Name of the bound and of the kind.
    objectives
        Objectives that it bounds.
    classes
        Classes of schedules that it holds for.
    statement
        The bound in a few words.
    strong
        True if only ``--strong`` looks for it.
    verifier
        Verifier of its certificates.
    """

    def add(find: Find) -> Find:
        @lower_bound(name, objectives=objectives, classes=classes, statement=statement, strong=strong)
        def build(instance: Instance, objective: str, schedule_class: str) -> Certificate | None:
            proof = find(instance, objective, schedule_class)
            return None if proof is None else Certificate(instance.digest, objective, schedule_class, name, *proof)

        register_kind(name, objectives=objectives, classes=classes)(verifier)
        return find

    return add
