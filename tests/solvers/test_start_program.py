"""The thinned program: its arrays are the formulation's, its extra rows hold for every schedule, its proofs are right."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from brute_force import optimum
from examples import examples
from hypothesis import given, settings, strategies as st

from optsched.deadline import Deadline
from optsched.models.rigid_time_indexed import blocks, build
from optsched.models.time_grid import time_grid
from optsched.problem.instance import Cluster, Instance, Job
from optsched.problem.objectives import get_objective
from optsched.solvers.compile_model import compile
from optsched.solvers.list_schedule import list_schedule
from optsched.solvers.lp_bound import RowFamily, SlotJobs, StartProgram, polish, rational, thin, violated_rows
from optsched.solvers.session import Session
from solvers.rigid_instances import SUMS, drawn_gangs, rigid_instances


def slot_jobs(instance: Instance, objective: str) -> SlotJobs:
    grid = time_grid(instance)
    return SlotJobs.on_grid(instance, objective, grid.origin, grid.unit)


def all_columns(instance: Instance, objective: str) -> tuple[np.ndarray, np.ndarray]:
    columns = blocks(instance).columns(instance, objective, None)[0]
    return columns.job[columns.block], columns.slot


def rigid(seed: int) -> Instance:
    return drawn_gangs(seed, 9, late=10, long=7, heavy=4)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("objective", ["total_flow_time", "total_weighted_completion_time"])
def test_with_all_columns_it_is_the_formulation(seed: int, objective: str) -> None:
    instance = rigid(seed)
    jobs = slot_jobs(instance, objective)
    job, start = all_columns(instance, objective)
    program = StartProgram.build(jobs, job, start, [RowFamily(jobs.gpus, jobs.instance.cluster.gpus)]).program
    model = compile(build(instance, objective))
    assert program.size == model.size
    # columns in the same order; the model keeps what every schedule pays as a constant
    shift = program.c - model.c
    for j in range(instance.n):
        assert np.ptp(shift[job == j]) == pytest.approx(0.0)
    rows = {tuple(row) for row in np.column_stack([program.A.toarray(), program.row_upper]).tolist()}
    assert rows == {tuple(row) for row in np.column_stack([model.A.toarray(), model.row_upper]).tolist()}
    assert Session(program, relax=True).solve().value == pytest.approx(Session(model, relax=True).solve().value)


@given(
    st.lists(st.integers(1, 8), min_size=1, max_size=7),
    st.integers(0, 2**32 - 1),
)
def test_wide_rows_hold_for_all_gangs_that_fit_together(gangs: list[int], seed: int) -> None:
    instance = Instance([Job(f"j{j}", gpus=g, duration=1) for j, g in enumerate(gangs)], Cluster.parse("1x8"))
    jobs = slot_jobs(instance, "total_completion_time")
    fractional = np.random.default_rng(seed).random((len(gangs), 3))
    for family in violated_rows(jobs, fractional, 100):
        assert family.slots is not None
        for slot in family.slots.tolist():
            assert family.width @ fractional[:, slot] > family.capacity  # it cuts something off
        for bits in range(1 << len(gangs)):
            chosen = [j for j in range(len(gangs)) if bits >> j & 1]
            if instance.gpus[chosen].sum() <= 8:
                assert family.width[chosen].sum() <= family.capacity  # and no schedule


def test_a_wide_gang_does_not_run_in_part_beside_a_small_one() -> None:
    instance = Instance([Job("wide", gpus=8, duration=1), Job("small", gpus=1, duration=1)], Cluster.parse("1x8"))
    jobs = slot_jobs(instance, "total_completion_time")
    (family,) = violated_rows(jobs, np.array([[7 / 8], [1.0]]), 10)
    assert (family.width.tolist(), family.capacity) == ([1, 1], 1)


@given(rigid_instances(most=5), st.sampled_from(SUMS), st.integers(0, 3))
@settings(max_examples=examples(50))
def test_thinning_from_a_bad_incumbent_loses_no_better_schedule(instance: Instance, objective: str, order: int) -> None:
    goal, best = get_objective(objective), optimum(instance, objective)
    incumbent = list_schedule(instance, np.roll(np.arange(instance.n), order))
    upper = goal.exact_of(instance, incumbent.completion.tolist())
    jobs = slot_jobs(instance, objective)
    job, start = all_columns(instance, objective)
    thinned = thin(jobs, job, start, upper=upper, step=None)
    assert thinned.finished
    assert thinned.bound <= best + Fraction(1, 10**6)
    for certificate in (thinned.certificate, polish(thinned, jobs, job, start)):
        if certificate is not None:
            certificate.verify(instance)
            assert certificate.value <= best
    if thinned.program is None:
        assert best == upper
        return
    outcome = Session(thinned.program.program).solve()
    left = upper if outcome.value is None else min(upper, Fraction(round(outcome.value * 4), 4))
    assert left == best


def test_the_incumbents_columns_can_be_kept() -> None:
    instance = rigid(4)
    jobs = slot_jobs(instance, "total_flow_time")
    job, start = all_columns(instance, "total_flow_time")
    incumbent = list_schedule(instance, "lpt")
    upper = Fraction(get_objective("total_flow_time").of(instance, incumbent.completion))
    slots = np.empty(instance.n, dtype=np.int64)
    slots[incumbent.job] = (incumbent.start - jobs.origin).astype(np.int64)
    thinned = thin(jobs, job, start, upper=upper, step=Fraction(1), keep=slots)
    assert thinned.program is not None
    kept = set(zip(thinned.program.job.tolist(), thinned.program.start.tolist(), strict=True))
    assert kept >= set(enumerate(slots.tolist()))
    x = (thinned.program.start == slots[thinned.program.job]).astype(float)
    assert thinned.program.program.value(x) == upper
    assert thinned.program.starts(x).tolist() == (slots + jobs.origin).tolist()


def test_a_deadline_in_the_past_stops_before_the_first_lp() -> None:
    instance = rigid(4)
    jobs = slot_jobs(instance, "total_flow_time")
    thinned = thin(
        jobs, *all_columns(instance, "total_flow_time"), upper=Fraction(999), step=None, deadline=Deadline(0.0)
    )
    assert (thinned.finished, thinned.certificate) == (False, None)


@pytest.mark.parametrize(
    ("values", "integers", "denominator"),
    [
        ([0.5, 1 / 3, 2.0], [3, 2, 12], 6),
        ([0.0, -1e-12, 7.0], [0, 0, 7], 1),
        ([1 / 7, 1 / 9], None, 2520),
    ],
)
def test_duals_become_small_fractions(values: list[float], integers: list[int] | None, denominator: int) -> None:
    found, over = rational(np.array(values))
    assert over == denominator
    if integers is not None:
        assert found.tolist() == integers
    assert found / over == pytest.approx(np.maximum(values, 0.0), abs=1e-9)


def test_other_duals_are_rounded_finely() -> None:
    values = np.array([np.pi, np.e])
    found, over = rational(values)
    assert over == 1 << 24
    assert found / over == pytest.approx(values, abs=1e-7)
