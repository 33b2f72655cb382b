"""Pictures for papers: fonts that are embedded, widths of columns, names of policies, numbers of the table, long tails."""

from __future__ import annotations

import re
import sys
import types
import xml.etree.ElementTree as ElementTree
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from plot.drawn import legend, words
from refusals import one_line
from rich.console import Console

import optsched as osd
from optsched.cli.run_table import report_view
from optsched.plot.labels import policy_labels
from optsched.problem.instance import Instance, Job

pytestmark = pytest.mark.release

RATIOS = [1.1, 1.2, 10.3]  # Student's t: 4.2 -+ 13.1
ROWS = [{"policy": p, "jobs": n, "ratio": r * k} for k, p in ((1, "a"), (2, "b")) for n in (8, 16) for r in RATIOS]


# -- Text stays text ------------------------------------------------------------------------------------------------------


def pdf_objects(content: bytes) -> bytes:
    """The dictionaries of a PDF, with the streams that are packed with zlib unpacked."""
    found = [content]
    for stream in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", content, re.DOTALL):
        try:
            found.append(zlib.decompress(stream))
        except zlib.error:
            continue
    return b"\n".join(found)


@pytest.mark.parametrize("write", [osd.plot.save, lambda figure, path: figure.savefig(path)])
def test_a_pdf_embeds_truetype_and_nobodys_settings_change(write: Callable[..., Any], tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    write(osd.plot.lines(ROWS, x="jobs", y="ratio", by="policy", title="title"), tmp_path / "p.pdf")
    assert dict(matplotlib.rcParams) == before
    made = pdf_objects((tmp_path / "p.pdf").read_bytes())
    assert b"/Subtype /Type3" not in made
    assert b"/Subtype /CIDFontType2" in made  # TrueType outlines
    assert b"/FontFile2" in made  # which are in the file


def test_axes_of_somebodys_own_figure_are_saved_with_truetype_too(tmp_path: Path) -> None:
    figure = Figure()
    osd.plot.lines(ROWS, x="jobs", y="ratio", by="policy", ax=figure.add_subplot())
    osd.plot.save(figure, tmp_path / "p.pdf")
    assert b"/Subtype /Type3" not in pdf_objects((tmp_path / "p.pdf").read_bytes())


def test_an_svg_holds_text(tmp_path: Path) -> None:
    osd.plot.save(osd.plot.bars(ROWS, value="ratio", by="policy", title="four words of text"), tmp_path / "p.svg")
    root = ElementTree.parse(tmp_path / "p.svg").getroot()
    assert "four words of text" in {"".join(each.itertext()) for each in root.iter("{http://www.w3.org/2000/svg}text")}


# -- Widths of columns ----------------------------------------------------------------------------------------------------


def drawn(width: Any) -> dict[str, Any]:
    runs = [osd.simulate("rigid-12-1", policy) for policy in ("fifo", "srtf", "fifo:skip=true")]
    predicted = osd.generate("recurring", seed=1, jobs=30, cluster="2x4")
    guesses = [osd.simulate(predicted, f"spjf:predictor={name}") for name in ("group-mean", "global-mean")]
    small = osd.generate("hetero-small", seed=3, jobs=6, cluster="1x2:V100+1x2:K80", span=0.3)
    networks = [osd.Job(name, gpus=2, iterations=3, profile="net") for name in ("a", "b")]
    tasks = Instance(networks, "2x2", tasks={"net": osd.IterationTasks(forward=1, backward=2)})
    curves = osd.robustness_curves("ddl-04-1", ["a-srpt", "spwf"], errors=(1, 2))
    plot = osd.plot
    return {
        "gantt": plot.gantt(runs[0], width=width),
        "overview": plot.overview(runs[0], width=width),
        "occupancy": plot.occupancy(runs[0], width=width)[0],
        "compare": plot.compare(runs[0], runs[1], width=width),
        "tasks": plot.tasks(osd.simulate(tasks, "srsf:k=1"), width=width),
        "jct_cdf": plot.jct_cdf(runs, width=width),
        "over_time": plot.over_time(runs, width=width),
        "error_histogram": plot.error_histogram(guesses, width=width),
        "bars": plot.bars(ROWS, value="ratio", by="jobs", group="policy", least=1, width=width),
        "lines": plot.lines(ROWS, x="jobs", y="ratio", by="policy", least=1, width=width),
        "ratios": plot.ratios(osd.evaluate("rigid-12-1", ["fifo", "fifo:skip=true"]).to_json(), width=width),
        "robustness": plot.robustness(curves.to_json(), width=width),
        "convergence": plot.convergence(osd.solve("rigid-12-1"), width=width),
        "prices": plot.prices(osd.simulate(small, "hadar:round=4"), width=width),
    }


def texts(figure: Figure) -> list[Text]:
    """What is written in a figure; of tick labels those within the axes, the others are not drawn."""
    axes = [axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)]
    labels = {id(tick.label1) for axis in axes for tick in (*axis.majorTicks, *axis.minorTicks)}
    drawn = {id(tick.label1) for axis in axes for tick in axis._update_ticks()}
    found = [each for each in figure.findobj(Text) if isinstance(each, Text) and each.get_visible()]
    return [each for each in found if each.get_text().strip() and (id(each) in drawn or id(each) not in labels)]


