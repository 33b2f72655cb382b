"""Sentences follow from numbers, and change with them."""

from __future__ import annotations

import math

import pytest

from optsched.studies.experiment import Experiment, RunOutcome, Workload
from optsched.studies.findings import best, findings

AT = {"low": Workload.of("machines", jobs=5), "high": Workload.of("machines", jobs=6)}
ROWS = {"A": "fifo", "B": "sjf", "C": "srtf"}
SEEDS = (1, 2, 3)


def outcome(jct: dict[str, list[list[float]]], **more: dict[str, list[list[float]]]) -> RunOutcome:
    """``jct[row][column]`` = one number a seed; other measures, ``kept`` among them, in the same form."""
    numbers = {}
    for row, policy in ROWS.items():
        for c, workload in enumerate(AT.values()):
            for k, seed in enumerate(SEEDS):
                cell = {name: table[row][c][k] for name, table in more.items() if row in table}
                defaults = {"mean_jct": jct[row][c][k], "kept": math.nan, "ratio": 1.0, "guarantee": math.nan}
                numbers[workload, seed, policy] = defaults | cell
    return RunOutcome(Experiment("e", "?", "load", AT, ROWS, "A", ("mean_jct",)), SEEDS, numbers)


CLEAR = {
    "A": [[100, 110, 120], [100, 110, 120]],
    "B": [[50, 56, 60], [201, 219, 240]],
    "C": [[100, 110, 120], [100, 150, 90]],
}


def test_the_lowest_is_named_with_those_it_is_not_told_from() -> None:
    found = outcome(CLEAR)
    assert best(found, "low") == (["B"], [])
    assert best(found, "high") == (["A"], ["C"])
    said = findings(found)
    assert "lowest mean JCT at low: B, below every other row" in said
    assert "lowest mean JCT at high: A; no difference shown to C" in said


def test_every_row_is_compared_with_the_reference_where_it_wins_and_loses() -> None:
    b, c = (sentence for sentence in findings(outcome(CLEAR)) if "against A" in sentence)
    assert b.startswith("B against A: lower at low (-49.7 % [")
    assert "higher at high (+100.0 % [" in b
    assert c == "C against A: no difference shown at high; equal at low"


def test_the_sentences_turn_round_with_the_numbers() -> None:
    turned = {**CLEAR, "A": CLEAR["B"], "B": CLEAR["A"]}
    said = findings(outcome(turned))
    assert "lowest mean JCT at low: A, below every other row" in said
    (b,) = (sentence for sentence in said if sentence.startswith("B against A"))
    assert "lower at high (-50.0 % [" in b
    assert "higher at low (+98.8 % [" in b


def test_one_number_a_cell_shows_no_difference() -> None:
    found = outcome(CLEAR)
    single = RunOutcome(found.experiment, (1,), found.numbers)
    assert [s for s in findings(single) if "against" in s] == [
        "B against A: no difference shown at low, high",
        "C against A: equal at low, high",
    ]
    assert "lowest mean JCT at low: B; no difference shown to any other row" in findings(single)


KEPT = {"A": [[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]]}
GUARANTEED = {"A": [[4.0, 4.0, 4.0], [4.0, 2.0, 4.0]]}


def test_guarantee_counts_runs_and_names_the_closest() -> None:
    (sentence,) = (s for s in findings(outcome(CLEAR, kept=KEPT, guarantee=GUARANTEED)) if "guarantee" in s)
    assert sentence == (
        "guarantee kept in 5 of 6 runs it applies to (1 open: the bound is too weak to tell); "
        "closest in A at high: measured sum C / bound 1, guaranteed 2 (50 %)"
    )


def test_a_broken_guarantee_is_what_is_said_of_it() -> None:
    broken = {"A": [[1.0, 1.0, 1.0], [1.0, -1.0, 1.0]]}
    said = findings(outcome(CLEAR, kept=broken, guarantee=GUARANTEED))
    assert said[-1] == "guarantee VIOLATED by A at high"
    assert not any("kept" in sentence for sentence in said)


def test_an_experiment_needs_its_reference_and_known_measures() -> None:
    with pytest.raises(ValueError, match="no row 'D'"):
        Experiment("e", "?", "load", AT, ROWS, "D", ())
    with pytest.raises(ValueError, match="no measures"):
        Experiment("e", "?", "load", AT, ROWS, "A", ("speed",))
