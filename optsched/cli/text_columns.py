"""Tables of texts: what ``list`` and ``check-policy`` print."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from optsched.cli.catalogue_entry import Entry
from optsched.contract.examine import Examination


def text_table(heads: Sequence[str], rows: Iterable[Sequence[str]], whole: int = 1) -> Table:
    """Return a table of texts.

    Parameters
    ----------
    heads
        Heads of the columns.
    rows
        Cells of every row.
    whole
        Number of columns, from the left, whose texts are not broken; others are broken between words.
    """
    table = Table(header_style="bold", pad_edge=False)
    for k, head in enumerate(heads):
        table.add_column(head, no_wrap=k < whole, overflow="ellipsis" if k < whole else "fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def names_view(kind: str, entries: Sequence[Entry]) -> Table:
    """Return the table of ``list KIND``: names, what they are, and further facts.

    Parameters
    ----------
    kind
        The kind of names.
    entries
        One entry a name.
    """
    rows = []
    for entry in entries:
        facts = "; ".join(f"{head}: {fact}" for head, fact in entry.facts)
        rows.append((entry.name, "\n".join(filter(None, [entry.text, facts]))))
    return text_table([kind, ""], rows)


def entry_view(entry: Entry) -> Group:
    """Return what ``list KIND NAME`` prints: parameters with their defaults, facts and the description.

    Parameters
    ----------
    entry
        The entry.
    """
    parts: list[Any] = [Text(f"{entry.name}: {entry.text}\n")]
    if entry.parameters:
        shown = 3 if any(parameter.meaning for parameter in entry.parameters) else 2
        rows = [(parameter.name, parameter.default, parameter.meaning)[:shown] for parameter in entry.parameters]
        table = text_table(("parameter", "default", "meaning and legal values")[:shown], rows)
        parts += [table, Text(f"written as: {entry.written}\n")]
    if entry.facts:
        facts = Table(box=None, show_header=False, pad_edge=False)
        facts.add_column(no_wrap=True, style="bold")
        facts.add_column(overflow="fold")
        for head, fact in entry.facts:
            facts.add_row(Text(head), Text(fact))
        parts += [facts, Text()]
    return Group(*parts, *([Text(entry.about)] if entry.about else []))


def examination_view(examination: Examination) -> Group:
    """Return the table of ``check-policy``: the verdict of every check.

    Parameters
    ----------
    examination
        The checks of a policy.
    """
    rows = [
        (finding.check, finding.verdict.replace("broken", "BROKEN"), finding.said or finding.summary)
        for finding in examination.findings
    ]
    subject = examination.subject
    table = text_table(["check", "", ""], rows, whole=2)
    return Group(table, Text(f"{subject.text}: {subject.knowledge}, for {subject.level.name}"))
