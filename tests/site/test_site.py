"""The site has everything, every link leads somewhere, and a browser shows every page without asking another machine."""

from __future__ import annotations

import importlib
import re
from collections import defaultdict
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote, urldefrag

import pytest
from pages.page import ROOT
from site_browser import chromium, search_results, served

import optsched
from optsched.cli.catalogue import entry
from optsched.models import FORMULATIONS
from optsched.policies import POLICIES
from optsched.simulation.policy import View

pytestmark = pytest.mark.site
WIDTHS = (1280, 390)  # desktop, phone
LOADING = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src"}
EMPTY = "[...document.images].filter(i => i.naturalWidth < 10).map(i => i.src)"
BLANK = r"""[...document.querySelectorAll("div.cell")]
  .map(cell => [cell.querySelector(".cell_input")?.innerText ?? "", [...cell.querySelectorAll(".cell_output img")]])
  .filter(([text, images]) => /osd\.plot\.|plt\.(show|subplots)\(/.test(text) && !images.some(i => i.naturalWidth >= 100))
  .map(([text]) => text.trim().split("\n").pop())"""  # a figure without axes is smaller than any picture of ours


class Read(HTMLParser):
    """What a page leads to, what it loads, and the ids that a link may name."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.ids: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self.ids.add(known.get("id") or "")
        if tag == "a" and known.get("href"):
            self.links.append(str(known["href"]))
        if tag in LOADING and known.get(LOADING[tag]):
            self.loaded.append(str(known[LOADING[tag]]))


@cache
def read(path: Path) -> Read:
    return Read(path)


def pages_of(site: Path) -> list[Path]:
    return sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)


def target(page: Path, link: str) -> tuple[Path, str]:
    place, fragment = urldefrag(link)
    return (page.parent / unquote(place)).resolve() if place else page, unquote(fragment)


def test_no_sentence_is_taken_for_a_parameter(site: Path) -> None:
    # What napoleon takes for a field, it shows as a name and, in brackets, the words before it.
    begun = re.compile(r"<strong>[^<]*</strong> \(<em>(?:(?:Raises|Returns|a|and|or|the|with|of)\b|</em>)[^<]*")
    taken = {path.name: begun.findall(path.read_text(encoding="utf-8")) for path in (site / "api").iterdir()}
    assert {name: found for name, found in taken.items() if found} == {}


def test_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in pages_of(site):
        for link in read(page).loaded:
            assert link.startswith("data:image/") or "//" not in link, (page, link[:200])
            assert link.startswith("data:") or target(page, link.partition("?")[0])[0].is_file(), (page, link)
        for link in read(page).links:
            if "://" in link or link.startswith("mailto:"):
                continue
            path, fragment = target(page, link)
            assert path.is_file(), (page, link)
            assert path.suffix != ".html" or not fragment or fragment in read(path).ids, (page, link)


def test_the_reference_is_complete(site: Path) -> None:
    documented = set().union(*(read(page).ids for page in pages_of(site) if page.parent.name == "api"))
    spaces = {name for name in optsched.__all__ if isinstance(getattr(optsched, name), ModuleType)}
    assert spaces == {"guarantees", "online", "plot", "speeds"}
    assert {f"optsched.{name}" for name in set(optsched.__all__) - spaces} <= documented
    for space in spaces:
        module = getattr(optsched, space)
        assert {f"optsched.{space}.{name}" for name in module.__all__} <= documented
    view = f"{View.__module__}.{View.__name__}"
    assert {f"{view}.{name}" for name in vars(View) if not name.startswith("_")} <= documented
    assert {"optsched.Instance.arrival", "optsched.Instance.class_eligible", "optsched.Cluster.node_type"} <= documented


def test_a_page_of_a_policy_has_every_parameter(site: Path) -> None:
    for name in POLICIES.names():
        text = (site / "catalogue" / "policies" / f"{name}.html").read_text(encoding="utf-8")
        for parameter in entry("policies", name).parameters:
            assert f">{parameter.name}<" in text, name


def test_every_formulation_and_every_notebook_has_a_page(site: Path) -> None:
    assert set(FORMULATIONS.names()) <= {path.stem for path in (site / "catalogue" / "models").iterdir()}
    shown = {path.stem for path in (site / "notebooks").glob("*.html")}
    assert shown == {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}


def test_what_is_asked_first_is_three_clicks_away(site: Path) -> None:
    clicks = {(site / "index.html").resolve(): 0}
    reached: dict[tuple[Path, str], int] = defaultdict(lambda: 99)
    queue = list(clicks)
    for page in queue:
        for link in read(page).links:
            if "://" not in link and clicks[page] < 3:
                path, fragment = target(page, link)
                reached[path, fragment] = min(reached[path, fragment], clicks[page] + 1)
                if path not in clicks and path.suffix == ".html":
                    clicks[path] = clicks[page] + 1
                    queue.append(path)
    for page, fragment in (
        ("own-policy.html", ""),
        ("glossary.html", "gang"),
        ("guarantees.html", "a-srpt"),
        ("catalogue/policies/hadar.html", ""),
    ):
        assert reached[(site / page).resolve(), fragment] <= 3, page
    lost = [page.name for page in pages_of(site) if page.resolve() not in clicks]
    assert set(lost) <= {"genindex.html", "search.html", "py-modindex.html"}


def not_loaded(url: str, request: Any) -> list[str]:
    """Report a request that failed, unless the browser cancelled it because the test went on to the next page."""
    return [] if request.failure == "net::ERR_ABORTED" else [f"{url}: not loaded: {request.url} ({request.failure})"]


def seen_wrong(site: Path) -> list[str]:
    """What a browser finds wrong with the pages of a folder, a line each."""
    wrong: list[str] = []
    with served(site) as address, chromium() as browser:
        page = browser.new_page()
        page.on("console", lambda said: wrong.append(f"{page.url}: {said.text}") if said.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(f"{page.url}: {error}"))
        page.on("requestfailed", lambda request: wrong.extend(not_loaded(page.url, request)))
        page.route(lambda url: not url.startswith((address, "data:")), lambda route: route.abort())
        for path in pages_of(site):
            page.set_viewport_size({"width": WIDTHS[0], "height": 900})
            page.goto(address + path.relative_to(site).as_posix())
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 900})
                if page.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
                    wrong.append(f"{path.name}: wider than {width} pixels")
            wrong += [f"{path.name}: an empty picture: {source}" for source in page.evaluate(EMPTY)]
            wrong += [f"{path.name}: a cell draws, and shows no picture: {cell}" for cell in page.evaluate(BLANK)]
    return wrong


def test_a_browser_shows_every_page(site: Path) -> None:
    wrong = seen_wrong(site)
    assert not wrong, "\n".join(wrong)


def test_a_page_that_is_wrong_is_seen(tmp_path: Path) -> None:
    wrong = {
        "request": '<script>fetch("https://example.org/x")</script>',
        "picture": '<img src="nowhere.png">',
        "console": '<script>console.error("bad")</script>',
        "exception": "<script>nowhere()</script>",
        "wide": '<div style="width: 500px">wide</div>',
        "blank": '<div class="cell"><div class="cell_input">osd.plot.gantt(run)</div></div>',
        "right": '<div style="width: 300px">narrow</div>',
    }
    for name, body in wrong.items():
        (tmp_path / f"{name}.html").write_text(f"<html><head><title>{name}</title></head><body>{body}</body></html>")
    (tmp_path / "favicon.ico").touch()
    seen = seen_wrong(tmp_path)
    assert [name for name in wrong if not any(f"{name}.html" in line for line in seen)] == ["right"]


def test_the_search_finds_a_policy(site: Path) -> None:
    with served(site) as address, chromium() as browser:
        page = browser.new_page()
        assert any("catalogue/policies/a-srpt.html" in link for link in search_results(page, address, "A-SRPT"))
        assert search_results(page, address, "nosuchwordanywhere") == []


def test_the_table_of_the_library_is_filtered(site: Path) -> None:
    with served(site) as address, chromium() as browser:
        page = browser.new_page()
        page.goto(address + "library.html")
        page.select_option("select[name=suite]", "gangs-16")
        page.select_option("select[name=solved]", "no")
        rows = page.query_selector_all("#library tbody tr:not([hidden])")
        assert len(rows) == optsched.library("gangs-16", solved=False).height
        assert page.inner_text("#library-count").startswith(f"{len(rows)} of ")


def test_a_slider_without_a_kernel_shows_what_it_was_set_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")
    shown = importlib.import_module("still_widgets").shown
    picture = {"data": {"image/png": "aGVs\nbG8=\n", "text/plain": "<Axes>"}}
    states = {
        "box": {"children": ["IPY_MODEL_slider", "IPY_MODEL_choice", "IPY_MODEL_output"]},
        "slider": {"description": "tau < 3", "value": 0.5},
        "choice": {"description": "rule", "index": 1, "_options_labels": ["fifo", "srtf"]},
        "output": {"outputs": [picture, {"output_type": "stream", "text": "1 < 2\n"}]},
    }
    text = shown({name: {"state": state} for name, state in states.items()}, "box")
    for part in (">tau &lt; 3 = 0.5<", ">rule = srtf<", 'src="data:image/png;base64,aGVsbG8="', "<pre>1 &lt; 2"):
        assert part in text
