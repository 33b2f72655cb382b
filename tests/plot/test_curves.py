"""Distributions, bars, lines, steps and two schedules above each other, against numbers computed without them."""

from __future__ import annotations

import copy
import dataclasses
import io
import math
import statistics
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from plot.drawn import labelled, legend, words

import optsched as osd
from optsched.errors import InputError
from optsched.evaluation.evaluate import evaluate
from optsched.plot.difference import GAIN, LOSE
from optsched.plot.gantt import GREY
from optsched.plot.ratios import ratios
from optsched.plot.timeline import bin_means, levels
from optsched.problem.instance import Instance, Job

# -- Distributions, bars and lines: what the artists of a figure hold against numbers that are computed without them ------


pytestmark = pytest.mark.release

SEEDS = [("fifo", 1, 3.0), ("fifo", 1, 4.0), ("fifo", 1, 5.0), ("srtf", 1, 2.0), ("fifo", 2, 9.0), ("srtf", 2, 2.5)]
ROWS = [{"policy": policy, "load": load, "jct": jct} for policy, load, jct in SEEDS]
# Student's t with two degrees of freedom, from a printed table; the mean is 4, and the interval that of its logarithm
FACTOR = math.exp(4.303 * statistics.stdev([3, 4, 5]) / 3**0.5 / 4)


def share(line: Any, seconds: float) -> float:
    x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    return float(y[np.flatnonzero(x <= seconds)[-1]])


def test_a_cdf_is_the_share_of_jobs_done_within_a_time() -> None:
    run = osd.simulate(Instance([Job(f"{k}", arrival=1000, duration=10) for k in range(4)], "1x1"), "fifo")
    ax = osd.plot.jct_cdf({"run": run, "given": [5, 50, 7000, float("nan")]}).axes[0]
    assert [share(ax.lines[0], at) for at in (10, 19.9, 20, 40)] == [0.25, 0.25, 0.5, 1]
    assert [share(ax.lines[1], at) for at in (5, 50, 1e9)] == [0.25, 0.5, 0.75]
    assert legend(ax) == ["run: mean 25 s", "given: mean 39.2 min (1 unfinished)"]
    assert ax.get_xscale() == "log"  # from 5 s to almost two hours
    assert osd.plot.jct_cdf({"run": run}).axes[0].get_xscale() == "linear"


def test_a_cdf_of_very_many_jobs_is_thinned_and_stays_right() -> None:
    ax = osd.plot.jct_cdf({"a": np.arange(1, 50_001)}).axes[0]
    assert len(ax.lines[0].get_xdata()) < 5_000
    assert share(ax.lines[0], 25_000) == pytest.approx(0.5, abs=1e-3)
    assert share(ax.lines[0], 50_000) == 1


@pytest.mark.parametrize("runs", [{}, {"a": [float("nan")]}, {"a": [1, -1]}])
def test_what_has_no_completion_times_is_refused(runs: dict[str, list[float]]) -> None:
    with pytest.raises(InputError, match="expected"):
        osd.plot.jct_cdf(runs)


def whiskers(ax: Axes) -> list[tuple[float, float]]:
    [drawn] = [each for each in ax.collections if isinstance(each, LineCollection)]
    return [(float(a[1]), float(b[1])) for a, b in drawn.get_segments()]


def test_bars_of_seeds_are_means_with_their_interval() -> None:
    ax = osd.plot.bars(pl.DataFrame([row for row in ROWS if row["load"] == 1]), value="jct", by="policy").axes[0]
    assert [bar.get_height() for bar in ax.patches] == [4, 2]
    assert whiskers(ax)[0] == pytest.approx((4 / FACTOR, 4 * FACTOR), rel=1e-3)
    assert words(ax.get_xticklabels()) == ["fifo", "srtf"]


def test_bars_of_a_group_stand_side_by_side_and_gaps_stay_gaps() -> None:
    rows = [{**row, "half": 0.5} for row in ROWS[2:]] + [{"policy": "new", "load": 2, "jct": None, "half": None}]
    rows += [{"policy": "only2", "load": 2, "jct": 1.0, "half": 0.1}]
    ax = osd.plot.bars(rows, value="jct", by="load", group="policy", half="half", reference=3).axes[0]
    where = {(round(bar.get_x() + bar.get_width() / 2, 2), bar.get_height()) for bar in ax.patches}
    assert where == {(-0.27, 5), (0, 2), (0.73, 9), (1, 2.5), (1.27, 1)}
    ends = [end for each in ax.collections if isinstance(each, LineCollection) for end in each.get_segments()]
    assert (4.5, 5.5) in [(float(a[1]), float(b[1])) for a, b in ends]
    assert any(np.all(np.asarray(line.get_ydata()) == 3) for line in ax.lines)
    assert legend(ax) == ["fifo", "srtf", "only2"]


