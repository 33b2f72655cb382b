"""Dialect ``kai``: pods of the KAI scheduler, as written or as ``kubectl get pods -A -o yaml`` (or ``-o json``).

============================================================  ===========================================================
field                                                         becomes
============================================================  ===========================================================
metadata.namespace, metadata.name                             ``id``: namespace/name; a pod is a job
metadata.creationTimestamp                                    ``arrival``: seconds since the earliest; 0 if none states it
label kai.scheduler/queue, runai/queue before version 0.6     ``group``
GPUs of the containers                                        ``gpus``
annotation gpu-fraction, x gpu-fraction-num-devices           a share of a GPU: left out
annotation gpu-memory, MiB in text                            a part of a GPU whose memory is not known: left out
condition PodScheduled, status True                           start of ``ran``: the pod holds its GPUs from then on
status.containerStatuses[].state.terminated.finishedAt        end of ``ran``: the last one of its containers
status.phase                                                  ``status``
============================================================  ===========================================================

The fraction is an annotation in text; the containers of such a pod ask for no GPU. In a file with pods that ended, all
others are left out. Pods without a status, as written by users, have no duration: optsched reads them but cannot run
policies on them.

Source: NVIDIA/KAI-Scheduler @72de64f, docs (Apache-2.0), and the API of Kubernetes, v1 PodStatus.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from optsched.io.traces.dialect import TraceRead, TraceRequest, dialect, finish
from optsched.io.traces.kubernetes import gpus_of_pod, listed, name_of, part, rows_of_objects, text
from optsched.io.traces.ran_jobs import runs, whole_gangs
from optsched.io.traces.volcano import created

QUEUES = ("kai.scheduler/queue", "runai/queue")
COLUMNS = ("name", "creationTimestamp", "gpus", "PodScheduled", "finishedAt", "phase", "queue")


@dialect(
    "kai",
    guesses_cluster=True,
    recognises=lambda lines: any(name in line for line in lines for name in ("kai-scheduler", *QUEUES)),
)
def read(request: TraceRequest) -> TraceRead:
    """Pods of the KAI scheduler, YAML or JSON: kubectl get pods -A -o json.

    Parameters
    ----------
    request
        The file and the options of the call.
    """
    rows = rows_of_objects(request.path, _pod, COLUMNS)
    gangs = whole_gangs(rows, rows.number("gpus", least=0), "gpus")
    start, end = (rows.date_times(name, required=False) for name in ("PodScheduled", "finishedAt"))
    run: dict[str, pl.Series] = {}
    if end.filter(rows.good).null_count() < int(rows.good.sum()):
        rows.leave_out(end.is_null(), "not ended")
        run = runs(rows, start, end, ends="finishedAt")
    jobs = {"id": rows.unique("name"), "gpus": gangs, **created(rows), **run}
    jobs |= {"status": rows.text("phase", required=False), "group": rows.text("queue", required=False)}
    return finish(
        request,
        rows,
        jobs,
        from_earliest=("arrival",),
        times={"PodScheduled": start, "finishedAt": end} if run else None,
    )


def _pod(item: dict[str, Any]) -> dict[str, str]:
    if text(item, "kind") != "Pod":
        return {"reason": f"kind {text(item, 'kind')[:40] or 'not stated'}"}
    annotations = part(item, "metadata", "annotations")
    gpus, parts = gpus_of_pod(item)
    row = {"name": name_of(item), "gpus": str(float(gpus)), "phase": text(item, "status", "phase")}
    row["queue"] = next(filter(None, (text(item, "metadata", "labels", queue) for queue in QUEUES)), "")
    row["creationTimestamp"] = text(item, "metadata", "creationTimestamp")
    if text(annotations, "gpu-fraction"):
        row["reason"] = "a share of a GPU"
    elif text(annotations, "gpu-memory"):
        row["reason"] = "a part of a GPU in MiB"
    elif parts and not gpus:
        row["reason"] = f"no whole GPUs ({', '.join(sorted(parts))})"
    for condition in listed(item, "status", "conditions"):
        if (text(condition, "type"), text(condition, "status")) == ("PodScheduled", "True"):
            row["PodScheduled"] = text(condition, "lastTransitionTime")
    ends = [text(each, "state", "terminated", "finishedAt") for each in listed(item, "status", "containerStatuses")]
    row["finishedAt"] = max(ends) if ends and all(ends) else ""
    return row
