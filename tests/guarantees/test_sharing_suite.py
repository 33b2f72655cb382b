"""The suite of jobs that share one GPU: its members, its optima, and what policies make of some of them."""

from __future__ import annotations

import dataclasses

import pytest

from optsched.guarantees.evaluate import ratios
from optsched.guarantees.optimum_bounds import OptimumBounds
from optsched.guarantees.suites import SHARING, small_sharing, suite
from optsched.solvers.sharing_orders import best_shared_order

SOME = ("sharing-1.1-3-1", "sharing-1.3-3-4", "sharing-1.8-3-8", "sharing-exp-3-9")


def test_policies_on_some_of_its_members() -> None:
    table = ratios(dataclasses.replace(suite("sharing-small"), members=SOME), ["sjf", "sjf-ffs", "sjf-bsbf", "srtf"])
    assert table.violations == []
    assert table.objective == "total_flow_time"
    for row in table.policies:
        shares = row.policy in ("sjf-ffs", "sjf-bsbf")
        for each in row.measured:
            assert each.bound is not None
            assert each.bound.exact or not shares
            assert each.ratio is not None
            assert each.ratio >= 1 - 1e-9
    means = {row.policy: row.mean or 0 for row in table.policies}
    assert 1 < means["sjf-bsbf"] < means["sjf"]


@pytest.mark.parametrize("member", SOME)
def test_what_they_state(member: str) -> None:
    instance = small_sharing(member)
    assert instance.optimum is not None
    value = float(instance.optimum["value"])
    kept = best_shared_order(instance).value
    assert value <= kept * (1 + 1e-7)
    assert ("sharing-orders" in instance.optimum["proved_by"]) == (value >= kept * (1 - 1e-7))
    floor = OptimumBounds(instance).lower("total_completion_time", "gpu-sharing")
    assert floor is not None
    assert float(floor) <= value * (1 + 1e-7)


@pytest.mark.study
def test_every_member_can_be_made() -> None:
    assert len(SHARING) == len({small_sharing(member).digest for member in SHARING})
