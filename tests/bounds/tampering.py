"""What is done to the file of a certificate, and how it is refused: one harness for the bounds of every class."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from optsched.bounds import BOUNDS, Certificate, CertificateError
from optsched.check import verify_on_clusters as alone
from optsched.check.verify_case import Refused
from optsched.problem.instance import Instance

Document = dict[str, Any]
Touch = Callable[[Document], None]
Tampering = tuple[str, str, Touch, tuple[str, ...]]  # what is done, the rule that it breaks, how, to which kinds

built: dict[tuple[str, ...], str] = {}


def untouched(kind: str, objective: str, schedule_class: str, instance: Instance) -> Document:
    """The document of the certificate as it was made; made once."""
    key = instance.digest, kind, objective, schedule_class
    if key not in built:
        certificate = BOUNDS.get(kind).build(instance, objective, schedule_class)
        assert certificate is not None
        built[key] = json.dumps(certificate.to_json())
    return dict(json.loads(built[key]))


def judge(doc: Document, instance: Instance, folder: Path) -> None:
    """Write, load, verify."""
    path = folder / "certificate.json"
    path.write_text(json.dumps(doc))
    Certificate.load(path).verify(instance)


def refused(doc: Document, instance: Instance, folder: Path, *rules: str) -> tuple[str, str]:
    """Refused by one of the rules (any, where none is named) in one line, not too long: what both verifiers say."""
    with pytest.raises(CertificateError) as error:
        judge(doc, instance, folder)
    with pytest.raises(Refused) as other:  # by the files that need nothing of optsched, too
        alone.verify(*(json.loads(json.dumps(each)) for each in (doc, instance.to_json())))
    assert not rules or error.value.rule in rules, str(error.value)
    assert error.value.message
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500
    return str(error.value), str(other.value)


def each_kind(tamperings: Iterable[Tampering]) -> pytest.MarkDecorator:
    """Parametrize by ``rule``, ``touch`` and ``kind``: every tampering of every kind that it is for."""
    cases = [
        pytest.param(rule, touch, kind, id=f"{kind}: {name}")
        for name, rule, touch, kinds in tamperings
        for kind in kinds
    ]
    return pytest.mark.parametrize(("rule", "touch", "kind"), cases)


def one_priced_row(instance: Instance, schedule_class: str = "gang", **changes: Any) -> Document:
    """A certificate of one row of prices that claims nothing, its data changed."""
    data = {"formulation": "any", "origin": "0", "unit": "1", "denominator": 1, "rounded": False}
    data |= {"rows": [{"width": "gpus", "price": [1, 1]}], "jobs": ["0"] * instance.n, **changes}
    head = {"format": "optsched-certificate/1", "instance": instance.digest, "objective": "total_completion_time"}
    return {**head, "class": schedule_class, "kind": "lp-dual", "value": "-1000/1", "data": data}


# --- touches ----------------------------------------------------------------------------------------------------------


def put(field: str, value: Any) -> Touch:
    return lambda doc: doc.update({field: value})


def put_data(field: str, value: Any) -> Touch:
    return lambda doc: doc["data"].update({field: value})


def change(field: str, how: Callable[[Any], Any]) -> Touch:
    return lambda doc: doc["data"].update({field: how(doc["data"][field])})


def drop(field: str) -> Touch:
    return lambda doc: doc["data"].pop(field) and None


def add(delta: Fraction) -> Touch:
    def touch(doc: Document) -> None:
        value = Fraction(doc["value"]) + delta
        doc["value"] = f"{value.numerator}/{value.denominator}"

    return touch


def add_flow(doc: Document) -> None:
    """The bound on completion times, sold as one on flow times."""
    add(Fraction(doc["data"]["flow_constant"]))(doc)


def without_flow(doc: Document) -> None:
    """The same, and the constant is not stated either."""
    add_flow(doc)
    doc["data"]["flow_constant"] = "0/1"


def entry(key: str, value: Any) -> Callable[[Any], Any]:
    """An object with another entry, for `change`."""
    return lambda entries: {**entries, key: value}
