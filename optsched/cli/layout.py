"""Tables that fit the terminal: no number is ever broken, and none is left out.

On a narrow screen heads and names are broken, rich breaks texts between words, and columns go into further tables below
the first, from left to right, each with the first column.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from optsched.errors import printable

PIPED = 200  # columns where stdout is no terminal and COLUMNS is not set
LEAST = 40
WHOLE = 24  # columns that the first column may take before its words are broken, and that a text that tells needs
BORDER = 3  # columns between two cells: a space, the line, a space
_PIECE = re.compile(r"[^\s_:,+/]*[\s_:,+/]|[^\s_:,+/]+")


def width_of_stdout() -> int:
    """Columns to print for: ``COLUMNS`` where it is set, else those of the terminal, else `PIPED`."""
    return max(LEAST, shutil.get_terminal_size((PIPED, 1)).columns)


class SafeConsole(Console):
    """A console that shows no text which a terminal would obey: names come from files of anybody.

    Control characters of texts are written out; those of colours are rich's own and stay.
    """

    def render(self, renderable: Any, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What ``renderable`` is made of."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text, lines=True), segment.style)


@dataclass
class Sheet:
    """What a table says, before it is known how wide it may be; rows as of `Table.add_row`.

    Columns by their heads: numbers, at the right, but for the first one, ``texts``, and those that ``tells`` names, whose
    texts may be broken between words.
    """

    heads: Sequence[str]
    texts: Collection[str] = ()
    tells: Collection[str] = ()
    rows: list[tuple[tuple[str, ...], dict[str, Any]]] = field(default_factory=list)

    def add(self, *cells: str, section: bool = False, bold: bool = False) -> None:
        """One more row; missing cells are empty. ``section``: a line is drawn below; ``bold``: a head within the table."""
        row = (*cells, *[""] * (len(self.heads) - len(cells)))
        self.rows.append((row, {"end_section": section, "style": "bold" if bold else None}))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        first, *others = every = range(len(self.heads))
        if self._width(every, broken=False) <= options.max_width:
            yield self._table(every, broken=False)
            return
        shown = [first]
        for c in others:
            if len(shown) > 1 and self._width([*shown, c], broken=True) > options.max_width:
                yield self._table(shown, broken=True)
                shown = [first]
            shown.append(c)
        yield self._table(shown, broken=True)

    def _width(self, columns: Iterable[int], broken: bool) -> int:
        widths = []
        for c in columns:
            widest = max(cell_len(line) for text in self._texts(c, broken) for line in text.split("\n"))
            widths.append(min(widest, WHOLE) if broken and self.heads[c] in self.tells else widest)
        return sum(widths) + BORDER * (len(widths) - 1) + 2

    def _texts(self, c: int, broken: bool) -> list[str]:
        """Head and cells of a column."""
        cells = [row[c] for row, style in self.rows]
        if not broken:
            return [self.heads[c], *cells]
        widest = max(map(cell_len, cells), default=0)
        return [_broken(self.heads[c], widest), *(cells if c else [_broken(cell, WHOLE) for cell in cells])]

    def _table(self, columns: Iterable[int], broken: bool) -> Table:
        table = Table(header_style="bold", pad_edge=False)
        texts = []
        for c in columns:
            head, *below = self._texts(c, broken)
            tells = self.heads[c] in self.tells
            side: JustifyMethod = "left" if c == 0 or tells or self.heads[c] in self.texts else "right"
            table.add_column(Text(head), justify=side, overflow="fold", no_wrap=not tells)
            texts.append(map(Text, below))
        for cells, (_, style) in zip(zip(*texts, strict=True), self.rows, strict=True):
            table.add_row(*cells, **style)
        return table


def _broken(text: str, width: int) -> str:
    """In lines of at most ``width`` columns, broken after a space or one of ``_:,+/``, where a piece is not wider."""
    lines = [""]
    for piece in _PIECE.findall(text):
        if lines[-1] and cell_len((lines[-1] + piece).rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)
