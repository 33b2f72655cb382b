"""`solve`: published optima, CP-SAT beside it, and GPU types; `test_methods` has its roads, limits and refusals."""

from __future__ import annotations

import importlib.util
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from brute_force import optimum
from examples import few

import optsched as osd
from optsched.check.referee import check_schedule
from optsched.errors import InputError
from optsched.io.sources import load
from optsched.io.traces.generate import generate
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.throughputs import Throughput, Throughputs
from optsched.solvers.solve import model_names, solve

CPSAT = importlib.util.find_spec("ortools") is not None
OF_CP_SAT = ("total_weighted_completion_time", "total_weighted_tardiness", "makespan", "max_flow_time")
TWO_GANGS = [Job("a", gpus=2, duration=4), Job("b", duration=3), Job("c", duration=5)]


def test_gangs_on_a_grid_are_partial_schedules() -> None:
    solution = solve(load("rigid-10-1"))
    assert (solution.status, solution.model) == ("optimal", "partial-schedules")


@pytest.mark.parametrize("limit", [0, -1, float("nan"), "5"])
def test_a_time_limit_must_be_positive(limit: Any) -> None:
    with pytest.raises(InputError, match=r"time_limit = .*seconds > 0"):
        solve(Instance(TWO_GANGS, "1x2"), time_limit=limit)


def test_every_name_is_known_to_the_command_line() -> None:
    assert {"cp-sat", "sequence-branching", "reduced-cost-fixing", "time-indexed"} <= set(model_names())


@pytest.mark.skipif(not CPSAT, reason="needs optsched[cpsat]")
@pytest.mark.parametrize("objective", OF_CP_SAT)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.study) for seed in (1, 2))])
def test_cp_sat_agrees_with_brute_force(objective: str, seed: int) -> None:
    drawn = generate("rigid", seed, jobs=5, gpus=4, longest=8, heaviest=5)
    jobs = [
        Job(j.id, j.arrival, j.gpus, j.duration, weight=j.weight, due=j.arrival + 6 + k)
        for k, j in enumerate(drawn.jobs)
    ]
    instance = Instance(jobs, drawn.cluster)
    solution = solve(instance, objective, model="cp-sat")
    assert (solution.status, solution.value_exact) == ("optimal", optimum(instance, objective))


def test_without_ortools_cp_sat_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"optsched\[cpsat\]"):
        solve(Instance(TWO_GANGS, "1x2"), "total_completion_time", model="cp-sat")


FAST = (
    "A-8-0",
    "A-15-0",
    "A-30-0",
    "B-10-0",
    "B-30-0",
    "C-8-0",
    "C-12-0",
    "C-15-0",
    "D-10-0",
    "D-30-0",
    "L-8-0",
    "L-12-0",
)


def classic(data_dir: Path) -> list[str]:
    return [entry["id"] for entry in json.loads((data_dir / "classic" / "rigid_and_single_optima.json").read_text())]


BY_NAME = [
    ("A-12-0", "positional"),
    ("A-12-0", "time-indexed"),
    ("C-8-0", "rigid-time-indexed"),
    ("L-8-0", "disjunctive"),
]
SLOW = [
    ("A-30-0", "positional"),
    ("B-30-0", "time-indexed"),
    ("C-15-0", "rigid-time-indexed"),
    ("L-10-0", "disjunctive"),
]
SOLVED = [
    *((name, None) for name in few(FAST, 6)),
    *BY_NAME,
    *(pytest.param(*s, marks=pytest.mark.study) for s in SLOW),
]


@pytest.mark.parametrize(("name", "model"), SOLVED)
def test_published_optima(data_dir: Path, name: str, model: str | None) -> None:
    instance = load(f"classic:{data_dir / 'classic' / 'rigid_and_single_optima.json'}#{name}")
    assert instance.optimum is not None
    solution = solve(instance, model=model)
    assert (solution.status, solution.value) == ("optimal", instance.optimum["value"])
    assert solution.model == (model or solution.model)


@pytest.mark.parametrize("k", few([4, 5, 7, 16, 21, 25], 3))
def test_published_tardiness_optima(data_dir: Path, k: int) -> None:
    instance = load(f"orlib-wt:{data_dir / 'classic' / 'wt40_first25.txt'}#{k}")
    assert instance.optimum is not None
    solution = solve(instance)
    assert (solution.status, solution.value) == ("optimal", instance.optimum["value"])


