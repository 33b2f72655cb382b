"""Dialect ``dlrm``: instances of Alibaba's disaggregated recommendation models, 2025.

Comma-separated, with a header::

    instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,memory_request,
    memory_limit,disk_request,disk_limit,max_instance_per_node,creation_time,scheduled_time,deletion_time
    instance_2,HN,app_2,12,12,1,1,25,25,120.0,120.0,680.0,800.0,2,1885710.0,1885710.0,1972283.0

======================  ==============================================  ==================================================
column                  unit                                            becomes
======================  ==============================================  ==================================================
instance_sn             text                                            ``id``
app_name                text                                            ``group``
gpu_request             integer >= 0; 0: an instance of CPUs            ``gpus``; 0 is left out
creation_time           seconds of the trace; empty: before the trace   ``arrival``; an empty one is left out
scheduled_time          seconds of the trace                            ``ran``
deletion_time           seconds of the trace; empty: after the trace    ``ran``, and ``duration`` = deletion less
                                                                        schedule; an empty one is left out
max_instance_per_node   instances of the application; -1: no limit      not kept; a note counts the limits
cpu, rdma, memory, ...  requests and limits                             not kept
======================  ==============================================  ==================================================

The instances are services. Those that existed before the trace or after it are cut off, so that nobody knows how long they
ran. They are left out and counted.

Source: ``disaggregated_DLRM_trace.csv`` of alibaba/clusterdata @7a6c496 (cluster-trace-gpu-v2025).
"""

from __future__ import annotations

from optsched.io.traces.dialect import TraceRead, TraceRequest, dialect, finish, require_header
from optsched.io.traces.ran_jobs import runs, said_of, whole_gangs
from optsched.io.traces.rows import Rows
from optsched.io.traces.text_table import read_text_table

TIMES = ("creation_time", "scheduled_time", "deletion_time")
ASKED = [f"{name}_{bound}" for name in ("cpu", "gpu", "rdma", "memory", "disk") for bound in ("request", "limit")]
HEADER = ("instance_sn", "role", "app_name", *ASKED, "max_instance_per_node", *TIMES)


@dialect("dlrm", header=HEADER, guesses_cluster=True)
def read(request: TraceRequest) -> TraceRead:
    """Alibaba recommendation models 2025, disaggregated_DLRM_trace.csv.

    Parameters
    ----------
    request
        The file and the options of the call.
    """
    rows = Rows(read_text_table(request.path))
    require_header(rows, HEADER)
    creation, start, end = (rows.number(name, least=0, required=False) for name in TIMES)
    rows.leave_out(creation.is_null() & end.is_null(), "existed before the trace and after it")
    rows.leave_out(creation.is_null(), "existed before the trace")
    rows.leave_out(end.is_null(), "existed after the trace")
    gangs = whole_gangs(rows, rows.number("gpu_request", least=0), "gpu_request")
    run = runs(rows, start, end, ends=TIMES[2])
    most = rows.number("max_instance_per_node", least=-1, whole=True, required=False)
    said_of(rows, most >= 0, "{} of the instances limit how many of their application a node may have: not modelled")
    jobs = {"id": rows.unique("instance_sn"), "arrival": creation, "gpus": gangs, **run}
    jobs |= {"group": rows.text("app_name", required=False)}
    return finish(request, rows, jobs, times={TIMES[1]: start, TIMES[2]: end})
