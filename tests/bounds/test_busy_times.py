"""Mean busy times as bounds: known values, a second formulation, roundings, and any multipliers up to the weights."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from brute_force import optimum
from examples import examples
from hypothesis import given, settings, strategies as st
from scipy.optimize import linear_sum_assignment

from bounds.cases import SUMS, instance_of, instances, many, proved
from optsched.bounds import mean_busy_time
from optsched.bounds.best_bound import BOUNDS
from optsched.bounds.certificate import Certificate, CertificateError
from optsched.bounds.gang_machine import gang_machine
from optsched.bounds.integer_grid import on_grid
from optsched.bounds.mean_busy_time import gain_with, weights_on_grid
from optsched.bounds.sum_costs import sum_costs
from optsched.problem.instance import Instance

# --- mean busy times: known values, a second formulation (assignment of slots), Eastman-Even-Isaacs, rounding ------------


build, build_srpt = (partial(proved, kind) for kind in ("mean-busy-time", "srpt"))


def value(instance: Instance, objective: str) -> Fraction:
    return build(instance, objective).value


@settings(max_examples=examples(60))
@given(instances(most=5, kind="integer", gpus=1))
def test_least_mean_busy_times_as_an_assignment_problem(instance: Instance) -> None:
    # units of work to unit slots; the cost of a unit is weight / p_j x the middle of the slot
    horizon = int(instance.arrival.max(initial=0.0) + instance.duration.sum())
    rows = []
    for r, p, w in zip(instance.arrival, instance.duration, instance.weight, strict=True):
        slots = np.arange(horizon)
        rows += [np.where(slots >= r, w / p * (slots + 0.5), 1e6)] * int(p)
    expected = float(instance.weight @ instance.duration) / 2
    if rows:
        cost = np.array(rows)
        expected += cost[linear_sum_assignment(cost)].sum()
    assert float(value(instance, "total_weighted_completion_time")) == pytest.approx(expected, rel=1e-12)


@given(
    st.lists(st.tuples(st.just(0.0), st.just(1), st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=9),
    st.integers(1, 4),
)
def test_eastman_even_isaacs(rows: list[tuple[float, int, int, int]], machines: int) -> None:
    machines = min(machines, len(rows))  # of fewer jobs than machines only as many can be filled
    instance = instance_of([(r, g, float(p), float(w)) for r, g, p, w in rows], machines)
    order = sorted(((p, w) for _, _, p, w in rows), key=lambda job: Fraction(-job[1], job[0]))
    one_machine, now = 0, 0
    for p, w in order:
        now += p
        one_machine += w * now
    sum_wp = sum(w * p for p, w in order)
    bound = Fraction(one_machine, machines) + Fraction(machines - 1, 2 * machines) * sum_wp
    threshold_one = value(instance, "total_weighted_completion_time")
    assert threshold_one >= bound
    if machines <= 2:
        # no other threshold exists
        assert threshold_one == bound


@pytest.mark.parametrize("kind", ["integer", "tenths"])
@pytest.mark.parametrize("bound", ["mean-busy-time", "split-busy-time"])
def test_hundreds_of_interruptions_are_rounded_alike_on_both_roads(kind: str, bound: str) -> None:
    instance = many(1_000 if kind == "tenths" else 500, 7, kind)
    certificate = proved(bound, instance, "total_weighted_flow_time")
    assert certificate.value > 0
    assert certificate.data["held_up_bits"] == 32


def test_ties_are_broken_alike_on_both_roads() -> None:
    # Three jobs of equal density at every release, denser than all before: one of them starts and is interrupted by the
    # next three. Which one it is does not change the sum but its roundings.
    rng = np.random.default_rng(5)
    rows = [(2.0 * k, 1, float(p), float(p * (k + 1))) for k in range(200) for p in rng.integers(3, 40, 3)]
    values = set()
    for order in (range(600), range(599, -1, -1), rng.permutation(600)):
        instance = instance_of([rows[j] for j in order], 1)
        certificate = build(instance, "total_weighted_completion_time")
        assert certificate.data["held_up_bits"] == 32
        values.add(certificate.value)
    assert len(values) > 1
    assert max(values) - min(values) < Fraction(600 * 40 * 200, 2**32)


@given(st.lists(st.sampled_from([0.0, 0.1, 1.0, 3.0, 1e9 + 0.3, 1e-300, 1e300]), max_size=6), st.integers(0, 6))
def test_weights_are_rounded_down_to_52_bits(weights: list[float], extra: int) -> None:
    integers, exponent = weights_on_grid(np.array(weights), extra)
    for k, w in zip(integers.tolist(), weights, strict=True):
        assert 0 <= k < 2**52
        assert 0 <= Fraction(w) - k / Fraction(2) ** exponent < 1 / Fraction(2) ** exponent


def test_integer_weights_stay_integers() -> None:
    assert weights_on_grid(np.array([3.0, 7.0]))[1] == 0
    assert weights_on_grid(np.array([3.0, 7.0]), 6)[1] == 6


# --- any multipliers between 0 and the weights give a bound; the ones chosen are at least as good as both extremes -------


KIND = "split-busy-time"
split = partial(proved, KIND)


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
    best = split(instance, objective)
    assert best is not None
    for extreme in ("mean-busy-time", "release-plus-duration"):
        assert best.value >= proved(extreme, instance, objective).value


def test_a_mixture_can_beat_both() -> None:
    # two early one-GPU jobs that never wait, and a crowd of wide ones later
    rows = [(0.0, 1, 8.0), (0.0, 1, 8.0), *[(9.0, 2, 1.0)] * 4]
    instance = instance_of(rows, 4)
    best = split(instance, "total_flow_time")
    assert best is not None
    others = (proved(kind, instance, "total_flow_time") for kind in ("mean-busy-time", "srpt", "release-plus-duration"))
    assert all(other.value < best.value for other in others)
    assert best.value <= optimum(instance, "total_flow_time")


def test_it_stands_back_from_very_many_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mean_busy_time, "TOO_MANY", 2)
    assert split(many(2, 1), "total_flow_time") is not None
    assert BOUNDS.get(KIND).build(many(3, 1), "total_flow_time", "gang") is None
