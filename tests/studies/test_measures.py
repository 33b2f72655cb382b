"""Measures of a run against an independent reading of its schedule."""

from __future__ import annotations

import math

import numpy as np
import pytest

from optsched.bounds import bound
from optsched.guarantees.optimum_bounds import OptimumBounds
from optsched.io.traces.generate import generate
from optsched.policies.simulate import simulate
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.profile import Profile, Stage
from optsched.sweeps.measures.placed_gangs import MEASURES, measure


def test_a_recurring_workload_read_segment_by_segment() -> None:
    instance = generate("recurring", 3, jobs=40, cluster="2x4", load=1.0, nic_bandwidth=1.25e9)
    policy = "a-srpt:predictor=noisy/error=2"
    found = measure(policy, OptimumBounds(instance))
    assert set(found) == {*MEASURES, "kept"}
    run = simulate(instance, policy)
    gangs: dict[int, set[int]] = {job: set() for job in range(instance.n)}
    for segment in run.schedule.segments():
        gangs[segment.job] |= {node for node, _ in segment.gpus}
    several = [job for job, gang in enumerate(instance.gpus) if gang > 1]
    assert found["consolidated"] == pytest.approx(np.mean([len(gangs[job]) == 1 for job in several]))
    completion, low = run.schedule.completion, float(bound(instance, "total_completion_time").value)
    assert found["ratio"] == pytest.approx(completion.sum() / low)
    arrivals = instance.arrival.sum()
    assert found["jct_ratio"] == pytest.approx((completion.sum() - arrivals) / (low - arrivals))
    assert found["mean_jct"] == pytest.approx((completion.sum() - arrivals) / 40)
    assert run.predicted is not None
    assert found["lam_o"] == pytest.approx((run.predicted / instance.work).max())
    assert found["lam_u"] == pytest.approx((instance.work / run.predicted).max())
    assert found["error_worst"] == pytest.approx(max(found["lam_o"], found["lam_u"]))
    assert found["kept"] == 1
    assert found["guarantee"] > found["ratio"]


def test_communication_and_slowdown_of_one_job_by_hand() -> None:
    # Two replicas on two one-GPU nodes: compute 3 s, ring 2 (1/2) 4 = 4 bytes over 2 bytes/s: 2 s, and nowhere faster.
    profile = Profile.of_stages([Stage(2, 1.0, 2.0, parameters=4.0)])
    cluster = Cluster((NodeGroup(1, 2, nic_bandwidth=2.0),))
    instance = Instance([Job("a", gpus=2, iterations=10, profile="p")], cluster, profiles={"p": profile})
    found = measure("a-srpt:tau=0", OptimumBounds(instance))
    assert found["communication"] == pytest.approx(2 / 5)
    assert found["slowdown"] == pytest.approx(1)
    assert found["consolidated"] == 0
    assert found["mean_jct"] == pytest.approx(50 + 50)  # the virtual machine takes 50 s before the cluster may start


def test_what_is_not_defined_is_nan() -> None:
    instance = generate("machines", 1, jobs=6)
    found = measure("fifo", OptimumBounds(instance))
    missing = {name for name, value in found.items() if math.isnan(value)}
    assert missing >= {"slowdown", "consolidated", "communication", "lam_o", "error_p99"}
    assert not missing & {"ratio", "mean_jct", "utilization"}
