"""Times that float64 rounds, units of any size: decimal and real-valued instances are proved like whole ones."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from brute_force import optimum

from optsched.bounds import bound
from optsched.check.referee import check_schedule
from optsched.deadline import Deadline
from optsched.errors import InputError, OptschedError
from optsched.models.time_grid import time_grid
from optsched.problem.instance import Cluster, Instance, Job
from optsched.problem.objectives import get_objective
from optsched.problem.schedule import Schedule
from optsched.solvers.method import METHODS
from optsched.solvers.methods.sequence_branching import machine_of
from optsched.solvers.session import Session
from optsched.solvers.solution import Solution
from optsched.solvers.solve import solve
from optsched.solvers.solve_state import SolveState
from solvers.rigid_instances import one_machine

ROUNDING = Fraction(1, 10**9)


def gangs(gpus: int, *rows: tuple[float, int, float]) -> Instance:
    jobs = [Job(f"j{k}", arrival=r, gpus=g, duration=p) for k, (r, g, p) in enumerate(rows)]
    return Instance(jobs, Cluster.parse(f"1x{gpus}"))


def proved(instance: Instance, solution: Solution) -> bool:
    """Optimal, and all of it stands: the schedule, the certificate, the value."""
    assert solution.status == "optimal"
    assert solution.schedule is not None
    assert solution.value_exact is not None
    assert check_schedule(instance, solution.schedule, preemptive=False) == []
    best = optimum(instance, solution.objective)
    assert abs(solution.value_exact - best) <= ROUNDING * abs(best)
    if solution.certificate is not None:
        solution.certificate.verify(instance)
        assert solution.certificate.value <= solution.value_exact * (1 + ROUNDING)
    return True


DECIMAL = [
    ("total_completion_time", gangs(3, (0.1, 3, 0.1), (0.2, 2, 0.4))),
    ("total_completion_time", gangs(2, (0.2, 2, 0.2), (0.4, 1, 0.8), (0.0, 1, 0.4), (0.0, 2, 0.2), (0.0, 1, 0.8))),
    ("makespan", gangs(2, (0.2, 2, 0.2), (0.4, 1, 0.8), (0, 1, 0.4), (0, 2, 0.2), (0, 1, 0.8), (0.4, 2, 0.4))),
    ("total_weighted_completion_time", one_machine((0, 0.1, 0.1), (0, 0.4, 0.2), (0, 0.2, 0.4))),
    ("total_weighted_completion_time", one_machine((0, 0.1, 0.1), (0.2, 0.4, 0.2), (0.1, 0.2, 0.4))),
]


@pytest.mark.parametrize(("objective", "instance"), DECIMAL)
def test_decimal_times_on_a_grid_are_proved(objective: str, instance: Instance) -> None:
    assert not time_grid(instance).exact
    assert proved(instance, solve(instance, objective))


@pytest.mark.parametrize(
    "model", ["sequence-branching", "partial-schedules", "reduced-cost-fixing", "rigid-time-indexed"]
)
def test_decimal_times_on_every_road_of_a_grid(model: str) -> None:
    instance = one_machine((0, 0.1, 0.1), (0.2, 0.4, 0.2), (0.1, 0.2, 0.4))
    assert proved(instance, solve(instance, "total_weighted_completion_time", model=model))


def test_which_grids_float64_holds() -> None:
    assert time_grid(one_machine((0, 3, 1), (7, 5, 1))).exact
    assert time_grid(one_machine((1e9, 0.25, 1), (1e9 + 2, 1.5, 1))).exact
    assert time_grid(one_machine((0, 0.1, 1), (0, 0.1, 1))).exact  # 0.2 is twice 0.1
    assert not time_grid(one_machine((0, 0.1, 1), (0, 0.2, 1))).exact  # 0.1 + 0.2 is not thrice


def test_a_completion_an_ulp_behind_the_next_start_is_that_start() -> None:
    instance = one_machine((0, 0.1, 1), (0, 0.2, 1), (0, 1, 1))
    schedule = Schedule.from_starts(instance, [0.0, 0.1, 0.3])
    assert schedule.completion.tolist() == [0.1, 0.3, 1.3]  # 0.1 + 0.2 is more than 0.3
    assert check_schedule(instance, schedule, preemptive=False) == []
    apart = Schedule.from_starts(instance, [0.0, 0.1, 0.4])
    assert apart.completion.tolist() == [0.1, 0.1 + 0.2, 1.4]


def real_valued(seed: int, unit: float, n: int = 4) -> Instance:
    rng = np.random.default_rng(seed)
    jobs = [
        Job(f"j{k}", arrival=float(rng.random() * 10 * unit), duration=float(rng.random() * 8 * unit)) for k in range(n)
    ]
    return Instance(jobs, Cluster.machines(1))


@pytest.mark.parametrize("unit", [1e-9, 1.0, 3600.0, 1e12])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_real_valued_times_are_proved_in_any_unit(seed: int, unit: float) -> None:
    instance = real_valued(seed, unit)
    assert proved(instance, solve(instance, "total_flow_time", model="disjunctive"))


def test_tiny_and_huge_weights_are_proved() -> None:
    for weight in (1e-15, 1e15):
        instance = one_machine((0, 3, weight), (1, 2, 5 * weight), (2, 4, 2 * weight))
        for model in ("rigid-time-indexed", "reduced-cost-fixing", "disjunctive"):
            assert proved(instance, solve(instance, "total_weighted_completion_time", model=model))


def test_windows_do_not_lose_the_only_schedule_to_rounding() -> None:
    # latest starts were once an ulp below releases plus durations, and the program was called infeasible
    instance = one_machine((0.0, 0.4, 0.1), (0.3, 1.4, 3.0))
    assert proved(instance, solve(instance, "total_weighted_flow_time", model="disjunctive"))


def test_a_proof_that_tolerances_end_goes_on_with_another_method_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Session.solve

    def worse(self: Session, **options: object) -> object:
        outcome = original(self, **options)  # type: ignore[arg-type]
        assert outcome.bound is not None
        return dataclasses.replace(outcome, bound=outcome.bound * 0.99)

    monkeypatch.setattr(Session, "solve", worse)
    instance = real_valued(1, 1.0)
    solution = solve(instance, "total_flow_time", model="disjunctive")
    assert (solution.status, solution.model) == ("optimal", "partial-schedules")
    assert solution.note.startswith("disjunctive failed on these numbers")
    late = float(instance.arrival.max() + instance.duration.sum())
    limited = solve(instance, "total_flow_time", model="disjunctive", horizon=late)  # which no other method knows
    assert (limited.status, limited.model) == ("limit", "disjunctive")
    assert "tolerances" in limited.note


def test_a_deadline_before_the_first_lp_is_told() -> None:
    jobs = [(float(k % 5), 1 + k % 3, float(1 + (7 * k) % 11)) for k in range(12)]
    task = SolveState(gangs(4, *jobs), get_objective("total_completion_time"), deadline=Deadline(0.0))
    task.search(0)
    assert task.late
    report = METHODS.get("reduced-cost-fixing").run(task)
    assert not task.closed
    assert "time limit" in report.note


def test_gangs_need_no_common_unit() -> None:
    instance = gangs(2, (0.0, 1, 0.1), (0.0, 1, 0.3), (0.1, 2, 0.7), (0.3, 1, 0.9), (0.0, 2, 0.6))
    assert proved(instance, solve(instance, "total_flow_time"))


def test_a_job_too_short_to_be_seen_beside_another_one_leaves_an_interval() -> None:
    instance = gangs(2, (0.0, 2, 1e-9), (0.0, 2, 1e6), (0.1, 1, 0.7e6))
    with pytest.raises(InputError, match="too short compared"):
        solve(instance, "total_flow_time", model="partial-schedules")
    assert solve(instance, "total_flow_time").bound <= float(optimum(instance, "total_flow_time"))


def test_a_certificate_that_does_not_hold_is_never_kept() -> None:
    instance = one_machine((0, 3, 1), (0, 2, 1))
    task = SolveState(instance, get_objective("total_completion_time"))
    good = bound(instance, "total_completion_time", "gang-nonpreemptive")
    with pytest.raises(OptschedError, match="does not hold"):
        task.offer_certificate(dataclasses.replace(good, value=good.value + 1))
    assert task.certificate is None
    assert task.bound is None
    task.offer_certificate(good)
    assert task.bound == good.value


def test_a_certificate_above_a_schedule_is_an_error() -> None:
    instance = one_machine((0, 3, 1), (0, 2, 1))
    task = SolveState(instance, get_objective("total_completion_time"))
    task.search(0)
    good = bound(instance, "total_completion_time", "gang-nonpreemptive")
    task.value = good.value - 1
    with pytest.raises(OptschedError, match="more than"):
        task.offer_certificate(good)


def test_costs_that_only_begin_beyond_64_bits_do_not_overflow() -> None:
    jobs = [Job("a", duration=3, weight=1e18, due=500), Job("b", duration=2, weight=1, due=0)]
    instance = Instance(jobs, Cluster.machines(1))
    task = SolveState(instance, get_objective("total_weighted_tardiness"))
    machine = machine_of(task, 600)
    first, second = (machine.cost(np.array([j]), np.arange(598)) for j in range(2))
    assert first[497] == 0
    assert first[498] > 1e12  # beyond the value of any schedule that is better than the incumbent
    assert all(np.all(np.diff(cost) >= 0) for cost in (first, second))
    assert proved(instance, solve(instance, "total_weighted_tardiness"))