def test_a_bar_that_would_flatten_the_others_is_cut_and_says_its_value() -> None:
    def top(*values: float) -> tuple[float, list[str]]:
        rows = [{"p": f"{k}", "v": value} for k, value in enumerate(values)]
        ax = osd.plot.bars(rows, value="v", by="p").axes[0]
        return ax.get_ylim()[1], words(ax.texts)

    assert top(1, 1.5, 2, 200) == (pytest.approx(2.6), ["1", "1.5", "2", "200"])
    assert top(1, 1.5, 2, 7)[0] > 7  # no leap by more than four
    assert top(1, 10, 11, 12)[0] > 12  # most are long


def test_lines_are_means_with_bands_named_at_their_ends() -> None:
    figure = osd.plot.lines(ROWS, x="load", y="jct", by="policy", ylabel="mean JCT (h)")
    ax = figure.axes[0]
    assert [np.asarray(line.get_ydata()).tolist() for line in ax.lines] == [[4, 9], [2, 2.5]]
    band = ax.collections[0].get_paths()[0].vertices
    assert {round(float(y), 1) for x, y in np.asarray(band) if x == 1} == {round(4 / FACTOR, 1), round(4 * FACTOR, 1)}
    names = {text.get_text(): text.xy[1] for text in ax.texts}
    assert names["fifo"] > names["srtf"]
    assert ax.get_ylabel() == "mean JCT (h)"


def test_names_of_lines_that_end_together_do_not_overlap() -> None:
    rows = [{"x": x, "y": 1.0 + (k == 9) * 8, "by": f"p{k}"} for k in range(10) for x in (1, 2)]
    ax = osd.plot.lines(rows, x="x", y="y", by="by").axes[0]
    high = ax.get_window_extent().height * 72 / ax.figure.dpi
    places = sorted(text.xy[1] * high for text in ax.texts)
    assert min(np.diff(places)) >= 10.9
    assert places[0] >= -1e-9


def test_lines_on_given_axes_and_on_a_logarithmic_one() -> None:
    ax = Figure().add_subplot()
    rows = [{"x": x, "y": 2.0, "low": 1.0, "high": 3.0, "by": "a"} for x in (0.125, 1, 8)]
    figure = osd.plot.lines(rows, x="x", y="y", by="by", low="low", high="high", logx=True, ax=ax, title="t")
    assert figure is ax.figure
    assert legend(ax) == ["a"]
    assert [ax.xaxis.get_major_formatter()(x) for x in ax.get_xticks()] == ["0.125", "1", "8"]
    assert ax.get_title(loc="left") == "t"


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([], {}, "at least one row"),
        ([{"x": 1, "y": 2}], {}, r"rows\[0\] = 'by': no such column \(expected: x, y\)"),
        ([{"x": 1, "y": "2", "by": "a"}], {}, r"rows\[0\]\.y = '2'"),
        ([{"x": 1, "y": None, "by": "a"}], {}, "null in every row"),
        ([{"x": 0, "y": 1, "by": "a"}], {"logx": True}, "x = 0.0: invalid .*> 0"),
        ([{"x": 1, "y": 1, "by": "a", "l": 1}] * 2, {"low": "l", "high": "l"}, "2 rows with an interval at one place"),
    ],
)
def test_rows_that_cannot_be_drawn_are_one_clear_line(rows: Any, options: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        osd.plot.lines(rows, x="x", y="y", by="by", **options)


def test_histograms_share_their_bins_and_mark_median_and_95_per_cent() -> None:
    r = np.random.default_rng(0)
    good, bad = 2 ** np.abs(r.normal(0, 0.5, 1000)), 2 ** np.abs(r.normal(0, 3, 1000))
    ax = osd.plot.error_histogram({"good": good, "bad": bad}).axes[0]
    (counts, edges, foot), (others, same, _) = (patch.get_data() for patch in ax.patches)
    assert np.array_equal(edges, same)
    mine = np.histogram(np.log2(good), edges)[0]
    assert (counts - foot) / (counts - foot).max() == pytest.approx(mine / mine.max())
    assert others.max() == pytest.approx(0.85)
    drawn = [each.get_segments() for each in ax.collections]
    assert [float(each[0][0][0]) for each in drawn] == pytest.approx(
        [np.log2(np.quantile(each, at)) for each in (good, bad) for at in (0.5, 0.95)]
    )


def test_signed_errors_come_from_runs_and_have_both_sides() -> None:
    run = osd.simulate(Instance([Job(f"{k}", duration=8) for k in range(3)], "1x1"), "spjf")
    run = dataclasses.replace(run, predicted=np.array([4.0, 8, 32]))
    ax = osd.plot.error_histogram({"run": run, "given": [-1.0, 0, 2]}).axes[0]
    one, two = (patch.get_data()[0] for patch in ax.patches)
    assert one - 1 == pytest.approx(two)
    assert [float(x[0][0]) for x in ax.collections[1].get_segments()] == pytest.approx([-np.log2(3.8), np.log2(3.8)])
    assert "predicted / true" in ax.get_xlabel()
    with pytest.raises(InputError, match="factors >= 1"):
        osd.plot.error_histogram({"a": [0.5, 2]}, signed=False)
    with pytest.raises(InputError, match="fifo takes no predictions"):
        osd.plot.error_histogram({"a": osd.simulate("rigid-06-1", "fifo")})


def test_lines_without_bands_are_named_at_their_ends_too() -> None:
    rows = [{"x": x, "y": slope * x, "by": f"slope {slope}"} for slope in (0, 1, 2) for x in (0, 5, 10)]
    axes = osd.plot.lines(rows, x="x", y="y", by="by").axes[0]
    named = {text.get_text(): text.xy[1] for text in axes.texts}
    assert named == pytest.approx({"slope 0": 0, "slope 1": 10, "slope 2": 20}, abs=1e-6)


def test_a_long_key_has_its_place() -> None:
    rows = [{"policy": f"a policy with its parameters {k}", "load": 1, "y": 1.0} for k in range(3)]
    figure = osd.plot.bars(rows, value="y", by="load", group="policy")
    figure.savefig(io.BytesIO())
    assert figure.axes[0].get_legend().get_window_extent().x1 <= figure.bbox.x1


# -- Step functions against sums in fractions -----------------------------------------------------------------------------


STEPS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(-3, 3)), max_size=12)


