"""Solving where whole jobs contend for the network: contention only slows, so an optimum in which nobody meets is one."""

from __future__ import annotations

import optsched as osd
from optsched.check.referee import check_schedule
from optsched.problem.instance import Instance


def two_gangs(cluster: str) -> Instance:
    """Two jobs on three GPUs each, of 5 s on one node and 15 s on several: on three nodes of two they meet on one."""
    jobs = [osd.Job(name, gpus=3, iterations=10, profile="net", batch_size=3) for name in "ab"]
    scaling = osd.Scaling(0.5, 0.0, across=1.0)
    return Instance(jobs, cluster, scalings={"net": scaling}, contention=osd.Contention(1e-9, 3e-10))


def test_where_nobody_meets_the_optimum_is_that_without_contention() -> None:
    best = osd.solve(two_gangs("2x3"), "total_flow_time")
    assert (best.status, best.value) == ("optimal", 10.0)
    assert check_schedule(two_gangs("2x3"), best) == []


def test_what_the_referee_refuses_is_no_optimum() -> None:
    made = two_gangs("3x2")
    best = osd.solve(made, "total_flow_time", time_limit=30)
    assert (best.status, best.value, best.bound) == ("limit", None, 30.0)
    assert "contend" in (best.note or "")
    assert osd.simulate(made, "fifo").value("total_flow_time") > 30.0
