"""Volume and critical job: exact on one machine, and known values."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import pytest
from brute_force import preemptive_optimum
from examples import examples
from hypothesis import given, settings

from bounds.cases import instance_of, instances, proved
from optsched.bounds.certificate import Certificate, CertificateError
from optsched.errors import InputError
from optsched.problem.instance import Instance

volume, critical_job = (partial(proved, kind) for kind in ("volume", "critical-job"))


@settings(max_examples=examples(80))
@given(instances(most=4, kind="short", gpus=1))
def test_volume_is_the_makespan_of_one_machine(instance: Instance) -> None:
    certificate = volume(instance, "makespan")
    assert certificate.value == preemptive_optimum(instance, "makespan")


def test_only_the_work_still_to_come_counts() -> None:
    # 100 GPU-seconds at 0 on 4 GPUs end by 25; 8 more at 40 last until 42
    instance = instance_of([(0.0, 4, 25.0), (40.0, 2, 2.0), (40.0, 2, 2.0)], 4)
    assert volume(instance, "makespan").value == 42


def test_wide_gangs_count_with_their_durations() -> None:
    instance = instance_of([(0.0, 5, 3.0)] * 3, 8)
    assert volume(instance, "makespan").value == 9


def test_the_critical_job_is_found_beyond_the_last_bit_of_a_float() -> None:
    # both sums round to 1e16 + 2; only the error tells that the second is larger
    rows = [(1e16, 1, 1.25), (1e16, 1, 1.5), (0.0, 1, 1.0)]
    assert 1e16 + 1.25 == 1e16 + 1.5
    instance = instance_of(rows, 3)
    certificate = critical_job(instance, "makespan")
    assert certificate.data["job"] == "j1"
    assert certificate.value == 10**16 + Fraction(3, 2)


@given(instances(most=6))
def test_the_critical_job_is_the_latest_of_all(instance: Instance) -> None:
    certificate = critical_job(instance, "makespan")
    ends = [Fraction(r) + Fraction(d) for r, d in zip(instance.arrival, instance.duration, strict=True)]
    assert certificate.value == max(ends, default=0)


def test_any_job_proves_its_own_end_and_no_more() -> None:
    instance = instance_of([(0.0, 1, 3.0), (2.0, 1, 5.0)], 2)
    Certificate(instance.digest, "makespan", "gang", "critical-job", Fraction(3), {"job": "j0"}).verify(instance)
    with pytest.raises(CertificateError, match="value"):
        Certificate(instance.digest, "makespan", "gang", "critical-job", Fraction(7), {"job": "j0"}).verify(instance)


def test_times_beyond_the_legal_range_are_a_users_mistake() -> None:
    with pytest.raises(InputError, match=r"duration = 1.7e\+308: too long"):
        instance_of([(0, 1, 1.7e308)], 1)
