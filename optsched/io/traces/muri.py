"""Dialect ``muri``: the traces of the Muri artifact. **Times are milliseconds** and become seconds here.

Comma-separated, with a header::

    job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,
    resource_time_0,resource_time_1,resource_time_2,priority          (one line in the file)
    0,8,0,10956,gpt2,4,5095000,91000,437,0.6,419,49,0

==================  ===========================  ================================================================
column              unit                         becomes
==================  ===========================  ================================================================
job_id              text, unique                 ``id``
num_gpu             integer >= 1                 ``gpus``
submit_time         ms >= 0                      ``arrival``
iterations          number > 0                   ``iterations``: metadata, ``duration`` counts
model_name          text                         ``model`` (each model has one batch size in these files)
duration            ms > 0                       ``duration``; iterations x iteration_time differs from it
the other columns                                not kept: stage times belong to a (model, GPUs) and come with a
                                                 rate model; priority is 0 or 1 without a stated meaning
==================  ===========================  ================================================================

Originals: of Rivendile/Muri (Apache-2.0; Y. Zhao et al., "Multi-Resource Interleaving for Deep Learning Training", SIGCOMM
2022) ``simulator/trace-data/trace1.csv`` and ``cluster_exp/trace-data/cluster_trace.csv``, read whole as published, with
CRLF; ``trace1_pr.csv`` (all submitted at 0) and ``job_type_1.csv`` there have the same columns. Jobs derived from the Philly
trace.
"""

from __future__ import annotations

from optsched.io.traces.dialect import TraceRead, TraceRequest, dialect
from optsched.io.traces.tiresias import HEADER as OLDER, read_jobs

HEADER = (*OLDER, "batch_size", "iteration_time", "resource_time_0", "resource_time_1", "resource_time_2")
MILLISECONDS = 1000.0


@dialect("muri", header=HEADER)
def read(request: TraceRequest) -> TraceRead:
    """Muri: job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,... in milliseconds."""
    return read_jobs(request, "muri", HEADER, MILLISECONDS)
