"""The file of a sweep: SQLite, one row a cell, its numbers in a table of their own; each cell is committed when it is done.

    sweep(name, value)                   format, name of the grid, version that last wrote
    cell(id, key, state, cpu_seconds, version, error, instance)     key: JSON; state: open, done or failed; instance: a file
    number(cell, name, value)            of cells that are done

Whoever is killed leaves the cells that were done, and no other trace: SQLite's write-ahead log is replayed by who opens the
file next. One process writes at a time (it holds ``FILE.lock``, which the system lets go when it dies); others may read.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

import polars as pl

from optsched import __version__
from optsched.errors import InputError
from optsched.problem.atomic_files import check_writable, sources, write_atomic
from optsched.sweeps.cell import CellResult
from optsched.sweeps.grid import Cell, Grid

FORMAT = "optsched-sweep/1"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS sweep(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS cell(
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, state TEXT NOT NULL DEFAULT 'open',
  cpu_seconds REAL, version TEXT, error TEXT, instance TEXT);
CREATE TABLE IF NOT EXISTS number(
  cell INTEGER NOT NULL REFERENCES cell(id), name TEXT NOT NULL, value REAL NOT NULL,
  PRIMARY KEY(cell, name)) WITHOUT ROWID;
"""


class Store:
    """Results of sweeps in one file, opened for writing; use it as a context manager."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.failed = Path(f"{self.path}.failed")  # instances of the cells that failed
        check_writable(self.path)
        if self.failed.is_dir() and any(each.parent.samefile(self.failed) for each in sources()):
            message = f"instances of cells that fail would replace a source in {self.failed.name}"
            raise InputError(message, file=path, legal="another --store, or the source in another folder")
        self._lock = sqlite3.connect(f"{self.path}.lock", isolation_level=None, timeout=0)
        try:
            self._lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            raise InputError("another sweep writes to it", file=path, legal="a file of its own, or wait") from None
        self._db = sqlite3.connect(self.path, isolation_level=None)
        try:
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.executescript(_SCHEMA)
            found = dict(self._db.execute("SELECT name, value FROM sweep"))
        except sqlite3.DatabaseError as error:
            raise InputError(f"not the file of a sweep: {error}", file=path, legal=FORMAT) from None
        if found.get("format", FORMAT) != FORMAT:
            raise InputError("of another format", file=path, field="format", value=found["format"], legal=FORMAT)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with contextlib.suppress(sqlite3.OperationalError):  # somebody reads
            self._db.execute("PRAGMA journal_mode=DELETE")  # who only reads could not take a log away
        self._db.close()
        self._lock.close()

    def enter(self, grid: Grid, *, retry: bool = False) -> list[Cell]:
        """Enter the cells of a grid, and return those still to run, in the order of the grid.

        Parameters
        ----------
        grid
            The grid.
        retry
            Whether to include failed cells.
        """
        with self._transaction():
            facts = {"format": FORMAT, "name": grid.name, "version": __version__}
            self._db.executemany("INSERT OR REPLACE INTO sweep VALUES (?, ?)", facts.items())
            self._db.executemany("INSERT OR IGNORE INTO cell(key) VALUES (?)", [(cell.key,) for cell in grid.cells])
        states = ("done",) if retry else ("done", "failed")
        settled = {key for key, state in self._db.execute("SELECT key, state FROM cell") if state in states}
        return [cell for cell in grid.cells if cell.key not in settled]

    def commit(self, result: CellResult) -> None:
        """Store the result of a cell atomically.

        Parameters
        ----------
        result
            Result of the cell.
        """
        state = "done" if result.error is None else "failed"
        (cell,) = self._db.execute("SELECT id FROM cell WHERE key = ?", [result.key]).fetchone()
        instance = None
        if result.instance is not None:
            self.failed.mkdir(exist_ok=True)
            instance = str(self.failed / f"{cell}.json")
            write_atomic(instance, json.dumps(result.instance))
        with self._transaction():
            facts = (state, result.cpu_seconds, __version__, result.error, instance, cell)
            self._db.execute(
                "UPDATE cell SET state = ?, cpu_seconds = ?, version = ?, error = ?, instance = ? WHERE id = ?", facts
            )
            self._db.execute("DELETE FROM number WHERE cell = ?", [cell])
            self._db.executemany(
                "INSERT INTO number VALUES (?, ?, ?)", [(cell, name, x) for name, x in result.numbers.items()]
            )

    def _transaction(self) -> sqlite3.Connection:
        self._db.execute("BEGIN IMMEDIATE")
        return self._db  # as a context manager it commits, or rolls back

    def frame(self, cells: Iterable[Cell] | None = None) -> pl.DataFrame:
        """Return the table of this file (see `read`).

        Parameters
        ----------
        cells
            Cells of the table; None: all.
        """
        return read(self.path, cells)


def read(path: str | os.PathLike[str], cells: Iterable[Cell] | None = None) -> pl.DataFrame:
    """Return the cells of a file as a table.

    Its columns are the parameters of the instance, ``seed``, ``policy``, ``state``, ``error``, ``failed_on`` (an instance
    file), ``cpu_seconds``, and every number; null if not known.

    Parameters
    ----------
    path
        File of a sweep.
    cells
        Cells of the table, in this order; None: all cells of the file.
    """
    rows, of = _tables(path)
    wanted = None if cells is None else {cell.key: at for at, cell in enumerate(cells)}
    if wanted is not None:
        rows = sorted((row for row in rows if row[1] in wanted), key=lambda row: wanted[row[1]])
    cells_there = [Cell.of_key(row[1]) for row in rows]
    axes = dict.fromkeys(name for cell in cells_there for name, _ in cell.where)
    facts = ("seed", "policy", "state", "error", "failed_on", "cpu_seconds")
    columns = [*axes, *facts, *sorted({name for numbers in of.values() for name in numbers} - axes.keys())]
    table = []
    for cell, (cell_id, _, *rest) in zip(cells_there, rows, strict=True):
        row = {**of.get(cell_id, {}), **dict.fromkeys(axes), **dict(cell.where)}
        row |= zip(facts, (cell.seed, cell.policy, *rest), strict=True)
        table.append({name: row.get(name) for name in columns})
    return pl.DataFrame(table, columns, infer_schema_length=None, strict=False)


def settled(path: str | os.PathLike[str]) -> dict[str, dict[str, float]]:
    """Return the numbers of every finished cell of a file, by key and name; {} for failed cells.

    Parameters
    ----------
    path
        File of a sweep.
    """
    rows, of = _tables(path)
    return {key: of.get(cell, {}) for cell, key, state, *_ in rows if state != "open"}


def _tables(path: str | os.PathLike[str]) -> tuple[list[tuple[Any, ...]], dict[int, dict[str, float]]]:
    # (the rows of the cells, the numbers of a cell by its id)
    uri = f"{Path(path).resolve().as_uri()}?mode=ro"
    try:
        db = sqlite3.connect(uri, uri=True)
        rows = db.execute("SELECT id, key, state, error, instance, cpu_seconds FROM cell ORDER BY id").fetchall()
        numbers = db.execute("SELECT cell, name, value FROM number").fetchall()
    except sqlite3.Error as error:
        raise InputError(f"not the file of a sweep: {error}", file=path, legal=FORMAT) from None
    db.close()
    of: dict[int, dict[str, float]] = {}
    for cell, name, value in numbers:
        of.setdefault(cell, {})[name] = value
    return rows, of
