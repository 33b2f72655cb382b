"""A page of Markdown: its fenced blocks in order, its links, and what it names on the command line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
RUN = ("bash", "python")  # languages of blocks that are run
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def page_files() -> list[Path]:
    """README.md and every page under docs/."""
    return [README, *sorted((ROOT / "docs").rglob("*.md"))]


def name_of(path: Path) -> str:
    """A page's name in reports of tests."""
    return path.relative_to(ROOT).as_posix()


@dataclass(frozen=True)
class Block:
    """A fenced block: ``bash`` and ``python`` are run, ``text`` after one of them is what it prints, ``sh`` is for readers.

    ``start`` and ``end`` are where its text stands in the page.
    """

    language: str
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Page:
    """The text of a page."""

    path: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def blocks(self) -> list[Block]:
        return [Block(m[1], m[2], m.start(2), m.end(2)) for m in FENCE.finditer(self.text)]

    @cached_property
    def draws(self) -> bool:
        """True if a block draws a picture, which the site shows."""
        return any(re.search(r"\bosd\.plot\.|^optsched plot ", block.text, re.MULTILINE) for block in self.blocks)

    @cached_property
    def prose(self) -> str:
        """The page without its fenced blocks."""
        return FENCE.sub("", self.text)

    @cached_property
    def links(self) -> list[str]:
        """Targets of links and pictures."""
        return re.findall(r"\]\(([^)\s]+)\)", self.prose)

    @cached_property
    def anchors(self) -> set[str]:
        """What a ``#fragment`` may name: headings as GitHub spells them."""
        heads = re.findall(r"^#+ (.+)$", self.prose, re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}

    @cached_property
    def commands(self) -> list[str]:
        """Lines that call optsched or make, of ``bash`` and ``sh`` blocks (continued lines joined) and between backticks."""
        shell = [block.text for block in self.blocks if block.language in ("bash", "sh")]
        lines = [line for text in shell for line in logical_lines(text)]
        spans = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", self.prose)]
        return [line for line in (*lines, *spans) if line.split()[:1] in (["optsched"], ["make"])]


def logical_lines(text: str) -> list[str]:
    """Lines of a shell block without empty ones and comments; a line that ends with a backslash goes on."""
    lines = text.replace("\\\n", " ").splitlines()
    return [" ".join(line.split(" #")[0].split()) for line in lines if line.strip() and not line.startswith("#")]
