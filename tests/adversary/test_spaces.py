"""Every kind of instances: what it says is reached is what some schedule has, and what it proves is so."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

import optsched as osd
from optsched.adversary.evaluation import Evaluation, confirmed
from optsched.adversary.space import SPACES, space_of
from optsched.classes.gpu_sharing.solvers.sharing_preemptive import preemptive_sharing_optimum
from optsched.classes.task_sharing.guarantees.adadual import ADADUAL
from optsched.classes.task_sharing.problem.transfers import transfers_of
from optsched.classes.task_sharing.solvers.transfer_search import best_event_order
from optsched.guarantees.optimum import exact_optimum
from optsched.policies.simulate import specify
from optsched.solvers.identical_machines import least_makespan, least_weighted_completion

USUAL = {
    "fifo": "whole-jobs",
    "a-srpt:predictor=noisy/error=2": "predicted-jobs",
    "sjf-bsbf": "sharing",
    "ada-srsf": "transfers",
    "makespan-rounds": "typed",
}


@pytest.mark.parametrize("policy", USUAL)
def test_every_policy_has_its_kind(policy: str) -> None:
    chosen = specify(policy).policy
    assert isinstance(space_of(chosen), SPACES.get(USUAL[policy]))


def test_a_kind_for_policies_that_there_is_not_is_told() -> None:
    with pytest.raises(osd.InputError, match="no instances to search"):
        space_of(specify("goodput").policy)


def test_a_kind_is_written_as_it_is_read() -> None:
    policy = specify("sjf").policy
    for text in ("whole-jobs", "whole-jobs:jobs=3,weights=false,longest=9"):
        assert space_of(policy, text).text == text
    assert space_of(policy, "", gpus=1).text == "whole-jobs:gpus=1"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_two_transfers_in_closed_form(seed: int) -> None:
    space = space_of(specify("adadual").policy, jobs=2)
    candidate = space.drawn(random.Random(seed))
    instance = space.instance(candidate)
    value = space.reached(candidate, instance, "total_completion_time", preemptive=False)
    assert value == pytest.approx(best_event_order(transfers_of(instance)).value, rel=1e-7)
    stating, witness = space.proved(instance, "total_flow_time")
    known = exact_optimum(stating, "total_flow_time")
    assert known is not None
    assert float(known[0]) == pytest.approx(space.reached(candidate, instance, "total_flow_time", False), rel=1e-12)
    assert witness == pytest.approx(known[0], rel=1e-12)


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_two_jobs_that_share_in_closed_form(seed: int) -> None:
    space = space_of(specify("sjf-bsbf").policy, "sharing:xi=1.7", jobs=2)
    candidate = space.drawn(random.Random(seed))
    instance = space.instance(candidate)
    value = space.reached(candidate, instance, "total_completion_time", preemptive=True)
    assert value == pytest.approx(preemptive_sharing_optimum(instance).value, rel=1e-7)


def test_three_jobs_that_share_reach_no_less_than_the_optimum() -> None:
    space = space_of(specify("sjf-bsbf").policy, jobs=3)
    rng = random.Random(5)
    candidate = next(each for each in iter(lambda: space.drawn(rng), None) if len(each.jobs) == 3)
    instance = space.instance(candidate)
    least = preemptive_sharing_optimum(instance).value
    assert space.reached(candidate, instance, "total_completion_time", preemptive=True) >= least * (1 - 1e-9)
    _, witness = space.proved(instance, "total_completion_time")
    assert witness is not None
    assert witness >= least * (1 - 1e-9)


@pytest.mark.compiled
def test_jobs_on_types_reach_the_optimum_without_preemption() -> None:
    space, rng = space_of(specify("makespan-rounds").policy, jobs=4), random.Random(1)
    for _ in range(2):
        candidate = space.drawn(rng)
        instance = space.instance(candidate)
        best = osd.solve(instance, "total_flow_time")
        assert best.status == "optimal"
        assert space.reached(candidate, instance, "total_flow_time", preemptive=False) == pytest.approx(best.value)


def test_the_seed_of_a_predictor_is_searched_and_written() -> None:
    policy = specify("a-srpt:tau=0.25,predictor=noisy/error=3/seed=4")
    space = space_of(policy.policy)
    candidate = space.drawn(random.Random(1))
    text = space.specification(policy, candidate).text
    assert text == f"a-srpt:tau=0.25,predictor=noisy/error=3/seed={candidate.shared[0]}"
    fifo = specify("fifo")
    assert space.specification(fifo, candidate) is fifo


def test_ada_srsf_reaches_its_ratio() -> None:
    found = osd.attack("ada-srsf", objective="total_completion_time", jobs=2, tries=200, workers=1)
    assert found.confirmed.ratio_to == "optimum"
    (judged,) = [each for each in found.confirmed.judged if each.id == ADADUAL.id]
    assert found.ratio >= 0.99 * judged.ratio
    assert judged.holds


@pytest.mark.compiled
def test_what_preempts_is_held_against_a_schedule_and_a_bound() -> None:
    policy = specify("tiresias:threshold=4")
    evaluation = Evaluation(space_of(policy.policy, jobs=4), policy, None, "total_flow_time")
    candidate = evaluation.space.drawn(random.Random(3))
    best = confirmed(evaluation, candidate, "some")
    assert best.most is not None
    assert 1 <= best.ratio <= best.most * (1 + 1e-12)
    assert best.exact == Fraction(best.value, best.other)
    assert best.ratio >= evaluation.ratio(candidate) * (1 - 1e-12)  # it may know a better schedule than the search


@pytest.mark.study
@pytest.mark.parametrize("theta", [1 / 4, 0.3923])
def test_two_transfers_of_adadual(theta: float) -> None:
    eta = 1 / (2 * theta) - 1
    space = f"transfers:eta={eta}"
    found = osd.attack("adadual", objective="total_completion_time", space=space, jobs=2, tries=1600, workers=1)
    assert found.ratio >= 0.99 * 0.99 * (2 + theta) / (1 + 2 * theta)
    assert found.searched >= 0.99 * (2 + theta) / (1 + 2 * theta)


@pytest.mark.study
@pytest.mark.parametrize("xi", [2.0, 3.0])
def test_two_jobs_of_sjf_bsbf(xi: float) -> None:
    theta = 1 / (2 * xi - 2)
    found = osd.attack("sjf-bsbf", space=f"sharing:xi={xi}", jobs=2, tries=1600, workers=1, tolerance=0.0)
    assert found.ratio >= 0.99 * (2 + theta) / (1 + 2 * theta)
    assert found.confirmed.ratio_to == "optimum"


# -- whole jobs: what is said to be reached is reached, and the optimum where nothing preempts -----------------------------


JOBS = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=6)


def assigned(n: int, machines: int) -> list[tuple[int, ...]]:
    """Every way to put n jobs on machines."""
    found: list[tuple[int, ...]] = [()]
    for _ in range(n):
        found = [(*each, i) for each in found for i in range(machines)]
    return found


@given(JOBS, st.integers(1, 3))
def test_machines_against_every_assignment(jobs: list[tuple[int, int]], machines: int) -> None:
    lengths, weights = zip(*jobs, strict=True)
    order = sorted(jobs, key=lambda job: job[0] / job[1] if job[1] else float("inf"))
    spans, costs = [], []
    for where in assigned(len(jobs), machines):
        loads, cost = [0] * machines, 0
        for (length, weight), i in zip(order, where, strict=True):
            loads[i] += length
            cost += weight * loads[i]
        spans.append(max(loads))
        costs.append(cost)
    assert least_makespan(lengths, machines) == min(spans)
    assert least_weighted_completion(lengths, weights, machines) == min(costs)


def test_no_machine_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        least_makespan([1], 0)


@pytest.mark.compiled
@pytest.mark.parametrize("objective", ["makespan", "total_completion_time", "total_weighted_flow_time"])
@pytest.mark.parametrize("text", ["whole-jobs", "whole-jobs:arrivals=false,gangs=false"])
def test_what_is_reached_is_the_optimum_without_preemption(objective: str, text: str) -> None:
    space, rng = space_of(specify("sjf").policy, text, jobs=5, gpus=2), random.Random(objective + text)
    for _ in range(3):
        candidate = space.drawn(rng)
        instance = space.instance(candidate)
        best = osd.solve(instance, objective)
        assert best.status == "optimal"
        assert space.reached(candidate, instance, objective, preemptive=False) == best.value
        assert space.reached(candidate, instance, objective, preemptive=True) <= best.value


def test_a_kind_says_what_it_is_not_for() -> None:
    with pytest.raises(osd.InputError, match="not for srsf"):
        space_of(specify("srsf").policy, "whole-jobs")
    with pytest.raises(osd.InputError, match="from 2 to 16"):
        space_of(specify("sjf").policy, jobs=1)
    with pytest.raises(osd.InputError, match="there is no space named"):
        space_of(specify("sjf").policy, "whole-job")
