"""Dialect ``orlib-wt``: OR-Library's single-machine weighted tardiness, 1||sum w_j T_j; ``FILE#k``, k from 1.

Numbers separated by blanks, three lines an instance: the processing times p_j > 0, the weights w_j >= 0, the due dates
d_j; n is the length of the line. The beginning of a file (n = 40)::

    26 24 79 46 32 35 73 74 ...
    1 10 9 10 10 4 3 2 ...
    1588 1620 1731 1773 1694 1487 ...

p becomes ``duration``, w ``weight``, d ``due``; everything is released at 0 on one machine. The file
``<name>_optima.txt`` in the same folder, when there is one, holds one proven optimum an instance in the same order and
becomes ``optimum``. Jobs are named 1..n; a bad number is reported with the job's position as row.

Source: OR-Library, J. E. Beasley, J. Oper. Res. Soc. 41, 1990 (MIT); instances and optima of Crauwels, Potts and
Van Wassenhove, INFORMS J. Comput. 10, 1998.
"""

from __future__ import annotations

import polars as pl

from optsched.errors import InputError
from optsched.io.traces.dialect import TraceRead, TraceRequest, dialect, finish
from optsched.io.traces.rows import Rows
from optsched.io.traces.text_table import TextTable, read_text, read_utf8
from optsched.problem.cluster import Cluster

OBJECTIVE = "total_weighted_tardiness"
FIELDS = ("p", "w", "d")


@dialect("orlib-wt", fragment="number of the instance, from 1", brings_cluster=True)
def read(request: TraceRequest) -> TraceRead:
    """OR-Library weighted tardiness: three lines (p, w, d) an instance; #k says which, from 1."""
    lines, digest = _number_lines(request)
    k = _number_of(request, len(lines) // 3)
    columns = {field: numbers for field, (_, numbers) in zip(FIELDS, lines[3 * k - 3 : 3 * k], strict=True)}
    rows = Rows(TextTable.of_jobs(f"{request.path}#{k}", columns, digest))
    jobs = {
        "id": rows.line.cast(pl.String),
        "gpus": pl.Series([1], dtype=pl.Int64).new_from_index(0, rows.count),
        "duration": rows.positive("p"),
        "weight": rows.non_negative("w"),
        "due": rows.number("d"),
    }
    value = _optimum(request, k, len(lines) // 3)
    known = {"objective": OBJECTIVE, "class": "gang-nonpreemptive", "value": value, "proved_by": ["OR-Library"]}
    return finish(
        request,
        rows,
        jobs,
        dialect="orlib-wt",
        gang_field="p",
        notes={"problem": "1||sumwT"},
        cluster=Cluster.machines(1),
        objective=OBJECTIVE,
        optimum=None if value is None else known,
    )


def _number_lines(request: TraceRequest) -> tuple[list[tuple[int, list[str]]], str]:
    # (line number, numbers as text) of every line that is not blank; a multiple of three of equal length in threes
    text, digest = read_utf8(request.path)
    lines = [(number, line.split()) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if len(lines) % 3:
        raise InputError(
            "not three lines an instance", file=request.path, value=len(lines), legal="lines of p, w and d in turn"
        )
    for position, (number, numbers) in enumerate(lines):
        jobs = len(lines[position - position % 3][1])
        if len(numbers) != jobs:
            raise InputError(
                "wrong number of values",
                file=request.path,
                row=number,
                field=FIELDS[position % 3],
                value=len(numbers),
                legal=f"{jobs} numbers, as many as the line of p has",
            )
    return lines, digest


def _number_of(request: TraceRequest, instances: int) -> int:
    fragment = request.fragment or ""
    if fragment.isascii() and fragment.isdigit() and 1 <= int(fragment) <= instances:
        return int(fragment)
    raise request.no_instance("#k", f"#k, k an integer from 1 to {instances}")


def _optimum(request: TraceRequest, k: int, instances: int) -> int | float | None:
    path = request.path.with_name(f"{request.path.stem}_optima.txt")
    if not path.is_file():
        return None
    values = read_text(path)[0].split()
    if len(values) != instances:
        raise InputError(
            "wrong number of optima", file=path, value=len(values), legal=f"{instances} numbers, one an instance"
        )
    try:
        value = float(values[k - 1])
    except ValueError:
        raise InputError("not legal", file=path, row=k, value=values[k - 1], legal="a number") from None
    return int(value) if value.is_integer() else value
