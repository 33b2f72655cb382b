"""Dialect ``orlib-wt``: OR-Library's single-machine weighted tardiness, 1||sum w_j T_j; ``FILE#k``, k from 1.

Numbers separated by blanks and line ends, nothing else: of each instance the n processing times p_j > 0, then the n weights
w_j >= 0, then the n due dates d_j. Lines have no meaning: as published (``wt40.txt``, ``wt50.txt``, ``wt100.txt``) they end
after 20 numbers, so that n cannot be seen in them. It is the number in the file's name after ``wt``, or it is said:
``FILE#k,n=40``. The beginning of ``wt40.txt``::

    26 24 79 46 32 35 73 74 14 67 86 46 78 40 29 94 64 27 90 55
    35 52 36 69 85 95 14 78 37 86 44 28 39 12 30 68 70  9 49 50
     1 10  9 10 10  4  3  2 10  3  7  3  1  3 10  4  7  7  4  7
     5  3  5 ...

p becomes ``duration``, w ``weight``, d ``due``; everything is released at 0 on one machine. A file of numbers in the same
folder, one an instance in the same order, becomes ``optimum``: ``<name>_optima.txt``, all proven, or for ``wt40.txt`` and
``wt50.txt`` OR-Library's own ``wtopt40.txt`` and ``wtopt50.txt``, but for the instances that it calls unsolved there (19 of
n = 40; 11, 12, 14, 19, 36, 44, 66, 87, 88 and 111 of n = 50). ``wtbest100a.txt`` and ``wtbest100b.txt`` hold the best values
known then, not proven, and are not read. Jobs are named 1..n; a bad number is reported with the job's position as row.

Original: OR-Library, J. E. Beasley, J. Oper. Res. Soc. 41, 1990 (MIT); instances and optima of Crauwels, Potts and
Van Wassenhove, INFORMS J. Comput. 10, 1998. Tried: the first lines of ``wt40.txt``, the first values of ``wtopt40.txt``, and
the first 25 instances in one line a row. Public copies exist that have number 19 as the first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from optsched.errors import InputError
from optsched.io.traces.dialect import TraceRead, TraceRequest, dialect, finish
from optsched.io.traces.rows import Rows
from optsched.io.traces.text_table import TextTable, read_text, read_utf8
from optsched.problem.cluster import Cluster

OBJECTIVE = "total_weighted_tardiness"
FIELDS = ("p", "w", "d")
# unsolved instances according to OR-Library, in its own files of optima
UNSOLVED = {40: {19}, 50: {11, 12, 14, 19, 36, 44, 66, 87, 88, 111}}


def recognises(lines: Sequence[str]) -> bool:
    """Return True if the first lines of a file are those of such a file: 20 numbers a line.

    Parameters
    ----------
    lines
        The first lines.
    """
    rows = [line.split() for line in lines[:2]]
    return len(rows) > 1 and all(len(row) == 20 and all(map(str.isdigit, row)) for row in rows)


@dialect("orlib-wt", fragment="k[,n=jobs], k from 1", brings_cluster=True, recognises=recognises)
def read(request: TraceRequest) -> TraceRead:
    """OR-Library weighted tardiness: n numbers each of p, w, d an instance; #k or #k,n=40.

    Parameters
    ----------
    request
        The file and the options of the call.
    """
    text, digest = read_utf8(request.path)
    if request.fragment is None:
        raise request.no_instance("#k", "#k, k an integer from 1")
    numbers = text.split()
    part, _, size = request.fragment.partition(",")
    # The file does not contain n, and a wrong n reads other instances without an error. So n is never guessed.
    named = re.search(r"wt(\d+)", request.path.stem, re.ASCII)
    found = re.fullmatch(r"n=([1-9]\d{0,8})", size, re.ASCII) if size else named
    if found is None or int(found[1]) == 0:
        legal = "#k,n=40 (n jobs an instance), or a file name with it: wt40.txt"
        raise InputError("jobs an instance unknown", file=request.path, field="n", value=size or None, legal=legal)
    n = int(found[1])
    instances, rest = divmod(len(numbers), 3 * n)
    if rest or not numbers:
        legal = f"a multiple of 3 n = {3 * n}: p, w and d of {n} jobs in turn"
        raise InputError("wrong number of values", file=request.path, value=len(numbers), legal=legal)
    if not (part.isascii() and part.isdigit() and 1 <= int(part) <= instances):
        raise request.no_instance("#k", f"#k, k an integer from 1 to {instances}")
    k = int(part)
    first = 3 * n * (k - 1)
    columns = {field: numbers[first + n * i : first + n * (i + 1)] for i, field in enumerate(FIELDS)}
    rows = Rows(TextTable.of_jobs(f"{request.path}#{k}", columns, digest))
    jobs = {
        "gpus": pl.Series([1], dtype=pl.Int64).new_from_index(0, rows.count),
        "duration": rows.positive("p"),
        "weight": rows.non_negative("w"),
        "due": rows.number("d"),
    }
    value = _optimum(request, k, instances, n)
    known = {"objective": OBJECTIVE, "class": "gang-nonpreemptive", "value": value, "proved_by": ["OR-Library"]}
    return finish(
        request,
        rows,
        jobs,
        notes={"problem": "1||sumwT"},
        cluster=Cluster.machines(1),
        objective=OBJECTIVE,
        optimum=None if value is None else known,
    )


def _optimum(request: TraceRequest, k: int, instances: int, n: int) -> int | float | None:
    path = request.path.with_name(f"{request.path.stem}_optima.txt")
    if not path.is_file():
        path = request.path.with_name(f"wtopt{n}.txt")
        unsolved = UNSOLVED.get(n)
        if request.path.stem != f"wt{n}" or unsolved is None or not path.is_file() or k in unsolved:
            return None
    values = read_text(path)[0].split()
    if len(values) != instances:
        legal = f"{instances} numbers, one an instance"
        raise InputError("wrong number of optima", file=path, value=len(values), legal=legal)
    try:
        value = float(values[k - 1])
    except ValueError:
        raise InputError("invalid", file=path, row=k, value=values[k - 1], legal="a number") from None
    return int(value) if value.is_integer() else value
