"""What the pages of the papers show, `docs/measured`, is what the studies measure: some runs of each are made again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from optsched.studies.experiment import Experiment
from optsched.studies.record import StudyRecord, read_record
from optsched.studies.study_file import STUDIES, run_all

MEASURED = Path(__file__).resolve().parents[2] / "docs" / "measured"
SAME = 1e-7  # records keep nine digits, and processors may differ in the last ones of a double


def record_of(study: str) -> StudyRecord:
    return read_record(MEASURED / f"{study}.json")


def test_every_study_has_a_record_and_no_other_is_there() -> None:
    assert {path.stem for path in MEASURED.glob("*.json")} == set(STUDIES.names())


@pytest.mark.release
@pytest.mark.parametrize("study", STUDIES.names())
def test_a_record_holds_every_run_and_a_verdict_on_every_claim(study: str) -> None:
    record = record_of(study)  # refuses one that lacks a run
    asked = {claim["claim"] for claim in record.reproduction.study.sized(record.reproduction.small)["claim"]}
    found = {claim.claim for claim in record.reproduction.claims}
    assert found if record.reproduction.small else found == asked
    for claim in record.reproduction.claims:
        assert claim.verdict
        assert claim.why


@pytest.mark.release
@pytest.mark.parametrize("study", STUDIES.names())
def test_runs_of_a_record_come_out_again(study: str) -> None:
    record = record_of(study)
    cheapest = min(record.reproduction.outcomes, key=lambda outcome: jobs(outcome.experiment))
    e, column = cheapest.experiment, next(iter(cheapest.experiment.columns))
    rows = dict(list(e.rows.items())[:2])
    within = {column: e.within[column]} if column in e.within else {}
    few = replace(
        e,
        columns={column: e.columns[column]},
        rows=rows,
        reference=next(iter(rows)),
        published=(),
        within=within,
        seeds=None,
        remarks=(),
    )
    again = run_all([few], (1,), workers=1)
    assert len(again) == 2
    for place, measured in again.items():
        for name, value in cheapest.numbers[place].items():
            assert measured.get(name, float("nan")) == pytest.approx(value, rel=SAME, nan_ok=True), (place, name)


def jobs(experiment: Experiment) -> int:
    """Of its first column, times how long they are."""
    parameters = dict(next(iter(experiment.columns.values())).parameters)
    return int(parameters.get("jobs", 10)) * int(parameters.get("scale", 1))
