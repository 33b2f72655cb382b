"""The mapping of one job as a mixed-integer program, against enumeration."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np
import pytest
from examples import explored, few
from loaded_optimum import loaded_optimum
from policies.placements.mapped_jobs import (
    Case,
    alike,
    best_mapping,
    random_cases,
    trap_of_every_greedy,
    trap_of_the_plain_greedy,
)

from optsched.errors import InputError
from optsched.models import gpu_mapping
from optsched.problem.profile import Profile, Stage
from optsched.speeds.network import Network


def solved(case: Case) -> tuple[float, list[int]]:
    """The proved optimum and its mapping."""
    model = gpu_mapping.build(case.profile, case.network, case.free)
    best = loaded_optimum(model)
    return best, gpu_mapping.mapping(model)


@pytest.mark.parametrize("part", range(4))
def test_it_is_the_best_of_all_mappings(part: int) -> None:
    for case in islice(random_cases(7), part * 30, part * 30 + (30 if explored() else 8)):
        value, nodes = solved(case)
        assert case.legal(nodes)
        assert value == pytest.approx(case.alpha(nodes), rel=1e-6)
        assert value == pytest.approx(best_mapping(case)[1], rel=1e-6)


@pytest.mark.parametrize("seed", few(range(8), 3))
def test_graphs_with_branches_micro_batches_and_servers_of_different_inner_speed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ring, compute = rng.choice([0.0, 1.0, 4.0], 4), rng.choice([0.1, 1.0], 4)
    stages = [Stage(k, t, 0.0, h) for k, t, h in zip((1, 2, 1, 2), compute.tolist(), ring.tolist(), strict=True)]
    edges = [(0, 1, 1.0), (0, 2, float(rng.choice([0.0, 3.0]))), (1, 3, 2.0), (2, 3, 0.5)]
    profile = Profile.of_stages(stages, edges, micro_batches=2)
    free = (2, 0, 3, 2)
    network = Network(np.array([2, 1, 3, 2]), rng.choice([5.0, 20.0], 4), np.array([1.0, 0.5, 1.0, 1.0]))
    case = Case(profile, network, free)
    value, nodes = solved(case)
    assert case.legal(nodes)
    least = best_mapping(case)[1]
    assert value == pytest.approx(least, rel=1e-6)
    assert case.alpha(nodes) == pytest.approx(least, rel=1e-6)


@pytest.mark.parametrize(("case", "alpha"), [(trap_of_the_plain_greedy(), 0.2380), (trap_of_every_greedy(), 0.2833)])
def test_the_traps_of_the_greedy(case: Case, alpha: float, solve: Callable[[Any], float]) -> None:
    assert round(solved(case)[0], 4) == alpha
    # and by Pyomo's own way to the solver
    assert round(solve(gpu_mapping.build(case.profile, case.network, case.free)), 4) == alpha


def test_refusals() -> None:
    case = trap_of_every_greedy()
    with pytest.raises(InputError, match=r"too few free GPUs \(expected: at least 6 free GPUs"):
        gpu_mapping.build(case.profile, case.network, (2, 3, 0))
    mixed = Network(np.array([4, 4]), np.array([25.0, 25.0]), np.array([1.0, 2.0]))
    with pytest.raises(InputError, match=r"gpu-mapping: bandwidths between servers differ.*alike"):
        gpu_mapping.build(case.profile, mixed, (4, 4))
    assert gpu_mapping.build(case.profile, alike((6, 0)), (6, 0)).servers == [0]
