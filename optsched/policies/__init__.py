"""The online algorithms, registered by name: each is a row of a table of orders, or a file."""

from __future__ import annotations

from optsched.registry import Registry
from optsched.simulation.policy import BasePolicy

TABLES = "queue_orders", "predicted_queue", "alpha_points", "backfill_settings", "slurm_loops"
# names of the literature, with the nearest policies
_MEANT = {
    **dict.fromkeys(("easy-backfill", "easy-backfilling", "backfilling"), "easy? or conservative, backfill:depth=N"),
    **dict.fromkeys(("conservative-backfill", "conservative-backfilling"), "conservative?"),
    **dict.fromkeys(("first-fit", "aggressive"), "fifo:skip=true? every queued job that fits starts"),
    "fcfs": "fifo? first come, first served",
    "srpt": "srtf? it is SRPT for gangs",
    "spt": "sjf? the shortest job first",
    "lpt": "list:by=longest? the longest job first",
    **dict.fromkeys(("edf", "edd"), "list:by=due? the earliest due date first"),
    "las": "tiresias, or setf? both by least attained service",
    "pollux": "goodput? it deals GPUs by the speed-ups of jobs, as Pollux does",
}
POLICIES: Registry[type[BasePolicy]] = Registry("policy", package="optsched.policies", tables=TABLES, meant=_MEANT)
