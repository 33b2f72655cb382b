"""Compile the engines before their first use: ``python -m optsched.ahead exclusive`` and ``... shared``, side by side.

What numba compiles is kept on disk (`optsched.compiled`). The two halves share little, so that two processes are done in
half the time: ``exclusive`` the engine of whole jobs on GPUs of their own, ``shared`` the engines in which jobs share them.
"""

from __future__ import annotations

import sys


def exclusive() -> None:
    """Queue orders, policies that name nodes, and the placements."""
    from optsched.simulation import ordered  # noqa: F401  (compiled when it is imported)
    from optsched.sources import load

    instance = load("ddl-05-1")
    from optsched.online.simulate import simulate

    for policy in ("srtf", "a-srpt", "gavel", "hadar"):
        simulate(instance, policy)


def shared() -> None:
    """Two jobs on a GPU, then tasks; neither needs the engine of whole jobs."""
    from optsched.online.sjf_bsbf import SjfBsbf
    from optsched.simulation.sharing import run_sharing_policy
    from optsched.sources import load

    run_sharing_policy(load("rigid-06-1", interference=1.5), SjfBsbf())
    from optsched.online.ada_srsf import AdaSrsf
    from optsched.placement.lwf import lwf
    from optsched.simulation.iterations import run_iterations

    run_iterations(load("contention-cluster", limit=4), AdaSrsf(), lwf(), record=True)


if __name__ == "__main__":
    {"exclusive": exclusive, "shared": shared}[sys.argv[1]]()
