"""Modes of jobs on any number of GPUs: with r GPUs the rate v_j(r), for every r, on each type that suits.

v_j(r) is the most work a second on r GPUs, with any batch and on any placement (`optsched.speeds.goodput_rates`); a
rigid job has its own gang only. A job that scales well has about the GPU-seconds of one GPU; one whose overhead is
large for small batches has less with more GPUs.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from optsched.bounds.modes import MODES, Modes, TypeMode, modes_of_gangs
from optsched.bounds.priced_machine import Priced
from optsched.bounds.relaxation import Relaxation, relaxation
from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance
from optsched.speeds.duration import seconds_alone
from optsched.speeds.goodput_rates import Goodputs


def modes_of_elastic(instance: Instance) -> Modes:
    """Return the modes of an instance, those of an elastic job on the hull of GPUs over rate.

    Parameters
    ----------
    instance
        Jobs and a cluster.

    Notes
    -----
    O(n) and K G for K classes of jobs.
    """
    gangs, goodputs = modes_of_gangs(instance), Goodputs(instance)
    goodputs.require_few()
    elastic = goodputs.elastic
    known: dict[tuple[int, int], int] = {}
    modes: list[tuple[TypeMode, ...]] = []
    gang, kind = list[int](), np.empty(instance.n, dtype=np.int64)
    for j, k in enumerate(gangs.kind.tolist()):
        limits = goodputs.limits(j) if elastic[j] else None
        key = (-1 if limits is None else id(limits), k)
        if key not in known:
            known[key] = len(modes)
            widths = [] if limits is None else _useful(limits)
            some = tuple((t, 1 / rate, gpus) for t, _, _ in gangs.by_kind[k] for rate, gpus in widths)
            modes.append(gangs.by_kind[k] if limits is None else some)
            gang.append(int(gangs.gang[k]))
        kind[j] = known[key]
    return replace(gangs, gang=np.array(gang, dtype=np.int64), kind=kind, by_kind=modes)


def _useful(rates: Floats) -> list[tuple[Fraction, Fraction]]:
    # (rate, GPUs) on the upper hull of rate over GPUs: the others are never chosen, whatever GPUs cost
    hull = [(Fraction(0), Fraction(0))]
    for r in np.flatnonzero(rates).tolist():
        rate, gpus = Fraction(float(rates[r])), Fraction(r)
        if rate <= hull[-1][0]:
            continue
        while len(hull) > 1 and (hull[-1][0] - hull[-2][0]) * (gpus - hull[-1][1]) <= (rate - hull[-1][0]) * (
            hull[-1][1] - hull[-2][1]
        ):
            hull.pop()
        hull.append((rate, gpus))
    return hull[1:]


def elastic(instance: Instance, schedule_class: str) -> Priced:
    """Return jobs on any number of GPUs; those that are rigid, on their gangs.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    schedule_class
        The class ``elastic``.
    """
    modes = modes_of_elastic(instance)
    alone = seconds_alone(instance).copy()
    for speeds in instance.speeds:
        if speeds.elastic:
            alone[speeds.jobs] = modes.alone[speeds.jobs]
    return Priced(instance, alone, modes)


MODES.register("elastic", lambda instance: [(modes_of_elastic(instance), {})])
relaxation(
    Relaxation(
        name="elastic",
        classes=("elastic",),
        find=elastic,
        text="jobs on any number of GPUs, types at prices",
        names={"mean-busy-time": {}},
        modes=True,
    )
)
