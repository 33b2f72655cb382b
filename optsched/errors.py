"""What can go wrong, and whose fault it is: a user's mistake is an `InputError`, always one clear line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import Any

SHOWN_ROWS = 20  # bad rows printed one by one; the summary line counts all of them
# C0, DEL and C1, line and paragraph separators, marks that turn the direction of writing, and halves of surrogate pairs,
# which no stream can encode
_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_BUT_LINES = re.compile("(?!\n)" + _OBEYED.pattern)


def printable(text: str, *, lines: bool = False) -> str:
    r"""``text`` with every control character as its escape (``\x1b``); ``lines`` keeps line breaks.

    >>> print(printable("a\x1b[2Jb\n"))
    a\x1b[2Jb\n
    """
    return (_BUT_LINES if lines else _OBEYED).sub(lambda found: repr(found[0])[1:-1], text)


class OptschedError(Exception):
    """Base of every error that optsched raises on purpose."""


def describe(
    message: str,
    *,
    file: str | PathLike[str] | None = None,
    row: int | str | None = None,
    field: str | None = None,
    value: Any = ...,
    legal: str | None = None,
) -> str:
    """One line: ``file, row, field = value: message (expected: ...)``. ``row``: its number, or what to call it."""
    where = [_place(file, row)] if (file, row) != (None, None) else []
    if field is not None:
        where.append(f"{field} = {value!r}" if value is not ... else field)
    elif value is not ...:
        where.append(repr(value))
    text = f"{', '.join(where)}: {message}" if where else message
    if legal is not None:
        text += f"; {legal}" if legal.startswith("did you mean") else f" (expected: {legal})"
    return printable(" ".join(text.split()))


def _place(file: str | PathLike[str] | None, row: int | str | None) -> str:
    rows = [] if row is None else [row if isinstance(row, str) else f"row {row}"]
    return printable(", ".join([*([] if file is None else [str(file)]), *rows]))


class InputError(OptschedError, ValueError):
    """A user's mistake. `str()` is one line that names file, row, field, value and what is legal.

    It is a `ValueError`, too, so that whoever knows only Python's own errors catches it.

    Parameters are those of `describe`; the command line prints the line and exits with 2.
    """

    def __init__(self, message: str, **where: Any) -> None:
        super().__init__(describe(message, **where))
        self.field: str | None = where.get("field")
        self.legal: str | None = where.get("legal")


def check_legal(holds: bool, field: str, value: Any, legal: str, **where: Any) -> None:
    """`InputError` that names ``field``, its ``value`` and what is ``legal``, unless it ``holds``."""
    if not holds:
        raise InputError("invalid", field=field, value=value, legal=legal, **where)


@contextmanager
def naming(file: str | PathLike[str], field: str | None = None) -> Iterator[None]:
    """An `InputError` that is raised inside, and does not begin with the name of this file, is given it."""
    try:
        yield
    except InputError as error:
        if str(error).startswith(str(file)):
            raise
        raise InputError(str(error), file=file, field=field) from None


class NotInstalledError(InputError):
    """What was asked for needs an optional part that is not installed; ``legal`` says how to get it."""


@dataclass(frozen=True, slots=True)
class RowProblem:
    """One value of one row that is invalid; ``row`` is the 1-based line number in the file."""

    row: int
    field: str
    value: Any
    legal: str
    message: str = "invalid"


class RowErrors(InputError):
    """Every bad row of a file at once: a summary line, then one line a row (the first 20) with all that is wrong in it.

    ``file`` may be None for tables that came from memory. ``rows`` is the number of
    rows read, good and bad (0: not known). ``job``: where rows are jobs of a document, what to call each of them.
    """

    def __init__(
        self,
        file: str | PathLike[str] | None,
        problems: Sequence[RowProblem],
        rows: int,
        job: Callable[[int], str] | None = None,
    ) -> None:
        self.problems = tuple(problems)
        self.rows = rows
        found: dict[int, list[RowProblem]] = {}
        for problem in self.problems:
            found.setdefault(problem.row, []).append(problem)
        bad, noun = len(found), "row" if job is None else "job"
        counted = f"{bad} of {rows} {noun}s" if rows else f"{bad} {noun}{'s' if bad != 1 else ''}"
        lines = [describe(f"{counted} invalid", file=file)]
        for row, several in list(found.items())[:SHOWN_ROWS]:
            where = row if job is None else job(row)
            said = [describe(each.message, field=each.field, value=each.value, legal=each.legal) for each in several]
            lines.append(f"  {_place(file, where)}, {'; '.join(said)}")
        if bad > SHOWN_ROWS:
            lines.append(f"  ... and {bad - SHOWN_ROWS} more")
        OptschedError.__init__(self, "\n".join(lines))


class KnowledgeError(OptschedError):
    """A policy asked for something that its `Knowledge` does not reveal."""


class SimulationError(OptschedError):
    """A run broke a rule of the engine: a decision that is not possible, or work that was not conserved."""


class InfeasibleError(OptschedError):
    """A formulation has no solution; the message names the rows that conflict."""
