"""The judgement of a certificate: read it, find its theorem, and compare what is proved with what it claims."""

from __future__ import annotations

import json
from fractions import Fraction

from .certified_case import Case, Theorem
from .class_table import CLASSES
from .document_fields import Data, read_field, read_file, read_ratio
from .refusal import KIND, UNJUDGED, Refused, need, shown

CERTIFICATE, INSTANCE = "optsched-certificate/1", "optsched-instance/1"
ILLEGAL = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def verify_files(certificate: str, instance: str) -> str:
    """Verify the certificate in a file against the instance in another.

    Parameters
    ----------
    certificate
        Path of the certificate.
    instance
        Path of the instance.

    Returns
    -------
    str
        What is proved, in one line.

    Raises
    ------
    Refused
        If the bound does not follow, or cannot be judged.
    """
    return verify(read_file(certificate, CERTIFICATE), read_file(instance, INSTANCE))


def verify(certificate: Data, instance: Data) -> str:
    """Verify a certificate against an instance.

    Parameters
    ----------
    certificate
        JSON object of the certificate.
    instance
        JSON object of the instance.

    Returns
    -------
    str
        What is proved, in one line.

    Raises
    ------
    Refused
        If the bound does not follow, or cannot be judged.
    """
    try:
        schedule_class = read_field(str, certificate, "class", UNJUDGED)
        theorem = theorem_of(certificate)
        case = CLASSES[schedule_class].case(instance, certificate["instance"], epoch_stated(certificate))
        prove(certificate, case, theorem)
    except ILLEGAL as error:
        raise Refused(f"a part of the files is not what it must be ({ascii(str(error))[:80]})", UNJUDGED) from None
    sign = "<=" if certificate["objective"] == "total_utility" else ">="
    return "{objective} {0} {value} for the class {class}, by {kind}".format(sign, **certificate)


def epoch_stated(certificate: Data) -> Fraction:
    """Return the moment from which the times of a certificate count, in seconds.

    Parameters
    ----------
    certificate
        JSON object of the certificate.
    """
    return Fraction(read_field(float, certificate, "epoch", UNJUDGED, 0.0))


def theorem_of(certificate: Data) -> Theorem:
    """Return the theorem that a certificate is by.

    Parameters
    ----------
    certificate
        JSON object of the certificate.

    Raises
    ------
    Refused
        If the kind is not known for the class, or is no bound on the objective.
    """
    names = ("instance", "kind", "objective", "class")
    _, kind, objective, schedule_class = (read_field(str, certificate, name, UNJUDGED) for name in names)
    theorems = CLASSES[schedule_class].theorems if schedule_class in CLASSES else {}
    known = any(kind in by_kind for by_kind in theorems.values())
    need(known, f"kind {shown(kind)} for {shown(schedule_class)} is not known here: use optsched verify", UNJUDGED)
    need(kind in theorems.get(objective, ()), f"{kind} is no bound on {shown(objective)}", KIND)
    return theorems[objective][kind]


def prove(certificate: Data, case: Case, theorem: Theorem) -> None:
    """Prove what a certificate says, on the log's own clock.

    Parameters
    ----------
    certificate
        JSON object of the certificate.
    case
        What it is about.
    theorem
        Theorem that it is by.

    Raises
    ------
    Refused
        If it does not follow.
    """
    data = read_field(dict, certificate, "data", UNJUDGED)
    kind, objective = certificate["kind"], certificate["objective"]
    claimed = read_ratio(certificate.get("value"), "value")
    case.ask(kind, objective)
    value, stated = theorem(case, data)
    if case.epoch:
        weight = Fraction(sum(case.weight), case.shares)
        value += case.epoch * (weight if "completion" in objective else objective == "makespan" and bool(case.ids))
    legal = claimed == value or (claimed < value and kind == "lp-dual")
    need(legal, f"it claims {'more' if claimed > value else 'less'} than its data prove")
    for name in sorted({*stated, *data}):  # as JSON, since True, 1 and 1.0 are equal to Python
        said, shows = (json.dumps(part.get(name, "absent"), sort_keys=True, default=str) for part in (data, stated))
        need(said == shows, f"data.{shown(name)} is not what the proof gives")
