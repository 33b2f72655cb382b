"""What a visitor looks for is there: cards, pictures, formulas, the API by task, results of papers, executed notebooks."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from types import ModuleType

import pytest
from pages.page import ROOT
from site_browser import chromium, search_results, served

import optsched
from optsched.studies.study_file import STUDIES

pytestmark = pytest.mark.site
WIDER = """[...document.querySelectorAll(".bd-article table")].filter(table => {
  const box = table.getBoundingClientRect();
  return box.right > document.documentElement.clientWidth + 1 && !table.closest(".library-scroll");
}).length"""


@pytest.fixture
def extension(monkeypatch: pytest.MonkeyPatch) -> object:
    """A module of docs/_ext by its name."""
    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")
    return importlib.import_module


def text_of(site: Path, page: str) -> str:
    return (site / page).read_text(encoding="utf-8")


def shown(html: str) -> str:
    """The words of a page."""
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def test_the_landing_page_says_what_how_and_where_to(site: Path) -> None:
    html = text_of(site, "index.html")
    cards = re.search(r'<div class="cards[^"]*">(.*?)</ul>', html, re.DOTALL)
    assert cards
    assert cards[1].count("<li>") >= 8
    assert "pip install" in shown(html)
    for part in ("first-steps.html", "gallery.html", "cite.html", "papers.html", "<img"):
        assert part in html, part
    assert 'rel="icon" href="_static/favicon.svg"' in html
    assert (site / "_static" / "favicon.svg").is_file()


def test_the_gallery_has_a_thumbnail_of_every_picture_and_of_every_notebook_that_draws(site: Path) -> None:
    html = text_of(site, "gallery.html")
    shots = re.findall(r'<a class="shot" href="([^"]*)"[^>]*>(.*?)</a>', html, re.DOTALL)
    for page, inside in shots:
        assert (site / page).is_file()
        if inside:
            image = re.search(r'src="([^"]+)"', inside)
            assert image, (page, inside)
            assert (site / image[1]).stat().st_size > 500
            assert "Picture drawn by the code above" not in inside
    drawn = [page for page, inside in shots if inside]
    for path in (site / "notebooks").glob("*.html"):
        draws = "_images/" in path.read_text(encoding="utf-8")
        assert (f"notebooks/{path.name}" in drawn) == draws, path.name
    assert {f"papers/{name}.html" for name in STUDIES.names()} <= set(drawn)
    assert sum(page == "pictures.html" for page in drawn) >= 10


def test_a_page_with_a_picture_that_shows_other_output_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    monkeypatch.setenv("COLUMNS", "80")
    build = importlib.import_module("build")
    monkeypatch.setattr(build, "DOCS", tmp_path)
    monkeypatch.setattr(build, "BUILT", tmp_path / "built")
    (tmp_path / "page.md").write_text("```python\nprint('osd.plot.gantt')\n```\n\n```text\nosd.plot.tasks\n```\n")
    with pytest.raises(ValueError, match=r"docs/page\.md: not what is printed"):
        build.illustrated("page.md", "", check=True)


def test_executed_notebooks_are_there_to_look_at(site: Path) -> None:
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        copy = json.loads((site / "notebooks" / "executed" / path.name).read_text(encoding="utf-8"))
        assert any(cell.get("outputs") for cell in copy["cells"]), path.name
        assert f'href="executed/{path.name}"' in text_of(site, f"notebooks/{path.stem}.html")


def test_theorems_and_catalogues_have_formulas(site: Path) -> None:
    theorems = text_of(site, "guarantees.html")
    assert theorems.count("<math") > 200
    for left in ("sum C_j", "sum w_j", "r_j", "&lt;="):
        assert left not in shown(theorems), left
    for page in (
        "catalogue/models/rigid-time-indexed.html",
        "catalogue/policies/alpha-points.html",
        "api/simulate.html",
    ):
        assert "<math" in text_of(site, page), page
    assert "sum_t start" not in shown(text_of(site, "catalogue/models/rigid-time-indexed.html").partition("<pre>")[0])


def test_formulas_are_found_and_words_stay(extension: object) -> None:
    marked = extension("mathematics").marked  # type: ignore[operator]
    assert marked("SRPT <= 5/4 OPT") == "SRPT ≤ $5/4 \\, \\mathrm{OPT}$"
    assert marked("P || C_max: the list") == "$P \\parallel C_{\\max}$: the list"
    assert marked("see P | r_j, size_j | sum w_j C_j.") == (
        "see $P \\mid r_{j},\\ \\mathrm{size}_{j} \\mid \\sum w_{j} \\, C_{j}$."
    )
    for text in (
        "a part of it",
        "the mean_jct of a job, or total_completion_time",
        "`sum C_j` stays, and ``r_j <= 3``",
        "seconds / batch, |x| and a | b",
        "I ask A for n jobs",
        "the sum n (3 - 2/m), the max n of them",
    ):
        assert marked(text) == text


def test_the_api_is_in_groups_and_every_name_has_one(site: Path, extension: object) -> None:
    tasks = extension("api_pages").TASKS  # type: ignore[operator]
    index = text_of(site, "api/index.html")
    for task, (heading, _, names, _) in tasks.items():
        assert heading in index
        page = text_of(site, f"api/{task}.html")
        for name in names.split():
            assert f'id="optsched.{name}"' in page, name
    public = {name for name in optsched.__all__ if not isinstance(getattr(optsched, name), ModuleType)}
    assert {name for _, _, names, _ in tasks.values() for name in names.split()} == public


def test_the_view_has_no_constructor(site: Path) -> None:
    html = text_of(site, "api/view.html")
    signature = re.search(r'<dt class="sig[^"]*" id="optsched.simulation.policy_view.View">(.*?)</dt>', html, re.DOTALL)
    assert signature
    assert "(" not in shown(signature[1])


def test_the_page_of_a_study_says_what_was_measured(site: Path, extension: object) -> None:
    record_of = extension("study_pages").record_of  # type: ignore[operator]
    for name in STUDIES.names():
        record, html = record_of(name), text_of(site, f"papers/{name}.html")
        words = shown(html)
        done = record.reproduction
        assert f"optsched {record.version} on {record.date}" in words
        assert f"{record.runs:,} runs" in words
        assert f"optsched reproduce {name}" in words
        assert done.claims
        for claim in done.claims:
            assert claim.spread in words, claim
            assert claim.verdict in words, claim
            assert all(source in html for source in re.findall(r"arXiv \d+\.\d+", claim.source))
        for outcome in done.outcomes:
            assert f'id="{outcome.experiment.name}"' in html
        assert html.count("<img") >= min(3, len(done.figures)) > 0
        assert f"{name}-tables.txt" in html
    assert "as published" in shown(text_of(site, "papers.html"))


def test_every_run_that_the_studies_ask_for_is_in_their_records(extension: object) -> None:
    record_of = extension("study_pages").record_of  # type: ignore[operator]
    for name in STUDIES.names():  # read_record refuses one that lacks a run
        record = record_of(name)
        assert record.version == optsched.__version__, "make study-pages"


def test_citing_is_what_the_citation_file_says(site: Path) -> None:
    words = shown(text_of(site, "cite.html"))
    for part in ("@software", "The optsched authors", f"{{ {optsched.__version__} }}", "Apache-2.0"):
        assert part.replace(" ", "") in words.replace(" ", ""), part


def test_tables_scroll_within_themselves_on_a_phone_and_code_has_copy_buttons(site: Path) -> None:
    with served(site) as address, chromium() as browser:
        page = browser.new_page(viewport={"width": 390, "height": 900})
        for name in ("catalogue/policies", "papers/hadar", "papers/sjf-bsbf", "guarantees", "trust", "api/index"):
            page.goto(f"{address}{name}.html")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
            assert page.evaluate(WIDER) == 0, name
        page.goto(address + "index.html")
        assert page.evaluate("document.querySelectorAll('div.highlight-sh button.copybtn').length") == 1
        assert page.evaluate("document.querySelectorAll('div.highlight-python button.copybtn').length") == 1
        assert page.evaluate("document.querySelectorAll('div.highlight-text button.copybtn').length") == 0
        page.goto(address + "notebooks/01_first_steps.html")
        assert page.evaluate("document.querySelectorAll('.cell_input button.copybtn').length") > 3
        assert page.evaluate("document.querySelectorAll('.cell_output button.copybtn').length") == 0


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("backfilling", "backfilling.html"),
        ("cluster's log", "files-and-formats.html"),
        ("log formats", "files-and-formats.html"),
        ("tutorial", "first-steps.html"),
        ("cite", "cite.html"),
        ("bibtex", "cite.html"),
    ],
)
def test_what_people_search_is_found(site: Path, words: str, found: str) -> None:
    with served(site) as address, chromium() as browser:
        links = search_results(browser.new_page(), address, words)
        assert any(found in link for link in links), links
