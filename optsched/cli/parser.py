"""The parser of the command line, whose errors are one line with the correction."""

from __future__ import annotations

import re
import shlex
from typing import Any

from typer.core import TyperGroup

from optsched.cli.completion import names
from optsched.cli.source_keeping import SourceKeepingCommand
from optsched.errors import InputError, OptschedError

_JARGON = re.compile(r"Input should be (an? (?:valid )?\w+)(, .*)?$")
_CLUSTER = re.compile(r"[0-9]+x[0-9]+(:.*)?", re.ASCII)
SETTINGS = {"allow_extra_args": True}  # a `StrictCommand` reports extra arguments itself


class CommandGroup(TyperGroup):
    """The group of all commands.

    A user's code that ends the program while a command runs is reported as an error. (Before a command runs, the parser ends
    the program for completion.)
    """

    def invoke(self, ctx: Any) -> Any:
        """Run a command.

        Parameters
        ----------
        ctx
            The context of the parser.
        """
        try:
            return super().invoke(ctx)
        except SystemExit:
            raise OptschedError("the code of a policy ended the program (SystemExit)") from None


_words: list[str] = []  # of the running command


def command_line() -> str:
    """Return the running command as a shell takes it."""
    return shlex.join(["optsched", *_words])


class StrictCommand(SourceKeepingCommand):
    """A command that reports extra arguments with the option to which they probably belong."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Note the words of the command, and parse them.

        Parameters
        ----------
        info_name
            Name of the command.
        args
            Its arguments.
        parent
            The context of the program.
        **extra
            Further settings of the context.
        """
        _words[:] = [info_name or "", *args]
        return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run the command.

        Parameters
        ----------
        ctx
            The context of the parser.
        """
        if ctx.args:
            arguments = " ".join(p.metavar or "" for p in self.params if not p.opts[0].startswith("-"))
            options = {option for parameter in self.params for option in parameter.opts}
            meant = _meant(ctx.args[0], options) or f"optsched {ctx.info_name} {arguments}".rstrip()
            raise InputError("one argument too many", value=ctx.args[0], legal=meant)
        return super().invoke(ctx)


def parser_message(error: Any) -> str:
    """Return an error of the parser in one line, with the command that prints help.

    Parameters
    ----------
    error
        The error of the parser.
    """
    said = _JARGON.sub(r"\1 is expected", " ".join(error.format_message().split()))
    where = getattr(error, "ctx", None)
    command = f"{where.info_name} " if where is not None and where.parent is not None else ""
    return f"{said} (see optsched {command}--help)"


def _meant(word: str, options: set[str]) -> str:
    """Return the option to which a word probably belongs; "" if that is not clear."""
    policy = re.split(r"[:+]", word)[0].lower() in names("policies")
    looks = {"-p": policy, "--against": policy, "--set": "=" in word, "--cluster": bool(_CLUSTER.fullmatch(word))}
    return next((f"{option} {word}" for option, alike in looks.items() if alike and option in options), "")
