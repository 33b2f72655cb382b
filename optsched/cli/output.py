"""What is written to stdout and stderr, and what becomes of it when nobody can take it.

A reader that has seen enough (``| head -1``) is no error: what is left is not written, and the command ends as it would
have. A full disk is one: `OutputError`, one line.
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
    """stdout cannot be written; the command line says so and exits with 2."""


_own: list[Any] = []  # stdout, while what others print goes to stderr


@contextlib.contextmanager
def others_print_to_stderr() -> Iterator[None]:
    """While this lasts, ``print()`` of somebody's policy does not get between the lines of a table or a document."""
    _own.append(sys.stdout)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        _own.pop()


def _stdout() -> Any:
    return _own[0] if _own else sys.stdout


def write(text: str, *, laid_out: bool = False) -> None:
    """Write to stdout, and see that it arrives; control characters as escapes, but of what is ``laid_out``, in colours."""
    out = _stdout()
    try:
        out.write(text if laid_out else printable(text, lines=True))
        out.flush()
    except BrokenPipeError:
        silence(out)
    except OSError as error:
        raise refused(error) from None


def silence(stream: Any) -> None:
    """Send all that a stream still holds, or gets, nowhere: else the interpreter complains about it at its end."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # no stream of a file descriptor: a test's
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def say(line: str) -> None:
    """One line on stderr, after the name of the program; lost where stderr cannot be written."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(f"optsched: {printable(line, lines=True)}\n")
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)


def print_json(document: Any) -> None:
    """The one JSON document of ``--json``."""
    write(json.dumps(document, allow_nan=False) + "\n")


def answer(
    as_json: bool, document: Callable[[], Any], view: Callable[[Any], Any], *written: os.PathLike[str] | None
) -> None:
    """The JSON document; or for people a view, made of `optsched.cli.tables`, and which files were ``written``."""
    if as_json:
        print_json(document())
        return
    from optsched.cli import tables

    show(view(tables))
    for file in written:
        if file is not None:
            write(f"wrote {file}\n")


class _Page(io.StringIO):
    """Text that is laid out for stdout, but written in one piece, where it can be seen whether it arrives."""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return getattr(_stdout(), "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        return bool(_stdout().isatty())


def show(view: Any) -> None:
    """Print a table for people, as wide as the screen (`optsched.cli.layout`)."""
    from optsched.cli.layout import SafeConsole, width_of_stdout

    page = _Page()
    SafeConsole(file=page, width=width_of_stdout()).print(view)
    # where stdout cannot write a character, a table with "?" is better than none
    write(page.getvalue().encode(page.encoding, "replace").decode(page.encoding), laid_out=True)


def refused(error: OSError) -> OutputError:
    """What to say of an error that stdout gave."""
    silence(sys.stdout)
    return OutputError(f"cannot write to stdout: {error.strerror or error}")
