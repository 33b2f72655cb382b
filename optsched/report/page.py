"""One self-contained HTML page: a sentence, sections of tables and charts, the command and the versions.

The page needs no network and no other file. The template ``page.html.j2`` escapes every text, so names from a log cannot
become markup. A Content-Security-Policy lets only the page's own script run and nothing be fetched.
"""

from __future__ import annotations

import base64
import hashlib
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata, resources
from typing import Any, ClassVar

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from optsched.errors import printable
from optsched.problem.instance import Instance
from optsched.report.page_charts import GanttChart, LineChart, StripChart

TEMPLATE = "page.html.j2"
CURVES = 8  # colours of curves in the template
SHOWN_ROWS = 200  # of a table; a page is for reading
VERSIONS = ("optsched", "highspy", "numpy")


@dataclass(frozen=True)
class PageTable:
    """A table.

    Parameters
    ----------
    heads
        Heads of the columns. The first column names the rows.
    rows
        The cells of every row, as texts; rows after `SHOWN_ROWS` are only counted.
    caption
        Caption of the table, which also names it for screen readers.
    texts
        Heads of columns of texts, which are aligned left; all columns but the first are numbers otherwise.
    """

    kind: ClassVar[str] = "table"
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    texts: Sequence[str] = ()


@dataclass(frozen=True)
class PageFacts:
    """A list of facts.

    Parameters
    ----------
    facts
        (term, statement) of every fact.
    """

    kind: ClassVar[str] = "facts"
    facts: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class PageLines:
    """Notes, a line each.

    Parameters
    ----------
    lines
        The notes.
    """

    kind: ClassVar[str] = "lines"
    lines: Sequence[str]


@dataclass(frozen=True)
class PageListing:
    """Text in a fixed font, such as a command or a file.

    Parameters
    ----------
    text
        The text.
    """

    kind: ClassVar[str] = "listing"
    text: str


Part = PageTable | PageFacts | PageLines | PageListing | LineChart | GanttChart | StripChart


@dataclass(frozen=True)
class PageSection:
    """A section of the page.

    Parameters
    ----------
    title
        Heading.
    parts
        Tables, charts, facts and listings, in order.
    intro
        Paragraph under the heading.
    legend
        Names of the curves of the charts, in the order of their colours.
    more
        Parts that the reader opens with a click.
    more_title
        Heading of these parts.
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
    notes: Sequence[str] = (),
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
    notes
        Notes at the end of the page.
    instance
        The instance, for its name, size and digest.
    """
    return (
        _template()
        .render(
            title=title,
            sentence=sentence,
            details=details,
            figures=figures,
            sections=sections,
            command=command,
            notes=notes,
            origin=origin(instance),
            policy=_content_policy(),
            script=Markup(_part("page.js")),
            curves=CURVES,
            shown_rows=SHOWN_ROWS,
        )
        .lstrip()
    )


def origin(instance: Instance | None) -> list[tuple[str, str]]:
    """Return facts on the instance, and the versions of the programs, as (term, statement).

    Parameters
    ----------
    instance
        The instance, or None.
    """
    about = []
    if instance is not None:
        about.append(("Instance", f"{instance.name or 'unnamed'}: {instance.n:,} jobs on {instance.cluster.spec}"))
        about.append(("Digest of the instance", instance.digest))
    versions = [f"{name} {metadata.version(name)}" for name in VERSIONS]
    return [*about, ("Versions", ", ".join([*versions, f"Python {platform.python_version()}"]))]


def _shown(value: Any) -> Any:
    return value if isinstance(value, Markup) or not isinstance(value, str) else printable(value, lines=True)


@cache
def _part(name: str) -> str:
    return resources.files("optsched.report").joinpath(name).read_text(encoding="utf-8")


@cache
def _template() -> Template:
    options: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "undefined": StrictUndefined}
    environment = Environment(autoescape=True, finalize=_shown, **options)
    return environment.from_string(_part(TEMPLATE))


def _content_policy() -> str:
    digest = base64.b64encode(hashlib.sha256(_part("page.js").encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
