"""The plain placements against their descriptions: ``consolidated``, ``first-fit``, ``most-free``, ``count``, ``random``."""

from __future__ import annotations

from collections import Counter

import pytest
from examples import few
from hypothesis import example, given, strategies as st
from simulation import reference
from simulation.instances import MIXED, history, random_instance

from optsched.policies.placements.consolidated import consolidated
from optsched.policies.placements.in_order import count, first_fit, most_free
from optsched.policies.placements.random import random
from optsched.policies.simulate import specify
from optsched.problem.instance import Instance, Job
from optsched.simulation.engine import run_policy
from optsched.simulation.state import pools
from policies.placements.states import Nodes, ask, nodes

ALL = (True,) * 4


@given(nodes(), st.integers(1, 40))
@example(Nodes((4, 8, 8), (4, 8, 8), (True,) * 3), 16)
def test_they_are_their_descriptions(where: Nodes, gang: int) -> None:
    for placement, described in ((consolidated, reference.consolidated), (first_fit, reference.first_fit)):
        answer = ask(placement(), gang, where)
        expected = described(gang, list(where.free), list(where.size), list(where.eligible))
        assert (None if answer is None else list(answer)) == (None if expected is None else list(expected.items()))


@pytest.mark.parametrize(
    ("gang", "free", "expected"),
    [
        (3, (2, 3, 4, 4), [(1, 3)]),  # one node, the first that holds it
        (4, (2, 3, 4, 4), [(2, 4)]),
        (4, (3, 3, 3, 3), None),  # never split, although 12 are free
        (8, (2, 4, 3, 4), [(1, 4), (3, 4)]),  # wider than a node: whole nodes
        (6, (2, 3, 4, 3), [(2, 4), (0, 2)]),  # the rest on the first node with room
        (7, (2, 2, 4, 2), None),  # the rest of 3 fits nowhere
        (6, (3, 3, 3, 3), None),  # no idle whole node
        (16, (4, 4, 4, 4), [(0, 4), (1, 4), (2, 4), (3, 4)]),
    ],
)
def test_consolidated_by_hand(gang: int, free: tuple[int, ...], expected: list[tuple[int, int]] | None) -> None:
    assert ask(consolidated(), gang, Nodes((4, 4, 4, 4), free, ALL)) == expected


def test_nodes_are_decided_at_the_start() -> None:
    assert not first_fit().pooled


def test_most_free_by_hand() -> None:
    where = Nodes((4, 4, 4, 8), (2, 4, 4, 3), (True,) * 4)
    assert ask(most_free(), 3, where) == [(1, 3)]  # ties: the first
    assert ask(most_free(), 9, where) == [(1, 4), (2, 4), (3, 1)]
    assert ask(most_free(), 13, where) == [(1, 4), (2, 4), (3, 3), (0, 2)]
    assert ask(most_free(), 14, where) is None
    assert ask(most_free(), 5, Nodes((4, 4, 4), (4, 4, 4), (True, False, True))) == [(0, 4), (2, 1)]


@given(where=nodes(), gang=st.integers(1, 40))
def test_gpu_by_gpu_it_is_the_largest_rest_that_was_not_begun_or_the_one_begun(where: Nodes, gang: int) -> None:
    free = [count if ok else 0 for count, ok in zip(where.free, where.eligible, strict=True)]
    if sum(free) < gang:
        assert ask(most_free(), gang, where) is None
        return
    order = sorted(range(len(free)), key=lambda v: (-free[v], v))
    given = [v for v in order for _ in range(free[v])][:gang]
    expected = [(v, given.count(v)) for v in dict.fromkeys(given)]
    assert ask(most_free(), gang, where) == expected


# -- count ----------------------------------------------------------------------------------------------------------------


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


# -- random ---------------------------------------------------------------------------------------------------------------


def test_every_set_of_free_gpus_is_equally_likely() -> None:
    # 2 of 2 + 1 + 2 free GPUs (one node is not eligible): 10 sets; by node {0, 0} 1, {0, 1} 2, {0, 3} 4, {1, 3} 2, {3, 3} 1.
    where, rule = Nodes((2, 1, 5, 3), (2, 1, 5, 2), (True, True, False, True)), random(seed=4)
    state, draws = rule.random_state(), 20_000
    found = Counter(
        tuple(sorted(node for node, gpus in ask(rule, 2, where, state) or [] for _ in range(gpus)))
        for _ in range(draws)
    )
    expected = {(0, 0): 1, (0, 1): 2, (0, 3): 4, (1, 3): 2, (3, 3): 1}
    assert found.keys() == expected.keys()
    chi_square = sum((found[key] - draws * k / 10) ** 2 / (draws * k / 10) for key, k in expected.items())
    assert chi_square < 18.5  # 4 degrees of freedom: 1 in 1000, and the seed is fixed


def test_the_seed_decides_and_a_run_does_not_depend_on_runs_before() -> None:
    instance = random_instance(3, "4x2", jobs=30)

    def run(spec: str) -> object:
        chosen = specify(spec)
        first = history(run_policy(instance, chosen.policy, chosen.placement), nodes=True)
        assert history(run_policy(instance, chosen.policy, chosen.placement), nodes=True) == first
        return first

    assert run("fifo+random:seed=1") == run("fifo+random:seed=1")
    assert run("fifo+random") == run("fifo+random:seed=0")
    assert len({str(run(f"fifo+random:seed={seed}")) for seed in range(6)}) > 3


@pytest.mark.parametrize("seed", [2**64, 2**64 - 1, 10**30])
def test_any_integer_is_a_seed(seed: int) -> None:
    assert random(seed=seed).random_state()[0] != 0
