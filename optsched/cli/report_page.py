"""The page of ``--report``: tables that the terminal shows become tables of the page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched.problem.atomic_files import check_writable, write_atomic

if TYPE_CHECKING:
    from optsched.report.page import PageTable

PAGES = (".html",)
SIGN = re.compile(r"^([<>])=(?= [0-9])")  # in a cell that is a number


def check_report(file: Path | None) -> None:
    """Check before a long computation that the page can be written.

    Parameters
    ----------
    file
        The file of ``--report``; None for no page.

    Raises
    ------
    InputError
        The page cannot be written.
    """
    check_writable(file, "a report", PAGES)


def write_report(
    file: Path | None, view: Callable[[], Any], made: Callable[[list[PageTable], list[str], str], str]
) -> None:
    """Write the page of ``--report``, if it is asked for.

    Parameters
    ----------
    file
        The file; None for no page.
    view
        Makes what the terminal shows: a group of sheets and notes.
    made
        ``made(tables, notes, command)`` returns the page: tables and notes are those of the view.
    """
    if file is None:
        return
    from rich.text import Text

    from optsched.cli.layout import Sheet
    from optsched.cli.parser import command_line
    from optsched.report.page import PageTable

    parts = list(_parts(view()))

    def words(heads: Iterable[str]) -> list[str]:
        return [head.replace("_", " ") for head in heads]

    def signs(cells: Iterable[str]) -> list[str]:
        return [SIGN.sub(lambda sign: {"<": "\u2264", ">": "\u2265"}[sign[1]], cell) for cell in cells]

    tables = [
        PageTable(words(sheet.heads), [signs(row) for row, _ in sheet.rows], "", words([*sheet.texts, *sheet.tells]))
        for sheet in parts
        if isinstance(sheet, Sheet)
    ]
    write_atomic(file, made(tables, [part.plain for part in parts if isinstance(part, Text)], command_line()))


def _parts(view: Any) -> Iterator[Any]:
    """Yield the sheets and texts of a group, which may contain groups."""
    for part in getattr(view, "renderables", [view]):
        yield from _parts(part) if hasattr(part, "renderables") else [part]
