"""Everything that decides how fast a job runs where, as few arrays of records for compiled code.

A job runs at rate 1, at that of a row (by GPU type, together or spread), at what is known for its placement, or by the
stages of its profile: the three forms of `optsched.problem.job_speeds`. Compiled functions get arrays one by one, at several
words each: so what belongs together is one record.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from optsched.compiled import record
from optsched.problem.arrays import Floats, Ints

# How a job gets its speed: ``profile`` its stages, else -1; ``row`` of `SpeedTables.seconds`, else -1, or `BY_PLACEMENT`
# where `SpeedTables.known` says it from ``first`` up to ``last``.
JOB_SPEED = record(profile="int", row="int", first="int", last="int")
NO_ROW, BY_PLACEMENT = -1, -2

# What a pool of GPUs is: the type, and where it is a node the bandwidths inside and of a GPU's part of the interface.
PLACE = record(type="int", intra="real", cross="real")

# Seconds of one placement: ``id`` > 0 its counts by node as digits, in the smallest of its rotations; -k all others on k
# nodes. Of a job they rise with the id.
KNOWN = record(id="int", seconds="real")

# A stage graph: ``fastest`` alpha_min, ``factor`` 1 + (S-1)/m, its first stage and edge. One more closes the list.
PROFILE = record(fastest="real", factor="real", stage="int", edge="int")
# ``compute`` seconds of a replica, ``ring`` V_s bytes, ``inner`` 4 h/k bytes: the tie of two replicas of a stage
STAGE = record(compute="real", ring="real", inner="real", replicas="int")
# Stages of the profile, from 0; ``pair`` w_uv bytes.
EDGE = record(tail="int", head="int", pair="real")
# Where groups (replicas of one stage on one node) are written while a placement is timed; ``first`` is the first group of
# stage s, not of group s.
GROUP = record(first="int", node="int", size="int")


class SpeedTables(NamedTuple):
    """n jobs, P pools of GPUs (nodes, where jobs have stages), K rows, T GPU types."""

    jobs: Any  # JOB_SPEED[n]
    places: Any  # PLACE[P]
    seconds: Floats  # f64[2, K, T]: a unit of work of row k on type t together, then spread
    known: Any  # KNOWN[]
    profiles: Any  # PROFILE[Q + 1]
    stages: Any  # STAGE[]
    edges: Any  # EDGE[]
    groups: Any  # GROUP[]
    # scratch of placement rules: `scratch_shape` says how much
    scratch: Ints
    scratch_seconds: Floats


def scratch_shape(stages: int, nodes: int, replicas: int) -> tuple[int, int]:
    """Shape of the scratch arrays for profiles of at most so many stages and replicas on so many nodes."""
    return stages + 24, max(nodes, replicas + 1)
