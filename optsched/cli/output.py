"""Writing to stdout and stderr, and errors while writing.

A reader that closes the pipe early (``| head -1``) is no error: the rest is not written, and the command ends as it would
have. A full disk is an error: `OutputError`, one line.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from optsched.errors import OptschedError, printable


class OutputError(OptschedError):
    """An error while writing to stdout; the command line prints it and exits with 2."""


_own: list[Any] = []  # stdout, while what others print goes to stderr


@contextlib.contextmanager
def others_print_to_stderr() -> Iterator[None]:
    """Redirect ``print()`` to stderr, so that a user's policy does not print into a table or a document."""
    _own.append(sys.stdout)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        _own.pop()


def _stdout() -> Any:
    return _own[0] if _own else sys.stdout


def write(text: str, *, laid_out: bool = False) -> None:
    """Write to stdout and flush.

    Parameters
    ----------
    text
        The text.
    laid_out
        True for text with colours from rich; otherwise control characters are written as escapes.

    Raises
    ------
    OutputError
        stdout cannot be written.
    """
    out = _stdout()
    try:
        out.write(text if laid_out else printable(text, lines=True))
        out.flush()
    except BrokenPipeError:
        silence(out)
    except OSError as error:
        raise refused(error) from None


def silence(stream: Any) -> None:
    """Discard the buffer of a stream and all further output; otherwise the interpreter complains when it exits.

    Parameters
    ----------
    stream
        A stream that cannot be written.
    """
    with contextlib.suppress(OSError, ValueError, AttributeError):  # a stream without a file descriptor, in a test
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def say(line: str) -> None:
    """Write a line to stderr, after the name of the program; it is lost if stderr cannot be written.

    Parameters
    ----------
    line
        The line.
    """
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(f"optsched: {printable(line, lines=True)}\n")
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)


def say_if_plain(strong: bool, kind: str) -> None:
    """Write a line to stderr if a stronger bound was asked for and the best one is a plain one.

    Parameters
    ----------
    strong
        Whether a stronger bound was asked for.
    kind
        Kind of the best certificate.
    """
    from optsched.bounds.best_bound import is_strong

    if strong and not is_strong(kind):
        say(f"--strong adds nothing: no stronger bound serves these jobs, or none is tighter than {kind}")


def print_json(document: Any) -> None:
    """Write the JSON document of ``--json`` to stdout.

    Parameters
    ----------
    document
        What `json` can write.
    """
    write(json.dumps(document, allow_nan=False) + "\n")


def answer(
    as_json: bool, document: Callable[[], Any], view: Callable[[], Any], *written: os.PathLike[str] | None
) -> None:
    """Print a JSON document, or a table and the names of the files that were written.

    Parameters
    ----------
    as_json
        True for the document.
    document
        Makes the document.
    view
        Makes the table.
    *written
        Files that were written; None is skipped.
    """
    if as_json:
        print_json(document())
        return
    show(view())
    for file in written:
        if file is not None:
            write(f"wrote {file}\n")


class _Page(io.StringIO):
    """Text that is laid out for stdout and then written in one piece, so that errors are seen."""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return getattr(_stdout(), "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        return bool(_stdout().isatty())


def show(view: Any) -> None:
    """Print a table as wide as the screen (`optsched.cli.layout`).

    Parameters
    ----------
    view
        What rich can print.
    """
    from optsched.cli.layout import SafeConsole, width_of_stdout

    page = _Page()
    SafeConsole(file=page, width=width_of_stdout()).print(view)
    # a character that stdout cannot write becomes "?"
    write(page.getvalue().encode(page.encoding, "replace").decode(page.encoding), laid_out=True)


def refused(error: OSError) -> OutputError:
    """Return the error to raise for an `OSError` of stdout, and silence stdout.

    Parameters
    ----------
    error
        The error of stdout.
    """
    silence(sys.stdout)
    return OutputError(f"cannot write to stdout: {error.strerror or error}")
