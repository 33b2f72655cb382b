"""Forged logs of tasks, and forged residencies of jobs with tasks: refused, or truly legal.

What is truly legal, `exact_task_referee` says: by the definitions, in fractions, sharing no code with the referee.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from examples import few

from check.exact_task_referee import Document, verdict
from check.forged_task_logs import cases
from check.task_cases import COARSE_CLOCKS, Case, write
from optsched.check.referee import check_file
from optsched.errors import InputError


def broken_rules(case: Case, document: Document, folder: Path) -> set[str]:
    try:
        found = check_file(write(document, folder), case.instances[document["instance"]])
    except InputError:
        return {"unreadable"}
    return {violation.rule for violation in found.violations}


def judge(seed: int, count: int, forgeries: int, folder: Path) -> Counter[str]:
    """How the referee judges forgeries of each true kind; it must hold what is legal and refuse what is not."""
    tally = Counter[str]()
    for case, documents in cases(seed, count, forgeries):
        assert verdict(case.facts[0], case.document, case.witness) != "illegal", (seed, case.document)
        assert broken_rules(case, case.document, folder) == set(), (seed, case.document)
        for document, harmless in documents:
            true = verdict(case.facts[document["instance"]], document, case.witness)
            rules = broken_rules(case, document, folder)
            tally[true] += 1
            tally[f"{true} refused"] += bool(rules)
            assert _is_right(true, rules, harmless), f"{true}, {rules or 'accepted'}: {json.dumps(document)}"
    return tally


def _is_right(true: str, rules: set[str], harmless: bool) -> bool:
    if harmless:
        return true != "illegal" and not rules
    if true == "open":  # no rule that is judged here is broken; a proven bound may say more
        return rules <= {"value"}
    return true == "close" or bool(rules) == (true == "illegal")


@pytest.mark.parametrize(
    ("count", "illegal", "legal"), [(12, 60, 5), pytest.param(60, 350, 30, marks=pytest.mark.study)]
)
def test_forged_task_logs_are_refused_unless_they_are_legal(
    count: int, illegal: int, legal: int, tmp_path: Path
) -> None:
    tally = judge(1, count, 10, tmp_path)
    assert tally["illegal"] > illegal
    assert tally["legal"] > legal


@pytest.mark.parametrize("seed", few(range(16), 5))
def test_a_log_holds_where_the_clock_hardly_tells_its_tasks(seed: int, tmp_path: Path) -> None:
    case = Case(np.random.default_rng([seed, 3]), seed, log=seed % 4 != 3, clocks=[COARSE_CLOCKS[seed // 2]])
    assert broken_rules(case, case.document, tmp_path) == set()


@pytest.mark.study
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_forged_task_logs_are_refused_unless_they_are_legal(seed: int, tmp_path: Path) -> None:
    tally = judge(seed, 200, 10, tmp_path)
    assert sum(tally[true] for true in ("illegal", "close", "legal", "open")) == 2000
