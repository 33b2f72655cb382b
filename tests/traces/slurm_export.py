"""A made-up export of ``sacct`` with every oddity of `optsched.io.traces.slurm_log`, as text and as a document."""

from __future__ import annotations

import json
from typing import Any

T0 = 1_800_000_000
FIELDS = (
    *("JobIDRaw", "JobID", "State", "Submit", "Eligible", "Start", "End", "ElapsedRaw", "Suspended", "TimelimitRaw"),
    *("ReqTRES", "AllocTRES", "User", "Account", "NodeList", "Reason", "JobName"),
)
NOTHING = "Unknown"


def tres(gpus: str = "", cpus: int = 4) -> str:
    return f"billing={cpus},cpu={cpus},{gpus}mem=8G,node=1"


def line(raw: object, job: object, state: str, submit: int, start: object, end: object, **more: Any) -> dict[str, Any]:
    """One row; times count from T0."""
    values = {"gpus": "", "limit": 60, "user": "ada", "nodes": "n-1", "reason": "None", "name": "x", "suspended": 0}
    values |= {"eligible": submit, "alloc": None, **more}
    times = [t if isinstance(t, str) else str(T0 + t) for t in (submit, values["eligible"], start, end)]
    known = isinstance(start, int) and isinstance(end, int)
    elapsed = values.get("elapsed", end - start - values["suspended"] if known else 0)
    held = (
        tres(values["gpus"])
        if values["alloc"] is None and values["nodes"] != "None assigned"
        else values["alloc"] or ""
    )
    fields = (raw, job, state, *times, elapsed, values["suspended"], values["limit"], tres("gres/gpu=1,"), held)
    tail = (values["user"], "lab", values["nodes"], values["reason"], values["name"])
    return dict(zip(FIELDS, map(str, (*fields, *tail)), strict=True))


def waiting(
    raw: object, job: object, state: str = "PENDING", start: object = NOTHING, end: object = NOTHING, **more: Any
) -> Any:
    return line(raw, job, state, more.pop("submit", 5), start, end, nodes="None assigned", **more)


ROWS = (
    line(1, 1, "COMPLETED", 0, 10, 110, gpus="gres/gpu:a100=2,gres/gpu=2,", nodes="n-[1-2]"),
    line("1.batch", "1.batch", "COMPLETED", 10, 10, 110, gpus="gres/gpu=1,"),
    # ignores TERM: its GPUs are free when the step has ended
    line(2, 2, "CANCELLED by 1001", 1, 20, 80, gpus="gres/gpu:a100=1,gres/gpu:v100=1,", limit=1),
    line("2.0", "2.0", "CANCELLED", 20, 20, 110, gpus="gres/gpu=1,"),
    line(9, "9_0", "COMPLETED", 2, 30, 40, gpus="gres/gpu:v100=1,gres/gpu=1,", eligible=25),
    line(10, "9_1", "TIMEOUT", 2, 40, 140, gpus="gres/gpu:v100=1,gres/gpu=1,", eligible=40, limit=1),
    waiting(11, "9_[3,5-9:2,12%2]"),
    line(20, "20+0", "COMPLETED", 3, 50, 60, gpus="gres/gpu:a100=1,gres/gpu=1,", nodes="n-3"),
    line(21, "20+1", "COMPLETED", 3, 50, 70, gpus="gres/gpu:a100=2,gres/gpu=2,", nodes="n-4", user="bob"),
    # requeued: two runs; resized from 4 GPUs to 2, and its second row starts when the first did
    line(30, 30, "REQUEUED", 4, 100, 150, gpus="gres/gpu=2,", limit=525600),
    line(30, 30, "COMPLETED", 150, 300, 350, gpus="gres/gpu=2,", eligible=271, reason="BeginTime", limit="UNLIMITED"),
    line(31, 31, "RESIZING", 5, 200, 220, gpus="gres/gpu=4,", nodes="n-[3-4]"),
    line(31, 31, "COMPLETED", 220, 200, 260, gpus="gres/gpu=2,", nodes="n-3"),
    line(32, 32, "COMPLETED", 6, 200, 300, gpus="gres/gpu=1,", suspended=30),
    line(33, 33, "COMPLETED", 7, 200, 300, gpus="gres/gpu=1,", elapsed=90, name="a|b"),
    line(34, 34, "FAILED", 8, 200, 200, gpus="gres/gpu=1,"),
    line(35, 35, "COMPLETED", 9, 200, 260),
    line(36, 36, "RUNNING", 9, 200, NOTHING, gpus="gres/gpu=1,", name="one\ntwo"),
    waiting(37, 37, "FAILED", 5, 5, limit=2),
    waiting(38, 38, "CANCELLED by 0", "None", 90),
    waiting(39, 39, "CANCELLED", NOTHING, 90, eligible=NOTHING),
    waiting(40, 40, "DEADLINE", NOTHING, 90),
    waiting(41, 41, reason="PartitionTimeLimit", limit="Partition_Limit"),
    line(42, 42, "NODE_FAIL", 6, 300, 310, gpus="gres/gpu=1,"),
    waiting(42, 42, submit=310, alloc=tres("gres/gpu=1,")),  # keeps the resources of its last run
)


