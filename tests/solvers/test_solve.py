"""`solve`: which method is taken, what is proved, what is said at a limit, and what is refused."""

from __future__ import annotations

import importlib.util
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from brute_force import optimum
from examples import few

from optsched.check.referee import check_schedule
from optsched.errors import InputError
from optsched.io.sources import load
from optsched.io.traces.generate import generate
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.solvers.solve import model_names, solve

CPSAT = importlib.util.find_spec("ortools") is not None
TWO_GANGS = [Job("a", gpus=2, duration=4), Job("b", duration=3), Job("c", duration=5)]


def test_one_machine_is_branched_over_sequences() -> None:
    solution = solve(generate("machines", 3, jobs=9, heaviest=5))
    assert (solution.status, solution.model, solution.gap) == ("optimal", "sequence-branching", 0.0)


def test_gangs_on_a_grid_are_partial_schedules() -> None:
    solution = solve(load("rigid-10-1"))
    assert (solution.status, solution.model) == ("optimal", "partial-schedules")


def test_jobs_with_types_need_placements() -> None:
    cluster = Cluster((NodeGroup(gpus=2, gpu="V100"), NodeGroup(gpus=2, gpu="K80")))
    jobs = [
        Job("a", gpus=2, duration=5, gpu_types=("v100",)),
        Job("b", gpus=2, duration=3, gpu_types=("V100",)),
        Job("c", gpus=2, duration=4),
    ]
    solution = solve(Instance(jobs, cluster), "total_completion_time")
    assert (solution.status, solution.value) == ("optimal", 3 + 8 + 4)
    assert solution.schedule is not None
    assert check_schedule(solution.schedule.instance, solution.schedule, preemptive=False) == []


def test_times_without_a_grid_are_disjunctive() -> None:
    jobs = [
        Job("a", arrival=0.1, duration=1.7),
        Job("b", arrival=0.3, duration=0.9),
        Job("c", arrival=0.2, duration=2.3),
    ]
    solution = solve(Instance(jobs, "1x1"), "total_completion_time")
    assert solution.status == "optimal"
    assert solution.value == pytest.approx(float(optimum(Instance(jobs, "1x1"), "total_completion_time")))


def test_an_empty_instance_and_one_job() -> None:
    assert solve(Instance([], "1x1"), "total_completion_time").status == "optimal"
    one = solve(Instance([Job("a", arrival=2, duration=3)], "1x1"), "total_flow_time")
    assert (one.status, one.value, one.bound) == ("optimal", 3, 3)


@pytest.mark.parametrize("model", ["srpt-mean-busy-time", "srpt-mean-busy-time-cvxpy", "srpt-slots"])
def test_a_relaxation_gives_an_interval_and_an_lp_its_duals(model: str) -> None:
    instance = generate("machines", 5, jobs=5, longest=6)
    solution = solve(instance, model=model)
    best = optimum(instance, "total_completion_time")
    assert solution.status in ("optimal", "feasible")
    assert solution.bound_exact is not None
    assert solution.value_exact is not None
    assert solution.bound_exact <= best <= solution.value_exact
    assert bool(solution.duals) == (model != "srpt-slots")


def test_the_json_document() -> None:
    document = solve(load("rigid-08-1")).to_json()
    assert list(document) == [
        "status",
        "objective",
        "value",
        "bound",
        "gap",
        "model",
        "solver",
        "rows",
        "columns",
        "nonzeros",
        "seconds",
    ]
    json.dumps(document, allow_nan=False)


def test_a_limit_leaves_an_interval_around_the_optimum() -> None:
    for name in ("rigid-12-1", "machines-3-12-1", "single-12-1", "rigid-makespan-12-1"):
        instance = load(name)
        assert instance.optimum is not None
        solution = solve(instance, time_limit=1e-9)
        assert solution.status in ("limit", "optimal")
        assert solution.bound_exact is not None
        assert solution.value_exact is not None
        assert solution.bound_exact <= instance.optimum["value"] <= solution.value_exact


def test_what_no_exact_method_fits_still_gets_an_interval() -> None:
    instance = generate("poisson", 1, jobs=80, cluster="2x4", load=1.2)
    solution = solve(instance, "total_completion_time", time_limit=1)
    assert solution.status == "limit"
    assert solution.note
    assert solution.certificate is not None
    solution.certificate.verify(instance)
    assert solution.bound is not None
    assert solution.value is not None
    assert 0 < solution.bound <= solution.value
    assert solution.schedule is not None
    assert check_schedule(instance, solution.schedule, preemptive=False) == []


def test_a_horizon_too_short_is_explained() -> None:
    instance = Instance(TWO_GANGS, "1x2", objective="makespan")
    solution = solve(instance, model="rigid-time-indexed", horizon=7)
    assert solution.status == "infeasible"
    assert solution.value is None
    assert "conflict" in solution.note or "cannot" in solution.note


@pytest.mark.parametrize(
    ("model", "instance", "word"),
    [
        ("time-index", Instance(TWO_GANGS, "1x2"), "time-indexed"),
        ("time-indexed", Instance(TWO_GANGS, "1x2"), "rigid-time-indexed"),
        ("disjunctive", Instance(TWO_GANGS, "1x2"), "machine"),
        ("sequence-branching", Instance(TWO_GANGS, "1x2"), "same time"),
    ],
)
def test_a_model_that_does_not_apply_says_why(model: str, instance: Instance, word: str) -> None:
    with pytest.raises(InputError, match=word):
        solve(instance, "total_completion_time", model=model)


@pytest.mark.parametrize("limit", [0, -1, float("nan"), "5"])
def test_a_time_limit_must_be_positive(limit: Any) -> None:
    with pytest.raises(InputError, match=r"time_limit = .*seconds > 0"):
        solve(Instance(TWO_GANGS, "1x2"), time_limit=limit)


def test_every_name_is_known_to_the_command_line() -> None:
    assert {"cp-sat", "sequence-branching", "reduced-cost-fixing", "time-indexed"} <= set(model_names())


@pytest.mark.skipif(not CPSAT, reason="needs optsched[cpsat]")
@pytest.mark.parametrize("objective", ["total_weighted_completion_time", "total_weighted_tardiness", "makespan"])
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


@pytest.mark.study
@pytest.mark.parametrize("jobs", [50, 100])
@pytest.mark.parametrize("spread", [0.2, 0.4, 0.6])
@pytest.mark.parametrize("tightness", [0.4, 0.6, 0.8])
def test_tardiness_by_the_published_recipe_is_proved(jobs: int, spread: float, tightness: float) -> None:
    """Each took less than a minute; of spread 0.8 and 1 some with 100 jobs are open."""
    instance = generate("tardiness", 3, jobs=jobs, spread=spread, tightness=tightness)
    assert solve(instance, time_limit=600).status == "optimal"
