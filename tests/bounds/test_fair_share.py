"""The bound on the fair slowdown: the optimum of one machine, below brute force, and forgeries refused."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from brute_force import optimum, preemptive_optimum
from examples import examples
from hypothesis import given, settings

from bounds.cases import instance_of, instances, many, random_gangs
from optsched.bounds import BOUNDS
from optsched.bounds.best_bound import bound
from optsched.bounds.certificate import CertificateError
from optsched.policies.simulate import simulate
from optsched.problem.fair_share import fair_flow_times
from optsched.problem.instance import Instance

GOAL = "max_fair_slowdown"
fair_share, fair_alone = (BOUNDS.get(kind).build for kind in ("fair-share", "fair-alone"))
CROWD = instance_of([(0.0, 1, 4.0), (1.0, 2, 3.0), (1.0, 1, 2.0), (2.0, 2, 1.0), (50.0, 1, 3.0)], 2)


@settings(max_examples=examples(40))
@given(instances(most=4, kind="short", gpus=1))
def test_it_is_the_best_of_all_sets_of_jobs_and_the_optimum_of_one_machine(instance: Instance) -> None:
    certificate = fair_share(instance, GOAL, "gang")
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
    certificate = fair_share(instance, GOAL, "gang")
    certificate.verify(instance)
    assert certificate.value > fair_alone(instance, GOAL, "gang").value
    for policy in ("fifo", "srtf", "sjf", "tiresias"):
        assert certificate.value <= Fraction(simulate(instance, policy).value(GOAL))


def test_who_is_slowed_down_least_proves_it() -> None:
    certificate = fair_share(CROWD, GOAL, "gang")
    certificate.verify(CROWD)
    assert "j4" not in certificate.data["jobs"]
    job = fair_alone(CROWD, GOAL, "gang")
    job.verify(CROWD)
    assert (job.value, job.data) == (1, {"job": "j4"})  # nobody is there when it comes


@pytest.mark.parametrize(
    "forged", ["larger", "a trifle larger", "missing", "twice", "unknown", "no work", "shorter", "no list"]
)
def test_forgeries_are_refused(forged: str) -> None:
    certificate, instance = fair_share(CROWD, GOAL, "gang"), CROWD
    jobs = certificate.data["jobs"]
    values = {"larger": Fraction(1), "a trifle larger": Fraction(1, 10**30)}
    data = {"missing": jobs[1:], "twice": [*jobs, jobs[0]], "unknown": [*jobs, "nobody"], "no list": "j0"}
    if forged in values:
        certificate = replace(certificate, value=certificate.value + values[forged])
    elif forged in data:
        certificate = replace(certificate, data={**certificate.data, "jobs": data[forged]})
    elif forged == "no work":  # a threshold above a gang's width: it stands aside
        instance = instance_of([(0.0, 1, 4.0), (0.0, 4, 3.0), (0.0, 3, 3.0)], 4)
        certificate = fair_share(instance, GOAL, "gang")
        certificate = replace(certificate, data={**certificate.data, "threshold": 2, "capacity": 4, "tick": "1/4"})
    else:  # over the seconds alone, which are less than those on an equal share
        fair, alone = fair_flow_times(instance), instance.duration
        larger = min(Fraction(float(fair[j])) / Fraction(float(alone[j])) for j in (instance.index[x] for x in jobs))
        assert larger > 1
        certificate = replace(certificate, value=certificate.value * larger)
    with pytest.raises(CertificateError):
        certificate.verify(instance)
