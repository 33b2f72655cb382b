"""Compile the engines before their first use: ``python -m optsched.ahead exclusive`` and ``... shared``, side by side.

What numba compiles is kept on disk (`optsched.compiled`). The two halves share little, so that two processes are done in
half the time: ``exclusive`` the engine of whole jobs on GPUs of their own, ``shared`` the placements and the engines in
which jobs share GPUs. The order matters: each half first does what the other one will find done.
"""

from __future__ import annotations

import sys


def exclusive() -> None:
    """Queue orders, and policies in plain Python, some of which compile their rounds."""
    from optsched.simulation.engine import run_policy  # compiles `ordered`
    from optsched.simulation.entry_points import compile_all

    compile_all()
    from optsched.online.gavel import Gavel
    from optsched.online.hadar import Hadar
    from optsched.online.srtf import Srtf
    from optsched.placement.consolidated import consolidated
    from optsched.sources import load

    instance = load("ddl-05-1")
    for policy in (Srtf(), Gavel(), Hadar()):  # not through `simulate`, which needs tasks and all policies compiled
        run_policy(instance, policy, consolidated())


def shared() -> None:
    """The placements, tasks, two jobs on a GPU, what else policies compile: none of it needs the engine of whole jobs."""
    from optsched.placement import PLACEMENTS

    PLACEMENTS.names()  # compiled when they are found
    from optsched.online.ada_srsf import AdaSrsf
    from optsched.placement.lwf import lwf
    from optsched.simulation.iterations import run_iterations
    from optsched.sources import load

    run_iterations(load("contention-cluster", limit=4), AdaSrsf(), lwf(), record=True)
    from optsched.online.sjf_bsbf import SjfBsbf
    from optsched.simulation.sharing import run_sharing_policy

    run_sharing_policy(load("rigid-06-1", interference=1.5), SjfBsbf())
    from optsched.online import POLICIES

    POLICIES.names()


if __name__ == "__main__":
    {"exclusive": exclusive, "shared": shared}[sys.argv[1]]()
