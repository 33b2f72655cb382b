"""Dialect ``philly``: jobs of Microsoft's Philly clusters, 2017, as reduced by the Pollux artifact or as published.

Microsoft's own ``cluster_job_log``, JSON with the attempts of every job, is described in
`optsched.io.traces.philly_attempts`. The artifact's file is comma-separated, with a header, rows in no order::

    timestamp,duration,num_gpus,gpu_time,cluster
    2017-10-09 07:01:55,66.0,1,66.0,11cb48

==========  ============================================  =====================================================
column      unit                                          becomes
==========  ============================================  =====================================================
timestamp   local date-time of the submission             ``arrival``: seconds since the earliest legal row
duration    seconds, > 0                                  ``duration``
num_gpus    integer >= 1                                  ``gpus``
gpu_time    GPU-seconds, = duration x num_gpus            not kept
cluster     name of the virtual cluster (the tenant)      ``group``
==========  ============================================  =====================================================

Jobs have no id in the file; a job is named by the number of its line. The clock is local and knows no summer time:
the hour that is repeated in November occurs twice.

Originals: ``simulator/traces/philly.csv`` of petuum/adaptdl, branch osdi21-artifact, read whole as published (82,247 rows);
the artifact does not say how it made a row of a job. ``cluster_job_log`` of msr-fiddle/philly-traces @29a1b87 (CC-BY-4.0),
read in the form of its README. Cite M. Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training
Workloads", USENIX ATC 2019.
"""

from __future__ import annotations

from optsched.io.traces.dialect import TraceRead, TraceRequest, dialect, finish, require_header
from optsched.io.traces.philly_attempts import read_attempts
from optsched.io.traces.rows import Rows
from optsched.io.traces.text_table import read_text, read_text_table

HEADER = ("timestamp", "duration", "num_gpus", "gpu_time", "cluster")


@dialect(
    "philly",
    header=HEADER,
    guesses_cluster=True,
    recognises=lambda lines: lines[0].startswith("[") and any('"jobid"' in line for line in lines),
)
def read(request: TraceRequest) -> TraceRead:
    """Microsoft Philly: cluster_job_log (JSON), or philly.csv of the Pollux artifact.

    Parameters
    ----------
    request
        The file and the options of the call.
    """
    text, _, digest = read_text(request.path)
    if text.lstrip().startswith(("[", "{")):
        return read_attempts(request, text, digest)
    rows = Rows(read_text_table(request.path))
    require_header(rows, HEADER)
    jobs = {
        "arrival": rows.date_times("timestamp"),
        "duration": rows.positive("duration"),
        "gpus": rows.gang("num_gpus"),
        "group": rows.text("cluster"),
    }
    return finish(request, rows, jobs, from_earliest=("arrival",))
