"""Dialect ``classic``: a JSON list of small instances of classical problems with **proven** optima; ``FILE#ID``.

One entry of the list::

    {"id": "C-8-0", "problem": "P|r_j,size_j|sumC", "machines": 8, "p": [4, 26, ...], "r": [3, ...], "w": [1, ...],
     "size": [2, ...], "optimum": 337, "proved_by": ["highs-time-indexed", "ortools-cpsat"]}

=========  ============================================  ====================================================
field      unit                                          becomes
=========  ============================================  ====================================================
problem    ``MACHINES|CONSTRAINTS|OBJECTIVE``            the objective: ``sumC``, ``sumwC``, ``sumwT``, ``Cmax``
machines   integer >= 1                                  with ``size_j`` in the problem one node of that many GPUs
                                                         (rigid gangs), else that many one-GPU nodes
p          times > 0                                     ``duration``
r          times >= 0                                    ``arrival`` (absent: 0)
w          numbers >= 0                                  ``weight`` (absent: 1)
d          times                                         ``due`` (absent: none)
size       integers >= 1                                 ``gpus`` (absent: 1)
optimum    the proven value, absent where none is known  ``optimum`` of class ``gang-nonpreemptive``
proved_by  names of the methods that agree               ``optimum["proved_by"]``
=========  ============================================  ====================================================

Jobs are named 1..n. The form is this project's own, so there is no published original; read whole is its file
``rigid_and_single_optima.json`` (public domain), with the classes
A 1|r_j|sumC, B and L 1|r_j|sumwC, C P|r_j,size_j|sumC on 8 GPUs, D P3|r_j|sumwC. A bad number is reported with the
job's position as row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optsched.errors import InputError, check_legal
from optsched.io.traces.dialect import TraceRead, TraceRequest, dialect, finish
from optsched.io.traces.rows import Rows
from optsched.io.traces.text_table import TextTable, read_utf8
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.documents import parse_json
from optsched.registry import near_matches

OBJECTIVES = {
    "sumC": "total_completion_time",
    "sumwC": "total_weighted_completion_time",
    "sumwT": "total_weighted_tardiness",
    "Cmax": "makespan",
}
_JOB_FIELDS = ("p", "r", "w", "d", "size")


def recognises(lines: Sequence[str]) -> bool:
    """Return True if the first lines of a file are those of a list of such instances.

    Parameters
    ----------
    lines
        The first lines.
    """
    text = "".join(lines)
    return text.startswith("[") and '"problem"' in text and '"machines"' in text


@dialect("classic", fragment="ID of the instance", brings_cluster=True, recognises=recognises)
def read(request: TraceRequest) -> TraceRead:
    """Classical instances with proven optima: a JSON list; #ID says which.

    Parameters
    ----------
    request
        The file and the options of the call.
    """
    entries, digest = _entries(request)
    if request.fragment not in entries:
        raise request.no_instance("#ID", near_matches(request.fragment or "", list(entries), kind="ID"))
    entry = entries[request.fragment]
    file = f"{request.path}#{request.fragment}"
    parts = str(entry.get("problem", "")).split("|")
    if len(parts) != 3 or parts[2].strip() not in OBJECTIVES:
        legal = f"MACHINES|CONSTRAINTS|OBJECTIVE, objective one of {', '.join(OBJECTIVES)}"
        raise InputError("unknown problem", file=file, field="problem", value=entry.get("problem"), legal=legal)
    objective, value = OBJECTIVES[parts[2].strip()], entry.get("optimum")
    machines: Any = entry.get("machines")
    check_legal(type(machines) is int and machines >= 1, "machines", machines, "an integer >= 1", file=file)
    known = value is None or type(value) in (int, float)
    check_legal(known, "optimum", value, "a number", file=file)
    optimum = {"objective": objective, "class": "gang-nonpreemptive", "value": value}
    optimum["proved_by"] = list(entry.get("proved_by", []))
    rows = Rows(_job_table(file, entry, digest))
    jobs = {"duration": rows.positive("p"), "gpus": rows.gang("size"), "arrival": rows.non_negative("r")}
    jobs |= {"weight": rows.non_negative("w"), "due": rows.number("d", required=False)}
    return finish(
        request,
        rows,
        jobs,
        notes={"problem": entry["problem"]},
        cluster=Cluster((NodeGroup(gpus=machines),)) if "size" in parts[1] else Cluster.machines(machines),
        objective=objective,
        optimum=None if value is None else optimum,
    )


def _entries(request: TraceRequest) -> tuple[dict[str, dict[str, Any]], str]:
    text, digest = read_utf8(request.path)
    document = parse_json(text.encode(), request.path, "JSON", "JSON", row=True)
    entries = document if isinstance(document, list) else [document]
    for position, entry in enumerate(entries, 1):
        if not isinstance(entry, dict) or not isinstance(entry.get("id"), str):
            legal = 'a list of {"id": ..., "p": ...}'
            raise InputError("not an instance", file=request.path, field="id", row=position, legal=legal)
    return {entry["id"]: entry for entry in entries}, digest


def _job_table(file: str, entry: dict[str, Any], digest: str) -> TextTable:
    # Keep the numbers as text, so that they pass the same checks as the rows of every other file.
    times = entry.get("p")
    if not isinstance(times, list) or not times:
        raise InputError("no jobs", file=file, field="p", legal="a list of processing times")
    columns = {}
    for field, default in zip(_JOB_FIELDS, (None, 0, 1, "", 1), strict=True):
        values = entry.get(field)
        if values is None:
            values = [default] * len(times)
        if not isinstance(values, list) or len(values) != len(times):
            raise InputError("wrong number of values", file=file, field=field, legal=f"a list of {len(times)} numbers")
        columns[field] = [str(value) for value in values]
    return TextTable.of_jobs(file, columns, digest)
