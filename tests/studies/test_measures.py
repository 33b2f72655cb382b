"""Measures, means and intervals, sentences and published ratios, against independent readings and numbers by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from optsched.bounds import bound
from optsched.cli.study_tables import cell
from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.intervals import Estimate
from optsched.io.traces.generate import generate
from optsched.policies.simulate import simulate
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.profile import Profile, Stage
from optsched.studies.experiment import (
    Change,
    Experiment,
    Published,
    RunOutcome,
    Workload,
    relative,
    verdict,
)
from optsched.studies.findings import best, findings
from optsched.sweeps.measurement import Measure, Measurement
from optsched.sweeps.measures.placed_gangs import MEASURES, measure

# -- Measures of a run against an independent reading of its schedule -----------------------------------------------------


def test_a_recurring_workload_read_segment_by_segment() -> None:
    instance = generate("recurring", 3, jobs=40, cluster="2x4", load=1.0, nic_bandwidth=1.25e9)
    policy = "a-srpt:predictor=noisy/error=2"
    found = measure(policy, OptimumBounds(instance))
    assert set(found) == {*MEASURES, "kept"}
    run = simulate(instance, policy)
    gangs: dict[int, set[int]] = {job: set() for job in range(instance.n)}
    for segment in run.schedule.segments():
        gangs[segment.job] |= {node for node, _ in segment.gpus}
    several = [job for job, gang in enumerate(instance.gpus) if gang > 1]
    assert found["consolidated"] == pytest.approx(np.mean([len(gangs[job]) == 1 for job in several]))
    completion, low = run.schedule.completion, float(bound(instance, "total_completion_time").value)
    assert found["ratio"] == pytest.approx(completion.sum() / low)
    arrivals = instance.arrival.sum()
    assert found["jct_ratio"] == pytest.approx((completion.sum() - arrivals) / (low - arrivals))
    assert found["mean_jct"] == pytest.approx((completion.sum() - arrivals) / 40)
    assert found["lam_o"] == pytest.approx((run.predicted / instance.work).max())
    assert found["lam_u"] == pytest.approx((instance.work / run.predicted).max())
    assert found["error_worst"] == pytest.approx(max(found["lam_o"], found["lam_u"]))
    assert found["kept"] == 1
    assert found["guarantee"] > found["ratio"]


def test_communication_and_slowdown_of_one_job_by_hand() -> None:
    # Two replicas on two one-GPU nodes: compute 3 s, ring 2 (1/2) 4 = 4 bytes over 2 bytes/s: 2 s, and nowhere faster.
    profile = Profile.of_stages([Stage(2, 1.0, 2.0, parameters=4.0)])
    cluster = Cluster((NodeGroup(1, 2, nic_bandwidth=2.0),))
    instance = Instance([Job("a", gpus=2, iterations=10, profile="p")], cluster, profiles={"p": profile})
    found = measure("a-srpt:tau=0", OptimumBounds(instance))
    assert found["communication"] == pytest.approx(2 / 5)
    assert found["slowdown"] == pytest.approx(1)
    assert found["consolidated"] == 0
    assert found["mean_jct"] == pytest.approx(50 + 50)  # the virtual machine takes 50 s before the cluster may start


def test_what_is_not_defined_is_nan() -> None:
    instance = generate("machines", 1, jobs=6)
    found = measure("fifo", OptimumBounds(instance))
    missing = {name for name, value in found.items() if math.isnan(value)}
    assert missing >= {"slowdown", "consolidated", "communication", "lam_o", "error_p99"}
    assert not missing & {"ratio", "mean_jct", "utilization"}


# -- Means, intervals and comparisons, against numbers worked out by hand and from printed tables of Student's t ----------


def test_a_cell_has_the_interval_of_its_measure_and_none_where_a_seed_has_no_number() -> None:
    # mean 4.2, s = 5.2829, t_{0.975, 2} = 4.30265: on a log scale 4.2 exp(-+3.1247) = .1846 and 95.56; no ratio is below 1
    jct = {row: [[1.1, 1.2, 10.3], [math.nan, 1, 1]] for row in ROWS}
    found = outcome(jct, ratio=jct, utilization={row: [[0.5, 0.9, 0.97]] * 2 for row in ROWS})
    time, ratio, share = (found.estimate("A", "low", name) for name in ("mean_jct", "ratio", "utilization"))
    assert time[:3] == pytest.approx((4.2, 0.1846, 95.56), rel=1e-3)
    assert (ratio.low, share.high) == (1.0, 1.0)
    assert found.estimate("A", "high", "mean_jct") is None


def test_intervals_are_printed_with_both_ends_and_rounded_outwards() -> None:
    assert cell(Estimate(4.2161, 1.0, 88.6912, 3, False), side="up") == "4.217 [1.000, 88.692]"
    assert cell(Estimate(0.5, 0.25, 0.75, 5, False), 100.0) == "50.00 [25.00, 75.00]"
    assert cell(Estimate(7.0, None, None, 1, False)) == "7.000"
    assert cell(Estimate(7.0, None, None, 4, True)) == "7.000 (all equal)"
    assert cell(None) == "-"


def test_changes_are_paired() -> None:
    # 10 % on both workloads, though the workloads differ a thousandfold: the interval has no width to speak of
    found = relative([1.1, 1100.0], [1.0, 1000.0])
    assert [found.mean, found.low, found.high] == pytest.approx([0.1, 0.1, 0.1])
    assert found.direction == "higher"


def test_twice_and_half_as_long_make_no_difference() -> None:
    # log ratios ln 2 and -ln 2: mean 0, s = sqrt 2 ln 2, half width t_{0.975, 1} ln 2
    found = relative([1.0, 4.0], [2.0, 2.0])
    assert found.mean == pytest.approx(0)
    assert found.high == pytest.approx(2**12.7062 - 1, rel=1e-4)
    assert found.low == pytest.approx(2**-12.7062 - 1)
    assert found.direction == "no difference shown"


def test_one_seed_has_a_change_but_no_interval() -> None:
    assert relative([3.0], [2.0]) == Change(pytest.approx(0.5), None, None)


def test_nothing_is_relative_to_zero_or_to_what_is_missing() -> None:
    assert relative([1.0], [0.0]) is None
    assert relative([math.nan], [1.0]) is None
    with pytest.raises(ValueError, match="2 values beside 1"):
        relative([1.0, 2.0], [1.0])


def test_intervals_stay_finite() -> None:
    found = relative([1e9, 1e-9], [1.0, 1.0])
    assert math.isfinite(found.high)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (Change(-0.2, -0.3, -0.1), "lower"),
        (Change(0.2, 0.1, 0.3), "higher"),
        (Change(0.1, 0.0, 0.2), "no difference shown"),
        (Change(-0.1, -0.3, 0.1), "no difference shown"),
        (Change(-0.9, None, None), "no difference shown"),
        (Change(0.0, 0.0, 0.0), "equal"),
        (Change(0.0, None, None), "equal"),
        (Change(0.0, -0.3, 0.3), "no difference shown"),
    ],
)
def test_a_direction_needs_an_interval_without_zero(change: Change, told: str) -> None:
    assert change.direction == told


# -- Sentences follow from numbers, and change with them ------------------------------------------------------------------


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


# -- Published ratios beside measured ones: which way round, and what is said of them -------------------------------------


AT_PUBLISHED = {"few": Workload.of("machines", jobs=5), "many": Workload.of("machines", jobs=6)}
ROWS_PUBLISHED = {"ours": "fifo", "theirs": "sjf"}
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


def outcome_published(
    published: Published, numbers: dict[str, dict[str, list[list[float]]]], seeds: int = 3
) -> RunOutcome:
    """``numbers[measure][row][column]`` = one number a seed."""
    cells = {
        (workload, k + 1, policy): {name: table[row][c][k] for name, table in numbers.items()} | {"kept": math.nan}
        for row, policy in ROWS_PUBLISHED.items()
        for c, workload in enumerate(AT_PUBLISHED.values())
        for k in range(seeds)
    }
    made = Experiment("e", "?", "jobs", AT_PUBLISHED, ROWS_PUBLISHED, "ours", ("time",), MEASUREMENT, (published,))
    return RunOutcome(made, tuple(range(1, seeds + 1)), cells)


def sentence(published: Published, numbers: dict[str, dict[str, list[list[float]]]]) -> str:
    (said,) = (each for each in findings(outcome_published(published, numbers)) if "published" in each)
    return said


TIMES = {"time": {"ours": [[10, 11, 12], [10, 11, 12]], "theirs": [[20, 22.2, 24.1], [8, 8.7, 9.6]]}}


def test_less_is_better_and_the_ratio_is_theirs_over_ours() -> None:
    said = sentence(Published("time", "time", "ours", ("theirs",), 3.0), TIMES)
    assert said.startswith("published time: theirs / ours = 3; here same direction, smaller at few (x2.01 [")
    assert "; opposite direction at many (x0.797 [" in said


def test_more_is_better_and_the_ratio_is_ours_over_theirs() -> None:
    use = {"ours": [[0.9, 0.91, 0.92]] * 2, "theirs": [[0.3, 0.301, 0.302]] * 2}
    published = Published("use", "use", "ours", ("theirs",), 1.45, gain=True, note="of whom?")
    said = sentence(published, TIMES | {"use": use})
    assert said.startswith("published use (of whom?): ours / theirs = 1.45; here more than published at few (x3.02 [")


def test_what_is_possible_stands_beside() -> None:
    limit = {"ours": [[1.5] * 3, [1.0] * 3], "theirs": [[1.5] * 3, [1.0] * 3]}
    one = Published("time", "time", "ours", ("theirs",), 2.0, most=("forking", "limit"))
    said = sentence(one, TIMES | {"limit": limit})
    assert "; forking at most x1.5)" in said
    assert "; forking at most x1)" in said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (Change(0.5, 0.4, 0.6), "same direction, smaller"),
        (Change(0.9, 0.8, 1.1), "as published"),
        (Change(1.5, 1.2, 1.8), "more than published"),
        (Change(-0.2, -0.3, -0.1), "opposite direction"),
        (Change(0.5, -0.1, 1.5), "no difference shown"),
        (Change(0.5, None, None), "same direction, smaller"),
        (Change(1.5, None, None), "more than published"),
        (Change(-0.1, None, None), "opposite direction"),
        (Change(0.0, None, None), "same direction, smaller"),
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
            outcome_published(bad, TIMES)


def test_a_row_without_a_number_is_not_measured() -> None:
    missing = {"time": {"ours": [[10, 11, 12]] * 2, "theirs": [[math.nan] * 3, [20, 22, 24]]}}
    said = sentence(Published("time", "time", "ours", ("theirs",), 3.0), missing)
    assert "here not measured at few; same direction, smaller at many" in said
