"""The time-indexed models: their slots, and how Pyomo builds their rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyomo.core.base.constraint as pyomo_constraint
import pyomo.environ as pyo
import pytest
from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

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
