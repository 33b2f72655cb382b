"""The solo time of a job is that of a placement, and no placement is faster: against every placement there is."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from bounds.typed_cases import typed_instance
from examples import examples, few
from hypothesis import assume, given, settings
from simulation.elastic_instances import elastic_instance

from optsched.io.sources import load
from optsched.policies.simulate import simulate
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.profile import Profile, Stage
from optsched.problem.throughputs import Throughput, Throughputs
from optsched.simulation.metrics import finish_time_fairness
from optsched.solvers.solve import solve
from optsched.speeds.duration import seconds_alone, segment_paces, solo_times
from optsched.speeds.network import Network
from optsched.speeds.stage_graph import Node, best_pace, iteration_time
from speeds.random_profiles import clusters, placements, profiles


def best_of_all(instance: Instance, j: int) -> float:
    """Seconds of the fastest of all placements: every order of nodes on the GPUs that the job may use."""
    gang, room = int(instance.gpus[j]), instance.cluster.node_gpus.tolist()
    best = math.inf
    for nodes in itertools.product(np.flatnonzero(instance.eligible(j)).tolist(), repeat=gang):
        if all(nodes.count(node) <= room[node] for node in set(nodes)):
            offset = np.array([0, gang], dtype=np.int64)
            pace = segment_paces(instance, np.array([j]), offset, np.array(nodes, dtype=np.int64))[0]
            best = min(best, float(pace) if pace > 0 else math.inf)
    return float(instance.work[j]) * best


@pytest.mark.parametrize("seed", few(range(25), 8))
def test_at_table_rates_it_is_the_best_of_all_placements(seed: int) -> None:
    instance = typed_instance(np.random.default_rng([seed, 5]), zeros=False)
    found = solo_times(instance)
    assert found.exact.all()
    expected = [best_of_all(instance, j) for j in range(instance.n)]
    assert found.seconds.tolist() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("seed", few(range(6), 3))
def test_at_scaling_profiles_too(seed: int) -> None:
    instance = elastic_instance(seed, jobs=5, measured=seed % 2 == 1)
    found = solo_times(instance)
    for j in np.flatnonzero(found.exact & (instance.gpus <= 4)).tolist():
        assert found.seconds[j] == pytest.approx(best_of_all(instance, j), rel=1e-12)


@pytest.mark.parametrize("name", ["ddl-04-1", "ddl-05-1", "ddl-05-5", "ddl-06-3", "ddl-07-1"])
def test_one_job_alone_at_its_proven_optimum_has_a_fairness_of_exactly_one(name: str) -> None:
    whole = load(name)
    for j in range(whole.n):
        job = whole.job(j)
        assert job.profile is not None
        one = Instance([job], whole.cluster, profiles={job.profile: whole.profiles[job.profile]}, objective="makespan")
        best = solve(one)
        assert (best.status, solo_times(one).exact.tolist()) == ("optimal", [True])
        assert best.schedule is not None
        assert finish_time_fairness(best.schedule).tolist() == [1.0]
        for placement in ("first-fit", "random", "consolidated", "heavy-edge"):
            assert simulate(one, f"fifo+{placement}").metrics["max_ftf"] >= 1


def test_a_bound_that_no_placement_reaches_is_not_the_solo_time() -> None:
    # two types that have half of the gang each: it runs at the slower one, though the bound says the faster
    table = Throughputs({("m", "A", 2): Throughput(10.0), ("m", "B", 2): Throughput(1.0)})
    cluster = Cluster((NodeGroup(gpus=1, gpu="A"), NodeGroup(gpus=1, gpu="B")))
    instance = Instance([Job("a", gpus=2, iterations=20, profile="m")], cluster, throughputs=table)
    assert seconds_alone(instance).tolist() == [2.0]
    assert solo_times(instance).seconds.tolist() == [20.0]
    assert simulate(instance, "fifo").metrics["max_ftf"] == 1


@settings(max_examples=examples(60))
@given(profile=profiles(gpus=4), cluster=clusters())
def test_at_stage_profiles_it_is_the_best_of_all_mappings(profile: Profile, cluster: Cluster) -> None:
    assume(profile.gpus <= cluster.gpus)
    instance = Instance([Job("a", gpus=profile.gpus, iterations=1e6, profile="p")], cluster, profiles={"p": profile})
    network = Network.of(cluster)
    found = solo_times(instance)
    assert found.exact.all()
    best = min(iteration_time(profile, network, nodes) for nodes in placements(profile, cluster))
    assert found.seconds[0] == pytest.approx(1e6 * best, rel=1e-11)


def test_where_mappings_are_too_many_it_is_said_to_be_a_bound() -> None:
    # a ring of 20 over 40 nodes, no two alike
    profile = Profile((Stage(20, 1.0, 1.0, parameters=1e9),))
    nodes = [(Node(1e9 + k, 1e8 + k, 1), 1) for k in range(40)]
    assert best_pace(profile, nodes, 0.0) is None
    assert best_pace(Profile((Stage(4, 1.0, 1.0, parameters=1e9),)), nodes[:6], 0.0) is not None
