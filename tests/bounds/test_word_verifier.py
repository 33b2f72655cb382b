"""Proofs in machine words: the same fractions as in Python integers, or none."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings, strategies as st

from bounds.cases import instances, proved
from optsched.bounds import BOUNDS, Certificate, CertificateError, word_verifier
from optsched.bounds.word_arithmetic import BLOCK, Overflow, divided_up, float_dot, float_sum, tick_dot
from optsched.bounds.word_verifier import KINDS, stable_order, word_proof
from optsched.check import verify_certificate
from optsched.problem.instance import Instance, Job

SUMS = ("total_completion_time", "total_flow_time", "total_weighted_completion_time", "total_weighted_flow_time")
CASES = dict.fromkeys(KINDS, SUMS) | {"volume": ("makespan",), "critical-job": ("makespan", "max_flow_time")}


@pytest.fixture(autouse=True)
def no_instance_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_verifier, "FEW", 0)


def in_words(certificate: Certificate, instance: Instance) -> bool:
    """Do words prove it? Then what the verifier that stands alone does."""
    try:
        value, data = word_proof(certificate.kind, certificate.objective, certificate.data, instance)
    except Overflow:
        return False
    claimed = {**certificate.to_json(), "value": f"{value.numerator}/{value.denominator}", "data": data}
    verify_certificate.verify(claimed, instance.to_json())
    return True


def same_on(instance: Instance, kinds: tuple[str, ...] = KINDS) -> int:
    """How many proofs of its bounds words can do; all of them give what integers give."""
    done = 0
    for kind in kinds:
        for objective in CASES[kind]:
            certificate = BOUNDS.get(kind).build(instance, objective, "gang")
            verify_certificate.verify(certificate.to_json(), instance.to_json())
            done += in_words(certificate, instance)
    return done


@settings(max_examples=examples(60), deadline=None)
@given(instances(most=7))
def test_words_and_integers_agree(instance: Instance) -> None:
    if instance.n:
        assert same_on(instance.relative) > 0


@pytest.mark.parametrize(
    ("jobs", "ticks", "bits"), [(300, 1.0, 32), (300, 1 / 8, 32), (100, 1 / 3, None), (90, 1e-9, None)]
)
def test_many_jobs_of_which_many_wait(jobs: int, ticks: float, bits: int | None) -> None:
    rng = np.random.default_rng(jobs)
    rows = [
        Job(
            f"j{k}",
            float(rng.integers(0, 2 * jobs)) * ticks,
            int(rng.choice([1, 1, 2, 4])),
            float(rng.integers(1, 13)) * ticks,
            weight=float(rng.choice([0, 1, 2, 3, 0.3])),
        )
        for k in range(jobs)
    ]
    instance = Instance(rows, "1x4")
    assert same_on(instance) == 15  # all of them
    certificate = BOUNDS.get("mean-busy-time").build(instance, "total_flow_time", "gang")
    assert certificate.data["held_up_bits"] == bits  # exact sums, and rounded ones


magnitudes = st.sampled_from([0.0, 5e-324, 1e-300, 1e-20, 2.0**-53, 0.1, 1.0, 3.0, 2.0**53 + 2, 1e16, 1e18, 1e25])


@settings(max_examples=examples(80), deadline=None)
@given(
    st.lists(
        st.tuples(magnitudes, st.integers(1, 4), magnitudes, st.sampled_from([0.0, 1.0, 1e-9, 3e15])),
        min_size=1,
        max_size=6,
    )
)
def test_numbers_that_do_not_fit_are_left_to_integers(rows: list[tuple[float, int, float, float]]) -> None:
    jobs = [Job(f"j{k}", r, g, max(d, 5e-324), weight=w) for k, (r, g, d, w) in enumerate(rows)]
    try:
        instance = Instance(jobs, "1x4").relative
    except ValueError:  # times that are invalid
        return
    same_on(instance)


anything = st.floats(-1e300, 1e300) | st.floats(-1.0, 1.0) | st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 1e-308, 0.1])


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.tuples(anything, anything), max_size=30))
def test_sums_of_floats_are_exact(pairs: list[tuple[float, float]]) -> None:
    a, b = (np.array([pair[i] for pair in pairs], dtype=np.float64) for i in (0, 1))
    largest, least = (limit([abs(x) for pair in pairs for x in pair if x], default=1.0) for limit in (max, min))
    for found, exact in (
        (lambda: float_sum(a), sum(map(Fraction, a.tolist()), Fraction(0))),
        (lambda: float_dot(a, b), sum((Fraction(x) * Fraction(y) for x, y in pairs), Fraction(0))),
    ):
        try:
            assert found() == exact
        except Overflow:
            assert largest >= 2.0**480 or least**2 < 2.0**-900


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2**53), st.integers(0, 2**62 - 1)), max_size=20))
def test_sums_of_ticks_are_exact(pairs: list[tuple[int, int]]) -> None:
    a, b = (np.array([pair[i] for pair in pairs], dtype=np.int64) for i in (0, 1))
    assert tick_dot(a, b) == sum(x * y for x, y in pairs)


quotient = st.tuples(
    st.integers(1, 2**61 - 1) | st.integers(1, 9) | st.integers(2**51 - 2, 2**51 + 2), st.integers(0, 2**61)
)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(quotient, min_size=1, max_size=9), st.integers(0, 2**31))
def test_quotients_are_exact(rows: list[tuple[int, int]], more: int) -> None:
    work = np.array([w for w, _ in rows], dtype=np.int64)
    gaps = [w * q + more % w for w, q in rows]
    low = (1 << 31) - 1
    parts = tuple(np.array([g >> shift & mask for g in gaps]) for shift, mask in ((62, -1), (31, low), (0, low)))
    whole, part = divided_up(parts, work)
    found = [(int(a) << 31) + int(b) for a, b in zip(whole, part, strict=True)]
    assert found == [-((-g << 31) // w) for g, (w, _) in zip(gaps, rows, strict=True)]


def test_sums_of_the_largest_blocks_do_not_overflow() -> None:
    most = np.full(BLOCK + 5, 2**62 - 1, dtype=np.int64)
    factor = np.where(np.arange(most.size) < 3, 1, 2**53 - 1)
    rest = most.size - 3
    assert tick_dot(factor, most) == (3 + rest * (2**53 - 1)) * (2**62 - 1)
    assert tick_dot(factor[3:], most[3:]) == rest * (2**53 - 1) * (2**62 - 1)
    largest = np.nextafter(2.0, 0.0)  # all bits of the mantissa
    mixed = np.where(np.arange(most.size) < 3, 1.0, largest)
    whole = Fraction(largest)
    assert float_dot(mixed, mixed) == 3 + rest * whole**2
    assert float_sum(np.full(1 << 20, largest)) == whole * (1 << 20)


close = st.sampled_from([0, 1, 2**40, 2**40 + 1, 2**60, 2**60 + 1, 2**60 + 2, 2**61 - 1])  # some round to one float


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(close, max_size=40), st.booleans())
def test_orders_are_stable(values: list[int], floats: bool) -> None:
    column = np.array(values, dtype=np.float64 if floats else np.int64)
    assert stable_order(column).tolist() == np.argsort(column, kind="stable").tolist()


@pytest.mark.parametrize("step", [2.0**-50, 2.0**-30, 1.0])
def test_orders_of_many_are_stable(step: float) -> None:
    column = 1.0 + step * np.random.default_rng(3).integers(0, 3000, 5000)
    assert stable_order(column).tolist() == np.argsort(column, kind="stable").tolist()


@pytest.mark.parametrize("kind", CASES)
def test_touched_certificates_are_refused_in_words(kind: str) -> None:
    instance = Instance([Job(f"j{k}", k / 4, 1 + k % 3, 1.0 + k % 5, weight=k % 3 + 1.0) for k in range(40)], "1x4")
    certificate = proved(kind, instance, CASES[kind][-1])
    assert in_words(certificate, instance)
    for touched in (
        replace(certificate, value=certificate.value + Fraction(1, 10**30)),
        replace(certificate, value=certificate.value - 1),
        replace(certificate, data={**certificate.data, "optimal": True}),
        replace(certificate, data={**certificate.data, "grid_exponent": 1, "flow_constant": "0/1"}),
    ):
        with pytest.raises(CertificateError):
            touched.verify(instance)
    if kind == "srpt":
        for level in ("1/3", f"{10**400}/1"):
            with pytest.raises(CertificateError):
                replace(certificate, data={**certificate.data, "levels": [level]}).verify(instance)
    if kind == "critical-job":
        for job in ("j1", "nobody", None, ["j0"]):
            with pytest.raises(CertificateError, match=r"job|more|less"):
                replace(certificate, data={"job": job}).verify(instance)
    if kind in ("release-plus-duration", "critical-job"):
        return
    for rule, data in (("dual-feasibility", {"threshold": 9}), ("value", {"grid_exponent": 10**9})):
        with pytest.raises(CertificateError) as error:
            replace(certificate, data={**certificate.data, **data}).verify(instance)
        assert error.value.rule == rule
