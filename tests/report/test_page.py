"""Pages to forward: their sentence, what they say over time and by class of job, escaping, access, and the option."""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optsched as osd
from optsched.evaluation.evaluate import evaluate
from optsched.evaluation.measured_ratio import BoundShown
from optsched.evaluation.report import Line, Report
from optsched.evaluation.score import in_words
from optsched.problem.instance import Instance, Job
from optsched.problem.schedule import Schedule
from optsched.report.job_groups import by_duration, by_people, by_size, gains
from optsched.report.optimality_sentence import comparison, distance
from optsched.report.page import PageSection, PageTable, page
from optsched.report.page_charts import line_chart, strip_chart
from optsched.report.run_page import gains_section, run_page
from optsched.report.series import over_time
from optsched.report.solution_page import schedule_section

EVIL = '<script>alert("x")</script>'
RESTARTS = "tiresias:threshold=20,round=3,restart=2"


class Markup(HTMLParser):
    """The elements of a page, and its text outside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.within = ""
        self.feed(text.replace("<wbr>", ""))

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.within = tag

    def handle_data(self, data: str) -> None:
        if self.within not in ("script", "style"):
            self.words.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@cache
def report(*policies: str) -> Report:
    jobs = [
        Job(f"{k}", arrival=7 * k, gpus=1 + k % 3, duration=5 + 40 * (k % 4), user="ab"[k % 2], group="g")
        for k in range(12)
    ]
    return evaluate(Instance(jobs, "2x2", "twelve"), list(policies) or ["fifo", RESTARTS], "total_flow_time")


def table_of(made: Report) -> PageTable:
    rows = [[line.policy, line.knowledge, "1", "<= 2", "3 s", "0"] for line in made.lines]
    return PageTable(["policy", "knowledge", "total flow time", "ratio", "mean JCT", "queued GPU-h avoided"], rows)


def html(made: Report) -> str:
    return run_page(made, table_of(made), ["a note"], "optsched run twelve")


# -- The sentence ------------------------------------------------------------------------------------------------------


def line(bound: BoundShown | None, value: float = 690e6, **other: Any) -> Line:
    return replace(report().lines[0], value=value, bound=bound, **other)


def bound(value: float, *, exact: bool = False, gain: bool = False) -> BoundShown:
    return BoundShown(value, "lp", "gang", exact, gain)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (
            line(bound(253e6)),
            "fifo took at most 2.73 times the best possible total flow time. "
            "At most 437.0 million of 690.0 million job-seconds were avoidable.",
        ),
        (line(bound(253e6), policy="as logged"), "The schedule that ran took at most 2.73 times the best possible"),
        (
            line(bound(100, exact=True), 150),
            "fifo took 1.50 times the best possible total flow time. 50 of 150 job-seconds",
        ),
        (line(bound(150), 150), "fifo is optimal: no schedule of the class gang has a better total flow time."),
        (
            line(bound(160), 150, policy="as logged"),
            "The log is inconsistent: its total flow time is better than the bound",
        ),
        (line(None), "No bound on the total flow time is known here"),
        (line(bound(0), 150), "fifo has no ratio to the best possible schedule"),
        (
            line(bound(150, gain=True), 100, objective="total_utility"),
            "The best possible total utility is at most 1.50 times",
        ),
        (line(bound(100), 130.5, objective="makespan"), "At most 30.5 s were avoidable."),
    ],
)
def test_the_sentence_says_how_far_from_the_best(made: Line, said: str) -> None:
    assert said in distance(made)


def test_an_avoidable_number_is_rounded_to_the_safe_side() -> None:
    assert "At most 253.9 million of" in distance(line(bound(690e6 - 253.84e6)))
    assert "437.4 million of" in distance(line(bound(690e6 - 437.4e6, exact=True)))


def test_unfinished_jobs_have_no_sentence_about_the_best() -> None:
    wide = Instance([Job("a", duration=1, gpus=4), Job("b", duration=1)], "1x2:V100+1x2:P100")
    made = evaluate(wide, "sjf+one-type")
    assert distance(made.lines[0]).startswith("sjf+one-type did not finish 1 of 2 jobs, so it has no total flow time")
    assert "Mean slowdown by gang" in html(made)


def test_the_best_policies_are_named_with_their_knowledge() -> None:
    first, best = comparison(report("fifo", "srtf", "setf"))[:2], report("fifo", "srtf").lines
    assert first[0].startswith("srtf (clairvoyant) comes closest: at most ")
    less = best[0].value - best[1].value
    assert f"It takes {in_words(less)} job-seconds less than fifo." in first[0]
    assert comparison(report("srtf", "fifo")) == ["No other policy of this page has a better total flow time."]
    assert comparison(report("fifo")) == []


# -- Over time ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["fifo", RESTARTS])
def test_curves_add_up_to_the_metrics_of_the_run(policy: str) -> None:
    (run,) = report(policy).runs
    hours, gpus = run.metrics["gpu_hours"], run.instance.cluster.gpus
    series, end, _, _ = over_time({"run": run.schedule})
    s = series["run"]
    held = float(np.dot(s.held, np.diff(np.append(s.edges, end))))
    working = gpus * float(np.dot(s.utilization, np.diff(np.append(s.days, end))))
    assert held / 3600 == pytest.approx(hours["busy"] + hours["overhead"])
    assert working / 3600 == pytest.approx(hours["busy"])
    assert (hours["overhead"] > 0) == (policy == RESTARTS)
    waiting = float(np.dot(s.waiting, np.diff(np.append(s.edges, end))))
    assert waiting == pytest.approx(run.metrics["mean_queueing"] * run.instance.n)


def test_the_longest_queue_is_exact() -> None:
    jobs = [Job("a", duration=10), Job("b", arrival=1, duration=10), Job("c", arrival=2, duration=1)]
    series, end, _, _ = over_time({"x": osd.simulate(Instance(jobs, "1x1"), "fifo").schedule})
    assert (series["x"].most_waiting, series["x"].when, end) == (2, 2, 21)


def test_paths_are_steps_and_ticks_are_round() -> None:
    curves = [("a", np.array([0.0, 45.0, 72.0]), np.array([92, 46, 46.0])), ("b", np.array([0.0]), np.array([0.0]))]
    chart = line_chart("x", curves, 90.0, ["falls", "flat"])
    assert chart.marks == [(1, "M0 0H500V200H1000"), (2, "M0 400H1000")]
    assert [label for _, label in chart.up] == ["25", "50", "75"]
    assert [label for _, label in chart.across] == ["0", "20", "40", "60", "80"]
    (strip,) = strip_chart("r", [("a", [1.0, 2.0, 1.5]), ("b", [])]).marks
    assert strip == ("a", [0, 49, 98], 49.02, "mean 1.500, largest 2.000")


# -- Classes of jobs, and who gains ------------------------------------------------------------------------------------


def small(*completions: float) -> Schedule:
    """Two jobs of a and b one after the other on one GPU, in the order of the arguments: (a, b) or (b, a)."""
    jobs = [Job("a", duration=100, user="ann"), Job("b", duration=5, user="bob")]
    order = "fifo" if completions[0] < completions[1] else "sjf"
    made = osd.simulate(Instance(jobs, "1x1"), order).schedule
    assert made.completion.tolist() == list(completions)
    return made


def test_jobs_fall_into_classes() -> None:
    instance = Instance([Job(f"{g}", gpus=g, duration=600 * g) for g in (1, 2, 3, 4, 5, 8, 9)], "1x16")
    sizes = by_size(instance)
    assert [sizes.names[k] for k in sizes.of] == [
        *("1 GPU", "2 GPUs", "3 to 4 GPUs", "3 to 4 GPUs", "5 to 8 GPUs", "5 to 8 GPUs", "9 to 16 GPUs")
    ]
    lengths = by_duration(instance)
    assert lengths.sizes.tolist() == [1, 4, 2, 0, 0]
    crossed = sizes.crossed(lengths)
    assert {crossed.names[k] for k in crossed.of if k >= 0} >= {"1 GPU, up to 10 min", "9 to 16 GPUs, 1 h to 6 h"}
    assert np.isnan(lengths.means(np.ones(7))[3:]).all()


def test_gains_are_changes_of_the_completion_times() -> None:
    first, other = small(100, 105), small(105, 5)
    field, users = by_people(first.instance)
    assert field == "user"
    found = gains(first, other, users)
    assert (found.earlier, found.later, found.worst) == (1, 1, 5)
    assert dict(zip(users.names, found.change.tolist(), strict=True)) == {"ann": 5, "bob": -100}
    assert gains_section({"only": first}) == []


# -- The document ------------------------------------------------------------------------------------------------------


def test_names_from_a_log_are_no_markup() -> None:
    jobs = [Job(f"{EVIL}{k}", duration=5 + k, user=EVIL * (k % 2) or "u", group='"onload="x') for k in range(4)]
    made = evaluate(Instance(jobs, "1x1", EVIL), ["fifo", "srtf"])
    made = replace(made, runs=(replace(made.runs[0], policy=EVIL), made.runs[1]))
    text = html(made)
    elements = Markup(text)
    assert len(elements.of("script")) == 1
    assert EVIL in elements.text
    assert [name for _, attributes in elements.elements for name in attributes if name.startswith("on")] == []
    gantt = Markup(page("", "", schedule_section({EVIL: made.runs[1].schedule})))
    assert len(gantt.of("script")) == 1
    assert f"job {EVIL}0" in gantt.text


def test_control_characters_are_shown_as_escapes() -> None:
    assert "a\\x1b[2Jb" in page("a\x1b[2Jb", "It works.", [])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("easy:order=shrinkage,depth=20+backfill", "easy:<wbr>order=<wbr>shrinkage,<wbr>depth=20+<wbr>backfill"),
        ("as/logged-run: a", "as/<wbr>logged-<wbr>run: a"),
        ("gpus=-10%, 1,234 on 2026-03-02", "gpus=-10%, 1,234 on 2026-03-02"),
        ("<a:b", "&lt;a:<wbr>b"),
    ],
)
def test_a_name_breaks_behind_its_signs_alone(text: str, shown: str) -> None:
    made = page("", text, [PageSection("x", [PageTable([text], [[text]])])])
    for element in ('p class="lead"', 'th scope="row"', 'th scope="col" class="text"'):
        assert f"<{element}>{shown}<" in made
    (names,) = re.findall(r"^tbody th, .*", made, re.MULTILINE)
    assert "overflow-wrap: break-word" in names  # a column is as wide as its longest part


def test_everybody_can_read_it() -> None:
    text = html(report("fifo", "srtf", RESTARTS))
    elements = Markup(text)
    assert text.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert len(elements.of("h1")) == 1
    targets = [a["href"] for a in elements.of("a")]
    assert targets == ["#main"]
    assert "main" in [m.get("id") for m in elements.of("main")]
    charts = [svg for svg in elements.of("svg") if svg.get("class") == "chart"]
    assert len(charts) == 3
    assert all(svg["role"] == "img" and len(svg["aria-label"] or "") > 20 for svg in charts)
    assert "fifo: mean " in (charts[0]["aria-label"] or "")
    assert {th.get("scope") for th in elements.of("th")} == {"col", "row"}
    assert len(elements.of("table")) == len(elements.of("caption")) >= 7
    assert len(elements.of("details")) == len(elements.of("summary")) == 1
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text
    assert 'data-scheme="dark"' in text
    assert ":focus-visible" in text


def test_it_asks_for_nothing_outside_of_the_file() -> None:
    text = html(report())
    assert not re.search(r"https?:|url\(|@import|<link|<img|\bsrc=", text)
    (policy,) = (m["content"] or "" for m in Markup(text).of("meta") if "http-equiv" in m)
    assert "default-src 'none'" in policy
    # the browser runs the script only if the policy states its digest
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy


def test_it_says_how_it_was_made() -> None:
    made = report()
    said = Markup(html(made)).text
    for fact in ("optsched run twelve", made.instance.digest, "highspy ", "numpy ", "Python 3.", "a note"):
        assert fact in said
    assert "tiresias:threshold=20,round=3,restart=2 stops jobs; restarts take" in said
    assert "it learns the processing time of a job when the job completes" in said
    assert "users that gain" in said


def test_its_size_does_not_grow_with_the_jobs() -> None:
    jobs = [Job(f"{k}", arrival=k, duration=1 + k % 50, user=f"u{k % 400}") for k in range(800)]
    many = html(evaluate(Instance(jobs, "4x8"), ["fifo", "sjf"]))
    assert len(many) < 60_000
    assert "the 10 that gain most and the 10 that lose most, of 400" in many


def test_a_long_table_ends() -> None:
    table = PageTable(["a", "b"], [[f"{k}", "1"] for k in range(250)])
    text = page("t", "s", [PageSection("x", [table])])
    assert text.count('<th scope="row">') == 200
    assert "50 more rows are not shown" in text


# -- The option --------------------------------------------------------------------------------------------------------


def test_run_writes_it_and_says_so(command: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "a page.html"
    asked = ("run", "rigid-06-1", "-p", "fifo", "-p", "srtf", "--report", file)
    assert f"wrote {file}" in command(*asked).words
    said = Markup(file.read_text(encoding="utf-8")).text
    assert "\u2264 1.1" in said
    assert shlex.join(["optsched", *map(str, asked)]) in said
    assert osd.load("rigid-06-1").digest in said
    assert command(*asked, "--json").document["runs"][0]["policy"] == "fifo"


def test_score_says_how_far_the_schedule_that_ran_is(command: Callable[..., Any], tmp_path: Path) -> None:
    log, file = tmp_path / "log.csv", tmp_path / "score.html"
    log.write_text(
        "id,arrival,gpus,duration,start,end\na,0,2,3600,0,3600\nb,100,4,7200,3600,10800\nc,200,1,600,3600,4200\n"
    )
    asked = (f"csv:{log}", "--cluster", "1x4", "--report", file)
    assert f"wrote {file}" in command("score", *asked).words
    said = Markup(file.read_text(encoding="utf-8")).text
    assert "times the best possible; at most" in said
    assert "capacity: job 'b' starts at 3,600 s: 5 GPUs are in use, of 4" in said
    assert "By week" in said
    assert command("run", *asked, "-p", "fifo").code == 0
    assert "The schedule that ran took" in Markup(file.read_text(encoding="utf-8")).text


def test_solve_draws_its_schedule(command: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "solve.html"
    assert f"wrote {file}" in command("solve", "rigid-06-1", "--report", file).words
    elements = Markup(file.read_text(encoding="utf-8"))
    assert "The optimal total completion time is 156; the schedule below attains it." in elements.text
    assert len([r for r in elements.of("rect") if r.get("class") == "block"]) >= 6
    assert "job 1: " in elements.text


def test_ratio_draws_every_instance(command: Callable[..., Any], tmp_path: Path) -> None:
    instances = tmp_path / "suite"
    instances.mkdir()
    for k in range(3):
        Instance([Job("a", duration=5), Job("b", duration=1 + k)], "1x1", f"i{k}").save(instances / f"i{k}.json")
    file = tmp_path / "ratio.html"
    document = command("ratio", instances, "-p", "fifo", "--report", file, "--json").document
    elements = Markup(file.read_text(encoding="utf-8"))
    ratios = {round(row["ratio"], 6) for row in document["policies"][0]["instances"]}
    assert len([mark for mark in elements.of("line") if mark.get("class") == "mark"]) == len(ratios) == 3
    assert "fifo took at most" in elements.text
    errors = ("--errors", "1,2", "--report", file)
    assert command("ratio", instances, "-p", "spjf", *errors).code == 0
    assert "With predictions that are wrong by up to 2 times, spjf took" in Markup(file.read_text()).text


def test_sweep_has_a_picture_of_its_ratios(command: Callable[..., Any], tmp_path: Path) -> None:
    grid = tmp_path / "grid.toml"
    lines = [
        'objectives = ["makespan"]',
        'seeds = "1-2"',
        'policies = ["fifo"]',
        "[[instances]]",
        'recipe = "rigid"',
        "jobs = 3",
    ]
    grid.write_text("\n".join(lines))
    file = tmp_path / "sweep.html"
    assert f"wrote {file}" in command("sweep", grid, "--workers", "1", "--report", file).words
    said = Markup(file.read_text(encoding="utf-8")).text
    assert "The sweep grid has 2 cells with results." in said
    assert "fifo has the smallest mean ratio of the makespan: at most" in said


@pytest.mark.parametrize("name", ["page.pdf", "page", "none/page.html"])
def test_a_page_that_cannot_be_written_is_refused_first(command: Callable[..., Any], tmp_path: Path, name: str) -> None:
    for asked in (("run", "cluster-week", "-p", "fifo"), ("solve", "rigid-06-1"), ("ratio", "ddl", "-p", "spjf")):
        assert name in command(*asked, "--report", tmp_path / name).mistake
    assert not list(tmp_path.iterdir())


def test_a_page_never_replaces_what_is_read(command: Callable[..., Any], tmp_path: Path) -> None:
    log = tmp_path / "log.html"
    log.write_text("arrival,gpus,duration\n0,1,5\n")
    line = command("run", f"csv:{log}", "--cluster", "1x1", "-p", "fifo", "--report", log).mistake
    assert "--report" in line
    assert "would replace its own source" in line
    assert log.read_text().startswith("arrival")


@pytest.mark.study
def test_a_page_of_a_month_of_philly(command: Callable[..., Any], data_dir: Path, tmp_path: Path) -> None:
    source, file = f"philly:{data_dir / 'philly' / 'philly.csv'}", tmp_path / "philly.html"
    asked = ("--cluster", "50x8", "--limit", "20000", "-p", "fifo", "-p", "sjf", "-p", "srtf")
    assert command("run", source, *asked, "--report", file).code == 0
    assert file.stat().st_size < 3_000_000
