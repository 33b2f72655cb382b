"""Runs are checked for the properties that their policies state."""

from __future__ import annotations

from typing import Any

import pytest

import optsched as osd
from optsched.errors import SimulationError
from optsched.evaluation.accepted_run import refereed
from optsched.policies.simulate import specify
from optsched.simulation.policy import OrderedPolicy
from optsched.simulation.queue_order import KnownJobs, Order

LIMITS = {"a": 30, "b": 10, "c": 60}
ROWS = (("a", 0, 3, 20), ("b", 1, 4, 10), ("c", 2, 1, 60))  # first fit starts c at 2, which delays b


def queue(cluster: str = "1x4", **limits: Any) -> osd.Instance:
    stated = {**LIMITS, **limits}
    return osd.Instance([osd.Job(n, r, g, p, walltime=stated[n]) for n, r, g, p in ROWS], cluster)


def stated(policy: str, instance: osd.Instance) -> tuple[str, ...]:
    return specify(policy).policy.properties(instance)


def test_what_backfilling_states_of_its_schedules() -> None:
    assert stated("easy", queue()) == ("head-not-delayed", "work-conserved")
    assert stated("conservative", queue()) == ("promise-kept",)
    assert stated("easy", queue(a=None)) == ()  # the policy believes a year, the judge the run time
    assert stated("easy", queue(a=10)) == ()  # it runs beyond its limit
    assert stated("easy", queue("2x4")) == ()  # a placement decides, too
    assert stated("easy:walltime=exact", queue(a=None, b=None, c=None)) == ("head-not-delayed", "work-conserved")
    assert stated("fifo", queue()) == ()
    for policy in ("easy", "conservative"):
        assert refereed(queue(), specify(policy)).schedule.finished.all()


class FirstFit(OrderedPolicy):
    """First fit that says it is EASY."""

    name, knowledge = "first-fit", "non-clairvoyant"

    def order(self, jobs: KnownJobs) -> Order:
        return Order(key=jobs.arrival)

    def properties(self, instance: osd.Instance) -> tuple[str, ...]:
        return ("head-not-delayed",)


def test_a_run_without_a_property_that_its_policy_states_is_no_result() -> None:
    with pytest.raises(SimulationError, match=r"the schedule of first-fit lacks the property head-not-delayed: .*'c'"):
        refereed(queue(), specify(FirstFit()))


def test_times_whose_sums_are_rounded_are_not_judged() -> None:
    rows = ((1.4, 1, 4.8, 5.7), (2.1, 5, 3.2, 4.4), (4.4, 6, 2.8, 4.8), (5.3, 2, 1.8, 1.8), (5.9, 4, 0.9, 1.8))
    jobs = [osd.Job(f"{k}", r, g, p, walltime=e) for k, (r, g, p, e) in enumerate(rows)]
    tenths = osd.Instance(jobs, "1x6")
    assert stated("conservative", tenths) == ()
    assert refereed(tenths, specify("conservative")).schedule.finished.all()  # a tie that rounding decides
