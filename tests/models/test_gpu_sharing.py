"""The event-slot program of jobs that share GPUs gives the optimum of the other methods, with starts anywhere in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from loaded_optimum import loaded_optimum

from optsched.classes.gpu_sharing.solvers.sharing_search import sharing_optimum
from optsched.errors import InputError
from optsched.io.traces.generate import generate
from optsched.models.event_slots import latest_completions, one_at_a_time
from optsched.models.gpu_sharing import build, schedule
from optsched.models.shared_jobs import SharedJobs
from optsched.models.sharing_least import least_total, work_rate
from optsched.problem.instance import Cluster, Instance, Job, NodeGroup
from optsched.problem.interference import Interference
from optsched.problem.scaling import Scaling

CLOSE = 1e-9  # relative; HiGHS takes integers that are 1e-9 off
Solve = Callable[[Any], float]


def solved(instance: Instance, value: float | None = None) -> float:
    """The optimum of the program; the schedule that is read from it has that value."""
    model = build(instance, value=value)
    best, found = loaded_optimum(model), schedule(model)
    assert found.completion.sum() == pytest.approx(best, rel=CLOSE)
    assert (found.start >= instance.arrival).all()
    return best


def test_by_hand_and_on_pyomos_own_road(solve: Solve) -> None:
    jobs = [Job("long", 0, 2, 8), Job("short", 2, 2, 2)]
    together = Instance(jobs, "1x2", interference=Interference(1.5))
    assert solved(together) == pytest.approx(14, rel=CLOSE)  # short 2..5 beside long, which ends at 9
    assert solve(build(together)) == pytest.approx(14, abs=1e-5)
    apart = Instance(jobs, "1x2", interference=Interference(6.0))
    assert solved(apart) == pytest.approx(16, rel=CLOSE)  # long waits for short
    assert solved(apart, 16.0) == pytest.approx(16, rel=CLOSE)


def test_pairs_that_never_share_take_turns() -> None:
    never = Interference(1.125, kinds=("m",), ratios=((None,),))
    jobs = [Job("a", 0, 1, 2, model="m"), Job("b", 0, 1, 3, model="m"), Job("c", 0, 1, 4)]
    instance = Instance(jobs, "1x1", interference=never)
    assert solved(instance) == pytest.approx(sharing_optimum(instance).value, rel=CLOSE)


def test_sub_batches_are_chosen_to_fit() -> None:
    net = Scaling(compute=1.0, per_sample=1.0, memory=1.0, memory_per_sample=1.0)
    jobs = [
        Job("a", 0, 1, iterations=3.0, profile="net", batch_size=8),
        Job("b", 0, 1, iterations=1.0, profile="net", batch_size=8),
    ]
    where = Cluster((NodeGroup(gpus=1, gpu_memory=12.0),))
    instance = Instance(jobs, where, scalings={"net": net}, interference=Interference(1.125))
    found = sharing_optimum(instance)
    assert set(found.options) != {0}
    assert solved(instance) == pytest.approx(found.value, rel=CLOSE)


def test_the_unit_of_the_data_does_not_matter() -> None:
    base = generate("sharing-small", 12, jobs=3, xi="1.3")
    optimum = sharing_optimum(base).value
    for factor in (1e-4, 1e6):
        jobs = [Job(x.id, x.arrival * factor, 1, (x.duration or 0) * factor) for x in map(base.job, range(3))]
        assert solved(base.replace(jobs=jobs)) == pytest.approx(optimum * factor, rel=1e-8)


def test_implied_bounds_are_below_the_optimum() -> None:
    for seed in range(15):
        instance = generate("sharing-small", 900 + seed, jobs=4, gpus=1 + seed % 3, xi=("1.2", "1.7", "exp")[seed % 3])
        jobs, found = SharedJobs.of(instance), sharing_optimum(instance)
        for value in (None, found.value):
            latest = latest_completions(jobs.release, jobs.least_seconds, value)
            assert all(end <= at for end, at in zip(found.completion, latest, strict=True))
        assert found.bound <= found.value <= one_at_a_time(jobs.release, jobs.least_seconds)


def test_each_of_the_bounds_counts_somewhere() -> None:
    # (release, seconds alone, share of the machine): by hand
    assert least_total(0, [(0, 4, 2), (0, 4, 2)]) == 8  # LB2: alone
    assert least_total(0, [(0, 2, 2), (0, 2, 2), (0, 2, 2)]) == 12  # LB1: one after the other
    # LB3: mean busy times 1/2 and 3/2 and half of 2 each, more than 2 + 2 and than SRPT's 1 + 2
    assert least_total(0, [(0, 2, 1), (0, 2, 1)]) == 4
    assert least_total(0, [(0, 2, 1), (0, 2, 1), (0, 2, 1)]) == pytest.approx(0.5 + 1.5 + 2.5 + 3)
    assert least_total(3, [(0, 1, 1), (5, 1, 1)]) == 4 + 6
    assert least_total(7, []) == 0


def test_work_rates() -> None:
    table = Interference(2.0, kinds=("a", "b"), ratios=((1.25, 1.6), (1.25, 4.0)))
    jobs = [Job("x", 0, 1, 1, model="a"), Job("y", 0, 1, 1, model="a"), Job("z", 0, 1, 1, model="b")]
    shared = SharedJobs.of(Instance(jobs, "1x1", interference=table))
    xi = [list(row) for row in shared.xi]
    assert work_rate(shared, (0, 1, 2), xi) == pytest.approx(1.6)
    assert work_rate(shared, (0, 2), xi) == pytest.approx(1 / 1.6 + 1 / 1.25)
    assert work_rate(shared, (2,), xi) == 1


def test_what_is_not_legal_is_named() -> None:
    shared = Interference(1.5)
    apart = Instance([Job("a", duration=1), Job("b", duration=1)], "1x2", interference=shared)
    with pytest.raises(InputError, match="side by side"):
        build(apart)
    with pytest.raises(InputError, match="no jobs"):
        build(Instance([], "1x1", interference=shared))
    with pytest.raises(InputError, match="interference"):
        build(Instance([Job("a", duration=1)], "1x1"))
    two = Instance([Job("a", duration=1), Job("b", duration=2)], "1x1", interference=shared)
    for value in (1.0, float("nan")):
        with pytest.raises(InputError, match=r"value = .*at least 3\.0"):
            build(two, value=value)
