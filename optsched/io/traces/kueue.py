"""Dialect ``kueue``: finished Workloads of Kueue, ``kubectl get workloads -A -o json`` (or ``-o yaml``).

==========================================================  =============================================================
field                                                       becomes
==========================================================  =============================================================
metadata.namespace, metadata.name                           ``id``: namespace/name
metadata.creationTimestamp                                  ``arrival``: seconds since the earliest legal workload
spec.queueName                                              ``group``
status.admission.podSetAssignments[].resourceUsage          ``gpus``: a **total**, not to be multiplied by the count;
                                                            without one the pods of spec.podSets, count x GPUs of a pod
condition Admitted, status True                             start of ``ran``
condition Finished, status True                             end of ``ran``; its reason is ``status``; ``duration`` = end
                                                            less start
status.accumulatedPastExecutionTimeSeconds                  reported: the log does not say when a workload ran before
==========================================================  =============================================================

A condition that is False carries the time at which it became false, and counts as absent. Left out by reason: workloads that
wait, run or were deactivated, without GPUs, and with parts of GPUs only (MIG). Versions v1beta1 and v1beta2 are read.

Source: kubernetes-sigs/kueue @ff69552, apis/kueue (Apache-2.0).
"""

from __future__ import annotations

from typing import Any

import polars as pl

from optsched.io.traces.dialect import TraceRead, TraceRequest, dialect, finish
from optsched.io.traces.kubernetes import count, gpus_in, gpus_of_pod, listed, name_of, part, rows_of_objects, text
from optsched.io.traces.ran_jobs import runs, said_of, whole_gangs

COLUMNS = ("name", "creationTimestamp", "gpus", "Admitted", "Finished", "status", "queue", "before")


@dialect("kueue", guesses_cluster=True, recognises=lambda lines: any("kueue.x-k8s.io/" in line for line in lines))
def read(request: TraceRequest) -> TraceRead:
    """Kueue workloads that finished: kubectl get workloads -A -o json.

    Parameters
    ----------
    request
        The file and the options of the call.
    """
    rows = rows_of_objects(request.path, _workload, COLUMNS)
    gangs = whole_gangs(rows, rows.number("gpus", least=0), "gpus")
    submit = rows.date_times("creationTimestamp")
    start, end = (rows.date_times(name, required=False) for name in ("Admitted", "Finished"))
    run = runs(rows, start, end, ends="Finished")
    before = rows.text("before", required=False).cast(pl.Float64, strict=False)
    said_of(
        rows,
        before > 0,
        "{} of the workloads also ran before their last admission, at times that the log does not state",
    )
    jobs = {"id": rows.unique("name"), "arrival": submit, "gpus": gangs, **run}
    jobs |= {"status": rows.text("status", required=False), "group": rows.text("queue", required=False)}
    return finish(request, rows, jobs, from_earliest=("arrival",), times={"Admitted": start, "Finished": end})


def _workload(item: dict[str, Any]) -> dict[str, str]:
    if text(item, "kind") != "Workload":
        return {"reason": f"kind {text(item, 'kind')[:40] or 'not stated'}"}
    conditions = {text(each, "type"): each for each in listed(item, "status", "conditions")}
    true = {name for name, each in conditions.items() if text(each, "status") == "True"}
    gpus, parts = _gpus(item)
    row = {name: text(conditions[name], "lastTransitionTime") for name in ("Admitted", "Finished") if name in true}
    row |= {"name": name_of(item), "queue": text(item, "spec", "queueName"), "gpus": str(float(gpus))}
    row |= {"creationTimestamp": text(item, "metadata", "creationTimestamp")}
    row["before"] = text(item, "status", "accumulatedPastExecutionTimeSeconds")
    if not gpus:
        row["reason"] = f"no whole GPUs ({', '.join(sorted(parts))})" if parts else "no GPUs"
    elif "Finished" in true:
        row["status"] = text(conditions["Finished"], "reason")
    elif text(item, "spec", "active").lower() == "false" or _deactivated(conditions.get("Evicted")):
        row["reason"] = "deactivated"
    else:
        row["reason"] = "still running" if "Admitted" in true else "still waiting"
    return row


def _deactivated(evicted: Any) -> bool:
    return bool(text(evicted, "status") == "True" and text(evicted, "reason").startswith("Deactivated"))


def _gpus(item: dict[str, Any]) -> tuple[Any, set[str]]:
    admitted = listed(item, "status", "admission", "podSetAssignments")
    used = [gpus_in(part(each, "resourceUsage"), "resourceUsage") for each in admitted]
    asked = [(count(each, "count"), *gpus_of_pod(part(each, "template"))) for each in listed(item, "spec", "podSets")]
    parts: set[str] = set().union(*(names for _, names in used), *(names for *_, names in asked))
    return sum(whole for whole, _ in used) or sum(number * whole for number, whole, _ in asked), parts
