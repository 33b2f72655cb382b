"""The tables of ``library``."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.text import Text

from optsched.cli.layout import Sheet
from optsched.cli.wording import gap_text
from optsched.rounding import number


def library_suites_view(rows: list[dict[str, Any]]) -> Group:
    """Return the table of all suites: sizes, proven optima, the largest gap, CPU time.

    Parameters
    ----------
    rows
        The instances of the library.
    """
    sheet = Sheet(("suite", "instances", "jobs", "solved", "worst gap", "CPU s"))
    for suite in dict.fromkeys(row["suite"] for row in rows):
        members = [row for row in rows if row["suite"] == suite]
        jobs = [row["jobs"] for row in members]
        least, most = min(jobs), max(jobs)
        gaps = [row["gap"] for row in members if not row["solved"]]
        worst = "" if not gaps else "unknown" if None in gaps else gap_text(max(gaps))
        proved = sum(row["solved"] for row in members)
        seconds = sum(row["seconds"] or 0.0 for row in members)
        span = f"{least:,}" if least == most else f"{least}-{most:,}"
        sheet.add(suite, str(len(members)), span, str(proved), worst, f"{seconds:,.0f}")
    solved = sum(row["solved"] for row in rows)
    note = f"{len(rows)} instances, {solved} solved; instances of a suite: optsched library list SUITE"
    return Group(sheet, Text(note))


def library_view(rows: list[dict[str, Any]]) -> Group:
    """Return the table of a suite: for every instance its optimum or interval, and the methods that proved it.

    Parameters
    ----------
    rows
        Instances of the library.
    """
    sheet = Sheet(("instance", "jobs", "value", "bound", "gap", "by"), tells=("by",))
    for row in rows:
        gap = "optimal" if row["solved"] else gap_text(row["gap"])
        by = row["proved_by"] or f"{row['found_by']}; bound {row['bound_by']}"
        sheet.add(row["name"], f"{row['jobs']:,}", number(row["value"]), number(row["bound"]), gap, by)
    what = ", ".join(dict.fromkeys(f"{row['problem']} ({row['objective']}, {row['class']})" for row in rows[:1]))
    more = "" if len({row["problem"] for row in rows}) <= 1 else ", ..."
    return Group(sheet, Text(f"{len(rows)} instances: {what}{more}" if rows else "no such instances"))
