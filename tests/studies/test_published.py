"""Published ratios beside measured ones: which way round, and what is said of them."""

from __future__ import annotations

import math

import pytest

from optsched.studies.experiment import Change, Experiment, Published, RunOutcome, Workload, verdict
from optsched.studies.findings import findings
from optsched.sweeps.measurement import Measure, Measurement

AT = {"few": Workload.of("machines", jobs=5), "many": Workload.of("machines", jobs=6)}
ROWS = {"ours": "fifo", "theirs": "sjf"}
MEASUREMENT = Measurement(
    "none",
    lambda policy, proven: {},
    {
        "time": Measure("time", "s", ""),
        "use": Measure("use", "share", ""),
        "limit": Measure("limit", "factor", "", of_workload=True),
    },
    "time",
)


def outcome(published: Published, numbers: dict[str, dict[str, list[list[float]]]], seeds: int = 3) -> RunOutcome:
    """``numbers[measure][row][column]`` = one number a seed."""
    cells = {
        (workload, k + 1, policy): {name: table[row][c][k] for name, table in numbers.items()} | {"kept": math.nan}
        for row, policy in ROWS.items()
        for c, workload in enumerate(AT.values())
        for k in range(seeds)
    }
    made = Experiment("e", "?", "jobs", AT, ROWS, "ours", ("time",), MEASUREMENT, (published,))
    return RunOutcome(made, tuple(range(1, seeds + 1)), cells)


TIMES = {"time": {"ours": [[10, 11, 12], [10, 11, 12]], "theirs": [[20, 22.2, 24.1], [8, 8.7, 9.6]]}}


def test_less_is_better_and_the_ratio_is_theirs_over_ours() -> None:
    (said,) = (
        s for s in findings(outcome(Published("time", "time", "ours", ("theirs",), 3.0), TIMES)) if "published" in s
    )
    assert said.startswith("published time: theirs / ours = 3; here the same way, by less at few (x2.01 [")
    assert "; the other way round at many (x0.797 [" in said


def test_more_is_better_and_the_ratio_is_ours_over_theirs() -> None:
    use = {"ours": [[0.9, 0.91, 0.92]] * 2, "theirs": [[0.3, 0.301, 0.302]] * 2}
    (said,) = (
        s
        for s in findings(
            outcome(
                Published("use", "use", "ours", ("theirs",), 1.45, gain=True, note="of whom?"), TIMES | {"use": use}
            )
        )
        if "published" in s
    )
    assert said.startswith("published use (of whom?): ours / theirs = 1.45; here more than published at few (x3.02 [")


def test_what_is_possible_stands_beside() -> None:
    limit = {"ours": [[1.5] * 3, [1.0] * 3], "theirs": [[1.5] * 3, [1.0] * 3]}
    one = Published("time", "time", "ours", ("theirs",), 2.0, most=("forking", "limit"))
    (said,) = (s for s in findings(outcome(one, TIMES | {"limit": limit})) if "published" in s)
    assert "; forking at most x1.5)" in said
    assert "; forking at most x1)" in said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (Change(0.5, 0.4, 0.6), "the same way, by less"),
        (Change(0.9, 0.8, 1.1), "as published"),
        (Change(1.5, 1.2, 1.8), "more than published"),
        (Change(-0.2, -0.3, -0.1), "the other way round"),
        (Change(0.5, -0.1, 1.5), "no difference shown"),
        (Change(0.5, None, None), "the same way, by less"),
        (Change(1.5, None, None), "more than published"),
        (Change(-0.1, None, None), "the other way round"),
        (Change(0.0, None, None), "the same way, by less"),
    ],
)
def test_verdicts_on_a_published_factor_of_two(change: Change, said: str) -> None:
    assert verdict(change, 2.0) == said


def test_what_is_not_there_cannot_be_compared() -> None:
    for bad in (
        Published("time", "speed", "ours", ("theirs",), 2.0),
        Published("time", "time", "mine", ("theirs",), 2.0),
        Published("time", "time", "ours", ("yours",), 2.0),
        Published("time", "time", "ours", ("theirs",), 2.0, most=("x", "y")),
    ):
        with pytest.raises(ValueError, match="what was published needs"):
            outcome(bad, TIMES)


def test_a_row_without_a_number_is_not_measured() -> None:
    missing = {"time": {"ours": [[10, 11, 12]] * 2, "theirs": [[math.nan] * 3, [20, 22, 24]]}}
    (said,) = (
        s for s in findings(outcome(Published("time", "time", "ours", ("theirs",), 3.0), missing)) if "published" in s
    )
    assert "here not measured at few; the same way, by less at many" in said
