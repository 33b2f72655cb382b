"""Commands that refuse to write over a file that they read."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from optsched.errors import InputError
from optsched.problem.atomic_files import keeping_sources, note_named, refuse_source, sources

_outputs: list[tuple[str, Path]] = []  # of the running command: the option, and the file that it writes


class SourceKeepingCommand(TyperCommand):
    """A command that refuses to write over a file that it reads.

    It checks before it begins, and again when it knows which further files it reads. stdout counts, too:
    ``run log.json --json > log.json``.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command.

        Parameters
        ----------
        ctx
            The context of the parser.
        """
        with keeping_sources():
            _outputs.clear()
            for parameter in self.params:
                value = ctx.params.get(parameter.name or "")
                if set(parameter.opts) & {"-o", "--report", "--csv", "--export"}:
                    file = value[-1] if isinstance(value, tuple) else value
                    _outputs.extend([] if file is None else [(parameter.opts[0], file)])
                else:
                    _note_named(value, getattr(parameter, "metavar", None) or "")
            keep_sources()
            return super().invoke(ctx)


def _note_named(value: Any, metavar: str) -> None:
    """Note a file or SOURCE that a parameter gives as one that the command reads."""
    if isinstance(value, Path) or (isinstance(value, str) and any(w in metavar for w in ("SOURCE", "SUITE", "FILE"))):
        note_named(str(value))


def keep_sources() -> None:
    """Check that the running command writes over none of the files that it is known to read.

    Raises
    ------
    InputError
        It would.
    """
    for option, file in _outputs:
        refuse_source(file, option)
    for source in sources():
        same = False
        with contextlib.suppress(OSError):  # the file is gone, or there is no stdout
            same = os.path.samestat(os.fstat(1), os.stat(source))
        if same:
            message = "stdout is redirected to this file, which is read; the shell may have emptied it already"
            raise InputError(message, file=source, legal="another file")
