"""Dialect ``spot``: jobs of Alibaba's trace of spot GPUs, 2026.

Comma-separated, with a header::

    job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type
    239257,2,H800,15,4,94,90500,41060,HP

PATH is ``job_info_df.csv`` or its folder; ``node_info_df.csv`` next to it is the cluster, unless another one is given.

============  =============================================================  ========================================
column        unit                                                           becomes
============  =============================================================  ========================================
job_name      text                                                           ``id``
organization  text                                                           ``group``
gpu_model     name of a GPU type                                             ``gpu_types``, if the cluster names them
gpu_request   GPUs of **one worker** (the documentation says: of the job)    ``gpus`` = gpu_request x worker_num
worker_num    integer >= 1
submit_time   seconds since the start of the trace                           ``arrival``, unchanged
duration      seconds; one that ends with the last second is cut off         ``duration``; 0 is left out
job_type      HP or Spot                                                     not kept
============  =============================================================  ========================================

The file does not say when a job started.

Source: alibaba/clusterdata @7a6c496, cluster-trace-v2026-spot-gpu (its folder states no licence).
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from optsched.io.cluster_files import cluster_of
from optsched.io.traces.dialect import TraceRead, TraceRequest, dialect, finish, require_header
from optsched.io.traces.ran_jobs import allowed_types, said_of, whole_gangs
from optsched.io.traces.rows import Rows
from optsched.io.traces.text_table import read_text_table

JOBS, NODES = "job_info_df.csv", "node_info_df.csv"
LABELS = ("job_name", "organization", "gpu_model")
HEADER = (*LABELS, "cpu_request", "gpu_request", "worker_num", "submit_time", "duration", "job_type")
LAST_SECOND = 184 * 86400.0 - 1  # of the trace


@dialect("spot", header=HEADER, brings_cluster=True)
def read(request: TraceRequest) -> TraceRead:
    """Alibaba spot GPUs 2026, job_info_df.csv with node_info_df.csv next to it.

    Parameters
    ----------
    request
        The file and the options of the call.
    """
    if request.path.is_dir():
        request = replace(request, path=request.path / JOBS)
    nodes = request.path.with_name(NODES)
    cluster = cluster_of(f"spot-nodes:{nodes}") if request.cluster is None and nodes.is_file() else None
    rows = Rows(read_text_table(request.path))
    require_header(rows, HEADER)
    held = rows.number("gpu_request", least=0) * rows.number("worker_num", least=1, whole=True)
    gangs = whole_gangs(rows, held, rows.product("gpu_request", "worker_num"))
    submit, duration = rows.number("submit_time", least=0), rows.number("duration", least=0)
    rows.leave_out(duration == 0, "run time 0")
    said_of(
        rows,
        submit + duration == LAST_SECOND,
        "{} of the jobs ran on when the trace ended: their durations are cut off",
    )
    types = rows.text("gpu_model").to_frame().select(pl.concat_list("gpu_model"))["gpu_model"]
    jobs = {"id": rows.unique("job_name"), "arrival": submit, "gpus": gangs, "duration": duration}
    jobs |= {"group": rows.text("organization", required=False), **allowed_types(request, rows, types, cluster)}
    return finish(request, rows, jobs, cluster=cluster)
