"""What the parser of the command line says of mistakes: one line, with what to type instead."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperGroup

from optsched.cli.options import SourceKeepingCommand, names
from optsched.errors import InputError, OptschedError

_JARGON = re.compile(r"Input should be (an? (?:valid )?\w+)(, .*)?$")
_CLUSTER = re.compile(r"[0-9]+x[0-9]+(:.*)?", re.ASCII)
SETTINGS = {"allow_extra_args": True}  # of a `StrictCommand`: what is too much, it says itself


class CommandGroup(TyperGroup):
    """All commands. Somebody's code may end the program while one of them runs; before, the parser does, for completion."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except SystemExit:
            raise OptschedError("somebody's code ended the program (SystemExit)") from None


class StrictCommand(SourceKeepingCommand):
    """A command that says where words belong that follow its arguments."""

    def invoke(self, ctx: Any) -> Any:
        if ctx.args:
            taken = " ".join(each.metavar or "" for each in self.params if not each.opts[0].startswith("-"))
            options = {option for each in self.params for option in each.opts}
            meant = _meant(ctx.args[0], options) or f"optsched {ctx.info_name} {taken}".rstrip()
            raise InputError("an argument too many", value=ctx.args[0], legal=meant)
        return super().invoke(ctx)


def parsers_words(error: Any) -> str:
    """What the parser says of a mistake, in one line, with the command whose help says more."""
    said = _JARGON.sub(r"\1 is expected", " ".join(error.format_message().split()))
    where = getattr(error, "ctx", None)
    command = f"{where.info_name} " if where is not None and where.parent is not None else ""
    return f"{said} (see optsched {command}--help)"


def _meant(word: str, options: set[str]) -> str:
    """The option that a word without one was meant for; "" where nothing tells."""
    policy = re.split(r"[:+]", word)[0].lower() in names("policies")
    looks = {"-p": policy, "--against": policy, "--set": "=" in word, "--cluster": bool(_CLUSTER.fullmatch(word))}
    return next((f"{option} {word}" for option, alike in looks.items() if alike and option in options), "")
