"""Documents of ``sacct --json``, of Slurm 22.05 to 26.05, as the records that ``sacct -P`` would print.

22.05 writes plain numbers; later versions write ``{"set": true, "infinite": false, "number": 5}``. A time that Slurm does
not have is 0 or 4294967294. A state is a text or a list of texts; ``REQUEUED`` and ``RESIZING`` mark former runs. The
elements of a waiting array are a mask of bits. Steps are inside of their jobs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from optsched.errors import InputError
from optsched.io.traces.slurm_fields import READ
from optsched.io.traces.slurm_tres import elements_of_mask
from optsched.io.traces.text_table import TextTable
from optsched.problem.atomic_files import MOST_JSON
from optsched.problem.documents import parse_json

LEGAL = "the output of sacct --json"
_WITHOUT = ("Elapsed", "Timelimit", "NNodes", "NCPUS")  # fields of -P that the document has under another name


def records(path: Path, content: bytes, digest: str) -> TextTable:
    """Return the jobs of a document and their steps, one row a record; rows count jobs from 1.

    Parameters
    ----------
    path
        The file, for errors.
    content
        Its bytes.
    digest
        Digest of the file.

    Raises
    ------
    InputError
        If the content is no document of ``sacct --json``.
    """
    if len(content) > MOST_JSON:
        legal = f"at most {MOST_JSON >> 20} MiB; export with -P, or shorter periods"
        raise InputError("the document is too large", file=path, legal=legal)
    document = parse_json(content, path, LEGAL)
    jobs = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(jobs, list):
        raise InputError("this is no document of sacct", file=path, field="jobs", legal=LEGAL)
    if jobs and not any(isinstance(job, dict) and isinstance(job.get("time"), dict) for job in jobs):
        raise InputError("its jobs have no times", file=path, field="jobs.time", legal=f"{LEGAL}, not of squeue")
    rows = [(k, row) for k, job in enumerate(jobs, 1) for row in _rows(job)]
    names = [name for name in READ if name not in _WITHOUT]
    fields = pl.DataFrame({name: pl.Series([row.get(name, "") for _, row in rows], dtype=pl.String) for name in names})
    return TextTable(str(path), fields, pl.Series("line", [k for k, _ in rows], dtype=pl.Int64), (), digest)


def _at(value: Any, *path: str) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _text(value: Any) -> str:
    """Return a number or text of a document as text; '' if there is none."""
    if isinstance(value, Mapping):
        if value.get("infinite") is True:
            return "UNLIMITED"
        value = value.get("number") if value.get("set") is True else None
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**18:
        return "too large"
    return "" if value is None else str(value)


def _time(value: Any) -> str:
    text = _text(value)
    return "Unknown" if text == "" else text


def _rows(job: Any) -> Iterator[dict[str, str]]:
    if not isinstance(job, Mapping):
        yield {"JobID": _text(job) or "null"}
        return
    raw, number = _text(job.get("job_id")), _name(job)
    yield {
        "JobID": number,
        "JobIDRaw": raw,
        "State": _state(_at(job, "state", "current")),
        "Submit": _time(_at(job, "time", "submission")),
        "Eligible": _time(_at(job, "time", "eligible")),
        "Start": _time(_at(job, "time", "start")),
        "End": _time(_at(job, "time", "end")),
        "ElapsedRaw": _text(_at(job, "time", "elapsed")),
        "Suspended": _text(_at(job, "time", "suspended")),
        "TimelimitRaw": _text(_at(job, "time", "limit")),
        "ReqTRES": _tres(_at(job, "tres", "requested")),
        "AllocTRES": _tres(_at(job, "tres", "allocated")),
        "User": _text(job.get("user")) or _text(_at(job, "association", "user")),
        "Account": _text(job.get("account")),
        "NodeList": _text(job.get("nodes")),
        "Reason": _text(_at(job, "state", "reason")),
        "Restarts": _text(job.get("restart_cnt")),
        "Cluster": _text(job.get("cluster")),
        "Partition": _text(job.get("partition")),
    }
    steps = job.get("steps")
    for k, step in enumerate(steps if isinstance(steps, list) else ()):
        end, start = (_time(_at(step, "time", name)) for name in ("end", "start"))
        yield {"JobID": f"{number}.{k}", "JobIDRaw": f"{raw}.{k}", "State": "STEP", "Start": start, "End": end}


def _name(job: Mapping[str, Any]) -> str:
    raw, array, leader = (
        _text(value) for value in (job.get("job_id"), _at(job, "array", "job_id"), _at(job, "het", "job_id"))
    )
    element, waiting = _text(_at(job, "array", "task_id")), _text(_at(job, "array", "task"))
    if array not in ("", "0"):
        if element:
            return f"{array}_{element}"
        return f"{array}_[{elements_of_mask(waiting)}]" if waiting else array
    if leader not in ("", "0"):
        return f"{leader}+{_text(_at(job, 'het', 'job_offset')) or 0}"
    return raw


def _state(current: Any) -> str:
    if isinstance(current, list):
        words = [word for word in current if isinstance(word, str)]
        flags = [word for word in words if word in ("REQUEUED", "RESIZING")]
        return (flags or words or [""])[0]
    return _text(current)


def _tres(listed: Any) -> str:
    parts = []
    for entry in listed if isinstance(listed, list) else ():
        kind, name, count = (_text(_at(entry, key)) for key in ("type", "name", "count"))
        if not count.startswith("-"):  # -2: not known
            parts.append(f"{kind}/{name}={count}" if name else f"{kind}={count}")
    return ",".join(parts)
