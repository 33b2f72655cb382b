"""Dialect ``acme``: jobs of Shanghai AI Laboratory's clusters Seren and Kalos, 2023.

Comma-separated, with a header; Kalos has further columns (memory, ``fail_time``, ``stop_time``)::

    job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time
    57,u1,1,8,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,2023-03-01 00:20:51+08:00,117,32,936.0

===========  ====================================================  ==================================================
column       unit                                                  becomes
===========  ====================================================  ==================================================
job_id       text                                                  ``id``
user, type   text; the type is MLLM, Pretrain, SFT, Eval, ...      ``user``, ``group``
gpu_num      integer >= 0; 0: a job of CPUs                        ``gpus`` with ``unit`` gpu; 0 is left out
cpu_num      integer                                               ``gpus`` with ``unit`` cpu
node_num     integer                                               ``gpus`` with ``unit`` node
state        COMPLETED, FAILED, CANCELLED, ...                     ``status``
submit_time  date-time with offset, +08:00 (Seren), +00:00         ``arrival``: seconds since the earliest legal row
             (Kalos)
start_time   date-time with offset; empty: left out                ``ran``
end_time     date-time with offset; empty: left out                ``ran``, and ``duration`` = end less start
duration     seconds                                               compared with the end less the start
queue        seconds, in Kalos with a fraction                     not kept
gpu_time     duration x gpu_num                                    not kept
===========  ====================================================  ==================================================

In Kalos ``duration`` is the end less the **submission**: it includes the time in the queue, and ``gpu_time`` follows it,
against its own documentation. Durations are therefore computed.

Source: ``trace_seren.csv`` and ``trace_kalos.csv`` of InternLM/AcmeTrace @6d6ac9c (CC-BY-4.0). Cite Q. Hu et al.,
"Characterization of Large Language Model Development in the Datacenter", NSDI 2024.
"""

from __future__ import annotations

from optsched.io.traces.dialect import TraceRead, TraceRequest, dialect, finish, require_header
from optsched.io.traces.ran_jobs import runs, say_other_durations, whole_gangs
from optsched.io.traces.rows import Rows, seconds_of_durations
from optsched.io.traces.text_table import read_text_table

TIMES = ("submit_time", "start_time", "end_time")
HEADER = ("job_id", "user", "node_num", "gpu_num", "cpu_num", "type", "state", *TIMES, "duration", "queue", "gpu_time")


@dialect("acme", header=HEADER, guesses_cluster=True, takes=("unit",))
def read(request: TraceRequest) -> TraceRead:
    """Shanghai AI Laboratory Acme, trace_seren.csv and trace_kalos.csv.

    Parameters
    ----------
    request
        The file and the options of the call.
    """
    rows = Rows(read_text_table(request.path))
    require_header(rows, HEADER)
    size = f"{request.unit}_num"
    gangs = whole_gangs(rows, rows.number(size, least=0, whole=True), size, unit=request.unit)
    submit, start, end = (rows.date_times(name, required=name == TIMES[0]) for name in TIMES)
    run = runs(rows, start, end, ends="end_time")
    stated = seconds_of_durations(rows.text("duration", required=False))
    say_other_durations(rows, "duration", stated, run["duration"])
    jobs = {"id": rows.unique("job_id"), "arrival": submit, "gpus": gangs, **run}
    labels = {"status": "state", "user": "user", "group": "type"}
    jobs |= {field: rows.text(column, required=False) for field, column in labels.items()}
    return finish(request, rows, jobs, from_earliest=("arrival",), times={TIMES[1]: start, TIMES[2]: end})
