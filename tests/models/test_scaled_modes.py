"""Exact optima of jobs at scaling profiles: a gang is priced by its placement, as the engine and the referee do."""

from __future__ import annotations

import pytest

from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.problem.scaling import Scaling
from optsched.solvers.solve import solve

SLOW_APART = Scaling(compute=1.0, per_sample=0.5, within=1.0, across=5.0)


def test_a_gang_waits_for_a_node_where_that_is_faster() -> None:
    # 4 iterations of C(2) = 2 s: 3 s on one node, 7 s apart. "a" holds one GPU of each node until 2 s.
    jobs = [
        Job("a", gpus=1, duration=2),
        Job("b", gpus=1, duration=2),
        Job("c", gpus=2, iterations=4, profile="model", batch_size=4),
    ]
    problem = Instance(jobs, "2x2", "total_completion_time", scalings={"model": SLOW_APART})
    best = solve(problem, "total_completion_time")
    assert best.status == "optimal"
    assert best.value == pytest.approx(2 + 2 + 12)  # a and b on one node, c on the other one at once
    apart = simulate(problem, "fifo+count")
    assert apart.value("total_completion_time") >= best.value


def test_apart_where_no_node_is_wide_enough() -> None:
    problem = Instance(
        [Job("c", gpus=2, iterations=4, profile="model", batch_size=4)], "2x1", scalings={"model": SLOW_APART}
    )
    assert solve(problem, "makespan").value == pytest.approx(28)
    assert simulate(problem, "fifo").metrics["makespan"] == pytest.approx(28)
