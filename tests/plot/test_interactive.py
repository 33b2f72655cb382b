"""The page to zoom into, windows of time and sliders."""

from __future__ import annotations

import base64
import builtins
import importlib.util
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plot.drawn import rectangles

import optsched as osd
from optsched.errors import InputError, NotInstalledError
from optsched.plot.canvas import new_axes, new_figure
from optsched.plot.gantt import gantt
from optsched.plot.interactive import interactive
from optsched.plot.node_rows import busy_share
from optsched.plot.occupancy import occupancy
from optsched.plot.sliders import WIDGET
from optsched.plot.time_axis import moment
from optsched.plot.timeline import Timeline
from optsched.problem.instance import Instance, Job
from optsched.problem.schedule import Schedule

# -- The page to zoom into: its rectangles and facts against the schedule, in one file that asks for nothing else ---------


pytestmark = pytest.mark.release

needs_bokeh = pytest.mark.skipif(importlib.util.find_spec("bokeh") is None, reason="Bokeh is not installed")


def sources(page: Any) -> list[dict[str, Any]]:
    return [renderer.data_source.data for panel in page.children for renderer in panel.renderers]


def blocks_in(page: Any) -> dict[str, Any]:
    [found] = [data for data in sources(page) if "job" in data]
    return found


@needs_bokeh
def test_rectangles_cover_the_gpu_seconds_and_carry_the_facts_of_their_jobs(gangs: Schedule) -> None:
    page = interactive(gangs)
    data = blocks_in(page)
    gpus = np.round(np.asarray(data["bottom"], dtype=float) - data["top"])
    area = dict.fromkeys("abc", 0.0)
    for job, high, left, right in zip(data["job"], gpus, data["left"], data["right"], strict=True):
        area[job] += high * (right - left)
    assert area == {"a": 400, "b": 2 * 65, "c": 30}
    row = list(data["job"]).index("b")
    assert [data[name][row] for name in ("arrival", "completion", "JCT", "GPUs")] == [10, 105, 95, 2]
    assert data["nodes"][row] == "1 V100"
    assert data["nodes"][list(data["job"]).index("a")] == "0 V100, 1 V100"
    # b restarts for 5 s on two GPUs, which stand together
    [held] = [data for data in sources(page) if "right" in data and len(data["right"]) == 1 and "job" not in data]
    assert (held["left"][0], held["right"][0]) == (80, 85)


@needs_bokeh
def test_labels_and_predictions_are_shown_where_they_are_known() -> None:
    jobs = [Job(f"{k}", duration=10 + k, user="ann" if k else None) for k in range(3)]
    data = blocks_in(interactive(osd.simulate(Instance(jobs, "1x1"), "spjf:predictor=perfect")))
    assert list(data["user"]) == ["-", "ann", "ann"]
    assert list(data["predicted length"]) == list(data["length"]) == [10, 11, 12]
    assert "model" not in data


@needs_bokeh
def test_a_page_is_one_file_without_a_network(gangs: Schedule, tmp_path: Path, command: Callable[..., Any]) -> None:
    gangs.save(tmp_path / "s.json")
    gangs.instance.save(tmp_path / "i.json")
    done = command(
        "plot", tmp_path / "s.json", "--instance", tmp_path / "i.json", "--end", "60s", "-o", tmp_path / "p.html"
    )
    assert (done.code, done.err) == (0, "")
    text = (tmp_path / "p.html").read_text()
    assert not re.search(r"<(script|link|img)[^>]*(src|href)=", text)
    assert "by hand: 3 jobs" in text
    assert len(text) < 2_500_000
    alone = command("plot", tmp_path / "s.json", "-o", tmp_path / "alone.html")
    assert alone.code == 0
    refused = command("plot", tmp_path / "s.json", "-o", tmp_path / "p.htm")
    assert (refused.code, "expected: .png, .svg, .pdf, .html" in refused.err) == (2, True)
    osd.plot.save(interactive(gangs), tmp_path / "q.html")
    with pytest.raises(InputError, match=r"not for this picture \(expected: .html\)"):
        osd.plot.save(interactive(gangs), tmp_path / "q.png")


