"""Dialect ``helios``: jobs of SenseTime's Helios clusters, 2020.

Comma-separated, with a header::

    job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
    1425511,u1,vc1,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0

===========  ===========================================  =========================================================
column       unit                                         becomes
===========  ===========================================  =========================================================
job_id       text                                         ``id``
user, vc     text                                         ``user``, ``group``
gpu_num      integer >= 0; 0: a job of CPUs               ``gpus`` with ``unit`` gpu; 0 is left out
cpu_num      integer                                      ``gpus`` with ``unit`` cpu
node_num     integer                                      ``gpus`` with ``unit`` node
state        text                                         ``status``; RUNNING and SUSPENDED have not ended: left out
submit_time  local date-time                              ``arrival``: seconds since the earliest legal row
start_time   local date-time                              ``ran``
end_time     local date-time                              ``ran``, and ``duration`` = end less start; 0 is left out
duration     seconds                                      compared with the end less the start
queue        seconds between submission and start         not kept
===========  ===========================================  =========================================================

Five states are documented; the published files also have RUNNING and SUSPENDED. More than half of all published rows are
jobs of CPUs. The GPUs of each virtual cluster change from day to day (``cluster_gpu_number.csv``): there is no one cluster.

Source: ``cluster_log.csv`` of S-Lab-System-Group/HeliosData @159f0ca (CC-BY-4.0). Cite Q. Hu et al., "Characterization and
Prediction of Deep Learning Workloads in Large-Scale GPU Datacenters", SC 2021.
"""

from __future__ import annotations

from optsched.io.traces.dialect import TraceRead, TraceRequest, dialect, finish, require_header
from optsched.io.traces.ran_jobs import runs, say_other_durations, whole_gangs
from optsched.io.traces.rows import Rows, seconds_of_durations
from optsched.io.traces.text_table import read_text_table

TIMES = ("submit_time", "start_time", "end_time")
HEADER = ("job_id", "user", "vc", "gpu_num", "cpu_num", "node_num", "state", *TIMES, "duration", "queue")
NOT_ENDED = ("RUNNING", "SUSPENDED")


@dialect("helios", header=HEADER, guesses_cluster=True, takes=("unit",))
def read(request: TraceRequest) -> TraceRead:
    """SenseTime Helios, cluster_log.csv.

    Parameters
    ----------
    request
        The file and the options of the call.
    """
    rows = Rows(read_text_table(request.path))
    require_header(rows, HEADER)
    size = f"{request.unit}_num"
    gangs = whole_gangs(rows, rows.number(size, least=0, whole=True), size, unit=request.unit)
    state = rows.text("state")
    rows.leave_out(state.is_in(NOT_ENDED), "not ended")
    submit, start, end = (rows.date_times(name, required=name == TIMES[0]) for name in TIMES)
    run = runs(rows, start, end, ends="end_time")
    stated = seconds_of_durations(rows.text("duration", required=False))
    say_other_durations(rows, "duration", stated, run["duration"])
    rows.say("times are local and have no zone: an hour that a clock repeats or skips cannot be detected")
    jobs = {"id": rows.unique("job_id"), "arrival": submit, "gpus": gangs, **run, "status": state}
    jobs |= {"user": rows.text("user", required=False), "group": rows.text("vc", required=False)}
    return finish(request, rows, jobs, from_earliest=("arrival",), times={TIMES[1]: start, TIMES[2]: end})