@pytest.mark.study
def test_all_published_optima(data_dir: Path) -> None:
    place = data_dir / "classic"
    sources = [f"classic:{place / 'rigid_and_single_optima.json'}#{name}" for name in classic(data_dir)]
    sources += [f"orlib-wt:{place / 'wt40_first25.txt'}#{k}" for k in range(1, 26)]
    for source in sources:
        instance = load(source)
        assert instance.optimum is not None
        best = Fraction(instance.optimum["value"])
        solution = solve(instance, time_limit=60)
        assert solution.bound_exact is not None
        assert solution.value_exact is not None
        assert solution.bound_exact <= best <= solution.value_exact, source
        assert solution.status in ("optimal", "limit")
        assert solution.status == "optimal" or not source.startswith("orlib-wt")


SHARES = [0.2, 0.4, 0.6, 0.8, 1.0]


@pytest.mark.parametrize(
    "jobs",
    [pytest.param(20, marks=pytest.mark.release), *(pytest.param(n, marks=pytest.mark.study) for n in (100, 150))],
)
@pytest.mark.parametrize("spread", SHARES)
@pytest.mark.parametrize("tightness", SHARES)
def test_tardiness_by_the_published_recipe_is_proved(jobs: int, spread: float, tightness: float) -> None:
    instance = generate("tardiness", 3, jobs=jobs, spread=spread, tightness=tightness)
    assert solve(instance, time_limit=600).status == "optimal"


# --- optima where speed depends on the GPU type: two methods, the referee, and the policies and bounds on either side ---


TABLE = Throughputs(
    {
        ("net", "fast", 1): Throughput(4.0),
        ("net", "slow", 1): Throughput(1.0),
        ("net", "fast", 2): Throughput(8.0, 4.0),
        ("net", "slow", 2): Throughput(2.0, 1.0),
        ("odd", "fast", 1): Throughput(1.0),
        ("odd", "slow", 1): Throughput(2.0),
        ("big", "fast", 2): Throughput(2.0, 1.0),
        ("big", "slow", 2): Throughput(0.0),
    }
)
JOBS = [
    Job("a", iterations=8, profile="net"),
    Job("b", iterations=8, profile="net", gpus=2),
    Job("c", arrival=1, iterations=4, profile="odd"),
    Job("d", arrival=1, iterations=4, profile="big", gpus=2),
    Job("e", arrival=2, duration=2),
]


@pytest.mark.parametrize("objective", ["total_completion_time", "makespan"])
@pytest.mark.parametrize("cluster", ["1x2:fast+1x2:slow", "2x1:fast+2x1:slow"])
def test_two_roads_agree_and_nothing_is_below_the_bound(cluster: str, objective: str) -> None:
    instance = Instance(JOBS, cluster, throughputs=TABLE)
    best = osd.solve(instance, objective=objective)
    assert best.status == "optimal"
    assert best.schedule is not None
    assert check_schedule(instance, best.schedule, preemptive=False, objective=objective, value=float(best.value)) == []
    other = osd.solve(instance, objective=objective, model="gang-modes")
    assert (other.status, other.value) == ("optimal", best.value)
    floor = osd.bound(instance, objective)
    floor.verify(instance)
    assert floor.exact_float <= best.value
    for policy in ("fifo", "sjf", "fifo:skip=true+one-type"):
        run = osd.simulate(instance, policy)
        assert run.unfinished == []
        assert run.value(objective) >= best.value


def test_lp_order_takes_speeds_of_a_table() -> None:
    """It read their durations, of which there were none: a traceback."""
    table = Throughputs({("m", "V100", 1): Throughput(2.0)})
    jobs = [Job("a", iterations=8, profile="m"), Job("b", arrival=1, iterations=2, profile="m")]
    instance = Instance(jobs, Cluster((NodeGroup(gpus=1, gpu="V100"),)), throughputs=table)
    solution = osd.solve(instance, "total_completion_time", model="lp-order")
    assert solution.value == 8  # b from 1 to 2, then a to 6
