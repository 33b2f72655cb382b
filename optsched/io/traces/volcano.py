"""Dialect ``volcano``: Jobs of Volcano, as written or as ``kubectl get jobs.batch.volcano.sh -A -o yaml`` (or ``-o json``).

=====================================================  ==================================================================
field                                                  becomes
=====================================================  ==================================================================
metadata.namespace, metadata.name                      ``id``: namespace/name
metadata.creationTimestamp                             ``arrival``: seconds since the earliest; 0 if no job states it
spec.queue                                             ``group``
spec.minAvailable, spec.tasks[].minAvailable           ``gpus``: the fewest GPUs with which the job may start
spec.tasks[].replicas (absent: 1), GPUs of a template  the most GPUs that it asks for; reported where they are more
=====================================================  ==================================================================

Jobs with shared GPUs (``volcano.sh/vgpu-number``) and those without GPUs are left out by reason, and so is a PodGroup: it
says what must start together, not what a job asks for.

These objects do not say when a job ran: ``status.runningDuration`` counts from the creation. optsched therefore reads
them but cannot run policies on them.

Source: volcano-sh/volcano @ed72c7c, example and docs (Apache-2.0).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import polars as pl

from optsched.io.traces.dialect import TraceRead, TraceRequest, dialect, finish
from optsched.io.traces.kubernetes import OddObject, count, gpus_of_pod, listed, name_of, part, rows_of_objects, text
from optsched.io.traces.ran_jobs import whole_gangs
from optsched.io.traces.rows import Rows

COLUMNS = ("name", "creationTimestamp", "least", "most", "queue")


@dialect("volcano", guesses_cluster=True, recognises=lambda lines: any("batch.volcano.sh/" in line for line in lines))
def read(request: TraceRequest) -> TraceRead:
    """Volcano jobs, YAML or JSON: what they ask for; they do not say how long they ran.

    Parameters
    ----------
    request
        The file and the options of the call.
    """
    rows = rows_of_objects(request.path, _job, COLUMNS)
    most = rows.number("most", least=0)
    rows.leave_out(most == 0, "no GPUs")
    gangs = whole_gangs(rows, rows.number("least", least=0), "least")
    more = rows.good & (most > gangs).fill_null(False)
    if more.any():
        first = int(more.arg_true()[0])
        rows.say(
            f"the gang is minAvailable; {int(more.sum()):,} of the jobs ask for more, first in row {rows.line[first]}: "
            f"{gangs[first]} to {most[first]:g} GPUs"
        )
    jobs = {"id": rows.unique("name"), "gpus": gangs, "group": rows.text("queue", required=False)}
    jobs |= created(rows)
    return finish(request, rows, jobs, from_earliest=("arrival",))


def created(rows: Rows) -> dict[str, pl.Series]:
    """Return the column ``arrival``, from ``creationTimestamp``; 0 for all if no good row states it.

    Parameters
    ----------
    rows
        Rows of objects.
    """
    if rows.text("creationTimestamp", required=False).filter(rows.good).null_count() == int(rows.good.sum()):
        rows.say("no object states its creationTimestamp: all jobs arrive at 0")
        return {"arrival": pl.Series([0.0]).new_from_index(0, rows.count)}
    return {"arrival": rows.date_times("creationTimestamp")}


def _job(item: dict[str, Any]) -> dict[str, str]:
    kind = text(item, "kind")
    if kind != "Job":
        starts = "a PodGroup says what must start together, not what a job asks for"
        return {"reason": starts if kind == "PodGroup" else f"kind {kind[:40] or 'not stated'}"}
    least, most, parts = _asked(item)
    row = {"name": name_of(item), "queue": text(item, "spec", "queue"), "least": str(least), "most": str(most)}
    row["creationTimestamp"] = text(item, "metadata", "creationTimestamp")
    if parts:
        row["reason"] = f"shared GPUs ({', '.join(sorted(parts))})"
    return row


def _asked(item: dict[str, Any]) -> tuple[float, float, set[str]]:
    # the fewest and the most GPUs of a job, and its resources that are parts of GPUs
    tasks = listed(item, "spec", "tasks")
    sizes = [gpus_of_pod(part(task, "template")) for task in tasks]
    replicas = [count(task, "replicas") for task in tasks]
    needed = [count(task, "minAvailable", absent=0) for task in tasks]
    if any(fewest > number for fewest, number in zip(needed, replicas, strict=True)):
        raise OddObject("spec.tasks.minAvailable", max(needed), "at most the replicas of the task")
    least = sum((fewest * gpus for fewest, (gpus, _) in zip(needed, sizes, strict=True)), Fraction(0))
    missing = count(item, "spec", "minAvailable", absent=sum(replicas)) - sum(needed)
    spare = zip(sizes, replicas, needed, strict=True)
    for gpus, pods in sorted((gpus, number - fewest) for (gpus, _), number, fewest in spare):
        least += gpus * min(pods, max(missing, 0))
        missing -= pods
    most = sum((number * gpus for number, (gpus, _) in zip(replicas, sizes, strict=True)), Fraction(0))
    return float(least), float(most), set().union(*(parts for _, parts in sizes))