@pytest.mark.parametrize(("width", "inches"), [("column", 3.33), ("page", 7.0)])
def test_every_picture_has_the_width_of_a_paper_readable_and_nothing_cut(width: str, inches: float) -> None:
    pictures = drawn(width)
    assert set(pictures) == set(osd.plot.__all__) - {"interactive", "plot_file", "save", "save_trace", "sliders"}
    for name, picture in pictures.items():
        figure: Figure = picture.get_figure(root=True) if isinstance(picture, Axes) else picture
        assert figure.get_figwidth() == inches, name
        figure.draw_without_rendering()
        for text in texts(figure):
            box = text.get_window_extent()
            assert text.get_fontsize() >= 7, (name, text.get_text())
            inside = box.x0 >= -2 and box.y0 >= -2 and box.x1 <= figure.bbox.x1 + 2 and box.y1 <= figure.bbox.y1 + 2
            assert inside, (name, text.get_text(), box, figure.bbox)


def test_a_width_may_be_a_number_of_inches_and_others_are_refused(tmp_path: Path) -> None:
    assert osd.plot.gantt(osd.simulate("rigid-06-1", "fifo"), width=5.5).figure.get_figwidth() == 5.5
    for wrong in ("narrow", 0, True, float("nan")):
        with one_line(match="width = .*column \\(3.33 in\\), page \\(7 in\\), or 2.5 to 40 inches"):
            osd.plot.jct_cdf({"a": [1.0]}, width=wrong)


def test_a_file_is_drawn_in_the_width_of_a_column(tmp_path: Path) -> None:
    osd.simulate("rigid-06-1", "srtf").schedule.save(tmp_path / "s.json")
    osd.plot.plot_file(tmp_path / "s.json", tmp_path / "s.pdf", width="column")
    box = re.search(rb"/MediaBox \[ 0 0 ([0-9.]+)", (tmp_path / "s.pdf").read_bytes())
    assert box is not None
    assert float(box[1]) / 72 == pytest.approx(3.33)
    with one_line(match="a page is as wide as the window"):
        osd.plot.plot_file(tmp_path / "s.json", tmp_path / "s.html", width="column")


# -- Intervals ------------------------------------------------------------------------------------------------------------


def test_no_ratio_is_drawn_below_one_and_a_wild_interval_flattens_nothing() -> None:
    ax = osd.plot.lines(ROWS, x="jobs", y="ratio", by="policy", least=1).axes[0]
    bands = np.concatenate([np.asarray(path.vertices)[:, 1] for band in ax.collections for path in band.get_paths()])
    assert bands.min() == 1
    assert ax.get_ylim() == (0, pytest.approx(16.8))  # twice the largest mean
    assert "intervals go on to" in " ".join(words(ax.texts))
    with_zero = osd.plot.lines(ROWS, x="jobs", y="ratio", by="policy").axes[0]
    assert min(np.asarray(band.get_paths()[0].vertices)[:, 1].min() for band in with_zero.collections) > 0


def test_a_stated_interval_is_cut_at_what_is_possible() -> None:
    rows = [{"p": "a", "v": 1.5, "half": 2.0}]
    ax = osd.plot.bars(rows, value="v", by="p", half="half", least=1).axes[0]
    [whisker] = [each for each in ax.collections if type(each).__name__ == "LineCollection"]
    assert np.asarray(whisker.get_segments()[0])[:, 1].tolist() == [1.0, 3.5]


