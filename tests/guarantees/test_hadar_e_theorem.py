"""HadarE's theorems on random instances, and that they can be seen to fail."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from examples import examples
from hypothesis import assume, given, settings, strategies as st
from simulation.forked_instances import forked, gang_instance, table_instance

from optsched.check.referee import schedule_value
from optsched.classes.forking.guarantees.rounds_of_copies import HADAR_E, most_copies, node_rounds, utilisation_audit
from optsched.classes.forking.simulation.forked_run import ForkedRun
from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.guarantees.judge import judge
from optsched.policies.simulate import simulate, specify
from optsched.problem.instance import Cluster, Instance, Job, NodeGroup

# -- time -----------------------------------------------------------------------------------------------------------------


@settings(max_examples=examples(20))
@given(
    st.lists(st.integers(1, 600), min_size=1, max_size=6),
    st.integers(1, 6),
    st.integers(1, 3),
    st.sampled_from([(360, 10), (100, 0), (64, 32), (70, 10)]),
)
def test_total_time_on_identical_nodes(lengths: list[int], nodes: int, gpus: int, clock: tuple[int, int]) -> None:
    length, overhead = clock
    jobs = [Job(f"{j}", gpus=gpus, duration=p) for j, p in enumerate(lengths)]
    instance = Instance(jobs, f"{nodes}x{gpus}", objective="makespan")
    chosen = specify(f"hadar-e:round={length},overhead={overhead}")
    assert HADAR_E.applies(chosen.policy, chosen.placement, instance)
    run = simulate(instance, chosen)
    assert isinstance(run, ForkedRun)
    slots = sum(math.ceil(Fraction(p, length - overhead)) for p in lengths)
    assert node_rounds(run) == slots
    assert len(run.rounds) <= math.ceil(Fraction(slots, nodes))
    value = schedule_value(instance, run.schedule, "makespan")
    assert value <= length * math.ceil(Fraction(slots, nodes)) * (1 + Fraction(1, 10**12))
    ratio = HADAR_E.ratio(chosen.policy, run)
    assert ratio * Fraction(sum(lengths), nodes) == length * math.ceil(Fraction(slots, nodes))
    assert judge(HADAR_E, chosen.policy, run, OptimumBounds(instance, [run])).holds is True
    assert utilisation_audit(run).audited == len(run.rounds)


@pytest.mark.parametrize(
    ("spec", "changes", "words"),
    [
        ("hadar-e:copies=1", {}, "fewer copies than the 2 nodes"),
        ("hadar-e:rule=payoff", {}, "the rule is payoff"),
        ("hadar-e:estimate=noisy", {}, "throughputs are estimated"),
        ("hadar-e", {"arrival": 3}, "not all jobs arrive at 0"),
        ("hadar-e", {"gpus": 1}, "a gang does not fill a node"),
    ],
)
def test_assumptions(spec: str, changes: dict[str, float], words: str) -> None:
    instance = Instance([Job("a", duration=5, **{"gpus": 2, **changes}), Job("b", gpus=2, duration=5)], "2x2")
    chosen = specify(spec)
    assert HADAR_E.assumptions(chosen.policy, chosen.placement, instance) == (words,)


def test_unlike_speeds_are_outside_the_theorem() -> None:
    chosen = specify("hadar-e")
    instance = table_instance([[2.0, 1.0]], [100.0])
    assert "depends on their placement" in HADAR_E.assumptions(chosen.policy, chosen.placement, instance)[0]


# -- utilisation ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("copies", [1, 2, 0])
@pytest.mark.parametrize("seed", range(4))
def test_no_round_leaves_a_node_idle_that_could_be_busy(seed: int, copies: int) -> None:
    rng = np.random.default_rng([seed, 41])
    rate = np.where(rng.random((6, 5)) < 0.5, rng.uniform(1, 9, (6, 5)), 0.0)
    rate[np.arange(6), rng.integers(0, 5, 6)] = 3.0  # everybody runs somewhere
    run = forked(
        table_instance(rate.tolist(), rng.uniform(500, 9000, 6).tolist()), f"hadar-e:copies={copies},rule=work"
    )
    audit = utilisation_audit(run)
    assert audit.holds
    assert (audit.rounds, audit.audited) == (len(run.rounds), len(run.rounds))
    k = next(k for k, each in enumerate(run.rounds) if len(each.segments) > 0)
    lost = dataclasses.replace(run.rounds[k], segments=run.rounds[k].segments[1:])
    doctored = dataclasses.replace(run)
    doctored.__dict__["rounds"] = (*run.rounds[:k], lost, *run.rounds[k + 1 :])
    (told,) = utilisation_audit(doctored).short
    assert told.startswith(f"round {k} at ")
    assert not utilisation_audit(doctored).holds


@given(st.integers(0, 2**32), st.integers(1, 3))
def test_the_most_copies_are_those_of_brute_force(seed: int, copies: int) -> None:
    rng = np.random.default_rng(seed)
    groups = tuple(
        NodeGroup(count=int(rng.integers(1, 3)), gpus=int(rng.integers(1, 4)), gpu=gpu) for gpu in ("A", "B")
    )
    gang = int(rng.integers(1, 3))
    types = [("A",), ("B",), ("A", "B")]
    may = [t for t in types if any(g.gpu in t and g.gpus >= gang for g in groups)]
    assume(may)
    jobs = [
        Job(f"{j}", gpus=gang, duration=5, gpu_types=may[int(rng.integers(len(may)))])
        for j in range(int(rng.integers(1, 4)))
    ]
    instance = Instance(jobs, Cluster(groups))
    nodes = instance.cluster.node_gpus.tolist()
    options = [
        [s for s in product([0, 1], repeat=len(nodes)) if sum(s) <= copies and fits(instance, j, s, gang)]
        for j in range(instance.n)
    ]
    sums = (np.sum(pick, axis=0) for pick in product(*options))
    best = max(int(total.sum()) for total in sums if (total * gang <= nodes).all())
    assert most_copies(instance, tuple(range(instance.n)), copies) == best


def fits(instance: Instance, j: int, nodes: tuple[int, ...], gang: int) -> bool:
    sizes = instance.cluster.node_gpus
    return all(instance.eligible(j)[v] and sizes[v] >= gang for v, used in enumerate(nodes) if used)


def test_rounds_of_unlike_gangs_are_not_audited() -> None:
    audit = utilisation_audit(forked(gang_instance(1)))
    assert audit.audited < audit.rounds
    assert audit.holds
