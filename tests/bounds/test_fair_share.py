"""The bound on the fair slowdown: the optimum of one machine, below brute force, and forgeries refused."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from brute_force import optimum, preemptive_optimum
from examples import examples
from hypothesis import given, settings

from bounds.cases import instance_of, instances, many, proved, random_gangs
from optsched.bounds.best_bound import bound
from optsched.bounds.certificate import CertificateError
from optsched.policies.simulate import simulate
from optsched.problem.fair_share import fair_flow_times
from optsched.problem.instance import Instance

GOAL = "max_fair_slowdown"
fair_share, fair_alone = (partial(proved, kind) for kind in ("fair-share", "fair-alone"))
CROWD = instance_of([(0.0, 1, 4.0), (1.0, 2, 3.0), (1.0, 1, 2.0), (2.0, 2, 1.0), (50.0, 1, 3.0)], 2)


@settings(max_examples=examples(40))
@given(instances(most=4, kind="short", gpus=1))
def test_it_is_the_best_of_all_sets_of_jobs_and_the_optimum_of_one_machine(instance: Instance) -> None:
    certificate = fair_share(instance, GOAL)
    if not instance.n:
        return
    certificate.verify(instance)
    r, p, d = (
        [Fraction(x) for x in each.tolist()]
        for each in (instance.arrival, instance.duration, fair_flow_times(instance))
    )
    sets = [some for size in range(1, instance.n + 1) for some in combinations(range(instance.n), size)]
    worth = [min((min(r[i] for i in s) + sum(p[i] for i in s) - r[j]) / d[j] for j in s) for s in sets]
    assert certificate.value == max(worth)
    assert certificate.value == preemptive_optimum(instance, GOAL)
    assert certificate.value <= 1  # first who ends first on the equal share


def test_never_above_the_optimum_of_gangs() -> None:
    rng = np.random.default_rng(8)
    for _ in range(60):
        instance = random_gangs(rng)
        best, certificate = optimum(instance, GOAL), bound(instance, GOAL)
        certificate.verify(instance)
        assert certificate.value <= best


@pytest.mark.parametrize("kind", ["integer", "tenths"])
def test_both_roads_agree_on_many_jobs_and_no_policy_is_better(kind: str) -> None:
    instance = many(200, 13, kind)
    certificate = fair_share(instance, GOAL)
    assert certificate.value > fair_alone(instance, GOAL).value
    for policy in ("fifo", "srtf", "sjf", "tiresias"):
        assert certificate.value <= Fraction(simulate(instance, policy).value(GOAL))


def test_who_is_slowed_down_least_proves_it() -> None:
    certificate = fair_share(CROWD, GOAL)
    assert "j4" not in certificate.data["jobs"]
    job = fair_alone(CROWD, GOAL)
    assert (job.value, job.data) == (1, {"job": "j4"})  # nobody is there when it comes


def test_forgeries_are_refused() -> None:
    # a threshold above a gang's width: it stands aside
    instance = instance_of([(0.0, 1, 4.0), (0.0, 4, 3.0), (0.0, 3, 3.0)], 4)
    certificate = fair_share(instance, GOAL)
    data = {**certificate.data, "threshold": 2, "capacity": 4, "tick": "1/4"}
    with pytest.raises(CertificateError):
        replace(certificate, data=data).verify(instance)
    # over the seconds alone, which are less than those on an equal share
    certificate, fair = fair_share(CROWD, GOAL), fair_flow_times(CROWD)
    own = [CROWD.index[name] for name in certificate.data["jobs"]]
    larger = min(Fraction(float(fair[j])) / Fraction(float(CROWD.duration[j])) for j in own)
    assert larger > 1
    with pytest.raises(CertificateError):
        replace(certificate, value=certificate.value * larger).verify(CROWD)
