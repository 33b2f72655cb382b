"""Certificates as values and files: what is written is read, and what is not a certificate is refused in one line."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from bounds.cases import instance_of
from optsched.bounds import KINDS, Certificate, CertificateError, bound
from optsched.bounds.certificate import Kind, rounded_down
from optsched.bounds.lp_dual import PriceRow, Prices, price_certificate
from optsched.errors import InputError
from optsched.problem.instance import Instance


@pytest.fixture
def instance() -> Instance:
    return instance_of([(0.0, 2, 3.0), (1.0, 1, 1.0), (1.0, 2, 0.5)], 3)


def test_what_is_saved_is_loaded(instance: Instance, tmp_path: Path) -> None:
    prices = Prices("any", Fraction(0), Fraction(1), 1, (PriceRow(instance.gpus, np.array([1])),))
    of_prices = price_certificate(instance, "total_completion_time", "gang-nonpreemptive", prices)
    for certificate in (bound(instance, "makespan"), bound(instance, "total_weighted_completion_time"), of_prices):
        certificate.save(tmp_path / "c.json")
        loaded = Certificate.load(tmp_path / "c.json")
        assert loaded == certificate
        loaded.verify(instance)


def test_the_file_is_the_documented_one(instance: Instance, tmp_path: Path) -> None:
    certificate = bound(instance, "makespan", "gang-nonpreemptive")
    certificate.save(tmp_path / "c.json")
    doc = json.loads((tmp_path / "c.json").read_text())
    assert list(doc) == ["format", "instance", "objective", "class", "kind", "value", "data"]
    assert doc["format"] == "optsched-certificate/1"
    assert doc["instance"] == instance.digest
    assert doc["class"] == "gang-nonpreemptive"
    assert doc["value"] == f"{certificate.value.numerator}/{certificate.value.denominator}"


@given(st.fractions() | st.floats(allow_nan=False, allow_infinity=False).map(Fraction))
@example(Fraction(1, 3))
@example(Fraction(-1, 3))
@example(Fraction(10) ** 400)
@example(-(Fraction(10) ** 400))
@example(Fraction(1, 10**400))
@example(Fraction(-1, 10**400))
@example(Fraction(2**53 + 1))
def test_a_printed_bound_is_rounded_down(value: Fraction) -> None:
    shown = rounded_down(value)
    assert shown == -math.inf or Fraction(shown) <= value
    above = math.nextafter(shown, math.inf)
    assert above == math.inf or Fraction(above) > value
    certificate = Certificate("", "makespan", "gang", "volume", value)
    assert certificate.exact_float == shown
    assert Fraction(certificate.exact) == value


def write(path: Path, of: Instance, changes: dict[str, Any]) -> Path:
    """A certificate file with some fields replaced; `...` leaves a field out."""
    doc = {**bound(of, "total_flow_time").to_json(), **changes}
    path.write_text(json.dumps({name: value for name, value in doc.items() if value is not ...}))
    return path


@pytest.mark.parametrize("field", ["instance", "objective", "class", "kind", "value", "data"])
def test_a_missing_field_is_named(field: str, instance: Instance, tmp_path: Path) -> None:
    path = write(tmp_path / "c.json", instance, {field: ...})
    with pytest.raises(InputError, match=f"{field}: missing field") as error:
        Certificate.load(path)
    assert "\n" not in str(error.value)
    assert "c.json" in str(error.value)


@pytest.mark.parametrize("field", ["instance", "objective", "class", "kind", "data"])
@pytest.mark.parametrize("value", [3, None, ["a"]])
def test_a_field_of_the_wrong_type_is_named(field: str, value: Any, instance: Instance, tmp_path: Path) -> None:
    path = write(tmp_path / "c.json", instance, {field: value})
    with pytest.raises(InputError, match=f"{field} = .*wrong type"):
        Certificate.load(path)


@pytest.mark.parametrize("format_", ["optsched-schedule/1", "optsched-certificate/2", None, 1, ...])
def test_another_format_is_refused(format_: Any, instance: Instance, tmp_path: Path) -> None:
    path = write(tmp_path / "c.json", instance, {"format": format_})
    with pytest.raises(InputError, match="optsched-certificate/1"):
        Certificate.load(path)


def test_every_bound_can_be_verified() -> None:
    from optsched.bounds import BOUNDS

    assert set(BOUNDS.names()) <= set(KINDS.names())
    assert all(isinstance(KINDS.get(name), Kind) for name in KINDS.names())
    assert "lp-dual" in KINDS


def test_a_value_must_be_a_fraction(instance: Instance) -> None:
    certificate = bound(instance, "total_flow_time")
    for value in (float(certificate.value), int(certificate.value)):
        wrong = Certificate(instance.digest, certificate.objective, "gang", certificate.kind, value, certificate.data)
        with pytest.raises(CertificateError) as error:
            wrong.verify(instance)
        assert error.value.rule == "value"
