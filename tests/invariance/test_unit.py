"""Another unit of time changes nothing but the numbers: bit for bit by powers of two, up to rounding otherwise."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest

from optsched.policies.simulate import simulate, specify
from optsched.problem.instance import Instance
from optsched.simulation.run import Run

from .clocks import in_another_unit, policy_in_another_unit
from .examples import cases, examples, some_or_studied

BINARY = (2.0**-10, 2.0**10)
DECIMAL = (1e-3, 1e3, 1e6)
FREE = ("utilization", "max_ftf", "mean_ftf", "finished", "unfinished")
TIMES = ("mean_jct", "p50_jct", "p95_jct", "p99_jct", "total_flow_time", "max_flow_time", "mean_queueing")


@cache
def pure(name: str, seed: int) -> Instance:
    """An example whose jobs all count seconds, or all iterations.

    Where some count one and some the other, a utility such as work / stay weighs them by the unit: that is its definition.
    """
    instance = examples(seed)[name]
    kept = instance.profiled if instance.profiled.any() else ~instance.profiled
    return instance.replace(jobs=instance.table.filter(pl.Series(kept)))


def counted(spec: str, name: str, unit: float, seed: int) -> Run:
    placement = specify(spec).text.partition("+")[2] or None
    instance = in_another_unit(pure(name, seed), unit)
    return simulate(instance, policy_in_another_unit(spec, pure(name, seed), unit), placement)


def rows(made: Run) -> list[tuple[Any, ...]]:
    """Segments in order: who, from when to when, on which GPUs, counted from the first arrival."""
    local = made.schedule.relative
    begin = float(local.instance.arrival.min(initial=np.inf))
    return [(s.job, s.gpus, s.start - begin, s.end - begin) for s in local.segments()]


def assert_the_same(spec: str, name: str, unit: float, seed: int, *, exact: bool) -> None:
    here, there = simulate(pure(name, seed), spec), counted(spec, name, unit, seed)
    one, other = rows(here), rows(there)
    assert [row[:2] for row in one] == [row[:2] for row in other]  # the same jobs on the same GPUs in the same order
    times = [np.array([row[2:] for row in each]).reshape(-1, 2) for each in (one, other)]
    if exact:
        assert (times[0] * unit).tolist() == times[1].tolist()
    scale = float(np.abs(times[0]).max(initial=1.0))
    assert np.allclose(times[0], times[1] / unit, rtol=0, atol=1e-9 * scale)
    assert (here.preemptions, here.schedule_class) == (there.preemptions, there.schedule_class)
    for metric in FREE:
        assert there.metrics[metric] == pytest.approx(here.metrics[metric], rel=1e-9), metric
    for metric in TIMES:
        assert there.metrics[metric] / unit == pytest.approx(here.metrics[metric], rel=1e-8, abs=1e-9 * scale), metric


@pytest.mark.parametrize(("spec", "name"), some_or_studied(1))
def test_another_unit_changes_no_run(spec: str, name: str) -> None:
    # one binary and one decimal unit, in turn; all of them in `make study`
    k = cases().index((spec, name))
    assert_the_same(spec, name, BINARY[k % 2], 0, exact=True)
    assert_the_same(spec, name, DECIMAL[k % 3], 0, exact=False)


@pytest.mark.study
@pytest.mark.parametrize("unit", BINARY + DECIMAL)
@pytest.mark.parametrize("seed", range(4))
def test_no_other_unit_changes_any_run(seed: int, unit: float) -> None:
    for spec, name in cases(seed):
        assert_the_same(spec, name, unit, seed, exact=unit in BINARY)


# what decided differently in another unit before ties were compared by their leading bits
TIES = [
    ("gavel", "elastic", 1e3, 1),
    ("makespan-rounds", "alike", 1e-3, 3),
    ("hadar-e", "sharing", 1e3, 3),
    ("hadar-e", "sharing", 1e6, 3),
]


@pytest.mark.parametrize(("spec", "name", "unit", "seed"), TIES)
def test_no_unit_breaks_a_tie(spec: str, name: str, unit: float, seed: int) -> None:
    assert_the_same(spec, name, unit, seed, exact=False)
