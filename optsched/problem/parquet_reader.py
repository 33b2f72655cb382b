"""The process that reads Parquet for `optsched.problem.parquet`: a script of its own, which a damaged file may kill.

Requests on stdin: 8 bytes of length and so many of the file. Answers on stdout: 8 bytes of length and so many of the table
as Arrow; a length of 0 where the file cannot be read. Ends with stdin.
"""

from __future__ import annotations

import io
import sys

import polars as pl


def main() -> None:
    """Answers until nobody asks."""
    ask, answer = sys.stdin.buffer, sys.stdout.buffer
    while head := ask.read(8):
        content = ask.read(int.from_bytes(head, "little"))
        stream = io.BytesIO()
        try:
            pl.read_parquet(io.BytesIO(content)).write_ipc(stream)
        except BaseException:  # a panic of the reader is no Exception
            stream = io.BytesIO()
        table = stream.getvalue()
        answer.write(len(table).to_bytes(8, "little") + table)
        answer.flush()


if __name__ == "__main__":
    main()
