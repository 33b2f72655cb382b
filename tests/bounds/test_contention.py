"""Bounds where whole jobs contend for the network: contention only slows, so that they stay what they are, and hold."""

from __future__ import annotations

import pytest
from simulation.contending_world import random_contending_instance

from optsched.bounds import bound
from optsched.policies.simulate import simulate

OBJECTIVES = ("total_flow_time", "total_completion_time", "makespan")


@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(1, 6), marks=pytest.mark.study)])
@pytest.mark.parametrize("policy", ["fifo:skip=true+first-fit", "srtf+random", "sjf-bsbf"])
def test_bounds_hold_and_are_those_without_contention(policy: str, seeds: range) -> None:
    for seed in seeds:
        made = random_contending_instance(seed)
        run = simulate(made, policy)
        for objective in OBJECTIVES:
            low = bound(made, objective, run.schedule_class)
            low.verify(made)
            assert low.value == bound(made.replace(contention=None), objective, run.schedule_class).value
            assert run.value(objective) >= float(low.value) > 0
