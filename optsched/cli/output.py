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
from typing import Any

from optsched.errors import OptschedError


class OutputError(OptschedError):
    """stdout cannot be written; the command line says so and exits with 2."""


def write(text: str) -> None:
    """Write to stdout, and see that it arrives."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        silence(sys.stdout)
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
        sys.stderr.write(f"optsched: {line}\n")
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)


def print_json(document: Any) -> None:
    """The one JSON document of ``--json``."""
    write(json.dumps(document, allow_nan=False) + "\n")


class _Page(io.StringIO):
    """Text that is laid out for stdout, but written in one piece, where it can be seen whether it arrives."""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return getattr(sys.stdout, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        return sys.stdout.isatty()


def show(view: Any) -> None:
    """Print a table for people, as wide as there is room (`optsched.cli.layout`)."""
    from rich.console import Console

    from optsched.cli.layout import width_of_stdout

    page = _Page()
    Console(file=page, width=width_of_stdout()).print(view)
    # where stdout takes no "±", a table with "?" is better than none
    write(page.getvalue().encode(page.encoding, "replace").decode(page.encoding))


def refused(error: OSError) -> OutputError:
    """What to say of an error that stdout gave."""
    silence(sys.stdout)
    return OutputError(f"cannot write to stdout: {error.strerror or error}")
