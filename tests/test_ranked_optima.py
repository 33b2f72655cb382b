"""Ranks of instances, the integers that other solvers get, and the page that is drawn from the record."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks import solver_processes
from benchmarks.pyjobshop_worker import build
from benchmarks.ranked import INSTANCES, PROBLEMS, RECORD, Named, Record, Run, measure, read_record
from benchmarks.solver_processes import CPSAT, OWN, PYJOBSHOP, Answer, answer, cost, integer_problem
from pages import ranks

import optsched as osd
from optsched.problem.objectives import objective_of

NAMED = Named("rigid", 4)


def record(limit: float = 9.0, /, **seconds: float | None) -> Record:
    """Return a record of one instance; None: not proved."""
    answers = {name: Answer(7.0, 6.0 if used is None else 7.0, used or 9.0) for name, used in seconds.items()}
    return Record(tuple(Run(NAMED.name, name.replace("_", "-"), limit, given) for name, given in answers.items()), {})


@pytest.mark.parametrize(
    ("own", "cpsat", "pyjobshop", "rank"),
    [
        (4, 1, 1, "toy"),
        (4, None, 1, "easy"),
        (4, 6, 1, "easy"),
        (11, 1, 1, "medium"),
        (61, None, None, "hard"),
        (301, None, None, "open"),
        (None, 1, 1, "over 9 s"),
    ],
)
def test_ranks(own: float | None, cpsat: float | None, pyjobshop: float | None, rank: str) -> None:
    assert record(optsched=own, cp_sat=cpsat, pyjobshop=pyjobshop).rank(NAMED.name) == rank


def test_an_open_instance_has_no_proof_within_the_limit_of_hard() -> None:
    assert record(300.0, optsched=None, cp_sat=1, pyjobshop=1).rank(NAMED.name) == "open"


def test_an_instance_without_all_three_solvers_is_no_toy() -> None:
    assert record(optsched=1, cp_sat=1).rank(NAMED.name) == "easy"


@pytest.mark.parametrize(
    "named",
    [NAMED, Named("tardiness", 4, {"tightness": 0.6, "spread": 0.4}), Named("machines", 4, {"machines": 2})],
    ids=lambda named: named.recipe,
)
def test_costs_in_integers_are_those_of_the_objective(named: Named) -> None:
    # jobs one after the other, in each order
    instance, objective = named.instance(), PROBLEMS[named.recipe][1]
    problem = integer_problem(instance, objective)
    for order in itertools.permutations(range(instance.n)):
        starts, end = [0] * instance.n, max(problem["release"])
        for j in order:
            starts[j], end = end, end + problem["duration"][j]
        completion = np.array(starts, dtype=np.float64) + problem["duration"]
        value = objective_of(instance, objective).value(completion, instance.arrival, instance.weight, instance.due)
        assert cost(problem, starts) == value


def test_other_objectives_are_refused() -> None:
    with pytest.raises(ValueError, match="makespan is none of"):
        integer_problem(NAMED.instance(), "makespan")


def test_runs_are_kept_and_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def answered(solver: str, *_: object) -> Answer:
        asked.append(solver)
        return Answer(7.0, 7.0 if solver == OWN else 6.0, 1.0)

    monkeypatch.setattr("benchmarks.ranked.answer", answered)
    *_, first = measure([NAMED], 9.0, sys.executable, Record((), {"optsched": "1"}))
    first.write(tmp_path / "record.json")
    again = read_record(tmp_path / "record.json")
    assert again == first
    assert list(measure([NAMED], 9.0, sys.executable, again)) == []
    assert len(list(measure([NAMED], 20.0, sys.executable, again))) == 2  # not the one that is proved
    assert asked == [OWN, CPSAT, PYJOBSHOP, CPSAT, PYJOBSHOP]


def test_answers_that_contradict_each_other_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {OWN: Answer(7.0, 7.0, 1.0), CPSAT: Answer(6.0, 5.0, 1.0)}
    monkeypatch.setattr("benchmarks.ranked.answer", lambda solver, *_: answers[solver])
    with pytest.raises(ValueError, match="contradict"):
        list(measure([NAMED], 9.0, sys.executable, Record((), {})))


def test_without_pyjobshop_the_answer_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver_processes, "has_pyjobshop", lambda _: False)
    given = answer(PYJOBSHOP, NAMED.instance(), PROBLEMS["rigid"][1], 1.0)
    assert (given.value, given.proved, given.why) == (None, False, "PyJobShop is not installed")


def test_pyjobshop_proves_the_optimum() -> None:
    pytest.importorskip("pyjobshop", reason="PyJobShop is not installed")
    instance, objective = NAMED.instance(), PROBLEMS["rigid"][1]
    model, constant = build(integer_problem(instance, objective))
    value = constant + model.solve(display=False, num_workers=1).objective
    assert value == osd.solve(instance, objective).value


def test_the_page_is_drawn_from_the_record() -> None:
    text = ranks.PAGE.read_text(encoding="utf-8")
    assert text == ranks.rewritten(text), "make pages writes it"
    names = {run["name"] for run in json.loads(RECORD.read_text(encoding="utf-8"))["runs"]}
    assert names <= {named.name for named in INSTANCES}