def text(rows: Any = ROWS, fields: Any = FIELDS, delimiter: str = "|") -> str:
    return "\n".join([delimiter.join(fields), *(delimiter.join(row[name] for name in fields) for row in rows)]) + "\n"


def document(rows: Any = ROWS, *, plain: bool = False) -> str:
    """The rows as ``sacct --json`` prints them: of 22.05 if ``plain``, else of later versions."""
    jobs: list[dict[str, Any]] = []
    for row in rows:
        end = None if row["End"] in ("Unknown", "None") else int(row["End"])
        if "." in row["JobID"]:
            moment = end or 0 if plain else {"set": True, "infinite": False, "number": end or 0}
            jobs[-1]["steps"].append({"time": {"end": moment, "start": moment}, "step": {"id": row["JobID"]}})
            continue
        jobs.append(_job(row, plain))
    return json.dumps({"jobs": jobs, "meta": {}, "errors": []})


def _job(row: dict[str, str], plain: bool) -> dict[str, Any]:
    def number(value: Any) -> Any:
        known = isinstance(value, int)
        if plain:
            return value if known else None
        return {"set": known, "infinite": value == "UNLIMITED", "number": value if known else 0}

    def moment(name: str) -> int:
        return int(row[name]) if row[name].isdigit() else 4294967294 if row[name] == "None" else 0

    def resources(name: str) -> list[dict[str, Any]]:
        parts = [part.split("=") for part in row[name].split(",") if part]
        kinds = [(*key.partition("/")[::2], int(count.rstrip("G"))) for key, count in parts]
        return [{"type": kind, "name": name, "count": count} for kind, name, count in kinds]

    job, _, element = row["JobID"].partition("_")
    leader, _, offset = job.partition("+")
    masked = element.startswith("[")
    state = row["State"].partition(" ")[0]
    old = state in ("REQUEUED", "RESIZING") and not plain
    limit = row["TimelimitRaw"]
    return {
        "job_id": int(row["JobIDRaw"]), "name": row["JobName"], "user": row["User"], "account": row["Account"],
        "array": {
            "job_id": int(job) if element else 0,
            "task_id": number(int(element)) if element and not masked else number(None),
            "task": hex(sum(1 << k for k in (3, 5, 7, 9, 12))) if masked else None,
        },
        "het": {"job_id": int(leader) if offset else 0, "job_offset": number(int(offset)) if offset else number(None)},
        "time": {
            "submission": moment("Submit"), "eligible": moment("Eligible"), "start": moment("Start"), "end": moment("End"),
            "elapsed": int(row["ElapsedRaw"]), "suspended": int(row["Suspended"]),
            "limit": int(limit) if plain and limit.isdigit() else number(int(limit) if limit.isdigit() else limit),
        },
        "state": {"current": ["PENDING", state] if old else state if plain else [state], "reason": row["Reason"]},
        "nodes": row["NodeList"], "tres": {"allocated": resources("AllocTRES"), "requested": resources("ReqTRES")},
        "steps": [],
    }  # fmt: skip
