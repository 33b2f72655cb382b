"""The nodes on which a job could start or share, compiled: where many jobs wait, few nodes have room."""

from __future__ import annotations

from optsched.compiled import NESTED, njit
from optsched.simulation.colocation import Neighbours
from optsched.simulation.records import FREE
from optsched.simulation.state import State


@njit(**NESTED)
def version_of(s: State) -> int:
    """Return a number that grows whenever a job starts or completes.

    Parameters
    ----------
    s
        State of the run.
    """
    return int(s.engine[0].starts + s.engine[0].finished)


@njit(**NESTED)
def list_roomy(s: State, b: Neighbours) -> int:
    """Write the nodes with idle GPUs or GPUs with one job to ``nodes.roomy``, ascending; return their number.

    O(nodes) after a start or completion, O(1) if nothing has changed since the last call.

    Parameters
    ----------
    s
        State of the run.
    b
        Jobs on every GPU.
    """
    kept, version = b.kept[0], version_of(s)
    if kept.roomy_at != version:
        kept.roomy_at, kept.roomy = version, 0
        for v in range(b.nodes.size):
            if s.pools[FREE, v] + b.nodes[v].open > 0:
                b.nodes[kept.roomy].roomy = v
                kept.roomy += 1
    return int(kept.roomy)
