"""A new theorem, relaxation or bound is one file: toys of each, found, the best, verified, and refused when touched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from bounds.cases import instance_of, proved
from optsched.bounds import BOUNDS, KINDS, Certificate, CertificateError, bound, relaxation as product
from optsched.bounds.best_bound import lower_bound
from optsched.bounds.certificate import Proof, register_kind, require_same
from optsched.bounds.relaxation import FastMachine, Machines, Relaxation, Relaxed, Theorem, Value, relaxation, theorem
from optsched.bounds.sum_costs import MAKESPAN
from optsched.problem.instance import Instance
from optsched.speeds.duration import seconds_alone
from optsched.verifier.certified_case import Case
from optsched.verifier.document_fields import Data, read_field
from optsched.verifier.exact_numbers import floors
from optsched.verifier.tick_machine import Machine, machine_on_grid


@pytest.fixture(autouse=True)
def afterwards_they_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert BOUNDS.names()
    assert KINDS.names()  # all files are found before anything is put aside
    for registry in (BOUNDS, KINDS):
        monkeypatch.setattr(registry, "_things", dict(registry._things))
    monkeypatch.setattr(product, "_relaxations", list(product._relaxations))
    monkeypatch.setattr(product, "_theorems", list(product._theorems))


# wide gangs on two GPUs: pairs of one-GPU jobs never overlap with them
INSTANCE = instance_of([(0.0, 2, 3.0), (0.0, 1, 2.0), (1.0, 1, 2.0), (1.0, 2, 1.0, 2.0)], 2)


def refused(certificate: Certificate, **data: Any) -> None:
    with pytest.raises(CertificateError):
        replace(certificate, value=certificate.value + Fraction(1, 10**9)).verify(INSTANCE)
    with pytest.raises(CertificateError):
        replace(certificate, data={**certificate.data, **data}).verify(INSTANCE)


# --- a theorem: the machine is busy for the sum of all works -------------------------------------------------------------


def build_busy(relaxed: Relaxed, objective: str) -> Proof | None:
    proofs = []
    for (machine,) in relaxed.machines(lambda some: float(some.rough_grid().work.sum())):
        grid = machine.grid()
        proofs.append((int(grid.work.sum()) * grid.tick, machine.data(grid)))
    return max(proofs, key=lambda proof: proof[0], default=None)


def verify_busy(case: Case, data: Data) -> Proof:
    on = case.machine(data)
    return sum(on.work) / on.second, on.stated


def test_a_new_theorem_serves_every_relaxation() -> None:
    theorem(Theorem("toy", (MAKESPAN,), "all work", build_busy, verify_busy))
    found = {name for name in BOUNDS.names() if name.endswith("-toy")}
    assert found >= {"gang-toy", "typed-toy", "shared-toy", "elastic-toy", "task-toy", "link-toy"}
    assert BOUNDS.get("gang-toy").statement == "all work: gangs"
    certificate = proved("gang-toy", INSTANCE, MAKESPAN)
    assert certificate.value == (2 * 3 + 2 + 2 + 2 * 1) / Fraction(2)
    refused(certificate, capacity=1)
    forked = proved("typed-toy", INSTANCE, MAKESPAN, "forking")
    refused(forked, prices={"GPU": 2})


# --- a relaxation: gangs that fill the cluster, one by one ---------------------------------------------------------------


class Widest(Relaxed):
    """Only gangs of all GPUs count, on a machine of one unit."""

    def machines(self, value: Value, rounds: int = 1) -> Iterator[Machines]:
        full = (self.instance.gpus == self.instance.cluster.gpus).astype(np.int64)
        yield (FastMachine(self.instance.arrival, self.alone, full, 1, lambda: {"toy": True}, self.alone),)


def one_by_one(case: Case, data: Data) -> Machine:
    """The same in integers."""
    exponent = read_field(int, data, "grid_exponent", least=-100, most=100)
    seconds = floors(case.length, case.unit, exponent)
    work = [s if gang == case.total else 0 for s, gang in zip(seconds, case.gpus, strict=True)]
    return machine_on_grid(floors(case.release, case.unit, exponent), work, 1, exponent, {"toy": True})


def widest(instance: Instance, schedule_class: str) -> Widest:
    return Widest(instance, seconds_alone(instance))


def test_a_new_relaxation_has_every_theorem() -> None:
    relaxation(Relaxation("widest", ("gang",), widest, "gangs of all GPUs", machine=one_by_one))
    names = {"srpt", "due-dates", "mean-busy-time", "busy-time", "first-come", "fair-share", "volume", "alone"}
    assert {name for name in BOUNDS.names() if name.startswith("widest-")} == {f"widest-{name}" for name in names}
    dated = INSTANCE.replace(jobs=INSTANCE.table.with_columns(due=INSTANCE.arrival + 1.0))
    for name in sorted(names):
        kind = BOUNDS.get(f"widest-{name}")
        for objective in sorted(kind.objectives):
            certificate = kind.build(dated, objective, "gang")
            certificate.verify(dated)
    # 3 s from 0 on and 1 s from 1 on, one after the other; the jobs between at their own ends 2 and 3
    certificate = proved("widest-srpt", INSTANCE, "total_completion_time")
    assert certificate.value == 2 + 4 + 2 + 3
    refused(certificate, grid_exponent=-1)


# --- a bound of its own --------------------------------------------------------------------------------------------------


def test_a_new_bound_is_asked_for_with_the_others() -> None:
    value = Fraction(8)  # the optimum: 3 + 2 + 2 + 1 on two GPUs, of which two jobs of one GPU share one slot

    @lower_bound("toy", objectives=["total_weighted_tardiness"], statement="by hand")
    def build(instance: Instance, objective: str, schedule_class: str) -> Certificate:
        return Certificate(instance.digest, objective, schedule_class, "toy", value, {"by": "hand"})

    @register_kind("toy", objectives=["total_weighted_tardiness"])
    def verify(certificate: Certificate, instance: Instance) -> None:
        require_same(certificate, value, {"by": "hand"})

    certificate = bound(INSTANCE, "total_weighted_tardiness", "gang")
    assert certificate.kind == "toy"
    certificate.verify(INSTANCE)
    refused(certificate, by="foot")
    with pytest.raises(CertificateError, match="kind: toy is no bound on the objective"):
        replace(certificate, objective="makespan").verify(INSTANCE)
