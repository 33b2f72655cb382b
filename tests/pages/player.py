"""Plays a page: its blocks are run in order, in this process and in one empty folder, as a reader would type them.

A new interpreter for each command would take most of the time. The shell of a page is therefore plain:
``cat > FILE <<'END'``, ``optsched ...``, and comments; anything else is an error here.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from optsched.cli import main
from pages.page import RUN, Block, Page

HERE = re.compile(r"^cat > (\S+) <<'(\w+)'\n(.*?)^\2\n", re.MULTILINE | re.DOTALL)
WIDTH = "80"  # columns of a terminal


@dataclass(frozen=True)
class Played:
    """What a block printed, and what the page says it prints (None: it does not say)."""

    block: Block
    printed: str
    said: Block | None


def play(page: Page, folder: Path) -> Iterator[Played]:
    """Run the page's blocks in ``folder``, which must be the working directory, one at a time."""
    for number, block in enumerate(page.blocks):
        if block.language in RUN:
            after = page.blocks[number + 1 : number + 2]
            said = after[0] if after and after[0].language == "text" else None
            printed = shell(block.text, folder) if block.language == "bash" else python(block.text)
            yield Played(block, printed, said)


def shell(text: str, folder: Path) -> str:
    """What a shell block prints."""
    printed = []
    at = 0
    for here in HERE.finditer(text):
        printed.append(_lines(text[at : here.start()]))
        (folder / here[1]).write_text(here[3], encoding="utf-8")
        at = here.end()
    return "".join([*printed, _lines(text[at:])])


def _lines(text: str) -> str:
    printed = []
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            assert words[0] == "optsched", f"a page's shell calls nothing but optsched: {line}"
            printed.append(command(words[1:]))
    return "".join(printed)


def command(arguments: list[str]) -> str:
    """What ``optsched ARGUMENTS`` prints; its exit code must be 0."""
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(arguments)
        except SystemExit as end:
            code = end.code
    assert not code, f"optsched {shlex.join(arguments)}: exit code {code}\n{err.getvalue()}"
    return out.getvalue()


def python(text: str) -> str:
    """What a Python block prints, in a namespace of its own."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(text, "page", "exec"), {"__name__": "__main__"})
    assert out.getvalue().strip(), f"nothing is printed by\n{text}"
    return out.getvalue()


def same(printed: str, said: str) -> bool:
    """Is it what the page says? Blanks at the ends of lines do not count."""
    return tidy(printed) == tidy(said)


def difference(played: Played) -> str:
    """Return a message if the page does not show what a block prints; empty if it does, or shows nothing."""
    if played.said is None or same(played.printed, played.said.text):
        return ""
    return f"not what is printed (make pages writes it):\n{played.block.text}\n{tidy(played.printed)}"


def tidy(printed: str) -> str:
    """Without blanks at the ends of lines, and with one newline at the end."""
    return "".join(f"{line.rstrip()}\n" for line in printed.strip("\n").splitlines())
