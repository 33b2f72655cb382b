"""`Certificate`: a lower bound on the optimum, with the data that proves it again from the instance alone.

The stand-alone verifier (`optsched.verifier`) proves a certificate in Python integers and fractions. It shares nothing with
what finds the bounds. Every kind of proof is registered (`register_kind`) in the module that states its theorem, with
`optsched.bounds.proof.prove` or, where that does not know it, a verifier of its own.

Seconds of jobs at the speed of a profile or a table are the float64 product of work and pace that engine and referee use,
too; bounds take that number as exact.

A bound is valid for the class of schedules that it states, and for the classes within it (`optsched.classes`).
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from optsched.classes import classes_of, names_where
from optsched.errors import InputError, OptschedError
from optsched.problem.atomic_files import read_bytes, write_atomic
from optsched.problem.documents import parse_json
from optsched.problem.html import html_of, number
from optsched.problem.instance import Instance, Source, instance_of
from optsched.problem.objectives import OBJECTIVES, get_objective
from optsched.registry import Registry, near_matches

FORMAT = "optsched-certificate/1"
# Classes of which the stand-alone verifier proves bounds: rigid gangs alone on their GPUs; those and copies of them; and
# whole rigid gangs, alone or not.
GANG_CLASSES = names_where(verified=True, alone=True, copies=False, widths=False)
EXCLUSIVE_CLASSES = names_where(verified=True, alone=True, widths=False)
SHARED_CLASSES = names_where(verified=True, whole=True, copies=False, widths=False)
RULES = ("instance", "dual-feasibility", "value", "kind")

_RATIO = re.compile(r"-?\d+(/\d+)?", re.ASCII)
_FIELDS = {"instance": str, "objective": str, "class": str, "kind": str, "data": dict, "value": object}


class CertificateError(OptschedError):
    """A certificate that does not hold; ``rule`` is one of `RULES`.

    instance: the certificate belongs to other jobs or another cluster. kind: there is no such kind of proof, or it does
    not serve this objective or class of schedules. dual-feasibility: the data are no feasible dual solution, so that
    they prove nothing. value: the data prove another value, or state something that is not true.

    Parameters
    ----------
    rule
        The rule that is broken.
    message
        The reason, for people.
    """

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(f"{rule}: {message}")
        self.rule = rule
        self.message = message


@dataclass(frozen=True, repr=False)
class Certificate:
    """A lower bound on the optimum of ``objective`` over the schedules of a class; an upper bound if it is maximised.

    Attributes
    ----------
    instance
        Digest of the instance.
    objective
        Name of the objective.
    schedule_class
        Name of the class of schedules.
    kind
        Name of the kind of proof.
    value
        The bound, as a fraction.
    data
        The data that `verify` needs for the proof, in JSON: texts, integers, lists, dicts; fractions as ``"p/q"``.
    epoch
        The second of the instance's clock from which the times in ``data`` count, its first arrival (`Instance.epoch`).
        0, as in files without it: the clock's own zero.
    """

    instance: str
    objective: str
    schedule_class: str
    kind: str
    value: Fraction
    data: dict[str, Any] = field(default_factory=dict)
    epoch: float = 0.0

    def __repr__(self) -> str:
        sign = "<=" if self.gain else ">="
        value = number(self.exact_float)
        return f"Certificate({self.objective} {sign} {value} by {self.kind!r} for {self.schedule_class!r})"

    def _repr_html_(self) -> str:
        return html_of("certificate", self)

    def on_clock(self, instance: Instance) -> Certificate:
        """Return this certificate of ``instance.relative`` as one of ``instance``.

        Its value is put back on the clock of the log, exactly.

        Parameters
        ----------
        instance
            The instance whose clock is used.
        """
        if instance.epoch == 0:
            return self
        value = self.value + get_objective(self.objective).clock_part(instance)
        return replace(self, instance=instance.digest, value=value, epoch=instance.epoch)

    @property
    def exact(self) -> str:
        """The bound as ``"p/q"``."""
        return ratio_text(self.value)

    @property
    def gain(self) -> bool:
        """True if the objective is maximised, so that this is an upper bound."""
        return get_objective(self.objective).gain

    @property
    def exact_float(self) -> float:
        """The nearest float on the safe side of the bound, so that the printed number is still a bound."""
        return -rounded_down(-self.value) if self.gain else rounded_down(self.value)

    def verify(self, instance: Source) -> None:
        """Prove the bound, exactly, from the instance and ``data`` alone.

        Parameters
        ----------
        instance
            The instance, or the SOURCE that `optsched.load` reads.

        Raises
        ------
        CertificateError
            The certificate does not hold; its rule says why.
        """
        instance = instance_of(instance)
        if self.instance != instance.digest:
            raise CertificateError(
                "instance", f"the certificate is of the instance {self.instance}, not of {instance.digest}"
            )
        if self.kind not in KINDS:
            serving = (n for n, k in KINDS.items() if k.serves(self.objective) and self.schedule_class in k.classes)
            legal = near_matches(self.kind, list(serving), kind="kind")
            raise CertificateError("kind", f"there is no kind {self.kind!r} ({legal})")
        kind = KINDS.get(self.kind)
        if self.objective not in OBJECTIVES or not kind.serves(self.objective):
            raise CertificateError("kind", f"{self.kind} is no bound on the objective {self.objective!r}")
        if self.schedule_class not in kind.classes:
            raise CertificateError(
                "kind", f"{self.kind} holds for {' and '.join(kind.classes)}, not for {self.schedule_class!r}"
            )
        if self.schedule_class not in classes_of(instance):
            raise CertificateError("kind", f"{self.schedule_class!r} is no class of schedules of this instance")
        if not isinstance(self.value, Fraction):
            raise CertificateError("value", f"the value must be a fraction, not {self.value!r}")
        if self.epoch not in (0, instance.epoch):
            raise CertificateError("instance", f"its times count from {self.epoch!r} s, not from {instance.epoch!r} s")
        if self.epoch == 0:
            kind.verifier(self, instance)
        else:  # its times count from the epoch: it is one of `Instance.relative`
            local, moved = instance.relative, get_objective(self.objective).clock_part(instance)
            kind.verifier(replace(self, instance=local.digest, value=self.value - moved, epoch=0.0), local)

    def to_json(self) -> dict[str, Any]:
        """Return the document of a certificate file."""
        return {
            "format": FORMAT,
            "instance": self.instance,
            "objective": self.objective,
            "class": self.schedule_class,
            "kind": self.kind,
            "value": self.exact,
            **({"epoch": self.epoch} if self.epoch else {}),
            "data": self.data,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the JSON file, either whole or not at all.

        Parameters
        ----------
        path
            Path of the file.
        """
        write_atomic(path, json.dumps(self.to_json()) + "\n")

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Certificate:
        """Read a JSON file; nothing is proved before `verify`.

        Parameters
        ----------
        path
            Path of the file.

        Raises
        ------
        InputError
            The file is missing, truncated, or of another format, or lacks a field.
        CertificateError
            The value is not of the form ``"p/q"`` (rule ``value``).
        """
        return Certificate.of_document(parse_json(read_bytes(path), path, f"format {FORMAT}"), path)

    @staticmethod
    def of_document(doc: Any, path: str | os.PathLike[str]) -> Certificate:
        """Return the certificate of a parsed JSON document.

        Parameters
        ----------
        doc
            The parsed document.
        path
            Path of its file, for messages.

        Raises
        ------
        InputError
            The document has another format, or lacks a field.
        CertificateError
            The value is not of the form ``"p/q"`` (rule ``value``).
        """
        if not isinstance(doc, dict) or doc.get("format") != FORMAT:
            stated = doc.get("format") if isinstance(doc, dict) else None
            raise InputError("not a certificate file", file=path, field="format", value=stated, legal=FORMAT)
        for name, kind in _FIELDS.items():
            if name not in doc:
                raise InputError("missing field", file=path, field=name, legal=f"format {FORMAT}")
            if not isinstance(doc[name], kind):
                legal = "text" if kind is str else "an object"
                raise InputError("wrong type of field", file=path, field=name, value=doc[name], legal=legal)
        value, epoch = parse_ratio(doc["value"], "value"), doc.get("epoch", 0)
        if type(epoch) not in (int, float) or not abs(epoch) < math.inf:
            raise InputError("invalid", file=path, field="epoch", value=epoch, legal="seconds, or no such field")
        names = doc["instance"], doc["objective"], _class_of_today(doc["class"], doc["kind"]), doc["kind"]
        return Certificate(*names, value, doc["data"], float(epoch))


