"""Records of ``sacct`` as runs: one object for every row of a job, with all texts checked and read."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from optsched.io.traces.rows import Rows
from optsched.io.traces.slurm_clock import on_one_clock
from optsched.io.traces.slurm_jobs import UNALLOCATED, WAITING, SlurmRun
from optsched.io.traces.slurm_times import limits, moments
from optsched.io.traces.slurm_tres import gpu_types, held

ID = r"^\d{1,18}(_(\d{1,18}|\[[^\]]*\]))?(\+\d{1,9})?(\..+)?$"


def runs_of(rows: Rows, unit: str, resources: str = "AllocTRES") -> list[SlurmRun]:
    """Return a run for every good row of a job; rows of steps extend them and are passed over.

    Parameters
    ----------
    rows
        Records of the export, by job.
    unit
        ``gpu``, ``cpu`` or ``node``.
    resources
        Field whose resources are counted.
    """
    name = "JobID" if "JobID" in rows.columns else "JobIDRaw"
    ids = rows.text(name)
    rows.reject(~ids.str.contains(ID).fill_null(True), name, "an id such as 9, 9_4, 9+0 or 9.batch")
    is_step = ids.str.contains(".", literal=True).fill_null(False)
    submit, start, end = (moments(rows, field) for field in ("Submit", "Start", "End"))
    eligible = moments(rows, "Eligible") if "Eligible" in rows.columns else submit
    state = rows.text("State", required=False).str.extract(r"^([A-Z_]+)").fill_null("")
    rows.reject((state == "") & ~is_step, "State", "a state such as COMPLETED")
    rows.reject(submit.is_null() & ~is_step, "Submit", "a time", "missing")
    tres, nodes, user = (_optional(rows, field) for field in (resources, "NodeList", "User"))
    count = held(tres, unit)
    rows.reject(count.is_null(), resources, "resources such as cpu=8,gres/gpu=2,node=1")
    allocated = ~nodes.is_in(UNALLOCATED) if "NodeList" in rows.columns else (tres != "") & start.is_not_null()
    allocated &= ~state.is_in(WAITING) & ~is_step
    table = pl.DataFrame({"id": ids, "ran": allocated, "submit": submit, "start": start, "end": end})
    table = table.with_columns(state=state, held=count)
    clock = on_one_clock(rows, table)
    table = table.with_columns(
        start=clock.start, end=clock.end, suspended=clock.suspended, eligible=eligible, allocated=allocated,
        walltime=limits(rows), restarts=_restarts(rows), reason=_optional(rows, "Reason"), nodes=nodes, tres=tres,
        user=user,
    )  # fmt: skip
    return list(_runs(table.with_columns(good=rows.good, is_step=is_step)))


def _optional(rows: Rows, field: str) -> pl.Series:
    if field not in rows.columns:
        return pl.Series(field, [""]).new_from_index(0, rows.count)
    return rows.text(field, required=False).fill_null("")


def _restarts(rows: Rows) -> pl.Series:
    return _optional(rows, "Restarts").cast(pl.Int64, strict=False).fill_null(0)


def _runs(table: pl.DataFrame) -> Iterator[SlurmRun]:
    last: dict[str, SlurmRun] = {}
    for k, row in enumerate(table.iter_rows(named=True)):
        if not row["good"]:
            continue
        job, _, step = row["id"].partition(".")
        if not step:
            name, _, component = job.partition("+")
            run = last[job] = SlurmRun(
                k, name, int(component or 0), row["submit"], row["eligible"], row["start"], row["end"], row["state"],
                row["held"], row["allocated"], row["end"], row["suspended"], row["restarts"], row["reason"],
                row["walltime"], row["nodes"], gpu_types(row["tres"]), row["user"],
            )  # fmt: skip
            yield run
        elif row["end"] is not None and job in last:
            run = last[job]
            if run.released is not None and row["end"] > run.released:
                run.released = row["end"]
