"""Policies for machines of different speeds: LST rounding and greedy for restricted assignment, and what they prove."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings, strategies as st

from optsched.check.referee import check_schedule, schedule_value
from optsched.errors import InputError
from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.guarantees.judge import judge
from optsched.guarantees.list_scheduling import RESTRICTED_GREEDY, factor, tournament
from optsched.guarantees.unrelated_machines import LENSTRA_SHMOYS_TARDOS, UnrelatedMachines, least_makespan
from optsched.policies.lenstra_shmoys_tardos import rounded_assignment
from optsched.policies.simulate import simulate, specify
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from policies.unrelated import shortest, unrelated

# -- lenstra-shmoys-tardos ------------------------------------------------------------------------------------------------


MAKESPAN = "makespan"


@st.composite
def tables(draw: st.DrawFn) -> list[tuple[int, ...]]:
    m = draw(st.integers(1, 3))
    seconds = st.tuples(*[st.sampled_from([0, 1, 2, 3, 4, 6, 12])] * m).filter(any)
    return draw(st.lists(seconds, min_size=1, max_size=6))


def at_once(table: list[tuple[int, ...]]) -> Instance:
    return unrelated([(0, 1, seconds) for seconds in table], MAKESPAN)


@settings(max_examples=examples(25))
@given(tables())
def test_it_is_within_twice_what_its_prices_prove_and_these_are_no_more_than_the_optimum(
    table: list[tuple[int, ...]],
) -> None:
    instance, spec = at_once(table), specify("lenstra-shmoys-tardos")
    run = simulate(instance, spec)
    assert check_schedule(instance, run.schedule) == []
    assert LENSTRA_SHMOYS_TARDOS.applies(spec.policy, spec.placement, instance)
    value, bound = schedule_value(instance, run.schedule, MAKESPAN), LENSTRA_SHMOYS_TARDOS.proves(spec.policy, run)
    assert bound is not None
    assert bound <= shortest(table) <= value * (1 + Fraction(1, 10**9))
    assert value <= 2 * bound * (1 + Fraction(1, 10**9))
    assert LENSTRA_SHMOYS_TARDOS.audit(spec.policy, run) == []
    assert judge(LENSTRA_SHMOYS_TARDOS, spec.policy, run, OptimumBounds(instance, [run])).holds is True


@settings(max_examples=examples(20))
@given(tables(), st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)))
def test_machines_that_are_busy_at_first(table: list[tuple[int, ...]], late: tuple[int, int, int]) -> None:
    busy = late[: len(table[0])]
    seconds = np.array([[float(p or np.inf) for p in row] for row in table]).T
    found = rounded_assignment(seconds, np.array(busy, dtype=float))
    load = np.array(busy, dtype=float)
    np.add.at(load, found.machine, seconds[found.machine, np.arange(len(table))])
    assert load.max() <= max(max(busy), 2 * shortest(table, busy)) + 1e-9


@settings(max_examples=examples(20))
@given(tables(), st.lists(st.fractions(0, 5), min_size=3, max_size=3), st.integers(0, 12))
def test_any_prices_and_any_limit_prove_something_true(
    table: list[tuple[int, ...]], prices: list[Fraction], limit: int
) -> None:
    machines = UnrelatedMachines.of(at_once(table))
    assert least_makespan(machines, prices[: len(table[0])], Fraction(limit)) <= shortest(table)


def test_parts_of_jobs_are_matched_with_machines() -> None:
    # three equal jobs on two machines: the vertex halves one of them
    table = [(4, 4)] * 3
    run = simulate(at_once(table), "lenstra-shmoys-tardos")
    assert run.value(MAKESPAN) == 8 == shortest(table)
    assert LENSTRA_SHMOYS_TARDOS.proves(specify("lenstra-shmoys-tardos").policy, run) == pytest.approx(6)


def test_a_run_that_lies_about_its_machines_is_found_out() -> None:
    run, policy = simulate(at_once([(1, 1)] * 6), "lenstra-shmoys-tardos"), specify("lenstra-shmoys-tardos").policy
    slow = simulate(Instance([Job(f"{j}", duration=1) for j in range(6)], "1x1", objective=MAKESPAN), "fifo")
    forged = dataclasses.replace(slow, notes=run.notes)
    assert LENSTRA_SHMOYS_TARDOS.audit(policy, run) == []
    widened = dataclasses.replace(forged, notes={**run.notes, "assignment_prices": np.array([0.0])})
    assert LENSTRA_SHMOYS_TARDOS.audit(policy, widened)


def test_a_job_that_no_machine_may_run_is_refused() -> None:
    with pytest.raises(InputError, match="job 1"):
        rounded_assignment(np.array([[1.0, np.inf], [2.0, np.inf]]), np.zeros(2))


@pytest.mark.study
@pytest.mark.parametrize("seed", range(60))
def test_many_tables(seed: int) -> None:
    rng, policy = np.random.default_rng(seed), specify("lenstra-shmoys-tardos").policy
    for m, n in ((2, 7), (3, 7), (4, 6)):
        table = [tuple(row) for row in rng.choice([1, 2, 3, 4, 6, 12], (n, m)).tolist()]
        run = simulate(at_once(table), "lenstra-shmoys-tardos")
        bound = LENSTRA_SHMOYS_TARDOS.proves(policy, run)
        assert bound is not None
        assert bound <= shortest(table) <= 2 * bound * (1 + Fraction(1, 10**9))
        assert LENSTRA_SHMOYS_TARDOS.audit(policy, run) == []
    seconds = rng.random((8, 80)) * 10.0 ** rng.integers(-6, 7)
    seconds[rng.random(seconds.shape) < 0.3] = np.inf
    seconds[0] = np.where(np.isfinite(seconds).any(axis=0), seconds[0], 1.0)
    found = rounded_assignment(seconds, np.zeros(8))
    load = np.bincount(found.machine, weights=seconds[found.machine, np.arange(80)], minlength=8)
    machines = UnrelatedMachines(np.zeros(80), np.ones(80), np.ones(80), 1 / seconds)
    least = least_makespan(machines, [Fraction(y) for y in found.price.tolist()], Fraction(found.limit * (1 + 2**-40)))
    assert float(load.max()) <= 2 * float(least) * (1 + 1e-9)


# -- restricted-greedy ----------------------------------------------------------------------------------------------------


def machines(m: int) -> Cluster:
    return Cluster(tuple(NodeGroup(1, gpu=f"m{i}") for i in range(m)))


@pytest.mark.parametrize(("rounds", "printed"), [(2, 3), (3, 4), (4, 5), (6, 7), (8, 9)])
def test_the_tournament_is_lost_by_a_logarithm(rounds: int, printed: int) -> None:
    instance = tournament(rounds)
    assert instance.cluster.gpus == instance.n == 2**rounds
    run = simulate(instance, "restricted-greedy")
    assert schedule_value(instance, run.schedule, "makespan") == printed == factor(2**rounds)


def test_the_factor_is_rounded_up() -> None:
    assert [factor(m) for m in range(1, 10)] == [1, 2, 3, 3, 4, 4, 4, 4, 5]


@st.composite
def restricted(draw: st.DrawFn) -> Instance:
    m = draw(st.integers(1, 4))
    names = [f"m{i}" for i in range(m)]
    jobs = [
        Job(
            f"{j}",
            duration=draw(st.integers(1, 6)),
            gpu_types=tuple(draw(st.lists(st.sampled_from(names), min_size=1, unique=True))),
        )
        for j in range(draw(st.integers(1, 6)))
    ]
    return Instance(jobs, machines(m), objective="makespan")


def assignments(instance: Instance) -> list[list[int]]:
    """Who may go where."""
    return [[int(name[1:]) for name in job.gpu_types or ()] for job in instance.jobs]


@settings(max_examples=examples(30))
@given(restricted())
def test_against_a_plain_greedy_and_every_assignment(instance: Instance) -> None:
    run, spec = simulate(instance, "restricted-greedy"), specify("restricted-greedy")
    load = [0] * instance.cluster.gpus
    for legal, job in zip(assignments(instance), instance.jobs, strict=True):
        load[min(legal, key=lambda i: (load[i], i))] += int(job.duration or 0)
    rows = zip(assignments(instance), instance.jobs, strict=True)
    seconds = [tuple(int(job.duration or 0) * (i in legal) for i in range(len(load))) for legal, job in rows]
    value = schedule_value(instance, run.schedule, "makespan")
    assert value == max(load)
    assert check_schedule(instance, run.schedule) == []
    assert value <= Fraction(factor(instance.cluster.gpus)) * shortest(seconds)
    assert RESTRICTED_GREEDY.applies(spec.policy, spec.placement, instance)
    assert judge(RESTRICTED_GREEDY, spec.policy, run, OptimumBounds(instance, [run])).holds is not False


def test_gangs_start_together_and_nobody_overtakes_on_his_gpus() -> None:
    # b waits for both GPUs, c behind it although one of them is free
    jobs = [Job("a", duration=4), Job("b", arrival=1, gpus=2, duration=1), Job("c", arrival=2, duration=1)]
    run = simulate(Instance(jobs, "1x2"), "restricted-greedy")
    assert run.schedule.completion.tolist() == [4, 5, 6]
