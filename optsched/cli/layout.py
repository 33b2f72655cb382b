"""Tables that fit the terminal: no number is ever broken, and none is left out.

In this order, until the table fits:

1. heads on one line each;
2. heads broken after a space or ``_``, long words (names of policies) after one of ``:,+/_``;
3. texts that tell, rather than count (a guarantee, the place of the worst ratio), become lines below the table;
4. the columns that are left go into further tables below the first, from left to right, each with the first column.

From 60 columns on this always ends well: no cell that may not be broken is as wide as that.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.table import Table
from rich.text import Text

PIPED = 200  # columns where stdout is no terminal and COLUMNS is not set
LEAST = 40
BORDER = 3  # columns between two cells: a space, the line, a space
_PIECE = re.compile(r"[^\s_]*_+|\S+")
_NAME_PIECE = re.compile(r"[^:,+/_]*[:,+/_]|[^:,+/_]+")
NAME = 24  # columns that the first column may take before its words are broken


def width_of_stdout() -> int:
    """Columns to print for: ``COLUMNS`` where it is set, else those of the terminal, else `PIPED`."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked) > 0:
        return max(LEAST, int(asked))
    return max(LEAST, shutil.get_terminal_size().columns) if sys.stdout.isatty() else PIPED


@dataclass(frozen=True)
class Column:
    """A column: ``right`` for numbers; ``tells``: a text that may become lines below the table, after its head."""

    head: str
    right: bool = True
    tells: bool = False


@dataclass(frozen=True)
class Row:
    """One row; ``section``: a line is drawn below it; ``bold`` for a head within the table."""

    cells: tuple[str, ...]
    section: bool = False
    bold: bool = False


@dataclass
class Sheet:
    """What a table says, before it is known how wide it may be."""

    columns: Sequence[Column]
    rows: list[Row] = field(default_factory=list)

    def add(self, *cells: str, section: bool = False, bold: bool = False) -> None:
        """One more row; missing cells are empty."""
        self.rows.append(Row((*cells, *[""] * (len(self.columns) - len(cells))), section, bold))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table | Text]:
        yield from self.fitted(options.max_width)

    def fitted(self, width: int) -> list[Table | Text]:
        """Tables, and lines below them, none wider than ``width``."""
        counting = [c for c, column in enumerate(self.columns) if not column.tells]
        told = [c for c, column in enumerate(self.columns) if column.tells]
        every = list(range(len(self.columns)))
        for broken in (False, True):
            if self._width(every, broken) <= width:
                return [self._table(every, broken)]
        blocks = self._blocks(counting, width)
        lines = [Text(line) for c in told for line in self._told(c)]
        return [*(self._table(block, True) for block in blocks), *lines]

    def _told(self, c: int) -> list[str]:
        said = [(row.cells[0], row.cells[c]) for row in self.rows if row.cells[c] not in ("", "-")]
        return [f"{self.columns[c].head}, {name}: {text}" for name, text in said]

    def _blocks(self, columns: list[int], width: int) -> list[list[int]]:
        first, *others = columns
        blocks = [[first]]
        for c in others:
            if len(blocks[-1]) > 1 and self._width([*blocks[-1], c], True) > width:
                blocks.append([first])
            blocks[-1].append(c)
        return blocks

    def _width(self, columns: list[int], broken: bool) -> int:
        cells = (max(map(cell_len, self._lines(c, broken))) for c in columns)
        return sum(cells) + BORDER * (len(columns) - 1) + 2

    def _lines(self, c: int, broken: bool) -> list[str]:
        texts = [self._head(c, broken), *(self._cell(row, c, broken) for row in self.rows if not _spans(row, c))]
        return [line for text in texts for line in text.split("\n")]

    def _head(self, c: int, broken: bool) -> str:
        head = self.columns[c].head
        if not broken:
            return head
        widest = max((cell_len(line) for row in self.rows for line in row.cells[c].split("\n")), default=0)
        return _joined(_PIECE.findall(head), max(widest, *map(cell_len, _PIECE.findall(head)), 1) if head else 1)

    def _cell(self, row: Row, c: int, broken: bool) -> str:
        text = row.cells[c]
        return text if not broken or c > 0 or cell_len(text) <= NAME else _joined(_NAME_PIECE.findall(text), NAME, "")

    def _table(self, columns: list[int], broken: bool) -> Table:
        table = Table(header_style="bold", pad_edge=False)
        for c in columns:
            column = self.columns[c]
            table.add_column(
                Text(self._head(c, broken)),
                justify="right" if column.right and c else "left",
                overflow="fold",
                no_wrap=not column.tells,
            )
        for row in self.rows:
            style = "bold" if row.bold else None
            cells = (Text(self._cell(row, c, broken)) for c in columns)
            table.add_row(*cells, style=style, end_section=row.section)
        return table


def _spans(row: Row, c: int) -> bool:
    # the head of a section stands alone in its row
    return row.bold and c > 0


def _joined(pieces: list[str], width: int, between: str = " ") -> str:
    """Pieces in lines of at most ``width`` columns, where a piece is not wider itself."""

    def grow(lines: list[str], piece: str) -> list[str]:
        gap = "" if lines[-1].endswith("_") else between
        together = f"{lines[-1]}{gap}{piece}"
        return [*lines[:-1], together] if cell_len(together) <= width else [*lines, piece]

    *_, lines = accumulate(pieces[1:], grow, initial=pieces[:1] or [""])
    return "\n".join(lines)
