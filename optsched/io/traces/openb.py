"""Dialect ``openb``: pods of Alibaba's openb cluster, 2023.

Comma-separated, with a header::

    name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
    openb-pod-0129,12000,24576,1,1000,V100M16|V100M32,Guaranteed,Running,10035396,10036353,10035396

==============  ====================================================  ==============================================
column          unit                                                  becomes
==============  ====================================================  ==============================================
name            text; numbered again in each file of the collection   ``id``
num_gpu         integer >= 0; 0: a pod of CPUs                        ``gpus`` = num_gpu x gpu_milli / 1000; a pod
gpu_milli       thousandths of each GPU, below 1000 only if num_gpu   with a share of a GPU is left out
                is 1
gpu_spec        GPU types that the pod may use, separated by bars;    ``gpu_types``, if the cluster names its types
                empty: any
qos             LS, BE, Guaranteed, Burstable                         ``group``
pod_phase       the last phase seen; Running may have ended long ago  ``status``
creation_time   seconds since the start of the trace                  ``arrival``, unchanged
scheduled_time  seconds; empty: never scheduled, left out             ``ran``
deletion_time   seconds; waiting pods have one, too                   ``ran``, and ``duration`` = deletion - scheduled
==============  ====================================================  ==============================================

Only pods that were deleted in the last second of the trace were cut off. Files named ``multigpu`` have only the first five
columns: they are sets of pods to pack, without times, and are refused.

Source: ``openb_pod_list_*.csv`` of alibaba/clusterdata @7a6c496, cluster-trace-gpu-v2023; the same files are in
hkust-adsl/kubernetes-scheduler-simulator (Apache-2.0). Cite Q. Weng et al., "Beware of Fragmentation", USENIX ATC 2023.
"""

from __future__ import annotations

from optsched.errors import InputError
from optsched.io.traces.dialect import TraceRead, TraceRequest, dialect, finish, require_header
from optsched.io.traces.ran_jobs import allowed_types, runs, said_of, whole_gangs
from optsched.io.traces.rows import Rows
from optsched.io.traces.text_table import read_text_table

SIZES = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
HEADER = (*SIZES, "gpu_spec", "qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time")
LAST_SECOND = 12_902_960.0  # of the trace


@dialect("openb", header=HEADER, guesses_cluster=True)
def read(request: TraceRequest) -> TraceRead:
    """Alibaba openb 2023, openb_pod_list_*.csv with times.

    Parameters
    ----------
    request
        The file and the options of the call.
    """
    rows = Rows(read_text_table(request.path))
    if rows.columns == list(SIZES):
        why = "a set of pods to pack, without times: it is not a log"
        raise InputError(why, file=request.path, legal=f"a file with {', '.join(HEADER[-3:])}")
    require_header(rows, HEADER)
    held = rows.number("num_gpu", least=0, whole=True) * rows.number("gpu_milli", least=0) / 1000
    rows.leave_out(held == 0, "no GPUs")
    submit = rows.number("creation_time", least=0)
    start = rows.number("scheduled_time", least=0, required=False)
    rows.leave_out(start.is_null(), "never scheduled")
    end = rows.number("deletion_time", least=0, required=False)
    run = runs(rows, start, end, ends="deletion_time")
    gangs = whole_gangs(rows, held, "num_gpu")
    said_of(rows, end == LAST_SECOND, "{} of the pods ran on when the trace ended: their durations are cut off")
    types = rows.text("gpu_spec", required=False).str.split("|")
    jobs = {"id": rows.unique("name"), "arrival": submit, "gpus": gangs, **run}
    jobs |= {"status": rows.text("pod_phase", required=False), "group": rows.text("qos", required=False)}
    jobs |= allowed_types(request, rows, types)
    return finish(request, rows, jobs, times={"scheduled_time": start, "deletion_time": end})
