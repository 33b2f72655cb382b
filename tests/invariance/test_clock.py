"""A later clock changes nothing but the clock that is printed: runs, bounds, theorems, the referee, metrics, files."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import few

from optsched.bounds import BOUNDS, Certificate, NoBoundError, bound
from optsched.check.referee import check_schedule
from optsched.classes import classes_of
from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.guarantees.judge import judgements
from optsched.io.sources import load
from optsched.policies.simulate import simulate, specify
from optsched.problem.instance import Instance, Job
from optsched.problem.objectives import OBJECTIVES, get_objective
from optsched.problem.schedule import Schedule
from optsched.simulation.run import Run

from .clocks import on_another_clock
from .examples import cases, examples, some_or_studied

SHIFTS = (1e6, 1.7e9, 1e12)
COLUMNS = ("job", "start", "end", "work", "gpu_offset", "gpu_node", "gpu_index")


@cache
def run_of(spec: str, name: str, shift: float, seed: int = 0) -> Run:
    return simulate(instance_of(name, shift, seed), spec)


@cache
def instance_of(name: str, shift: float, seed: int = 0) -> Instance:
    base = examples(seed)[name]
    return on_another_clock(base, shift) if shift else base


@cache
def proven_of(name: str, shift: float, seed: int = 0) -> OptimumBounds:
    return OptimumBounds(instance_of(name, shift, seed))


def verdicts(spec: str, made: Run, name: str, shift: float, seed: int) -> list[Any]:
    """What every theorem that applies says of the run; values less what the clock adds."""
    proven = proven_of(name, shift, seed)
    found = []
    for each in judgements(specify(spec), made, proven):
        part = float(get_objective(each.objective).clock_part(made.instance))
        numbers = [None if x is None else pytest.approx(x - part, rel=1e-9, abs=1e-3) for x in (each.value, each.bound)]
        found.append((each.id, each.ratio, each.holds, each.findings, numbers))
    return found


def told(made: Run) -> dict[str, Any]:
    """Metrics and objectives, on a clock that begins with the first arrival."""
    found = dict(made.metrics)
    for name in OBJECTIVES.names():
        if not get_objective(name).gain:
            moved = get_objective(name).clock_part(made.instance)
            found[name] = float(Fraction(made.value(name)) - moved) if made.value(name) == made.value(name) else None
            local = made.relative
            assert made.value(name) == pytest.approx(local.value(name) + float(moved), rel=1e-15, nan_ok=True)
    for name in ("makespan", "total_completion_time", "total_weighted_completion_time"):
        found.pop(name)
    return found


def assert_the_same(spec: str, name: str, shift: float, seed: int) -> None:
    here, there = run_of(spec, name, 0.0, seed), run_of(spec, name, shift, seed)
    for column in COLUMNS:  # bit for bit
        mine, other = getattr(here.schedule.relative, column), getattr(there.schedule.relative, column)
        assert mine.tolist() == other.tolist(), column
    epoch = there.instance.epoch
    assert there.schedule.start.tolist() == (there.schedule.relative.start + epoch).tolist()
    assert (here.events, here.preemptions, here.unfinished) == (there.events, there.preemptions, there.unfinished)
    assert (here.schedule_class, here.preemptive) == (there.schedule_class, there.preemptive)
    assert told(here) == told(there)
    assert verdicts(spec, here, name, 0.0, seed) == verdicts(spec, there, name, shift, seed)
    shown = [proven_of(name, s, seed).bound_for(r, "total_flow_time") for s, r in ((0.0, here), (shift, there))]
    if shown[0] is not None and shown[1] is not None:
        assert shown[0] == shown[1]
        assert shown[0].ratio(here.value("total_flow_time")) == shown[1].ratio(there.value("total_flow_time"))
    kind = there.schedule_class
    faults = check_schedule(there.instance, there.schedule, schedule_class=kind, preemptive=there.preemptive)
    # gangs that no type holds never run where types may not mix, and the run says so; nothing else is wrong
    assert not there.unfinished or spec in ("gavel", "yarn-cs") or spec.endswith("+one-type")
    assert [(fault.rule, fault.job) for fault in faults] == [("completeness", job) for job in there.unfinished]


@pytest.mark.parametrize(("spec", "name"), some_or_studied(0))
def test_a_later_clock_changes_no_run(spec: str, name: str) -> None:
    # the three clocks in turn; all of them in `make study`
    assert_the_same(spec, name, SHIFTS[cases().index((spec, name)) % len(SHIFTS)], 0)


@pytest.mark.study
@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("seed", range(4))
def test_no_later_clock_changes_any_run(seed: int, shift: float) -> None:
    for spec, name in cases(seed):
        assert_the_same(spec, name, shift, seed)


@cache
def bound_of(name: str, shift: float, objective: str, schedule_class: str) -> Certificate | None:
    """None: there is none."""
    try:
        return bound(instance_of(name, shift), objective, schedule_class)
    except NoBoundError:
        return None


def in_turn(names: list[str]) -> list[Any]:
    """(name, shift): every name with one of the three clocks, with the others in `make study`."""
    pairs = [(k, name, i, shift) for k, name in enumerate(names) for i, shift in enumerate(SHIFTS)]
    return [pytest.param(name, s, marks=() if i == k % len(SHIFTS) else pytest.mark.study) for k, name, i, s in pairs]


@pytest.mark.parametrize(("name", "shift"), in_turn(list(examples())))
def test_a_later_clock_changes_no_bound_but_by_what_it_adds(name: str, shift: float, tmp_path: Path) -> None:
    here, there = instance_of(name, 0.0), instance_of(name, shift)
    kinds = set()
    for objective in few(OBJECTIVES.names(), 2):
        moved = [get_objective(objective).clock_part(each) for each in (here, there)]
        for schedule_class in classes_of(here):
            one, other = (bound_of(name, clock, objective, schedule_class) for clock in (0.0, shift))
            if one is None or other is None:
                assert one is other
                continue
            assert (one.kind, one.value - moved[0]) == (other.kind, other.value - moved[1])
            assert one.data == other.data
            other.verify(there)
            other.save(tmp_path / "c.json")
            Certificate.load(tmp_path / "c.json").verify(there)
            kinds.add(one.kind)
    assert kinds <= set(BOUNDS.names())
    assert kinds


@pytest.mark.parametrize(("name", "suffix"), few([(n, s) for n in examples() for s in (".json", ".parquet")], 7))
def test_a_later_clock_goes_through_files(name: str, suffix: str, tmp_path: Path) -> None:
    for shift in few(SHIFTS, 1):
        there = instance_of(name, shift)
        there.save(tmp_path / f"i{suffix}")
        read = Instance.load(tmp_path / f"i{suffix}")
        assert (read.digest, read.epoch, read.relative.digest) == (there.digest, there.epoch, there.relative.digest)
        spec = next(spec for spec, served in cases() if served == name and ":" not in spec and "+" not in spec)
        made = run_of(spec, name, shift)
        made.schedule.save(tmp_path / f"s{suffix}")
        again = Schedule.load(tmp_path / f"s{suffix}", read)
        assert again.start.tolist() == made.schedule.start.tolist()
        # what the clock of the file cannot hold is lost, and no more
        ulp = float(np.spacing(shift + 1e6))
        assert np.abs(again.relative.end - made.relative.schedule.end).max(initial=0.0) <= ulp


@pytest.mark.parametrize("shift", [1e6, 1.7e9, 9e10])  # what is later is refused: milliseconds
@pytest.mark.parametrize("name", ["alike", "mixed"])
def test_a_later_clock_goes_through_a_log_of_ones_own(name: str, shift: float, tmp_path: Path) -> None:
    base = instance_of(name, shift)
    if name == "mixed":  # a log names no memory and no types
        base = Instance([Job(j.id, j.arrival, 1, j.duration) for j in base.jobs], "2x4")
    base.table.select("id", "arrival", "gpus", "duration").write_csv(tmp_path / "log.csv")
    columns = {each: each for each in ("id", "arrival", "gpus", "duration")}
    read = load(f"csv:{tmp_path / 'log.csv'}", cluster=base.cluster, columns=columns)
    assert read.relative.arrival.tolist() == (base.arrival - base.arrival.min()).tolist()
    for spec in ("srtf:restart=1", "tiresias:threshold=24,round=4"):
        one, other = simulate(base, spec), simulate(read, spec)
        assert one.schedule.relative.end.tolist() == other.schedule.relative.end.tolist()
