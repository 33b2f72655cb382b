"""Forged schedules of every speed model and class, forged logs of tasks and residencies: refused, or truly legal.

What is truly legal, `exact_referee` and `exact_task_referee` say: by the definitions, in fractions, sharing no code with the
referee.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import few

from check import exact_referee, exact_task_referee, forged_schedules, forged_task_logs
from check.task_cases import COARSE_CLOCKS, Case, write
from optsched.check.referee import check_file
from optsched.errors import InputError
from optsched.problem.instance import Instance

Judged = tuple[
    str, set[str], bool, Any
]  # what is true, the rules broken, whether the forgery is harmless, the document


def broken_rules(path: Path, instance: Instance) -> set[str]:
    try:
        return {violation.rule for violation in check_file(path, instance).violations}
    except InputError:
        return {"unreadable"}


def schedules(seed: int, count: int, folder: Path) -> Iterator[Judged]:
    path = folder / "schedule.json"
    for case, documents in forged_schedules.cases(seed, count, 12):
        for document in (case.document, *documents):
            path.write_text(json.dumps(document))
            true = exact_referee.verdict(forged_schedules.ENGINE, case.jobs, case.models, document)
            yield true, broken_rules(path, case.instance), document is case.document, document


def task_logs(seed: int, count: int, folder: Path) -> Iterator[Judged]:
    for case, documents in forged_task_logs.cases(seed, count, 10):
        for document, harmless in ((case.document, True), *documents):
            true = exact_task_referee.verdict(case.facts[document["instance"]], document, case.witness)
            yield true, broken_rules(write(document, folder), case.instances[document["instance"]]), harmless, document


def is_right(true: str, rules: set[str], harmless: bool) -> bool:
    if harmless:
        return true != "illegal" and not rules
    if true == "open":  # no rule that is judged here is broken; a proven bound may say more
        return rules <= {"value"}
    return true == "close" or bool(rules) == (true == "illegal")


def judge(judged: Iterator[Judged]) -> Counter[str]:
    """How many that do harm are of each true kind; the referee must hold what is legal and refuse what is not."""
    tally = Counter[str]()
    for true, rules, harmless, document in judged:
        assert is_right(true, rules, harmless), f"{true}, {rules or 'accepted'}: {json.dumps(document)}"
        tally["harmless" if harmless else true] += 1
    return tally


@pytest.mark.parametrize(
    ("forgeries", "count", "illegal", "legal"),
    [
        (schedules, 10, 70, 1),
        (task_logs, 12, 60, 8),
        pytest.param(schedules, 100, 800, 20, marks=pytest.mark.study),
        pytest.param(task_logs, 60, 350, 40, marks=pytest.mark.study),
    ],
)
def test_forgeries_are_refused_unless_they_are_legal(
    forgeries: Any, count: int, illegal: int, legal: int, tmp_path: Path
) -> None:
    tally = judge(forgeries(1, count, tmp_path))
    assert tally["illegal"] > illegal
    assert tally["legal"] > legal


@pytest.mark.parametrize("seed", few(range(16), 5))
def test_a_log_holds_where_the_clock_hardly_tells_its_tasks(seed: int, tmp_path: Path) -> None:
    case = Case(np.random.default_rng([seed, 3]), seed, log=seed % 4 != 3, clocks=[COARSE_CLOCKS[seed // 2]])
    assert broken_rules(write(case.document, tmp_path), case.instances[0]) == set()


@pytest.mark.study
@pytest.mark.parametrize("seed", range(2, 12))
@pytest.mark.parametrize(("forgeries", "count", "total"), [(schedules, 1000, 13_000), (task_logs, 200, 2_200)])
def test_many_forgeries_are_refused_unless_they_are_legal(
    forgeries: Any, count: int, total: int, seed: int, tmp_path: Path
) -> None:
    assert judge(forgeries(seed, count, tmp_path)).total() == total
