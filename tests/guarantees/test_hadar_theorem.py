"""Hadar's guarantee on runs: it holds beside every schedule that is known, and its audit finds what is forged."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
import pytest
from examples import few
from policies.test_hadar import UNIX, mixed_speeds, overtaken, shifted
from scipy.optimize import linprog
from simulation.instances import MIXED, random_instance

from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.guarantees import GUARANTEES
from optsched.guarantees.hadar_theorem import HADAR, DualSolution, best_payoffs, factor
from optsched.guarantees.judge import judge
from optsched.policies.simulate import simulate, specify
from optsched.problem.instance import Instance, Job
from optsched.simulation.run import Run

SPECS = ["hadar:round=1", "hadar:round=3,restart=0.5"]
OTHERS = ["srtf+consolidated", "auction-rounds:utility=throughput,round=1", "auction-rounds:utility=jct,round=2"]


def played(instance: Instance, spec: str) -> tuple[Any, Run]:
    chosen = specify(spec)
    return chosen, simulate(instance, chosen)


def cases() -> list[Instance]:
    return [
        random_instance(seed, cluster, 15)
        for seed, cluster in few(((21, MIXED), (21, "2x4"), (22, "2x4"), (22, MIXED)), 1)
    ] + [mixed_speeds(seed) for seed in few((4, 5), 1)]


@pytest.mark.parametrize("spec", SPECS)
def test_no_schedule_that_is_known_beats_the_guarantee_or_its_dual_value(spec: str) -> None:
    for instance in cases():
        chosen, run = played(instance, spec)
        assert HADAR.applies(chosen.policy, chosen.placement, instance)
        runs = [run, *(simulate(instance, other) for other in OTHERS)]
        judged = judge(HADAR, chosen.policy, run, OptimumBounds(instance, runs))
        assert judged.findings == ()
        assert judged.holds is not False
        solution = DualSolution(chosen.policy, run)
        best = max(each.value("total_utility") for each in runs)
        assert best <= solution.every_schedule
        assert solution.every_schedule <= judged.ratio * run.value("total_utility") * (1 + 1e-9)
        assert solution.primal <= run.value("total_utility") * (1 + 1e-9)


def fluid_cost(work: float, seconds: np.ndarray, rate: np.ndarray, cost: np.ndarray) -> float:
    """The least cost of ``work``: seconds on every type in every round, as a linear program."""
    rounds, types = cost.shape
    share = np.kron(np.eye(rounds), np.ones(types))
    found = linprog(
        cost.ravel(), A_ub=np.vstack([share, -np.tile(rate, rounds)]), b_ub=np.append(seconds, -work), method="highs"
    )
    return float(found.fun) if found.status == 0 else math.inf


def test_payoffs_of_all_schedules_are_bounded_by_the_fluid_program() -> None:
    """mu' is no less than U at any time within a round less the exact fluid cost, and not much more than the best of it."""
    looser = []
    for seed in (4, 6):
        instance = mixed_speeds(seed)
        chosen, run = played(instance, "hadar:round=4")
        solution = DualSolution(chosen.policy, run)
        bound = best_payoffs(solution)
        begin = solution.zero + 4.0 * np.arange(solution.prices.shape[0] + 1)
        speeds_of = instance_rates(instance)
        for j in range(0, instance.n, 5):
            gain = float(instance.weight[j] * instance.work[j])
            best = gain / (
                max(begin[-1], instance.arrival[j] + instance.work[j] / speeds_of[j].max()) - instance.arrival[j]
            )
            for i, share in itertools.product(range(begin.size - 1), (0.25, 1.0)):
                f = begin[i] + share * 4.0
                if f <= instance.arrival[j]:
                    continue
                seconds = np.maximum(0.0, np.minimum(begin[1:], f) - np.maximum(begin[:-1], instance.arrival[j]))
                price = solution.prices * instance.gpus[j] / 4.0
                cost = fluid_cost(float(instance.work[j]), seconds, speeds_of[j], price)
                best = max(best, gain / (f - instance.arrival[j]) - cost)
            assert bound[j] >= best * (1 - 1e-9)
            looser.append(bound[j] / best if best > 0 else 1.0)
    assert np.median(looser) < 1.6


def instance_rates(instance: Instance) -> np.ndarray:
    """The best rate on every GPU type, read from the table."""
    table, types = instance.throughputs, ("V100", "P100", "K80")
    assert table is not None
    rows = []
    for job in instance.jobs:
        found = [table.get(str(job.profile), gpu, job.gpus) for gpu in types]
        rows.append(
            [max(each.together, each.together if each.spread is None else each.spread) for each in found if each]
        )
    return np.array(rows)


