"""Bounds for elastic jobs: below exact optima of small instances, and below every run; forged certificates are refused."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from simulation.elastic_instances import elastic_instance

from bounds.cases import certificates
from optsched.bounds import BOUNDS, Certificate, CertificateError, NoBoundError, bound, priced_time
from optsched.bounds.certificate import rounded_down
from optsched.bounds.integer_grid import on_grid
from optsched.bounds.mean_busy_time import gain_with, weights_on_grid
from optsched.classes.elastic.bounds.modes_of_elastic import elastic
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.problem.scaling import Scaling
from optsched.speeds.goodput_rates import Goodputs


def test_busy_times_are_never_less_than_with_all_the_weight_or_none_and_old_files_are_read() -> None:
    instance = elastic_instance(1, jobs=10)
    for objective in ("total_flow_time", "total_weighted_completion_time"):
        relaxed = elastic(instance, "elastic")
        costs, gpus = relaxed.costs(objective), instance.cluster.gpus
        fewest = zip(
            relaxed.alone,
            relaxed.modes.work,
            relaxed.modes.kind,
            Goodputs(instance).elastic,
            instance.gpus,
            strict=True,
        )
        volume = [  # GPU-seconds, rounded down to floats
            rounded_down(
                Fraction(w) * min(a * g for _, a, g in relaxed.modes.by_kind[k])
                if scaled
                else Fraction(alone) * int(gang)
            )
            for alone, w, k, scaled, gang in fewest
        ]
        jobs = on_grid(instance.arrival, np.array(volume), np.ones(instance.n, dtype=np.int64), gpus)
        weight, exponent = weights_on_grid(costs.weight)
        gain, bits = gain_with(costs, costs.duration, jobs, np.where(jobs.work > 0, weight, 0), exponent)
        value = costs.alone(costs.weight) + gain
        data = {**jobs.data(), "threshold": 1, **costs.data(), "multiplier_exponent": exponent, "held_up_bits": bits}
        old = Certificate(instance.digest, objective, "elastic", "elastic-busy-time", value, data)
        old.verify(instance)
        split = BOUNDS.get("elastic-busy-time").build(instance, objective, "elastic")
        alone = BOUNDS.get("elastic-alone").build(instance, objective, "elastic")
        assert split.value > max(old.value, alone.value)
        raised = [2 * u + 2 for u in split.data["multipliers"]]
        with pytest.raises(CertificateError, match="dual-feasibility"):
            replace(split, data={**split.data, "multipliers": raised}).verify(instance)


def test_late_jobs_that_wait() -> None:
    # all scale perfectly: three jobs of 8 s on all GPUs one after the other, due after 2 s, are 6, 14 and 22 s late
    jobs = [Job(f"j{k}", 0, 1, iterations=8, profile="m", batch_size=4, due=2) for k in range(3)]
    instance = Instance(jobs, "1x4", scalings={"m": Scaling(0.0, 1.0)})
    certificate = bound(instance, "total_weighted_tardiness", "elastic")
    certificate.verify(instance)
    assert certificate.kind in ("elastic-busy-time", "elastic-due-dates")
    assert certificate.value == 6 + 14 + 22


def test_exact_where_all_scale_perfectly() -> None:
    # on r GPUs r times as fast: one machine, and SRPT is the optimum
    scalings = {"m": Scaling(0.0, 1.0)}
    jobs = [
        Job(f"j{k}", r, 1, iterations=work, profile="m", batch_size=4)
        for k, (r, work) in enumerate([(0, 8), (1, 2), (2, 1), (3, 4)])
    ]
    instance = Instance(jobs, "1x4", scalings=scalings)
    # one iteration a second on four GPUs: SRPT ends at 3 (2), 4 (1), 8 (4), 15 (8)
    certificate = bound(instance, "total_completion_time", "elastic")
    assert certificate.value == 3 + 4 + 8 + 15
    certificate.verify(instance)
    assert bound(instance, "makespan", "elastic").value == 15


def test_none_is_above_a_run_of_elastic_jobs_or_of_gangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(priced_time, "FEWEST_JOBS", 2)
    for seed in range(3):
        instance = elastic_instance(seed, jobs=10, measured=seed == 2)
        runs = [simulate(instance, each) for each in ("goodput:round=3,restart=0", "fifo:skip=true", "srtf", "sjf")]
        for objective in ("total_flow_time", "total_weighted_completion_time", "makespan"):
            least = min(run.value(objective) for run in runs if not run.unfinished)
            found = certificates(instance, objective, "elastic")
            for certificate in found:
                certificate.verify(instance)
            assert all(least >= float(certificate.value) * (1 - 1e-9) for certificate in found)
            assert ("priced-time" in {certificate.kind for certificate in found}) == (objective != "makespan")


def test_who_has_the_class() -> None:
    rigid = Instance([Job("a", duration=5)], "1x2")
    with pytest.raises(NoBoundError):
        bound(rigid, None, "elastic")
    assert bound(elastic_instance(1)).schedule_class == "gang"
