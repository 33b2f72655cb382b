"""Dialect ``tiresias``: the job files of the Tiresias simulator and of many simulators derived from it.

Comma-separated, with a header (columns in any order, more columns are ignored)::

    job_id,num_gpu,submit_time,iterations,model_name,duration,interval
    0,1,0,606,vgg19,164,30

===========  ==========================================  =======================================================
column       unit                                        becomes
===========  ==========================================  =======================================================
job_id       text, unique                                ``id``
num_gpu      integer >= 1                                ``gpus``
submit_time  seconds >= 0                                ``arrival``, as it stands
iterations   number >= 0                                 ``iterations``: metadata, ``duration`` counts; 0: not known
model_name   text                                        ``model``: metadata (in the Philly files a placeholder)
duration     seconds > 0                                 ``duration``
interval     seconds to or from the next submission      not kept
===========  ==========================================  =======================================================

Original: ``simulator/60_job.csv`` of SymbioticLab/Tiresias (Apache-2.0; J. Gu et al., "Tiresias: A GPU Cluster Manager for
Distributed Deep Learning", NSDI 2019), read whole as published, with CRLF. The other files there are no traces of this form:
``tf_job.csv`` has other columns, ``yarn-gput*.csv`` one of durations, ``n*g*.csv`` are clusters. The ``philly_6c71a0`` files
in this dialect are ours, of the Philly trace (CC-BY-4.0).
"""

from __future__ import annotations

from optsched.io.traces.dialect import TraceRead, TraceRequest, dialect, finish, require_header
from optsched.io.traces.rows import Rows
from optsched.io.traces.text_table import read_text_table

HEADER = ("job_id", "num_gpu", "submit_time", "iterations", "model_name", "duration")  # interval may be absent


@dialect("tiresias", header=HEADER)
def read(request: TraceRequest) -> TraceRead:
    """Tiresias: job_id,num_gpu,submit_time,iterations,model_name,duration,interval.

    Parameters
    ----------
    request
        The file and the options of the call.
    """
    return read_jobs(request, HEADER)


def read_jobs(request: TraceRequest, header: tuple[str, ...], second: float = 1.0) -> TraceRead:
    """Read jobs with these columns, in a dialect that may have more of them.

    Parameters
    ----------
    request
        The file and the options of the call.
    header
        Columns of the dialect.
    second
        Units of time in a second.
    """
    rows = Rows(read_text_table(request.path))
    require_header(rows, header)
    jobs = {
        "id": rows.unique("job_id"),
        "gpus": rows.gang("num_gpu"),
        "arrival": rows.non_negative("submit_time") / second,
        "iterations": rows.count_for_information("iterations"),
        "model": rows.text("model_name"),
        "duration": rows.positive("duration") / second,
    }
    return finish(request, rows, jobs)


# Dialect ``muri``: the traces of the Muri artifact. **Times are milliseconds** and become seconds here.
#
# Comma-separated, with a header::
#
#     job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,
#     resource_time_0,resource_time_1,resource_time_2,priority          (one line in the file)
#     0,8,0,10956,gpt2,4,5095000,91000,437,0.6,419,49,0
#
# ==================  ===========================  ================================================================
# column              unit                         becomes
# ==================  ===========================  ================================================================
# job_id              text, unique                 ``id``
# num_gpu             integer >= 1                 ``gpus``
# submit_time         ms >= 0                      ``arrival``
# iterations          number >= 0                  ``iterations``: metadata, ``duration`` counts; 0: not known
# model_name          text                         ``model`` (each model has one batch size in these files)
# duration            ms > 0                       ``duration``; iterations x iteration_time differs from it
# the other columns                                not kept: stage times belong to a (model, GPUs) and come with a
#                                                  rate model; priority is 0 or 1 without a stated meaning
# ==================  ===========================  ================================================================
#
# Originals: of Rivendile/Muri (Apache-2.0; Y. Zhao et al., "Multi-Resource Interleaving for Deep Learning Training",
# SIGCOMM 2022) ``simulator/trace-data/trace1.csv`` and ``cluster_exp/trace-data/cluster_trace.csv``, read whole as
# published, with CRLF; ``trace1_pr.csv`` (all submitted at 0) and ``job_type_1.csv`` there have the same columns. Jobs
# derived from the Philly trace.

MURI_HEADER = (*HEADER, "batch_size", "iteration_time", "resource_time_0", "resource_time_1", "resource_time_2")
MILLISECONDS = 1000.0


@dialect("muri", header=MURI_HEADER)
def read_muri(request: TraceRequest) -> TraceRead:
    """Muri: job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,... in milliseconds.

    Parameters
    ----------
    request
        The file and the options of the call.
    """
    return read_jobs(request, MURI_HEADER, MILLISECONDS)