def test_a_still_picture_is_no_page(gangs: Schedule, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected: .png, .svg, .pdf"):
        osd.plot.save(osd.plot.gantt(gangs).figure, tmp_path / "a.html")
    assert not list(tmp_path.iterdir())


def test_without_bokeh_one_line_says_what_to_install(
    gangs: Schedule, tmp_path: Path, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(NotInstalledError, match=r"pip install 'optsched\[interactive\]'"):
        interactive(gangs)
    gangs.save(tmp_path / "s.json")
    done = command("plot", tmp_path / "s.json", "-o", tmp_path / "p.html")
    assert (done.code, done.err.count("\n")) == (2, 1)


TIPS = """() => {
  const found = [], walk = (node) => {
    for (const child of node.children) {
      if (child.classList.contains("bk-tooltip-content")) found.push(child.textContent);
      if (child.shadowRoot) walk(child.shadowRoot);
      walk(child);
    }
  };
  walk(document.body);
  return found.join(" ").split(/\\s+/).join(" ");
}"""


@needs_bokeh
@pytest.mark.release
def test_a_browser_zooms_and_shows_the_job_under_the_pointer(gangs: Schedule, tmp_path: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("there is no Chromium on the path")
    osd.plot.save(interactive(gangs), tmp_path / "p.html")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1200, "height": 950})
        wrong: list[str] = []
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto((tmp_path / "p.html").as_uri())
        page.wait_for_selector(".bk-Column", state="attached")
        page.wait_for_timeout(1000)
        span = "() => { const r = Bokeh.documents[0].roots()[0].children[0].x_range; return r.end - r.start }"
        assert page.evaluate(span) == 105
        page.mouse.move(500, 70)  # job a is on the first two GPUs from 0 to 100 s
        page.mouse.wheel(0, -300)
        page.wait_for_function(f"() => ({span})() < 100")
        for x in (500, 503, 506):
            page.mouse.move(x, 70)
            page.wait_for_timeout(200)
        said = page.evaluate(TIPS)
        browser.close()
    assert wrong == []
    assert "job: a arrival: 00:00:00 completion: 00:01:40 JCT: 00:01:40 GPUs: 4 nodes: 0 V100, 1 V100" in said
    assert "here from: 00:00:00 here to: 00:01:40" in said


# -- A window of time: in Python, and as ``optsched plot --start --end`` ----------------------------------------------------


def test_only_what_happens_in_the_window_is_drawn(gangs: Schedule) -> None:
    ax = gantt(gangs, start=55, end=79)
    assert ax.get_xlim() == (55, 79)
    assert {r[:2] for r in rectangles(ax, "_blocks")} == {(0, 100), (50, 80)}  # b is preempted from 50 to 80
    assert [r[:2] for r in rectangles(ax, "_waits")] == [(55, 79)]
    assert rectangles(ax, "_arrivals") == []  # the last job had arrived at 20
    assert ax.get_title(loc="left") == "mine on by hand: 3 jobs, 8 GPUs, 55 to 79 s"
    assert gantt(gangs, start=15).get_xlim() == (15, 105)
    assert gantt(gangs, end=15).get_xlim() == (0, 15)
    assert gantt(gangs, start=0, end=3600, by="node").get_title(loc="left").endswith("0 to 60 min")


def test_ids_stand_in_the_middle_of_what_is_seen(gangs: Schedule) -> None:
    ax = gantt(gangs, start=60, end=70)
    assert {text.get_position()[0] for text in ax.texts if text.get_text() in ("a", "c")} == {65}


@pytest.mark.parametrize(("start", "end"), [(0.0, 30.0), (12.5, 61.0), (81.0, None)])
def test_curves_and_shares_are_those_of_the_whole(gangs: Schedule, start: float, end: float | None) -> None:
    window = Timeline.of(gangs).within(start, end)
    low, high = window.span
    share, _ = busy_share(window, low, high, bins=200)
    whole, _ = busy_share(Timeline.of(gangs), low, high, bins=200)
    assert np.allclose(share, whole)
    middle = low + (np.arange(200) + 0.5) * (high - low) / 200
    for node in (0, 1):
        held = [sum(p[0] == node for s in gangs.segments() if s.start <= t < s.end for p in s.gpus) for t in middle]
        assert np.abs(share[node] * 4 - held).max() <= 4 * 0.51
        assert np.mean(np.abs(share[node] * 4 - held)) < 0.1
    busy, waiting = occupancy(gangs, start=start, end=end)
    assert busy.get_xlim() == waiting.get_xlim() == (low, high)


def test_a_short_window_of_a_long_run_shows_blocks() -> None:
    run = osd.simulate("cluster-week", "srtf")
    whole, day = Timeline.of(run), Timeline.of(run).within(86400, 86400 + 3600)
    seen = (run.schedule.start < 90000) & (run.schedule.end > 86400)
    assert day.job.tolist() == run.schedule.job[seen].tolist()
    assert day.gpu_offset[-1] == day.node.size == run.schedule.gangs[seen].sum()
    assert day.job.size < whole.job.size / 10


@pytest.mark.parametrize(("start", "end"), [(50, 50), (60, 50), (105, None), (None, 0), (200, 300), (float("nan"), 3)])
def test_a_window_in_which_nothing_lies_is_an_error(gangs: Schedule, start: float | None, end: float | None) -> None:
    with pytest.raises(
        InputError, match=r"nothing to show \(expected: start < end, seconds, in part within 0 \.\. 105\)"
    ):
        gantt(gangs, start=start, end=end)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(None, None), (90, 90), ("90", 90), ("90s", 90), ("1.5 h", 5400), ("2d", 172800), ("1e3", 1e3)],
)
def test_moments_are_seconds_or_have_a_unit(text: str | None, seconds: float | None) -> None:
    assert moment(text, "from") == seconds


