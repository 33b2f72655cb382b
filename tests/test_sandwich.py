"""The promise of the whole house on random small instances: certificate <= optimum <= every policy of the class."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from brute_force import optimum, preemptive_optimum
from examples import few
from policies.levels import whole_job_policies

from optsched.bounds import bound
from optsched.check.referee import check_schedule, schedule_value
from optsched.policies.placements import PLACEMENTS
from optsched.policies.simulate import simulate
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.simulation.run import Run
from optsched.solvers.list_schedule import best_list_schedule
from optsched.solvers.solve import solve

OBJECTIVES = (
    "total_completion_time",
    "total_weighted_completion_time",
    "total_flow_time",
    "total_weighted_flow_time",
    "makespan",
    "max_flow_time",
    "total_weighted_tardiness",
)


def random_instance(seed: int) -> Instance:
    """Two to five gangs on one to five GPUs in one or two nodes; small integers."""
    rng = np.random.default_rng(seed)
    nodes = tuple(NodeGroup(gpus=int(g)) for g in rng.integers(1, 4, rng.integers(1, 3)))
    total = sum(node.gpus for node in nodes)
    jobs = [
        Job(
            str(j),
            arrival=int(rng.integers(0, 9)),
            gpus=int(rng.integers(1, total + 1)),
            duration=int(rng.choice([1, 2, 3, 5, 8])),
            weight=int(rng.integers(0, 6)),
            due=int(rng.integers(2, 20)),
        )
        for j in range(rng.integers(2, 6))
    ]
    return Instance(jobs, Cluster(nodes), name=f"random-{seed}")


@cache
def accepted_runs(seed: int) -> dict[tuple[str, str], Run]:
    """Of every policy, with two placements; the referee accepts them. No policy here looks at the objective."""
    instance, found = random_instance(seed), {}
    for policy in whole_job_policies():
        for placement in ("count", PLACEMENTS.names()[seed % len(PLACEMENTS.names())]):
            run = simulate(instance, policy, placement)
            if run.unfinished:
                continue  # consolidation may never find room for a gang
            forking = run.schedule_class == "forking"
            assert check_schedule(instance, run.schedule, preemptive=run.preemptive, forking=forking) == []
            found[policy, placement] = run
    assert len(found) >= len(whole_job_policies())
    return found


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", [1, *(pytest.param(k, marks=pytest.mark.study) for k in range(12) if k != 1)])
def test_certificate_optimum_policies(objective: str, seed: int) -> None:
    instance = random_instance(seed)
    best = optimum(instance, objective)
    preemptive = preemptive_optimum(instance, objective) if instance.n <= 4 else None
    for schedule_class in ("gang", "gang-nonpreemptive"):
        certificate = bound(instance, objective, schedule_class)
        certificate.verify(instance)
        assert certificate.value <= best
        if preemptive is not None and schedule_class == "gang":
            assert certificate.value <= preemptive <= best
    low = {kind: bound(instance, objective, kind).value for kind in ("gang", "forking")}
    low["gang-nonpreemptive"] = best
    for pair, run in accepted_runs(seed).items():
        value = schedule_value(instance, run.schedule, objective)
        # whole times are exact; those of a virtual machine that divides by G carry the rounding of a float
        whole = bool((run.schedule.completion % 1 == 0).all())
        # at most five terms of weight five or less, each some units in the last place (2e-16) of its time
        rounding = 0 if whole else Fraction(1, 10**13) * schedule_value(instance, run.schedule, "makespan")
        assert abs(Fraction(run.value(objective)) - value) <= rounding
        assert value + rounding >= low[run.schedule_class], pair
    schedule = best_list_schedule(instance, objective)
    assert check_schedule(instance, schedule, preemptive=False) == []
    assert schedule_value(instance, schedule, objective) >= best


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", few(range(3), 1))
def test_two_formulations_and_the_default_agree_with_brute_force(objective: str, seed: int) -> None:
    instance = random_instance(100 + seed)
    best = optimum(instance, objective)
    for model in (None, "rigid-time-indexed", "rigid-placed"):
        solution = solve(instance, objective, model=model)
        assert (solution.status, Fraction(solution.value)) == ("optimal", best), model
        assert solution.schedule is not None
        assert check_schedule(instance, solution.schedule, preemptive=False, objective=objective, value=best) == []
