"""``count``: only the number of free GPUs matters, also where types and memory divide a cluster."""

from __future__ import annotations

import pytest
from examples import few
from hypothesis import given, strategies as st
from simulation.instances import MIXED, random_instance

from optsched.policies.placements.first_fit import count
from optsched.policies.simulate import specify
from optsched.problem.instance import Instance, Job
from optsched.simulation.engine import run_policy
from optsched.simulation.state import pools
from policies.placements.states import Nodes, ask, nodes


@given(nodes(), st.integers(1, 40))
def test_a_gang_fits_exactly_when_enough_gpus_are_free(where: Nodes, gang: int) -> None:
    assert (ask(count(), gang, where) is not None) == (gang <= where.offered)


def test_a_homogeneous_cluster_is_one_pool() -> None:
    instance = Instance([Job("a", gpus=3, duration=1), Job("b", duration=1)], "4x2")
    first, node = pools(instance, count().pooled)
    assert (first.tolist(), node.tolist()) == ([0, 8], [0])
    first, node = pools(instance, False)
    assert (first.tolist(), node.tolist()) == ([0, 2, 4, 6, 8], [0, 1, 2, 3])


@pytest.mark.parametrize("seed", few(range(12), 4))
def test_pools_are_runs_of_nodes_that_every_job_treats_alike(seed: int) -> None:
    instance = random_instance(seed, MIXED)
    first, node = pools(instance, True)
    size = MIXED.node_gpus
    assert first.tolist() == [int(size[:k].sum()) for k in [*node.tolist(), size.size]]
    for j in range(instance.n):
        eligible = instance.eligible(j)
        for k, start in enumerate(node.tolist()):
            end = node[k + 1] if k + 1 < node.size else size.size
            assert len(set(eligible[start:end].tolist())) == 1


def test_gangs_cross_nodes_but_not_types() -> None:
    jobs = [
        Job("v", gpus=5, duration=4, gpu_types=("V100",)),
        Job("any", gpus=4, duration=1),
        Job("p", gpus=2, duration=9, gpu_types=("P100",)),
    ]
    chosen = specify("fifo:skip=true")
    run = run_policy(Instance(jobs, "1x3:V100+2x1:P100+1x3:v100"), chosen.policy, chosen.placement)
    # 6 V100 and 2 P100: `v` takes 5 over two nodes, `any` finds 1 + 2 and waits, `p` takes both P100; `any` follows `v`.
    assert run.schedule.completion.tolist() == [4, 5, 9]
    for segment in run.schedule.segments():
        kinds = {"V" if node in (0, 3) else "P" for node, _ in segment.gpus}
        assert kinds == {"P" if jobs[segment.job].id == "p" else "V"}
