"""``random``: every set of free GPUs equally likely, and the seed decides everything."""

from __future__ import annotations

from collections import Counter

import pytest
from simulation.instances import history, random_instance

from optsched.errors import InputError
from optsched.policies.placements.random import random
from optsched.policies.simulate import specify
from optsched.simulation.engine import run_policy
from policies.placements.states import Nodes, ask


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


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(InputError, match=r"random: seed = -1: invalid \(expected: an integer >= 0\)"):
        random(seed=-1)
