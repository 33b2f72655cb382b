"""One self-contained HTML page: a sentence, sections of tables and charts, the command and the versions.

The page needs no network and no other file. The template ``page.html.j2`` escapes every text, so names from a log cannot
become markup. A Content-Security-Policy lets only the page's own script run and nothing be fetched.
"""

from __future__ import annotations

import base64
import hashlib
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata, resources
from typing import Any, ClassVar

from jinja2 import Environment, StrictUndefined, Template

from optsched.classes import CLASSES
from optsched.errors import printable
from optsched.io.traces.log_reading import dates_of, in_its_unit
from optsched.problem.instance import Instance
from optsched.report.page_charts import PageChart

CURVES = 8  # colours of curves in the template
SHOWN_ROWS = 200  # of a table; a page is for reading
PROGRAMS = ("optsched", "highspy", "numpy")
GLOSSARY = {  # words that are explained at the foot of a page on which they occur
    "as logged": "the schedule that really ran, as the log states it",
    "JCT": "job completion time: from the submission of a job to its completion, including its wait",
    "wait": "queueing time: the JCT of a job without the time for which it held its GPUs",
    "gang": "the GPUs that a job holds at the same time",
    "queued GPU-h": "GPU-hours in which gangs wait or restart: time times GPUs, over all jobs; they are not hardware",
    "slowdown": "bounded slowdown of a job: max(1, JCT / max(duration, 10 s)); 1 if it never waited",
    "total flow time": "the JCTs of all jobs, added up, in job-seconds",
    "ratio": "value of a schedule / that of the best possible schedule; ≤ where only a bound on the best is known",
    "makespan": "time from the first submission to the last completion",
    "util": "share of the GPU time, from the first submission to the last completion, in which GPUs do work",
    "max FTF": "finish-time fairness: the largest JCT of a job relative to its JCT on an equal share of the cluster",
    "p95": "95 % of the values are at most this; p50, p90 and p99 likewise",
}
# a line may break behind these signs within a name, but not within a number or before it
BREAK = re.compile(r"(?<=[\w)\]])(?!(?<=\d).\d)([:,+/-](?=\w)|=(?=[^\W\d]{6}))")


@dataclass(frozen=True)
class PageTable:
    """A table: the first column names the rows; columns of ``texts`` are aligned left, all others right as numbers."""

    kind: ClassVar[str] = "table"
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    texts: Sequence[str] = ()


@dataclass(frozen=True)
class PageFacts:
    """A list of (term, statement)."""

    kind: ClassVar[str] = "facts"
    facts: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class PageLines:
    """Notes, a line each."""

    kind: ClassVar[str] = "lines"
    lines: Sequence[str]


@dataclass(frozen=True)
class PageListing:
    """Text in a fixed font, such as a command or a file."""

    kind: ClassVar[str] = "listing"
    text: str


Part = PageTable | PageFacts | PageLines | PageListing | PageChart


@dataclass(frozen=True)
class PageSection:
    """A section of the page.

    ``legend`` names the curves of its charts in the order of their colours. The reader opens the parts of ``more`` with a
    click on ``more_title``.
    """

    title: str
    parts: Sequence[Part]
    intro: str = ""
    legend: Sequence[str] = ()
    more: Sequence[Part] = ()
    more_title: str = "More"


def page(
    title: str,
    sentence: str,
    sections: Sequence[PageSection],
    *,
    details: Sequence[str] = (),
    figures: Sequence[tuple[str, str]] = (),
    command: str = "",
    instance: Instance | None = None,
) -> str:
    """Return an HTML document.

    Parameters
    ----------
    title
        Title of the page.
    sentence
        The main result in one plain sentence.
    sections
        The sections, in order.
    details
        Further sentences below the main one.
    figures
        (number, meaning) of the main numbers.
    command
        The command that made the page.
    instance
        The instance, for its name, size and digest.
    """
    origin = []
    if instance is not None:
        origin.append(("Instance", f"{instance.name or 'unnamed'}: {instance.n:,} jobs on {instance.cluster.spec}"))
        origin.append(("Digest of the instance", instance.digest))
    versions = [*(f"{name} {metadata.version(name)}" for name in PROGRAMS), f"Python {platform.python_version()}"]
    dates = "" if instance is None else dates_of(instance)
    script = _file("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    document = _template().render(
        title=f"{title} ({dates})" if dates else title,
        sentence=sentence,
        details=details,
        figures=figures,
        sections=sections,
        command=command,
        glossary=_glossary(repr((sentence, details, figures, sections)), instance),
        origin=[*origin, ("Versions", ", ".join(versions))],
        policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        script=script,
        curves=CURVES,
        shown_rows=SHOWN_ROWS,
    )
    return document.lstrip()


def _glossary(text: str, instance: Instance | None) -> list[tuple[str, str]]:
    """Return (word, meaning) of the words and the classes of schedules that occur in a text."""
    words = list(GLOSSARY.items())
    words += [(f"class {name}", f"bounds on {kind.optimum}") for name, kind in CLASSES.items()]
    if instance is not None:
        words = [(in_its_unit(instance, word), in_its_unit(instance, said)) for word, said in words]
    return [(word, said) for word, said in words if re.search(rf"\b{word}(?![-\w])", text)]


@cache
def _file(name: str) -> str:
    return resources.files("optsched.report").joinpath(name).read_text(encoding="utf-8")


@cache
def _template() -> Template:
    options: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "undefined": StrictUndefined}
    environment = Environment(autoescape=True, finalize=_shown, **options)
    environment.filters["parts"] = _parts
    return environment.from_string(_file("page.html.j2"))


def _shown(value: Any) -> Any:
    """Return a text of the page with control characters as escapes; markup of the template itself is another type."""
    return printable(value, lines=True) if type(value) is str else value


def _parts(value: Any) -> list[str]:
    """Return the parts of a text between which a line may break within a name."""
    return BREAK.sub("\\1\0", _shown(str(value))).split("\0")
