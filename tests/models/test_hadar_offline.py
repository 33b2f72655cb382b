"""The MILP over rounds x machines x types equals the enumerated program and everything tried; schedules of instances."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from loaded_optimum import loaded_optimum
from packing_value import packing_value
from round_brute_force import best_utility, tiny_problems

from optsched.check.referee import check_schedule
from optsched.errors import InputError
from optsched.models.hadar_offline import build
from optsched.models.hadar_rounds import RoundProblem, round_problem
from optsched.problem.arrays import Ints
from optsched.problem.instance import Instance, Job
from optsched.problem.schedule import Schedule
from optsched.problem.throughputs import Throughput, Throughputs
from optsched.solvers.compile_model import compile
from optsched.solvers.session import Session
from optsched.solvers.utility import schedule_of

EXACT = 1e-6  # utilities are integers up to 9 in the tiny problems; HiGHS's binaries are 1e-9 off at most
TABLE = Throughputs(
    {
        ("vision", "V100", 1): Throughput(10.0),
        ("vision", "V100", 2): Throughput(16.0, 12.0),
        ("vision", "K80", 1): Throughput(2.0),
        ("vision", "K80", 2): Throughput(3.0, 4.0),  # measured: faster when it is spread
        ("text", "V100", 4): Throughput(20.0, 15.0),
        ("text", "K80", 4): Throughput(6.0, 5.0),
    }
)
MIXED = Instance(
    [
        Job("x", 0, 1, iterations=3000, profile="vision"),
        Job("y", 100, 2, iterations=4000, profile="vision"),
        Job("z", 360, 4, iterations=5000, profile="text"),
    ],
    "2x2:V100+1x2:K80",
    throughputs=TABLE,
)


def solved(problem: RoundProblem) -> tuple[float, Any]:
    """(optimum, model with the solution on it)."""
    model = build(problem)
    return loaded_optimum(model), model


def chosen_allocation(model: Any, problem: RoundProblem) -> Ints:
    """Devices held in a solved model, i64[n, T, H, R]."""
    held = np.zeros((problem.n, problem.rounds, problem.machines, problem.types), dtype=np.int64)
    for (j, h, r, t), variable in model.w.items():
        value = variable.value or 0.0
        held[j, t, h, r] = round(value)
        assert abs(value - held[j, t, h, r]) <= 1e-5
    return held


def round_schedule(instance: Instance, problem: RoundProblem, held: Ints) -> Schedule:
    """The schedule of an allocation i64[n, T, H, R], as `solve` makes one of what it has packed."""
    cells = [[(t, [(h, r, int(of[t, h, r])) for h, r in np.argwhere(of[t])]) for t in range(len(of))] for of in held]
    placed = tuple(tuple((t, tuple(each)) for t, each in own if each) for own in cells)
    return schedule_of(instance.relative, problem, placed)


def worth(problem: RoundProblem, held: np.ndarray) -> Fraction:
    """Utility of an allocation i64[n, T, H, R], every rule looked at on the way."""
    assert np.all(held.sum(axis=0) <= problem.devices)
    total = Fraction(0)
    for j in range(problem.n):
        done, work = Fraction(0), Fraction(float(problem.work[j]))
        assert held[j, : problem.arrival[j]].sum() == 0
        for t in range(problem.rounds):
            cells = np.argwhere(held[j, t])
            assert held[j, t].sum() in (0, problem.tasks[j])
            if not cells.size or done >= work:
                continue
            one_machine = len(set(cells[:, 0].tolist())) == 1 and problem.together is not None
            table = problem.together if one_machine and problem.together is not None else problem.speed
            slowest = min(Fraction(float(table[j, r])) for r in cells[:, 1])
            done += Fraction(problem.seconds) * int(problem.tasks[j]) * slowest
            if done >= work:
                total += Fraction(float(problem.utility[j, t]))
    return total


@settings(max_examples=examples(40))
@given(problem=tiny_problems())
def test_milp_is_the_enumerated_program_is_everything_tried(problem: RoundProblem) -> None:
    tried = best_utility(problem)
    packing = problem.packing()
    assert packing_value(packing, integer=True) == pytest.approx(float(tried), abs=EXACT)
    if not any(problem.modes):
        with pytest.raises(InputError, match="no job can run"):
            build(problem)
        assert tried == 0
        return
    value, model = solved(problem)
    assert value == pytest.approx(float(tried), abs=EXACT)
    assert worth(problem, chosen_allocation(model, problem)) == tried


@settings(max_examples=15)
@given(problem=tiny_problems(together=False))
def test_its_relaxation_is_no_better_than_the_packing_lp(problem: RoundProblem) -> None:
    if any(problem.modes):
        relaxed = Session(compile(build(problem)), relax=True).solve().value
        assert relaxed is not None
        assert relaxed >= packing_value(problem.packing()) - EXACT


def test_four_tasks_on_two_and_two_devices() -> None:
    problem = RoundProblem([100.0], [4], [[3.0, 2.0]], [0], [[2, 2]], 10.0, [[5.0, 4.0, 1.0]])
    value, model = solved(problem)
    assert value == pytest.approx(4)
    assert chosen_allocation(model, problem)[0].tolist() == [[[2, 2]], [[2, 2]], [[0, 0]]]


def test_schedule_of_an_instance_with_throughputs() -> None:
    problem = round_problem(MIXED, 360.0, 6)
    value, model = solved(problem)
    schedule = round_schedule(MIXED, problem, chosen_allocation(model, problem))
    assert check_schedule(MIXED, schedule) == []
    assert schedule.finished.all()
    # x: 3000 in one round; z: 4 spread V100s for one round; y then spread over two nodes, or together
    assert value == pytest.approx(3000 / 360 + 5000 / 360 + 4000 / (3 * 360 - 100))
    truth = float(np.sum(MIXED.work / (schedule.completion - MIXED.arrival)))
    assert truth >= value


def test_a_faster_spread_gang_is_not_put_on_one_node() -> None:
    # two K80s of one node do 3 a second, of two nodes 4: 1300 iterations fit in a round of 360 s only spread
    job = Job("y", 0, 2, iterations=1300, profile="vision")
    for cluster, rounds in (("1x2:K80", 2), ("2x2:K80", 1)):
        instance = Instance([job], cluster, throughputs=TABLE)
        problem = round_problem(instance, 360.0, 3)
        value, model = solved(problem)
        assert value == pytest.approx(1300 / (rounds * 360))
        assert check_schedule(instance, round_schedule(instance, problem, chosen_allocation(model, problem))) == []


def test_jobs_with_durations_and_rounds_in_a_row() -> None:
    jobs = [Job("x", 50, 2, duration=400), Job("y", 50, 4, duration=700), Job("z", 410, 1, duration=360, weight=3)]
    instance = Instance(jobs, "2x2")
    problem = round_problem(instance, 360.0, 5)
    value, model = solved(problem)
    schedule = round_schedule(instance, problem, chosen_allocation(model, problem))
    assert check_schedule(instance.relative, schedule) == []
    # z at once (arrived with round 1), x beside it in rounds 0 and 1, y in 2 and 3
    assert schedule.completion.tolist() == [400, 3 * 360 + 340, 720]
    assert value == pytest.approx(400 / 720 + 700 / (4 * 360) + 3)
    assert np.count_nonzero(schedule.job == 1) == 1  # two rounds on the same GPUs are one segment
