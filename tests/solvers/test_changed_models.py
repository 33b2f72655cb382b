"""Models that are changed and then solved: optimum and schedule against all schedules, or against another instance.

`schedules` enumerates starts on a grid of seconds, and a constraint is a condition on the starts: nothing of a model.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import cvxpy as cp
import numpy as np
import pyomo.environ as pyo
import pytest
from brute_force import optimum
from examples import few

import optsched as osd
from optsched.errors import InfeasibleError, InputError
from optsched.solvers.formulated import formulated

EPOCH = 1_000_000  # models count from the first arrival, people by their clock
TOTAL = "total_weighted_completion_time"


def drawn(seed: int, gpus: int) -> osd.Instance:
    """Four jobs on so many GPUs, with ids that are no numbers of jobs."""
    rng = np.random.default_rng(seed)
    jobs = [
        osd.Job(
            f"{7 - k}",
            arrival=EPOCH + (0 if k == 0 else int(rng.integers(0, 4))),
            gpus=int(rng.integers(1, gpus + 1)),
            duration=int(rng.integers(1, 5)),
            weight=int(rng.integers(1, 4)),
        )
        for k in range(4)
    ]
    return osd.Instance(jobs, f"1x{gpus}", name=f"drawn-{seed}")


def schedules(instance: osd.Instance, until: int) -> Iterator[tuple[int, ...]]:
    """The ends, after the epoch, of every schedule of whole seconds in which all jobs have ended by ``until``."""
    release = [int(r) - EPOCH for r in instance.arrival]
    lasts, held = [int(p) for p in instance.duration], instance.gpus.tolist()
    for starts in itertools.product(*(range(r, until - p + 1) for r, p in zip(release, lasts, strict=True))):
        used = [0] * until
        for s, p, g in zip(starts, lasts, held, strict=True):
            for t in range(s, s + p):
                used[t] += g
        if max(used) <= instance.cluster.gpus:
            yield tuple(s + p for s, p in zip(starts, lasts, strict=True))


def best(
    instance: osd.Instance, allowed: Callable[[tuple[int, ...]], bool], cost: Callable[[tuple[int, ...]], float]
) -> float | None:
    until = int(instance.arrival.max() - EPOCH + instance.duration.sum())
    return min((cost(ends) for ends in schedules(instance, until) if allowed(ends)), default=None)


def weighted(instance: osd.Instance) -> Callable[[tuple[int, ...]], float]:
    return lambda ends: sum(w * (EPOCH + c) for w, c in zip(instance.weight.tolist(), ends, strict=True))


Limit = tuple[Callable[[Any], Any], Callable[[tuple[int, ...]], bool]]


def limits(instance: osd.Instance) -> dict[str, Limit]:
    """The same constraint twice: of ends in a model, and on the ends of a schedule."""
    p = instance.duration.tolist()
    return {
        "before": (lambda end: end("4") <= end("7") - p[0], lambda ends: ends[3] <= ends[0] - p[0]),
        "deadline": (lambda end: end("5") <= EPOCH + 6, lambda ends: ends[2] <= 6),
        "not-before": (lambda end: end("6") >= EPOCH + 8, lambda ends: ends[1] >= 8),
        "apart": (lambda end: end("7") - end("6") >= 3, lambda ends: ends[0] - ends[1] >= 3),
        "both": (lambda end: end("6") + end("5") <= 2 * EPOCH + 11, lambda ends: ends[1] + ends[2] <= 11),
    }


ONE = ("time-indexed", "disjunctive")
GANGS = ("rigid-time-indexed", "rigid-time-indexed-cvxpy", "rigid-placed", "gang-modes")
CASES = [(name, 1) for name in ONE] + [(name, 3) for name in GANGS]


def limited(model: Any, limit: Callable[[Any], Any]) -> Any:
    """The model with one constraint more, in its own language."""
    if isinstance(model, cp.Problem):
        return cp.Problem(model.objective, [*model.constraints, limit(model.end).set_label("limit")])
    model.limit = pyo.Constraint(expr=limit(model.end))
    return model


def ends_of(found: osd.Solution) -> tuple[int, ...]:
    assert found.schedule is not None
    ends = found.schedule.completion - EPOCH
    assert np.array_equal(ends, np.round(ends))
    return tuple(int(end) for end in ends)


@pytest.mark.parametrize(("case", "kind"), few(list(itertools.product(CASES, sorted(limits(drawn(0, 1))))), 15))
def test_a_constraint_changes_the_optimum_and_the_schedule_obeys_it(case: tuple[str, int], kind: str) -> None:
    name, gpus = case
    for seed in range(9):
        instance = drawn(seed, gpus)
        limit, allowed = limits(instance)[kind]
        model = osd.formulate(instance, name, TOTAL)
        free = osd.solve_model(instance, model)
        assert (free.value, free.changed) == (optimum(instance, TOTAL), ())
        if allowed(ends_of(free)):
            continue
        found = osd.solve_model(instance, limited(model, limit))
        expected = best(instance, allowed, weighted(instance))
        if expected is None:
            assert (found.status, found.value, found.schedule) == ("infeasible", None, None)
            assert "limit" in found.note
            continue
        assert (found.status, found.value, found.bound) == ("optimal", expected, expected)
        assert expected >= free.value
        assert allowed(ends_of(found))
        assert osd.check_schedule(instance, found, preemptive=False, objective=TOTAL, value=expected) == []
        assert found.to_json()["changed"] == ["with limit"]
        assert "neither an optimum nor a bound of the instance" in found.note
        return
    raise AssertionError("no optimum that the constraint forbids")


def test_positions_may_be_forbidden_and_come_late() -> None:
    for seed in range(3):
        instance = drawn(seed, 1)
        model = osd.formulate(instance, "positional", "total_completion_time")
        model.first = pyo.Constraint(expr=model.assign[model.job("6"), 0] == 0)
        model.wait = pyo.Constraint(expr=model.completion[1] >= 9)
        found = osd.solve_model(instance, model)
        expected = best(
            instance,
            lambda ends: ends[1] != min(ends) and sorted(ends)[1] >= 9,
            lambda ends: 4 * EPOCH + sum(ends),
        )
        assert found.value == expected
        ends = ends_of(found)
        assert ends[1] != min(ends)
        assert sorted(ends)[1] >= 9
        assert osd.check_schedule(instance, found, preemptive=False) == []


@pytest.mark.parametrize(("name", "gpus"), [("rigid-time-indexed", 3), ("disjunctive", 1)])
def test_a_term_of_the_objective_is_paid_and_the_value_is_the_models(name: str, gpus: int) -> None:
    for seed in range(2):
        instance = drawn(seed, gpus)
        model = osd.formulate(instance, name, TOTAL)
        model.objective.expr += 5 * model.end("5") - 2 * EPOCH
        found = osd.solve_model(instance, model)
        heavier = drawn(seed, gpus).replace(
            jobs=instance.table.with_columns(weight=instance.weight + np.array([0, 0, 5, 0]))
        )
        expected = best(heavier, lambda ends: True, weighted(heavier))
        assert found.value == pytest.approx(expected - 2 * EPOCH, abs=1e-6)
        own = weighted(instance)(ends_of(found))
        assert found.value == pytest.approx(own + 5 * (EPOCH + ends_of(found)[2]) - 2 * EPOCH, abs=1e-6)
        assert found.changed == ("with another objective",)
        assert f"the {TOTAL} of its schedule is {own:.12g}" in found.note


def test_a_later_horizon_has_the_schedules_that_wait() -> None:
    instance = drawn(1, 1)
    model = osd.formulate(instance, "time-indexed", "makespan")
    model.wait = pyo.Constraint(expr=model.end("5") >= EPOCH + 40)
    short = osd.solve_model(instance, model)
    assert (short.status, short.value) == ("infeasible", None)
    assert "no schedule that ends by" in short.note
    assert "wait" in short.note
    assert "\n" not in repr(short)
    for name in ("time-indexed", "disjunctive", "gang-modes"):
        model = osd.formulate(instance, name, "makespan", horizon=EPOCH + 60)
        model.wait = pyo.Constraint(expr=model.end("5") >= EPOCH + 40)
        found = osd.solve_model(instance, model)
        assert (found.status, found.value) == ("optimal", EPOCH + 40)
        assert "over schedules" not in found.note  # none that is as good ends later than 60 s
    free = osd.solve(instance, "makespan")
    limited = osd.formulate(instance, "time-indexed", TOTAL, horizon=free.value)
    assert "the optimum over schedules that end by" in osd.solve_model(instance, limited).note
    assert osd.solve_model(instance, osd.formulate(instance, "time-indexed", TOTAL)).note == ""
    with pytest.raises(InfeasibleError, match="cannot complete by the horizon"):
        osd.formulate(instance, "time-indexed", "makespan", horizon=EPOCH + 1)


DROPPED = [
    ("rigid-time-indexed", 3, "capacity", "does not give a schedule"),
    ("rigid-time-indexed", 3, "once", "does not give a schedule"),
    ("rigid-placed", 3, "capacity", "does not give a schedule"),
    ("disjunctive", 1, "first", "does not give a schedule|the model lacks a row that ties them"),
    ("positional", 1, "follows", "the model lacks a row that ties them"),
]


@pytest.mark.parametrize(("name", "gpus", "family", "said"), DROPPED)
def test_a_model_that_has_lost_rows_is_caught_in_one_line(name: str, gpus: int, family: str, said: str) -> None:
    lines = []
    for seed in range(4):
        instance = drawn(seed, gpus)
        objective = "total_completion_time" if name == "positional" else TOTAL
        model = osd.formulate(instance, name, objective)
        model.component(family).deactivate()
        try:
            found = osd.solve_model(instance, model)
        except InputError as error:
            lines.append(str(error))
        else:  # the rows did not bind
            assert osd.check_schedule(instance, found, preemptive=False) == []
            assert found.value == osd.solve(instance, objective).value
    assert lines
    for line in lines:
        assert f"without {family}" in line
        assert re.search(said, line)
        assert "\n" not in line


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m.start[m.job("7"), m.slot(EPOCH)].fix(0), ("with bounds of start altered",)),
        (lambda m: m.once[m.job("7")].set_value(m.start[0, 0] == 1), ("with once altered",)),
        (lambda m: setattr(m.objective, "sense", pyo.maximize), ("with another objective",)),
        (lambda m: m.once[0].deactivate(), ("without once",)),
        (lambda m: None, ()),
    ],
)
def test_every_kind_of_change_is_seen_in_a_model_and_in_its_copy(
    change: Callable[[Any], None], said: tuple[str, ...]
) -> None:
    model = osd.formulate(drawn(0, 1), "time-indexed", TOTAL)
    copy = model.clone()
    change(copy)
    assert tuple(formulated(copy).changes(copy)) == said
    assert formulated(model).changes(model) == []
    assert copy.end("7") is not None
    assert formulated(copy).model is copy


# --- duals and programs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rigid-time-indexed", "srpt-mean-busy-time", "srpt-mean-busy-time-cvxpy"])
def test_duals_stand_by_job_and_second_and_are_slopes(name: str) -> None:
    instance = drawn(2, 3)

    def solved(least: float) -> osd.Solution:
        model = osd.formulate(instance, name, TOTAL, relax=True)
        if isinstance(model, cp.Problem):
            work = model.variables()[0]
            slot = formulated(model).model.machine
            late = (slot.job == model.job("5")) & (slot.slot >= model.slot(EPOCH + 3))
            part = cp.sum(work[np.flatnonzero(late)]) >= least
            return osd.solve_model(instance, cp.Problem(model.objective, [*model.constraints, part.set_label("late")]))
        own = model.start if name == "rigid-time-indexed" else model.work
        chosen = [v for (j, t), v in own.items() if j == model.job("5") and t >= model.slot(EPOCH + 3)]
        model.late = pyo.Constraint(expr=sum(chosen) >= least)
        return osd.solve_model(instance, model)

    one, two = solved(0.37), solved(0.37 + 1e-5)
    assert one.schedule is None
    assert "no schedule" in one.note
    assert one.value is not None
    sign = -1 if name.endswith("cvxpy") else 1  # CVXPY keeps a >= b as b <= a
    assert sign * one.duals["late"] == pytest.approx((two.value - one.value) / 1e-5, abs=1e-3)
    family = "once" if name == "rigid-time-indexed" else "done"
    assert {f"{family}[job {name}]" for name in instance.ids} <= set(one.duals)
    capacity = "capacity" if family == "once" else "share"
    assert f"{capacity}[{EPOCH + 1} s]" in one.duals


def test_two_languages_agree_on_a_changed_model_and_its_duals() -> None:
    for seed in range(3):
        instance, found = drawn(seed, 2), []
        for name in ("srpt-mean-busy-time", "srpt-mean-busy-time-cvxpy"):
            model = osd.formulate(instance, name, TOTAL)
            if isinstance(model, cp.Problem):
                first = model.variables()[0][0] <= 0
                model = cp.Problem(model.objective, [*model.constraints, first.set_label("idle")])
            else:
                model.idle = pyo.Constraint(expr=model.work[0, 0] <= 0)
            found.append(osd.solve_model(instance, model))
        assert found[0].value == pytest.approx(found[1].value, rel=1e-12)
        assert set(found[0].duals) == set(found[1].duals)
        assert found[0].duals["idle"] == pytest.approx(found[1].duals["idle"])


def without(instance: osd.Instance, name: str) -> osd.Instance:
    return instance.replace(jobs=instance.table.filter(instance.table["id"] != name))


@pytest.mark.parametrize("name", ["hadar-primal:rounds=3,round=40", "hadar-packing:rounds=3,round=40", "gavel-max-sum"])
@pytest.mark.parametrize("seed", range(2))
def test_a_job_that_may_not_run_is_a_job_that_is_not_there(name: str, seed: int) -> None:
    instance = osd.generate("hetero-small", seed=seed, jobs=4)
    model = osd.formulate(instance, name)
    free = osd.solve_model(instance, model)
    lost = 0
    for gone in instance.ids:
        rest = without(instance, gone)
        if rest.arrival.min() > instance.arrival.min():
            continue  # rounds begin with the first arrival
        j = model.job(gone)
        if isinstance(model, cp.Problem):
            out = (cp.sum(model.var_dict["X"][j]) <= 0).set_label("out")
            found = osd.solve_model(instance, cp.Problem(model.objective, [*model.constraints, out]))
        else:
            model.out = pyo.Constraint(expr=sum(v for key, v in model.x.items() if key[0] == j) <= 0)
            found = osd.solve_model(instance, model)
            del model.out
        assert found.value == pytest.approx(osd.solve_program(rest, name).value, rel=1e-9)
        assert (found.schedule, found.changed) == (None, ("with out",))
        lost += found.value < free.value - 1e-9
        if not name.startswith("hadar-packing"):
            assert (found.duals["out"] > 0) >= (found.value < free.value - 1e-9)
    assert lost


@pytest.mark.parametrize("name", ["gavel-max-sum", "gavel-proportional"])
def test_shares_of_time_with_a_limit_have_its_dual(name: str) -> None:
    instance = osd.generate("hetero-small", seed=1, jobs=4)
    problem = osd.formulate(instance, name)
    share = problem.var_dict["X"]
    free = osd.solve_model(instance, problem)
    j = problem.job(max(instance.ids, key=lambda each: float(share.value[problem.job(each)].sum())))
    most = float(share.value[j].sum()) / 2

    def solved(most: float) -> osd.Solution:
        row = (cp.sum(share[j]) <= most).set_label("half")
        return osd.solve_model(instance, cp.Problem(problem.objective, [*problem.constraints, row]))

    one, two = solved(most), solved(most + 1e-3)
    assert one.value < free.value
    assert float(share.value[j].sum()) <= most + 1e-3 + 1e-6
    assert one.duals["half"] == pytest.approx((two.value - one.value) / 1e-3, rel=0.02)
    assert any(key.startswith("price of ") for key in one.duals)
    never = cp.Problem(problem.objective, [*problem.constraints, share[j, 0] >= 2])
    over = osd.solve_model(instance, never)
    assert (over.status, over.value, over.duals) == ("infeasible", None, {})


def test_what_is_no_model_of_the_instance_is_said() -> None:
    instance = drawn(0, 1)
    model = osd.formulate(instance, "time-indexed", TOTAL)
    with pytest.raises(InputError, match=r"drawn-0.*another instance"):
        osd.solve_model(drawn(1, 1), model)
    for other in (pyo.ConcreteModel(), cp.Problem(cp.Minimize(0)), 7):
        with pytest.raises(InputError, match=r"what osd\.formulate returns"):
            osd.solve_model(instance, other)
    with pytest.raises(InputError, match=r"job = 'z': no such job.*7, 6, 5, 4"):
        model.job("z")
    with pytest.raises(InputError, match="no completion times"):
        osd.formulate(instance, "positional", "total_completion_time").end("7")
    with pytest.raises(InputError, match=r"horizon = 5.*a model of schedules"):
        osd.formulate(instance, "gavel-max-sum", horizon=5)
    with pytest.raises(InputError, match="no slots"):
        osd.formulate(instance, "disjunctive", TOTAL).slot(EPOCH)
    model.square = pyo.Constraint(expr=model.start[0, 0] ** 2 <= 1)
    with pytest.raises(InputError, match="not linear"):
        osd.solve_model(instance, model)


def test_a_solution_without_a_schedule_says_so() -> None:
    found = osd.solve_program(osd.generate("hetero-small", seed=1), "hadar-primal:rounds=3")
    assert "hadar-primal" in found._repr_html_()
    with pytest.raises(InputError, match="no schedule was found: the model has none"):
        found.jobs  # noqa: B018
    assert found.gap == pytest.approx(0, abs=1e-9)
    assert found.meaning.startswith("total utility")