@given(STEPS, st.integers(1, 9))
def test_means_over_bins_are_integrals(steps: list[tuple[int, int, int]], bins: int) -> None:
    row, time, change = (np.array([step[k] for step in steps], dtype=np.int64) for k in range(3))
    drawn = bin_means(row, time.astype(float), change.astype(float), 3, 5.0, 35.0, bins)
    for r in range(3):
        for k in range(bins):
            low, high = 5 + Fraction(30 * k, bins), 5 + Fraction(30 * (k + 1), bins)
            area = sum((c * (high - min(max(Fraction(t), low), high)) for q, t, c in steps if q == r), Fraction(0))
            assert abs(drawn[r, k] - float(area / (high - low))) < 1e-9


@given(STEPS)
def test_levels_are_running_sums_at_distinct_times(steps: list[tuple[int, int, int]]) -> None:
    when, level = levels(np.array([t for _, t, _ in steps], float), np.array([c for *_, c in steps], float))
    assert when.tolist() == sorted({t for _, t, _ in steps})
    assert level.tolist() == [sum(c for _, t, c in steps if t <= now) for now in when.tolist()]


# -- Two schedules above each other: who gains and who loses, against completions by hand ---------------------------------


JOBS = Instance([Job("a", duration=10), Job("b", duration=2), Job("c", arrival=20, duration=3)], "1x1", name="three")


def both() -> tuple[osd.Schedule, osd.Schedule]:
    # C = 10, 12, 23 and 12, 2, 23: b gains 10 s, a loses 2 s, c keeps its place
    return osd.Schedule.from_starts(JOBS, [0, 10, 20], policy="long"), osd.Schedule.from_starts(
        JOBS, [2, 0, 20], policy="short"
    )


def test_jobs_are_coloured_by_gain_and_arrows_go_from_completion_to_completion() -> None:
    above, below, moves = osd.plot.compare(*both()).axes
    for ax in (above, below):
        colours = {to_hex(colour) for colour in np.asarray(labelled(ax, "_blocks").get_facecolor())}
        assert colours == {GAIN.lower(), LOSE.lower(), GREY}
    arrows = {text.xyann[1]: (text.xyann[0], text.xy[0]) for text in moves.texts if not text.get_text()}
    assert arrows == {0: (10, 12), 1: (12, 2)}
    assert words(moves.get_yticklabels()) == ["a", "b"]
    assert moves.get_title(loc="left") == "short instead of long: 1 job completes earlier, by 10 s; 1 later, by 2 s"
    assert above.get_xlim() == below.get_xlim() == moves.get_xlim() == (0, 23)