def _class_of_today(schedule_class: str, kind: str) -> str:
    """Return the present name of a class of schedules.

    Two classes were once called ``sharing``: in files from that time the kind of proof decides which one is meant.
    """
    if schedule_class != "sharing" or kind not in KINDS:
        return schedule_class
    return next((name for name in KINDS.get(kind).classes if name.endswith("-sharing")), schedule_class)


Verifier = Callable[[Certificate, Instance], None]
Proof = tuple[Fraction, dict[str, Any]]  # value and data of a certificate


def best_proof(proofs: Iterable[Proof]) -> Proof | None:
    """Return the proof with the largest value; None if there is none.

    Parameters
    ----------
    proofs
        Pairs of value and data.
    """
    return max(proofs, key=lambda proof: proof[0], default=None)


@dataclass(frozen=True)
class Kind:
    """A kind of proof.

    Attributes
    ----------
    verifier
        Function of (certificate, instance) that raises `CertificateError` if the bound does not follow.
    objectives
        Objectives that it bounds; None if the verifier decides.
    classes
        Names of the classes of schedules that it is valid for.
    """

    verifier: Verifier
    objectives: frozenset[str] | None
    classes: tuple[str, ...]

    def serves(self, objective: str) -> bool:
        """Return whether a certificate of this kind may bound an objective.

        Parameters
        ----------
        objective
            Name of the objective.
        """
        return self.objectives is None or objective in self.objectives


