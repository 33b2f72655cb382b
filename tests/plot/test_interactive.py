"""The page to zoom into: its rectangles and facts against the schedule, in one file that asks for nothing else."""

from __future__ import annotations

import importlib.util
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optsched as osd
from optsched.errors import InputError, NotInstalledError
from optsched.plot.interactive import interactive
from optsched.problem.instance import Instance, Job
from optsched.problem.schedule import Schedule

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
        "plot", tmp_path / "s.json", "--instance", tmp_path / "i.json", "--to", "60s", "-o", tmp_path / "p.html"
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
