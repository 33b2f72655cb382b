"""What forking gains: the LPs by another method, a table of reference within its sampling error, and its message."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
from simulation.fork_lp import makespan_lp

from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.problem.instance import Instance
from optsched.speeds.type_speeds import group_rates
from optsched.studies.fork_nodes import NODE_SPEEDS, fork_nodes
from optsched.studies.study_file import STUDIES, run_all
from optsched.sweeps.measures.typed_gangs import measure_mix

COPIES = (1, 2, 5)
# By another program, 20 instances a row: no-fork / fork optimum, occupied CRU and TTD / fork LP with 1, 2, 5 copies.
MEASURED = {
    1: (2.79, (0.20, 0.40, 1.00), (2.88, 1.58, 1.03)),
    3: (1.48, (0.51, 0.99, 0.99), (1.54, 1.10, 1.10)),
    4: (1.25, (0.66, 0.99, 0.99), (1.36, 1.12, 1.14)),
    5: (1.06, (0.95, 0.99, 0.99), (1.17, 1.14, 1.14)),
    8: (1.00, (0.98, 0.98, 0.98), (1.15, 1.15, 1.15)),
    10: (1.00, (0.98, 0.98, 0.98), (1.16, 1.17, 1.16)),
    12: (1.00, (0.98, 0.98, 0.98), (1.17, 1.16, 1.16)),
}
PRINTED = 0.005  # half a unit of the last digit printed


class Measured(NamedTuple):
    instance: Instance
    runs: dict[int, dict[str, float]]  # by the number of copies


@pytest.fixture(scope="module")
def measured() -> dict[int, list[Measured]]:
    def one(instance: Instance) -> Measured:
        proven = OptimumBounds(instance)
        return Measured(instance, {x: measure_mix(f"hadar-e:rule=work,copies={x}", proven) for x in COPIES})

    return {jobs: [one(fork_nodes(seed, jobs=jobs)) for seed in range(3)] for jobs in (1, 3, 8)}


def test_an_instance_is_what_the_sheet_says() -> None:
    speeds = []
    for seed in range(20):
        instance = fork_nodes(seed, jobs=6)
        rate = group_rates(instance)
        seconds = instance.work / rate.max(axis=1)
        assert ((seconds >= 600) & (seconds <= 6000)).all()
        speeds.append((rate / rate.sum(axis=1, keepdims=True)).mean(axis=0))
        assert instance.cluster.gpus == 5
    # noise of 20 % a node and a pair, 20 instances: within 5 % of the nominal shares
    assert np.mean(speeds, axis=0) == pytest.approx(np.array(NODE_SPEEDS) / sum(NODE_SPEEDS), rel=0.05)


def test_both_lps_by_another_road(measured: dict[int, list[Measured]]) -> None:
    for each in (one for several in measured.values() for one in several):
        rate, steps = group_rates(each.instance), each.instance.work
        fork, alone = (makespan_lp(rate, steps, fork=f) for f in (True, False))
        for run in each.runs.values():  # a bound that was proved is not above the LP, and close to it
            assert run["total_time"] / run["fork_ratio"] == pytest.approx(fork, rel=1e-6)
            assert run["most"] == pytest.approx(alone / fork, rel=1e-6)
            assert run["most"] >= 1 - 1e-9
            if each.instance.n == 1:
                assert run["most"] == pytest.approx(rate.sum() / rate.max(), rel=1e-6)


def test_no_run_is_below_its_lp_and_forking_pays_where_jobs_are_few(measured: dict[int, list[Measured]]) -> None:
    for jobs, several in measured.items():
        for _, runs in several:
            for run in runs.values():
                assert run["fork_ratio"] >= 1
                assert run["productive"] <= 350 / 360 * run["occupied"] * (1 + 1e-12)
            assert runs[1]["total_time_ratio"] >= 1
            ratio, most = runs[1]["total_time"] / runs[5]["total_time"], runs[1]["most"]
            if jobs == 1:  # a node against all five, rounds and overhead alike
                assert ratio == pytest.approx(most, rel=0.02)
                assert runs[5]["occupied"] == pytest.approx(1)
            if jobs == 8:  # J >= n: nothing to gain but the last rounds
                assert most < 1.05
                assert 0.9 < ratio < 1.1


@pytest.mark.study
def test_the_table_of_the_sheet_within_sampling_error() -> None:
    """Within what both sampling errors allow: 20 instances each, 3.5 standard errors."""
    (experiment,) = (each for each in STUDIES.get("hadar").declare() if each.name == "fork-gain")
    seeds = experiment.seeds_of(())
    numbers, missed = run_all([experiment], seeds), []
    for column, workload in experiment.columns.items():
        jobs = dict(workload.parameters)["jobs"]
        if jobs not in MEASURED:
            continue
        most, occupied, ratio = MEASURED[jobs]
        for k, row in enumerate(experiment.rows):
            found = [numbers[workload, seed, experiment.policy(row, column)] for seed in seeds]
            for name, told in (("most", most), ("occupied", occupied[k]), ("fork_ratio", ratio[k])):
                values = np.array([each[name] for each in found])
                error = values.std(ddof=1) / math.sqrt(values.size)
                if abs(values.mean() - told) > 3.5 * math.sqrt(2) * error + PRINTED:
                    missed.append(f"{column}, {row}, {name}: {values.mean():.3f}, reference {told}, error {error:.3f}")
            assert min(each["fork_ratio"] for each in found) >= 1
            assert jobs < 8 or float(np.mean([each["most"] for each in found])) < 1.01
    assert missed == []