@pytest.mark.parametrize("values", [[2.0], [2.0, 3.0], [2.0, 2.0, 2.0]])
def test_few_or_equal_seeds_have_no_whiskers(values: list[float]) -> None:
    ax = osd.plot.bars([{"p": "a", "v": value} for value in values], value="v", by="p").axes[0]
    drawn_whiskers = [s for each in ax.collections for s in getattr(each, "get_segments", list)()]
    assert drawn_whiskers == []


# -- Names of policies ----------------------------------------------------------------------------------------------------


def test_labels_are_the_policies_own_names(monkeypatch: pytest.MonkeyPatch) -> None:
    assert policy_labels(["a-srpt:tau=0", "srtf", "fifo+consolidated"]) == ["a-srpt", "srtf", "fifo"]
    assert policy_labels(["fifo", "fifo:skip=true+consolidated"]) == ["fifo", "fifo:skip=true+consolidated"]
    assert policy_labels(["mine", "mine", "sjf"]) == ["mine (1)", "mine (2)", "sjf"]
    assert policy_labels(["no_such_module:MyPolicy:x=2"]) == ["MyPolicy"]
    assert "no_such_module" not in sys.modules  # a label imports nothing
    module = types.ModuleType("plot_test_policies")
    module.Longest = type("Longest", (), {"name": "longest-first"})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "plot_test_policies", module)
    assert policy_labels(["plot_test_policies:Longest"]) == ["longest-first"]


def test_runs_without_names_bear_those_of_their_policies() -> None:
    runs = [osd.simulate("rigid-06-1", policy) for policy in ("fifo:skip=true", "srtf")]
    assert [name.partition(":")[0] for name in legend(osd.plot.jct_cdf(runs).axes[0])] == ["fifo", "srtf"]
    assert legend(osd.plot.over_time(runs).axes[0]) == ["fifo", "srtf"]
    document = osd.evaluate("rigid-06-1", ["fifo:skip=true", "srtf"]).to_json()
    assert words(osd.plot.ratios(document).get_yticklabels()) == ["fifo", "srtf"]


# -- One number in picture and table --------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["rigid-12-1", "cluster-week"])
def test_the_bars_of_a_report_say_what_its_table_says(source: str) -> None:
    report = osd.evaluate(source, ["fifo", "srtf"])
    console = Console(width=250, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(report_view(report))
    table = console.export_text()
    for text in words(osd.plot.ratios(report.to_json()).texts):
        value, ratio = text.removesuffix(" × optimum").split("   ")
        assert re.search(rf"[ │]{re.escape(value)} *[│|] *{re.escape(ratio)}[ │]", table), (text, table)


# -- Long tails -----------------------------------------------------------------------------------------------------------


def one_long_job(length: float, more: int = 40) -> osd.Run:
    jobs = [Job(f"{k}", arrival=5 * k, duration=50) for k in range(more)] + [Job("long", arrival=7, duration=length)]
    return osd.simulate(Instance(jobs, "1x4"), "fifo")


def test_one_very_long_job_does_not_squeeze_the_others() -> None:
    run = one_long_job(100_000)
    done = np.sort(run.schedule.completion)
    used, waiting = osd.plot.over_time([run]).axes
    assert used.get_xlim() == waiting.get_xlim() == (0, pytest.approx(1.05 * done[-2]))
    assert legend(used) == ["fifo (cut: 1 job until 27.8 h)"]
    assert osd.plot.over_time([run], end=float("inf")).axes[0].get_xlim() == (0, done[-1])
    assert osd.plot.over_time([run], end=100).axes[0].get_xlim() == (0, 100)


def test_what_is_no_tail_is_shown_to_its_end() -> None:
    for run in (one_long_job(700), one_long_job(100_000, more=5)):
        used, _ = osd.plot.over_time({"run": run}).axes
        assert used.get_xlim() == (0, run.schedule.completion.max())
        assert legend(used) == ["run"]
    with one_line(match="end = 0: .*seconds > 0"):
        osd.plot.over_time([one_long_job(700)], end=0)