KINDS: Registry[Kind] = Registry("kind of certificate", package="optsched.bounds")


def register_kind(
    name: str,
    *,
    objectives: Iterable[str] | None = None,
    classes: Iterable[str] = GANG_CLASSES,
) -> Callable[[Verifier], Verifier]:
    """Return a decorator that registers the verifier of a kind of certificate under its name.

    The verifier ``(certificate, instance) -> None`` is called for certificates of the right instance, for an objective
    in ``objectives`` and a class in ``classes`` that the instance has. It raises `CertificateError` if the bound does
    not follow. Any module of this package may register kinds: the package is searched on first use.

    Parameters
    ----------
    name
        Name of the kind.
    objectives
        Objectives that it bounds; None for any.
    classes
        Names of the classes of schedules that it is valid for.
    """

    def add(verifier: Verifier) -> Verifier:
        served = None if objectives is None else frozenset(objectives)
        KINDS.register(name)(Kind(verifier, served, tuple(classes)))
        return verifier

    return add


def rounded_down(value: Fraction) -> float:
    """Return the largest finite float64 <= ``value``; -inf below all of them.

    Parameters
    ----------
    value
        The exact value.
    """
    try:
        nearest = float(value)
    except OverflowError:
        return math.nextafter(math.inf, 0.0) if value > 0 else -math.inf
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def ratio_text(value: Fraction) -> str:
    """Return ``"p/q"``, with the denominator written out even if it is 1.

    Parameters
    ----------
    value
        A fraction.
    """
    return f"{value.numerator}/{value.denominator}"


def parse_ratio(text: Any, name: str) -> Fraction:
    """Return the fraction that ``"p/q"`` means.

    Parameters
    ----------
    text
        Any value of a document.
    name
        Name of its field, for the message.

    Raises
    ------
    CertificateError
        The text is no fraction (rule ``value``).
    """
    if isinstance(text, str) and _RATIO.fullmatch(text):
        try:
            return Fraction(text)
        except (ValueError, ZeroDivisionError):  # too many digits for int(), or p/0
            pass
    shown = repr(text) if len(repr(text)) <= 80 else repr(text)[:80] + "..."
    raise CertificateError("value", f"{name} must be a fraction written 'p/q', not {shown}")


def require_same(certificate: Certificate, value: Fraction, data: dict[str, Any]) -> None:
    """Check that a certificate claims exactly the value and the data that its proof gives.

    Parameters
    ----------
    certificate
        The certificate.
    value
        Value of the proof.
    data
        Data of the proof.

    Raises
    ------
    CertificateError
        Value or data differ (rule ``value``).
    """
    if certificate.value != value:
        more = "more" if certificate.value > value else "less"
        raise CertificateError(
            "value",
            f"the certificate claims {shown(certificate.value)}, {more} than the {shown(value)} that its data prove",
        )
    for name in sorted({*data, *certificate.data}):
        # as JSON, since True, 1 and 1.0 are equal to Python
        claimed, proved = (
            json.dumps(d[name], default=str) if name in d else "absent" for d in (certificate.data, data)
        )
        if claimed != proved:
            raise CertificateError("value", f"data.{name} is {claimed[:80]}; the proof gives {proved[:80]}")


def shown(value: Fraction) -> str:
    """Return a fraction as text for people: exact if it is short, else the nearest float below.

    Parameters
    ----------
    value
        A fraction.
    """
    text = str(value)
    return text if len(text) <= 40 else f"about {rounded_down(value)!r}"