@pytest.mark.parametrize("text", ["", "h", "2 weeks", "1:30", "nan", "--"])
def test_what_is_no_moment_is_told(text: str) -> None:
    with pytest.raises(InputError, match=r"from = .*: not a time \(expected: seconds, or a time such as 10s"):
        moment(text, "from")


def test_the_command_line_draws_a_window(gangs: Schedule, tmp_path: Path, command: Any) -> None:
    place, picture = tmp_path / "mine.json", tmp_path / "mine.svg"
    gangs.save(place)
    gangs.instance.save(tmp_path / "instance.json")
    plot = ("plot", place, "--instance", tmp_path / "instance.json", "-o", picture)
    assert command(*plot, "--start", "0.5min", "--end", "1min").code == 0
    assert "3 jobs, 8 GPUs, 30 to 60 s" in picture.read_text()
    later = osd.load(tmp_path / "instance.json", since="15s")  # a window of the jobs, which is another instance
    osd.simulate(later, "fifo").schedule.save(place)
    assert "belongs to another instance" in command(*plot).mistake
    assert command(*plot, "--from", "15s").code == 0
    assert "start = 'soon': not a time" in command(*plot, "--start", "soon").mistake


# -- Sliders: a picture everywhere, a widget where there is one, and each place drawn once --------------------------------


drawn: list[tuple[int, str]] = []


def draw(height: int = 2, colour: str = "red") -> Any:
    drawn.append((height, colour))
    axes = new_axes(new_figure(2, height))
    axes.plot([0, 1], color=colour)
    return axes


def size(png: bytes) -> tuple[int, int]:
    return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")


def test_it_starts_at_the_default_and_draws_every_place_once() -> None:
    drawn.clear()
    picture = osd.plot.sliders(draw, height=[1, 2, 3], colour=["blue", "red"])
    assert picture.start == {"height": 2, "colour": "red"}
    assert size(picture.png()) == (200, 200)
    assert size(picture.png(height=3)) == (200, 300)
    picture.png(height=2, colour="red")
    assert drawn == [(2, "red"), (3, "red")]
    assert osd.plot.sliders(draw, colour=["blue"]).start == {"colour": "blue"}, (
        "a default that is no choice is no start"
    )


def test_a_page_without_widgets_gets_the_picture_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == "ipywidgets":
            raise ModuleNotFoundError(name)
        return imported(name, *rest)

    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    monkeypatch.setattr(builtins, "__import__", without)
    picture = osd.plot.sliders(draw, height=[1, 2])
    shown = picture._repr_mimebundle_()
    assert set(shown) == {"text/plain", "image/png"}
    assert base64.b64decode(shown["image/png"]) == picture.png()


def test_a_slider_that_moves_changes_the_picture() -> None:
    pytest.importorskip("ipywidgets")
    picture = osd.plot.sliders(draw, height=[1, 2])
    shown = picture._repr_mimebundle_()
    assert {"image/png", WIDGET} <= set(shown)
    knob, output = picture._widget().children
    for height in (1, 2):
        knob.value = height
        assert base64.b64decode(output.outputs[0]["data"]["image/png"]) == picture.png(height=height)


@pytest.mark.parametrize(
    ("choices", "message"),
    [({"width": [1]}, "choices = 'width'.*parameters of draw"), ({"height": []}, "height.*at least one value")],
)
def test_what_cannot_be_moved_is_said(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(osd.InputError, match=message):
        osd.plot.sliders(draw, **choices)
