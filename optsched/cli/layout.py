"""Tables that fit the terminal: every number is shown, and none is broken.

On a narrow screen heads and names are broken, rich breaks texts between words, and columns go into further tables below the
first, from left to right, each with the first column.
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
# columns that a name may take before it is broken, and that a long text needs; the second is used if it saves a table
WHOLE, TIGHT = 24, 12
BORDER = 3  # columns between two cells: a space, the line, a space
_PIECE = re.compile(r"[^\s_:,+/]*[\s_:,+/]|[^\s_:,+/]+")
_PART = re.compile(r"[^\s_:,+/-]*[\s_:,+/-]|[^\s_:,+/-]+")  # of words of other columns: hyphens end one, too


def width_of_stdout() -> int:
    """Return the number of columns to print for: ``COLUMNS`` if it is set, else those of the terminal, else `PIPED`."""
    return max(LEAST, shutil.get_terminal_size((PIPED, 1)).columns)


class SafeConsole(Console):
    """A console that prints control characters of texts as escapes, because names come from files of other people.

    The control characters of colours are rich's own and stay.
    """

    def render(self, renderable: Any, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of a renderable, with control characters as escapes.

        Parameters
        ----------
        renderable
            What rich can print.
        options
            Options of the console.
        """
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text, lines=True), segment.style)


@dataclass
class Sheet:
    """The content of a table whose layout depends on the width of the screen.

    Parameters
    ----------
    heads
        Heads of the columns. Columns hold numbers, aligned right, unless they are the first one, in ``texts`` or in
        ``tells``.
    texts
        Heads of columns of names.
    tells
        Heads of columns of sentences, which may be broken between words.
    rows
        Cells and style of every row; see `add`.
    """

    heads: Sequence[str]
    texts: Collection[str] = ()
    tells: Collection[str] = ()
    rows: list[tuple[tuple[str, ...], dict[str, Any]]] = field(default_factory=list)

    def add(self, *cells: str, section: bool = False, bold: bool = False) -> None:
        """Add a row.

        Parameters
        ----------
        *cells
            Texts of the cells; missing ones are empty.
        section
            True to draw a line below the row.
        bold
            True for a head within the table.
        """
        row = (*cells, *[""] * (len(self.heads) - len(cells)))
        self.rows.append((row, {"end_section": section, "style": "bold" if bold else None}))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        every = range(len(self.heads))
        if self._width(every, None) <= options.max_width:
            yield self._table(every, None)
            return
        layouts = [(self._blocks(limit, options.max_width), limit) for limit in (WHOLE, TIGHT)]
        blocks, limit = min(layouts, key=lambda layout: len(layout[0]))
        for columns in blocks:
            yield self._table(columns, limit)

    def _blocks(self, limit: int, width: int) -> list[list[int]]:
        """Return the columns of every table, where names are broken after ``limit`` columns of the screen."""
        first, *others = range(len(self.heads))
        blocks = [[first]]
        for c in others:
            if len(blocks[-1]) > 1 and self._width([*blocks[-1], c], limit) > width:
                blocks.append([first])
            blocks[-1].append(c)
        return blocks

    def _width(self, columns: Iterable[int], limit: int | None) -> int:
        widths = []
        for c in columns:
            widest = max(cell_len(line) for text in self._texts(c, limit) for line in text.split("\n"))
            widths.append(min(widest, WHOLE) if limit and self.heads[c] in self.tells else widest)
        return sum(widths) + BORDER * (len(widths) - 1) + 2

    def _texts(self, c: int, limit: int | None) -> list[str]:
        """Return the head and the cells of a column; without a limit nothing is broken."""
        cells = [row[c] for row, style in self.rows]
        if limit is None:
            return [self.heads[c], *cells]
        if c == 0:
            cells = [_broken(cell, limit) for cell in cells]
        elif limit < WHOLE and self.heads[c] in self.texts:
            cells = [_broken(cell, limit, _PART) for cell in cells]
        widest = max((cell_len(line) for cell in cells for line in cell.split("\n")), default=0)
        return [_broken(self.heads[c], widest), *cells]

    def _table(self, columns: Iterable[int], limit: int | None) -> Table:
        table = Table(header_style="bold", pad_edge=False)
        texts = []
        for c in columns:
            head, *below = self._texts(c, limit)
            tells = self.heads[c] in self.tells
            side: JustifyMethod = "left" if c == 0 or tells or self.heads[c] in self.texts else "right"
            table.add_column(Text(head), justify=side, overflow="fold", no_wrap=not tells)
            texts.append(map(Text, below))
        for cells, (_, style) in zip(zip(*texts, strict=True), self.rows, strict=True):
            table.add_row(*cells, **style)
        return table


def _broken(text: str, width: int, pieces: re.Pattern[str] = _PIECE) -> str:
    """Break a text into lines of at most ``width`` columns, after a space or one of ``_:,+/``; wider pieces stay whole."""
    lines = [""]
    for piece in pieces.findall(text):
        if lines[-1] and cell_len((lines[-1] + piece).rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)