def test_files_are_compared_with_their_instance_and_equal_schedules_say_so(tmp_path: Path) -> None:
    one, _ = both()
    one.save(tmp_path / "one.json")
    figure = osd.plot.compare(tmp_path / "one.json", one, JOBS)
    assert figure.axes[2].get_title(loc="left") == "long instead of long: every job completes when it did"
    with pytest.raises(InputError, match="expected: the SOURCE"):
        osd.plot.compare(tmp_path / "one.json", one)
    with pytest.raises(InputError, match="schedules of two instances"):
        osd.plot.compare(one, osd.simulate("rigid-06-1", "fifo"))


def test_large_clusters_are_compared_by_node() -> None:
    jobs = [Job(f"{k}", duration=5 + k) for k in range(400)]
    wide = Instance(jobs, "50x8")
    figure = osd.plot.compare(osd.simulate(wide, "fifo"), osd.simulate(wide, "sjf"))
    assert [len(ax.images) for ax in figure.axes[:3]] == [1, 1, 0]


# -- The bars of `ratios` against the document of `optsched run --json` ---------------------------------------------------


RESULT: dict[str, Any] = {
    "instance": {"name": "three", "jobs": 1200, "gpus": 8, "skipped_rows": 0},
    "objective": "total_flow_time",
    "runs": [
        {
            "policy": "fifo",
            "value": 7200.0,
            "bound": {"value": 3600.0, "exact": False},
            "ratio": 2.0,
            "ratio_to": "bound",
        },
        {"policy": "$best", "value": 3600.0, "bound": {"value": 3600.0}, "ratio": 1.0, "ratio_to": "optimum"},
        {"policy": "stuck", "value": None, "bound": {"value": 3600.0}, "ratio": None, "ratio_to": None},
        {"policy": "free", "value": 5400, "bound": None, "ratio": None, "ratio_to": None},
    ],
}


def widths(ax: Axes) -> list[list[float]]:
    return [[bar.get_width() for bar in container] for container in ax.containers]


def test_a_bar_is_the_value_and_its_dark_part_the_bound() -> None:
    ax = ratios(RESULT)
    assert widths(ax) == [[7200, 3600, 0, 5400], [3600, 3600, 3600]]
    assert words(ax.get_yticklabels()) == ["fifo", "$best", "stuck", "free"]
    assert words(ax.texts) == [
        "7,200   <= 2.000 × optimum",
        "3,600   = 1.000 × optimum",
        "not all jobs finished",
        "5,400",
    ]
    assert ax.get_xlabel() == "total flow time (s)"
    assert ax.get_title(loc="left") == "three: 1,200 jobs, 8 GPUs"
    assert ax._repr_png_().startswith(b"\x89PNG")


def test_an_objective_that_is_not_a_time_has_no_unit() -> None:
    ax = ratios({**RESULT, "objective": "total_utility"})
    assert ax.get_xlabel() == "total utility"
    assert ax.texts[0].get_text() == "7,200   <= 2.000 × optimum"


def test_draws_what_a_report_says() -> None:
    inst = Instance([Job(f"j{k}", arrival=k, gpus=1 + k % 2, duration=4 - k % 3) for k in range(6)], "1x2")
    report = evaluate(inst, ["fifo", "srtf"])
    ax = ratios(report.to_json())
    assert np.allclose(widths(ax)[0], [line.value for line in report.lines])


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["runs"], [], "runs: no runs to draw"),
        (["runs"], None, "runs: no runs"),
        (["objective"], 3, "objective = 3"),
        (["runs", 0], 7, r"runs\[0\] = 7"),
        (["runs", 1, "policy"], None, r"runs\[1\]\.policy"),
        (["runs", 0, "value"], "many", r"runs\[0\]\.value = 'many'.*a finite number >= 0, or null"),
        (["runs", 0, "value"], -1, r"runs\[0\]\.value = -1"),
        (["runs", 0, "value"], True, r"runs\[0\]\.value = True"),
        (["runs", 0, "bound", "value"], math.inf, r"runs\[0\]\.bound\.value = inf"),
        (["runs", 0, "bound"], 5, r"runs\[0\]\.bound = 5"),
        (["runs", 0, "ratio"], [1], r"runs\[0\]\.ratio"),
    ],
)
def test_a_broken_document_names_the_field(path: list[Any], value: Any, message: str) -> None:
    document = copy.deepcopy(RESULT)
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(InputError, match=message):
        ratios(document)
