"""Parquet that nobody vouches for: its size is looked at before it is read, and a damaged file is one line and no more.

The footer is decoded here (Thrift's compact protocol), because the reader of tables believes it: a kilobyte may claim a
billion rows. What is damaged inside makes that reader panic on stderr, or end its process (a run of 2**61 values is
allocated before it is looked at). So it works in a process of its own (`optsched.problem.parquet_reader`), started with
the first file and kept; when a file kills it, the file is damaged, and the next one gets another. Costs about 0.2 s
once, and afterwards what it takes to pass the table on.
"""

from __future__ import annotations

import atexit
import io
import os
import re
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import polars as pl

from optsched.errors import InputError
from optsched.problem.files import atomic_path, read_bytes

MAGIC = b"PAR1"
FEW_ROWS, ROWS_A_BYTE = 100_000, 16  # times and ids of rows differ: no honest file holds more in a byte
FEW_VALUES, VALUES_A_BYTE = 10_000_000, 1000  # of lists: GPUs of gangs
DEEPEST = 16
LONGEST = 60.0  # seconds for a file


def write_parquet(table: pl.DataFrame, path: str | os.PathLike[str], metadata: dict[str, str]) -> None:
    """Write a table with its key-value ``metadata``, whole or not at all; `InputError` when it cannot be."""
    with atomic_path(path) as temporary:
        try:
            table.write_parquet(temporary, metadata=metadata)
        except pl.exceptions.ComputeError as error:  # so it says that the disk is full
            number = re.search(r"\(os error (\d+)\)", str(error))
            raise OSError(int(number[1]), os.strerror(int(number[1]))) if number else OSError(str(error)) from None


def read_parquet(
    source: str | os.PathLike[str] | bytes, path: str | os.PathLike[str], legal: str
) -> tuple[dict[str, str], pl.DataFrame]:
    """(key-value metadata, table) of a Parquet file, or of its content where that has been read already.

    Raises
    ------
    InputError
        No such file, no Parquet, damaged, or with a footer that claims more than so many bytes hold: more than 100,000 rows
        and 16 a byte, or 10,000,000 values of a column and 1,000 a byte.
    """
    content = source if isinstance(source, bytes) else read_bytes(source)
    metadata = parquet_metadata(content, path, legal)
    table = _READER.read(content)
    if table is None:
        raise InputError("not a Parquet file, or a truncated one, or one that is damaged", file=path, legal=legal)
    return metadata, pl.read_ipc(io.BytesIO(table))


class _Reader:
    """The process that reads; one at a time asks it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._of = 0  # the process that started it: a fork must not share its pipes

    def read(self, content: bytes) -> bytes | None:
        """The table as Arrow, or None where the file cannot be read within a minute."""
        with self._lock:
            process = self._running()
            late = threading.Event()

            def too_late() -> None:
                late.set()
                process.kill()

            clock = threading.Timer(LONGEST, too_late)
            clock.start()
            try:
                return _answer(process, content) or None
            except (OSError, EOFError):  # it died of this file
                self.close()
                return None
            finally:
                clock.cancel()
                clock.join()
                if late.is_set():  # perhaps after it had answered: it is not for the next file to notice
                    self.close()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._of != os.getpid() or self._process.poll() is not None:
            script = Path(__file__).with_name("parquet_reader.py")
            command = [sys.executable, "-P", str(script)]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
            self._of = os.getpid()
        return self._process

    def close(self) -> None:
        """Ends the process."""
        process, self._process = self._process, None
        if process is not None and self._of == os.getpid():
            process.kill()
            process.communicate()


def _answer(process: subprocess.Popen[bytes], content: bytes) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(len(content).to_bytes(8, "little") + content)
    process.stdin.flush()
    head = process.stdout.read(8)
    table = process.stdout.read(int.from_bytes(head, "little"))
    if len(head) < 8 or len(table) < int.from_bytes(head, "little"):
        raise EOFError
    return table


_READER = _Reader()
atexit.register(_READER.close)


def parquet_metadata(content: bytes, path: str | os.PathLike[str], legal: str) -> dict[str, str]:
    """The key-value metadata of the footer alone; `InputError` as of `read_parquet`, but for what is damaged elsewhere."""
    if len(content) < 12 or not content.startswith(MAGIC) or not content.endswith(MAGIC):
        raise InputError("not a Parquet file, or a truncated one, or one that is damaged", file=path, legal=legal)
    length = int.from_bytes(content[-8:-4], "little")
    try:
        footer = _Thrift(content[max(len(content) - 8 - length, 0) : -8]).struct()
        rows = _integer(footer[3])
        values = max((_integer(column[3][5]) for group in footer[4] for column in group[1]), default=0)
        stated = {pair[1].decode(): pair.get(2, b"").decode() for pair in footer.get(5, [])}
    except (LookupError, TypeError, ValueError, AttributeError):
        raise InputError(
            "not a Parquet file, or a truncated one, or one that is damaged", file=path, legal=legal
        ) from None
    for what, count, most in (
        ("rows", rows, max(FEW_ROWS, ROWS_A_BYTE * len(content))),
        ("values of a column", values, max(FEW_VALUES, VALUES_A_BYTE * len(content))),
    ):
        if not 0 <= count <= most:
            raise InputError(
                f"claims {count} {what} in {len(content)} bytes", file=path, legal=f"at most {most} {what}"
            )
    return stated


def _integer(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError("not an integer")
    return value


class _Thrift:
    """Structs of Thrift's compact protocol as dicts by field number; bounded by the length of the text."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.place = 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        found: dict[int, Any] = {}
        number = 0
        while True:
            head = self._byte()
            if head == 0:
                return found
            number = number + (head >> 4) if head >> 4 else self._signed()
            found[number] = self._value(head & 15, depth)

    def _value(self, kind: int, depth: int) -> Any:
        if depth > DEEPEST:
            raise ValueError("nested too deeply")
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return self._signed()
        if kind == 7:
            return struct.unpack("<d", self._bytes(8))[0]
        if kind == 8:
            return self._bytes(self._unsigned())
        if kind in (9, 10):
            return self._list(depth)
        if kind == 12:
            return self.struct(depth + 1)
        raise ValueError(f"no type {kind}")

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        count = self._unsigned() if head >> 4 == 15 else head >> 4
        if count > len(self.text) - self.place:  # every element takes a byte
            raise ValueError("longer than the text")
        kind = head & 15
        if kind in (1, 2):
            return [self._byte() == 1 for _ in range(count)]
        return [self._value(kind, depth + 1) for _ in range(count)]

    def _byte(self) -> int:
        self.place += 1
        return self.text[self.place - 1]

    def _bytes(self, count: int) -> bytes:
        self.place += count
        if self.place > len(self.text):
            raise ValueError("truncated")
        return self.text[self.place - count : self.place]

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise ValueError("a number beyond 64 bits")

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)
