"""Errors of optsched; a mistake of the user is an `InputError` with one clear line."""

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
    r"""Return a text with every control character as its escape (``\x1b``).

    Parameters
    ----------
    text
        The text.
    lines
        Whether to keep line breaks.

    Examples
    --------
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
    """Return an error in one line: ``file, row, field = value: message (expected: ...)``.

    Parameters
    ----------
    message
        The message.
    file
        File with the mistake.
    row
        Number of the row, or its name.
    field
        Name of the field.
    value
        The wrong value.
    legal
        Legal values.
    """
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
    """A mistake of the user. `str()` is one line that names file, row, field, value and the legal values.

    It is also a `ValueError`, so code that knows only Python's errors can catch it.

    The parameters are those of `describe`; the command line prints the line and exits with 2.
    """

    def __init__(self, message: str, **where: Any) -> None:
        super().__init__(describe(message, **where))
        self.field: str | None = where.get("field")
        self.legal: str | None = where.get("legal")


def check_legal(holds: bool, field: str, value: Any, legal: str, **where: Any) -> None:
    """Check a value.

    Parameters
    ----------
    holds
        Whether the value is legal.
    field
        Name of the field.
    value
        The value.
    legal
        Legal values.
    **where
        Further parameters of `describe`, such as ``file``.

    Raises
    ------
    InputError
        If ``holds`` is false.
    """
    if not holds:
        raise InputError("invalid", field=field, value=value, legal=legal, **where)


@contextmanager
def naming(file: str | PathLike[str], field: str | None = None) -> Iterator[None]:
    """Add the name of a file to every `InputError` raised in the context that does not begin with it.

    Parameters
    ----------
    file
        The file.
    field
        Name of the field to add.
    """
    try:
        yield
    except InputError as error:
        if str(error).startswith(str(file)):
            raise
        raise InputError(str(error), file=file, field=field) from None


class NotInstalledError(InputError):
    """An optional part that is needed is not installed; ``legal`` tells how to install it."""


@dataclass(frozen=True, slots=True)
class RowProblem:
    """One value of one row that is invalid; ``row`` is the 1-based line number in the file."""

    row: int
    field: str
    value: Any
    legal: str
    message: str = "invalid"


class RowErrors(InputError):
    """All bad rows of a file: a summary line, then one line for each row (the first 20) with all its mistakes.

    ``file`` may be None for tables in memory. ``rows`` is the number of rows read, good and bad (0: not known). ``job``:
    names of the rows if they are jobs of a document.
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
