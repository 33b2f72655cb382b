"""Any multipliers between 0 and the weights give a bound; the ones chosen are at least as good as both extremes."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from brute_force import optimum
from examples import examples
from hypothesis import given, settings, strategies as st

from bounds.cases import SUMS, instance_of, instances, many, proved
from optsched.bounds import mean_busy_time
from optsched.bounds.best_bound import BOUNDS
from optsched.bounds.certificate import Certificate, CertificateError
from optsched.bounds.gang_machine import gang_machine
from optsched.bounds.grid import on_grid
from optsched.bounds.mean_busy_time import gain_with
from optsched.bounds.sum_costs import sum_costs
from optsched.problem.instance import Instance

KIND = "split-busy-time"
build = partial(proved, KIND)


@settings(max_examples=examples(80))
@given(instances(most=4), st.sampled_from(SUMS), st.data())
def test_any_multipliers_give_a_bound(instance: Instance, objective: str, data: st.DataObject) -> None:
    # not those that the ascent happens to choose: the theorem itself
    costs = sum_costs(instance, objective)
    threshold = data.draw(st.integers(1, (instance.cluster.gpus + 1) // 2))
    machine = gang_machine(instance.gpus, instance.cluster.gpus, threshold)
    jobs = on_grid(costs.release, costs.duration, machine.width, machine.capacity)
    exponent = 3
    most = np.where(jobs.work > 0, np.floor(np.ldexp(costs.weight, exponent)), 0).astype(np.int64)
    chosen = np.array([data.draw(st.integers(0, k)) for k in most.tolist()], dtype=np.int64)
    gain, bits = gain_with(costs, costs.duration, jobs, chosen, exponent)
    value = costs.alone(costs.weight) + gain
    assert value <= optimum(instance, objective)
    document = {
        **jobs.data(),
        "threshold": threshold,
        **costs.data(),
        "multiplier_exponent": exponent,
        "held_up_bits": bits,
    }
    document["multipliers"] = chosen.tolist()
    Certificate(instance.digest, objective, "gang", KIND, value, document).verify(instance)
    for j in range(instance.n):
        for wrong in (most[j] + 1, -1):
            tampered = {**document, "multipliers": [*chosen[:j].tolist(), int(wrong), *chosen[j + 1 :].tolist()]}
            with pytest.raises(CertificateError) as error:
                Certificate(instance.digest, objective, "gang", KIND, value, tampered).verify(instance)
            assert error.value.rule == "dual-feasibility"


@settings(max_examples=examples(60))
@given(instances(most=5, kind="integer"), st.sampled_from(SUMS[:4]))
def test_at_least_both_extremes(instance: Instance, objective: str) -> None:
    best = build(instance, objective)
    assert best is not None
    for extreme in ("mean-busy-time", "release-plus-duration"):
        assert best.value >= proved(extreme, instance, objective).value


def test_a_mixture_can_beat_both() -> None:
    # two early one-GPU jobs that never wait, and a crowd of wide ones later
    rows = [(0.0, 1, 8.0), (0.0, 1, 8.0), *[(9.0, 2, 1.0)] * 4]
    instance = instance_of(rows, 4)
    best = build(instance, "total_flow_time")
    assert best is not None
    others = (proved(kind, instance, "total_flow_time") for kind in ("mean-busy-time", "srpt", "release-plus-duration"))
    assert all(other.value < best.value for other in others)
    assert best.value <= optimum(instance, "total_flow_time")


def test_it_stands_back_from_very_many_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mean_busy_time, "TOO_MANY", 2)
    assert build(many(2, 1), "total_flow_time") is not None
    assert BOUNDS.get(KIND).build(many(3, 1), "total_flow_time", "gang") is None