def test_many_small_jobs_make_the_factor_of_the_theorem_small() -> None:
    rng = np.random.default_rng(3)
    made = [Job(f"j{k}", arrival=float(k), duration=float(rng.integers(40, 200))) for k in range(150)]
    instance = Instance(made, "1x256")
    chosen, run = played(instance, "hadar:round=10,high=1.0,low=0.001")
    assert factor(chosen.policy, run) < 10
    proven = OptimumBounds(instance, [run])
    judged = judge(HADAR, chosen.policy, run, proven)
    assert judged.holds is True
    assert DualSolution(chosen.policy, run).initial > 0
    # and gangs as large as the cluster make it useless
    wide = Instance([dataclasses.replace(job, gpus=256) for job in made[:20]], "1x256")
    chosen, run = played(wide, "hadar:round=10,high=1.0,low=0.001")
    assert factor(chosen.policy, run) > 1000


def forged(run: Run, **notes: np.ndarray) -> Run:
    return dataclasses.replace(run, notes={**run.notes, **notes})


def test_the_audit_finds_what_is_forged() -> None:
    instance = random_instance(21, "2x4", 15)
    chosen, run = played(instance, "hadar:round=1")

    def findings(**notes: Any) -> str:
        return "; ".join(HADAR.audit(chosen.policy, forged(run, **notes)))

    assert findings() == ""
    payoff, end, sold = (np.array(run.notes[f"hadar_{name}"]) for name in ("payoff", "end", "sold"))
    assert "more than its payoff" in findings(hadar_payoff=payoff * 0.5)
    assert "after its plan" in findings(hadar_end=np.where(np.isfinite(end), instance.arrival, end))
    sold[0, 0] = 9
    assert "9 of 8 GPUs" in findings(hadar_sold=sold)
    assert "D_0 + J + R_eff P" in findings(hadar_utility=np.array(run.notes["hadar_utility"]) * 1e-9)
    assert "weak duality" in findings(hadar_utility=np.array(run.notes["hadar_utility"]) * 1e6)


@pytest.mark.parametrize("length", [pytest.param(1.0, marks=pytest.mark.study), 10.0])
def test_it_is_kept_on_late_clocks(length: float) -> None:
    spec = f"hadar:round={length},restart={length / 8}"
    made = [shifted(mixed_speeds(4), UNIX, length / 2)]
    made += [
        overtaken(length, length / 4, UNIX, UNIX - 1000 * length),
        overtaken(length, length, UNIX, UNIX - 10 * length),
        overtaken(length, 0.3 * length, 1e8, 1e8 - 1e4 * length),
    ]
    for instance in few(made, 3):
        chosen, run = played(instance, spec)
        judged = judge(HADAR, chosen.policy, run, OptimumBounds(instance, [run]))
        assert judged.findings == ()
        assert judged.holds is not False


def test_the_audit_sees_a_second_on_late_clocks() -> None:
    instance = shifted(random_instance(21, "2x4", 15), UNIX)
    chosen, run = played(instance, "hadar:round=1")
    run = run.relative  # the clock of the log holds no more than 2.4e-7 s
    end = np.array(run.notes["hadar_end"])
    tight = np.where(np.isfinite(end), run.schedule.completion, end)
    assert HADAR.audit(chosen.policy, forged(run, hadar_end=tight)) == []
    (found, *_) = HADAR.audit(chosen.policy, forged(run, hadar_end=tight - 1.0))
    assert "after its plan" in found


@pytest.mark.parametrize("first", [UNIX - 100, UNIX])
def test_a_job_shorter_than_the_clock_can_tell(first: float) -> None:
    made = [Job("first", arrival=first, duration=5.0), Job("short", arrival=UNIX, duration=1e-8)]
    chosen, run = played(Instance(made, "2x1"), "hadar:round=1")
    with np.errstate(all="raise"):
        assert np.isfinite(DualSolution(chosen.policy, run).every_schedule)
        assert HADAR.audit(chosen.policy, run) == []


def test_it_promises_nothing_about_other_utilities() -> None:
    chosen = specify("hadar:utility=slowdown")
    (broken,) = HADAR.assumptions(chosen.policy, chosen.placement, random_instance(1, "2x4"))
    assert "utility=slowdown" in broken


def test_it_is_filed_and_promises_nothing_where_nothing_is_worth_anything() -> None:
    assert GUARANTEES.get("hadar") is HADAR
    chosen, run = played(Instance([Job("a", duration=5.0, weight=0.0)], "1x1"), "hadar")
    assert factor(chosen.policy, run) == math.inf
    assert run.unfinished == []
