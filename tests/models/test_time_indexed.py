"""The time-indexed models, entry by entry against raw arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyomo.core.base.constraint as pyomo_constraint
import pyomo.environ as pyo
import pytest
from enumeration import TinyJob
from examples import examples
from hypothesis import given, settings, strategies as st
from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler
from raw_arrays import time_indexed
from tiny_instances import instance_of, tiny_jobs

from optsched.models import FORMULATIONS
from optsched.problem.instance import Cluster, Instance, Job

Solve = Callable[[Any], float]


def dense(model: pyo.ConcreteModel) -> tuple[Any, Any, Any, Any]:
    """(A, right-hand side, cost, constant) of a model, columns in the order of ``model.start``."""
    form = LinearStandardFormCompiler().write(model, mixed_form=True)
    position = {id(v): k for k, v in enumerate(form.columns)}
    order = [position[id(v)] for v in model.start.values()]
    assert len(order) == len(form.columns)
    return form.A.toarray()[:, order], np.asarray(form.rhs), form.c.toarray()[0, order], form.c_offset[0]


@settings(max_examples=examples(60))
@given(jobs=tiny_jobs(most=4, gpus=3), machines=st.booleans(), tight=st.integers(0, 6))
def test_the_same_matrix_as_raw_arrays(jobs: list[TinyJob], machines: bool, tight: int) -> None:
    if machines:
        jobs = [job._replace(gpus=1) for job in jobs]
    jobs = [job._replace(duration=job.duration * 2 - 1, release=job.release) for job in jobs] + [TinyJob(0, 1)]
    instance = instance_of(jobs, "1x3")
    release, duration, gpus = (np.array([getattr(j, f) for j in jobs]) for f in ("release", "duration", "gpus"))
    # a horizon that is shorter than the proven windows makes those of both methods alike
    horizon = int((release + duration).max()) + tight
    objective, weight = "total_weighted_completion_time", np.array([float(job.weight) for job in jobs])
    model = FORMULATIONS.get("time-indexed" if machines else "rigid-time-indexed").build(
        instance, objective, horizon=float(horizon)
    )
    raw = time_indexed(release, duration, gpus, 3, weight, horizon=horizon)
    columns = model.columns
    wanted = [
        k
        for k, (j, t) in enumerate(
            (j, t) for j in range(len(jobs)) for t in range(release[j], horizon - duration[j] + 1)
        )
        if t <= columns.last[j]
    ]
    A, rhs, cost, constant = dense(model)
    raw_A = raw.A.toarray()[:, wanted]
    n = len(jobs)
    assert np.array_equal(A[:n], raw_A[:n])
    crowded = columns.crowded(gpus, 3)
    assert np.array_equal(A[n:], raw_A[[n + t for t in crowded]])
    assert np.array_equal(rhs, [1.0] * n + [3.0] * len(crowded))
    # rows left out say nothing: each job counts at most once in a row
    for t in set(range(horizon)) - set(crowded):
        assert sum(raw_A[n + t, columns.block == j].max(initial=0) for j in range(n)) <= 3
    # costs differ by what a job pays in any case, which is in the constant
    least = weight * (release + duration)
    assert np.allclose(cost + least[columns.block], raw.c[wanted], rtol=0, atol=1e-9)
    assert constant == pytest.approx(least.sum())


@settings(max_examples=25)
@given(jobs=tiny_jobs(most=4, gpus=3))
def test_windows_do_not_change_the_optimum_of_raw_arrays(solve: Solve, jobs: list[TinyJob]) -> None:
    instance = instance_of(jobs, "1x3")
    release, duration, gpus = (np.array([getattr(j, f) for j in jobs]) for f in ("release", "duration", "gpus"))
    weight = np.array([float(job.weight) for job in jobs])
    raw = time_indexed(release, duration, gpus, 3, weight)
    build = FORMULATIONS.get("rigid-time-indexed").build
    objective = "total_weighted_completion_time"
    assert solve(build(instance, objective)) == pytest.approx(raw.solve(), abs=1e-6)
    # the relaxation may only become stronger
    assert solve(build(instance, objective, relax=True)) >= raw.solve(relax=True) - 1e-6


def test_minutes_in_seconds_make_a_model_of_minutes(solve: Solve) -> None:
    jobs = [Job("a", 600, 1, 180), Job("b", 660, 1, 60), Job("c", 660, 1, 120, weight=3)]
    build = FORMULATIONS.get("time-indexed").build
    model = build(Instance(jobs, Cluster.machines(1)), "total_weighted_flow_time")
    assert len(model.start) < 25
    # flow times in minutes by order; c b a is best
    orders = {
        "abc": 3 + 3 + 15,
        "acb": 3 + 12 + 5,
        "bac": 1 + 5 + 18,
        "bca": 1 + 9 + 7,
        "cab": 6 + 6 + 6,
        "cba": 6 + 3 + 7,
    }
    assert solve(model) == pytest.approx(60 * min(orders.values()))


def test_a_template_switch_of_pyomo_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = Instance([Job("a", 0, 2, 3), Job("b", 1, 1, 2), Job("c", 1, 2, 1)], "1x3")
    plain = FORMULATIONS.get("rigid-time-indexed").build(instance, "total_flow_time")
    monkeypatch.setattr(pyomo_constraint, "TEMPLATIZE_CONSTRAINTS", True)
    templatized = FORMULATIONS.get("rigid-time-indexed").build(instance, "total_flow_time")
    for left, right in zip(dense(plain), dense(templatized), strict=True):
        assert np.array_equal(left, right)
