"""Forged schedules of every speed model and class of schedules: refused, or truly legal.

What is truly legal, `exact_referee` says: by the definitions, in fractions, sharing no code with the referee.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from check.exact_referee import verdict
from check.forged_schedules import ENGINE, cases
from optsched.check.referee import check_file
from optsched.errors import InputError


def refused(path: Path, document: object, instance: object) -> bool:
    path.write_text(json.dumps(document))
    try:
        return not check_file(path, instance).holds  # type: ignore[arg-type]
    except InputError:
        return True


def judge(seed: int, count: int, forgeries: int, folder: Path) -> Counter[str]:
    """How the referee judges forgeries of each true kind; it must hold what is legal and refuse what is not."""
    path, tally = folder / "schedule.json", Counter[str]()
    for case, documents in cases(seed, count, forgeries):
        assert verdict(ENGINE, case.jobs, case.models, case.document) != "illegal"
        assert not refused(path, case.document, case.instance), case.document
        for document in documents:
            true, said = verdict(ENGINE, case.jobs, case.models, document), refused(path, document, case.instance)
            tally[true] += 1
            tally[f"{true} refused"] += said
            assert true == "close" or said == (true == "illegal"), json.dumps(document)
    return tally


@pytest.mark.parametrize(
    ("count", "illegal", "legal"), [(20, 150, 2), pytest.param(100, 800, 20, marks=pytest.mark.study)]
)
def test_forged_schedules_are_refused_unless_they_are_legal(
    count: int, illegal: int, legal: int, tmp_path: Path
) -> None:
    tally = judge(1, count, 12, tmp_path)
    assert tally["illegal"] > illegal
    assert tally["legal"] > legal


@pytest.mark.study
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_forged_schedules_are_refused_unless_they_are_legal(seed: int, tmp_path: Path) -> None:
    tally = judge(seed, 1000, 12, tmp_path)
    assert tally["illegal"] + tally["close"] + tally["legal"] == 12_000
