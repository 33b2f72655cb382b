"""One contract for every registered bound: below the optimum, verified on another method, honest about its class."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from brute_force import optimum
from examples import examples, explored, few, studied
from hypothesis import given, settings, strategies as st
from srpt import mean_busy_times

from bounds.cases import OBJECTIVES, certificates, instance_of, instances, many, random_gangs
from optsched.bounds import BOUNDS, NoBoundError, bound
from optsched.bounds.certificate import EXCLUSIVE_CLASSES
from optsched.classes import class_names
from optsched.errors import InputError
from optsched.problem.instance import Cluster, Instance, Job, NodeGroup
from optsched.problem.interference import Interference
from optsched.verifier.class_table import CLASSES
from optsched.verifier.tick_machine import srpt_ends

NAMES = tuple(name for name in BOUNDS.names() if not BOUNDS.get(name).strong)


def test_the_bounds_are_found_by_themselves() -> None:
    assert set(NAMES) >= {
        "critical-job",
        "mean-busy-time",
        "release-plus-duration",
        "split-busy-time",
        "srpt",
        "srpt-due-dates",
        "volume",
    }
    for name in NAMES:
        candidate = BOUNDS.get(name)
        assert candidate.statement
        assert set(candidate.classes) <= set(class_names())
        for schedule_class in candidate.classes:  # and the verifier that stands alone knows them
            assert all(
                name in CLASSES[schedule_class].theorems.get(objective, ()) for objective in candidate.objectives
            )


@settings(max_examples=examples(60))
@given(instances(most=5), st.sampled_from(OBJECTIVES))
def test_both_roads_agree_and_stay_below_the_optimum(instance: Instance, objective: str) -> None:
    best = optimum(instance, objective)
    for certificate in certificates(instance, objective):
        certificate.verify(instance)
        assert certificate.value <= best
        assert certificate.exact_float <= certificate.value
        assert certificate.instance == instance.digest


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("schedule_class", ["gang", "forking"])
@pytest.mark.parametrize("kind", ["integer", "tenths"])
def test_both_roads_agree_on_many_jobs(kind: str, schedule_class: str, objective: str) -> None:
    instance = many(100 if explored() else 40, 17, kind, gpus=10)
    for certificate in certificates(instance, objective, schedule_class):
        certificate.verify(instance)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_one_job(objective: str) -> None:
    one = instance_of([(2.0, 3, 5.0, 2.0, 4.0)], 4)
    for instance in (one, one.replace(interference=Interference(1.2))):
        certificate = bound(instance, objective)
        certificate.verify(instance)
        assert certificate.value == optimum(one, objective) > 0


@given(instances(most=5), st.sampled_from(OBJECTIVES))
def test_the_best_is_the_largest(instance: Instance, objective: str) -> None:
    best = bound(instance, objective)
    assert best.value == max(certificate.value for certificate in certificates(instance, objective))
    assert best.objective == objective


def test_of_equal_bounds_the_shortest_proof() -> None:
    alone = instance_of([(0.0, 4, 5.0)], 4)
    assert bound(alone, "makespan").kind == "critical-job"
    assert bound(alone, "total_flow_time").kind == "release-plus-duration"


def test_the_objective_of_the_instance_is_the_default() -> None:
    instance = instance_of([(1.0, 1, 2.0)], 1)
    assert bound(instance).objective == "total_flow_time"
    assert bound(instance.replace(objective="makespan")).objective == "makespan"


@pytest.mark.parametrize("name", EXCLUSIVE_CLASSES)
def test_a_bound_names_its_class(name: str) -> None:
    instance = instance_of([(0.0, 2, 3.0), (1.0, 2, 3.0)], 3)
    certificate = bound(instance, "total_flow_time", name)
    certificate.verify(instance)
    assert certificate.schedule_class == name


def test_unknown_class() -> None:
    instance = instance_of([(0.0, 1, 1.0)], 1)
    with pytest.raises(InputError, match="did you mean gang-nonpreemptive") as error:
        bound(instance, schedule_class="gang-nonpreemptiv")
    assert "\n" not in str(error.value)
    with pytest.raises(InputError, match="gang"):
        bound(instance, schedule_class="serial")


def test_unknown_objective_and_objective_without_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = instance_of([(0.0, 1, 1.0)], 1)
    with pytest.raises(InputError, match="makespan"):
        bound(instance, "makspan")
    monkeypatch.setattr(BOUNDS, "names", lambda classes=None: ["srpt"])
    with pytest.raises(NoBoundError, match="no lower bound on this objective") as error:
        bound(instance, "makespan")
    assert "total_completion_time" in str(error.value)


def test_jobs_without_a_duration_are_refused() -> None:
    instance = Instance([Job("a", iterations=5, profile="resnet")], Cluster.machines(1))
    with pytest.raises(InputError, match="duration"):
        bound(instance, "total_flow_time")


def test_types_and_memory_only_forbid_schedules() -> None:
    # the bound of the same jobs without restrictions holds; prices by type know that half of the GPUs are no use to anybody
    cluster = Cluster((NodeGroup(4, gpu="V100"), NodeGroup(4, gpu="P100", gpu_memory=1e9)))
    rows = [(float(k), 1 + k % 4, 3.0 + k) for k in range(18)]
    free = Instance([Job(str(k), *row) for k, row in enumerate(rows)], cluster)
    bound_to = Instance([Job(str(k), *row, gpu_types=("V100",), gpu_memory=5e8) for k, row in enumerate(rows)], cluster)
    for objective in few(OBJECTIVES, 3):
        low, lower = bound(bound_to, objective), bound(free, objective)
        assert low.value > lower.value if low.kind == "priced-time" else low.value == lower.value
        replace(lower, instance=bound_to.digest).verify(bound_to)
        low.verify(bound_to)
    assert bound(bound_to, "total_flow_time").kind == "priced-time"


@pytest.mark.parametrize("count", [30, studied(150)])
def test_margins_of_the_plain_bounds(count: int) -> None:
    """An independent model on 4,000 instances: OPT / bound on average LB1 1.64, LB2 1.13, LB3 1.19, best 1.06.

    Here some instances of its generator: plain bounds (G GPUs, no thresholds), recomputed in this test, then ours. The
    tolerance is three standard errors of the mean.
    """
    rng = np.random.default_rng(44)
    objective = "total_completion_time"
    best_of_three, ours, improved = [], [], []
    for _ in range(count):
        instance = random_gangs(rng)
        value = optimum(instance, objective)
        release, gpus, duration = instance.arrival.tolist(), instance.gpus.tolist(), instance.duration.tolist()
        total = instance.cluster.gpus
        jobs = [(int(total * r), int(g * d)) for r, g, d in zip(release, gpus, duration, strict=True)]
        lb1 = Fraction(sum(srpt_ends(*map(list, zip(*jobs, strict=True)))), total)
        lb2 = Fraction(int(sum(release) + sum(duration)))
        lb3 = sum(mean_busy_times(jobs, [work for _, work in jobs])) / total + Fraction(int(sum(duration)), 2)
        best_of_three.append(float(value / max(lb1, lb2, lb3)))
        three = ("srpt", "mean-busy-time", "release-plus-duration")
        values = [certificate.value for certificate in certificates(instance, objective, names=three)]
        assert max(values) >= max(lb1, lb2, lb3)
        ours.append(float(value / max(values)))
        improved.append(float(value / bound(instance, objective).value))
    error = 3 * float(np.std(best_of_three)) / count**0.5
    assert error < 0.4 / count**0.5
    assert abs(np.mean(best_of_three) - 1.06) < error
    assert max(best_of_three) <= 1.55
    # thresholds, tight capacities and mixtures
    assert np.mean(improved) < np.mean(ours) < np.mean(best_of_three) - 0.01
    assert np.mean(improved) < 1.045
