"""Modes of jobs that run in copies: on type t the rate G_t / (n_j a_jt) for G_t GPUs (`optsched.bounds.modes`).

A copy takes the part of its GPUs, and copies add up.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from optsched.bounds.modes import MODES, Modes, modes_of_gangs
from optsched.bounds.priced_machine import typed
from optsched.bounds.relaxation import Relaxation, relaxation
from optsched.problem.instance import Instance


def modes_of_copies(instance: Instance) -> Modes:
    """Return the modes of jobs of which copies may run on all GPUs at once.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    """
    gangs = modes_of_gangs(instance)
    capacity = [Fraction(count) for count in gangs.capacity.tolist()]
    modes = [tuple((t, a * g / capacity[t], capacity[t]) for t, a, g in row) for row in gangs.by_kind]
    return replace(gangs, by_kind=modes, adds=True)


MODES.register("forking", lambda instance: [(modes_of_copies(instance), {})])
relaxation(Relaxation("forking", ("forking",), typed, "copies on all GPUs at once", only=("alone",)))
