"""Rows that say more about gangs than their GPUs: lifted knapsack rows, separated slot by slot.

For a gang size e let ``u_j = floor(g_j / e)`` for gangs of at least e, and 1 for one smaller job k (0 for the others). If
e floor(G / e) + g_k > G, jobs that fit together have at most ``floor(G / e)`` of it: k only fits beside fewer of the large
ones. The plain row lets 7/8 of an 8-GPU gang run beside a 1-GPU job; with e = 8 this row does not.

On the rigid instances of 12 to 20 jobs on 8 GPUs these rows close three quarters or more of the gap of the LP bound.
Reference: lifted covers, Balas, Math. Program. 8 (1975); Wolsey, Math. Program. 8 (1975).
"""

from __future__ import annotations

import numpy as np

from optsched.problem.arrays import Floats, Ints
from optsched.solvers.start_program import RowFamily, SlotJobs

VIOLATED = 1e-4  # of a row's capacity unit: less is numerical noise of the LP


def violated_rows(jobs: SlotJobs, in_process: Floats, most: int) -> list[RowFamily]:
    """Row families that a fractional solution violates, with the slots at which it does; at most ``most`` rows.

    ``in_process`` f64[n, slots]. For every gang size e and slot, the smaller job k that is most in process there.
    """
    gpus, total = jobs.gpus, jobs.instance.cluster.gpus
    found: list[tuple[float, int, int, int]] = []
    for e in np.unique(gpus[gpus > 1]).tolist():
        units, rest = total // e, total % e
        lifted = np.flatnonzero((gpus < e) & (gpus > rest))
        activity = (gpus // e) @ in_process
        if lifted.size:
            k = lifted[np.argmax(in_process[lifted], axis=0)]
            activity = activity + in_process[k, np.arange(in_process.shape[1])]
        else:
            k = np.full(in_process.shape[1], -1)
        for t in np.flatnonzero(activity > units + VIOLATED).tolist():
            found.append((float(activity[t]) - units, e, int(k[t]), t))
    found.sort(reverse=True)
    slots: dict[tuple[int, int], list[int]] = {}
    for _, e, job, t in found[:most]:
        slots.setdefault((e, job), []).append(t)
    return [_family(jobs, e, job, np.array(sorted(at))) for (e, job), at in sorted(slots.items())]


def _family(jobs: SlotJobs, e: int, job: int, slots: Ints) -> RowFamily:
    width = jobs.gpus // e
    if job >= 0:
        width[job] = 1
    return RowFamily.of_width(width, jobs, slots)
