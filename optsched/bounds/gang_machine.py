"""The fast single machine that relaxes a cluster of G GPUs with rigid gangs.

Give every gang an *effective width* u_j >= 0 and the machine a *capacity* U such that gangs that fit on the cluster
together never have more than U in all. In any schedule of the class ``gang`` the machine that gives u_j/U of itself to
job j whenever j runs is never over-committed, and it has done ``u_j d_j / U`` seconds of work on j when j is done. The
completion times of the cluster are therefore those of a (processor sharing, hence preemptive) schedule of one
unit-speed machine with p_j = u_j d_j / U, and bounds for one machine are bounds for the cluster. Types and memory of
nodes only forbid schedules, so that all G GPUs may be counted for every job.

The widths are one family with a threshold e, 1 <= e <= (G + 1) / 2 (a dual feasible function of bin packing):

* gangs with g < e are left out: u = 0;
* gangs with g > G - e are wide: u = U;
* all others keep u = g.

U is the largest number of GPUs that some set of the other gangs can fill (1 if there is none; G itself if G is too
large to compute it). Proof: while a wide gang runs, fewer than e GPUs are free, so that every other running gang has u
= 0 and the sum is U. Without a wide gang the sum is the number of GPUs filled by other gangs, at most U by definition.

e = 1 counts every gang (u = g, U <= G). e = (G + 1) / 2 says that gangs of more than half the cluster run one by one.

Reference: Fekete and Schepers, New classes of fast lower bounds for bin packing problems, Math. Program. 91 (2001),
11-31.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from optsched.bounds.certificate import GANG_CLASSES, SHARED_CLASSES
from optsched.bounds.relaxation import FastMachine, Machines, Relaxation, Relaxed, Value, relaxation
from optsched.bounds.sum_costs import FAIR, LARGEST_FLOW, MAKESPAN, SUMS, UTILITY
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.speeds.duration import seconds_alone

FILL_LIMIT = 1 << 16  # GPUs; above it the capacity is not tightened
_TRIED, _TRIED_WHEN_MANY, _MANY = 6, 2, 10_000


@dataclass(frozen=True)
class GangMachine:
    """The effective widths u_j, i64[n], at a threshold, and the capacity U for which they compete."""

    threshold: int
    capacity: int
    width: Ints


def gang_machine(gpus: Ints, total: int, threshold: int) -> GangMachine:
    """Return the relaxation with a threshold. Complexity O(n + G).

    Parameters
    ----------
    gpus
        GPUs of every gang, i64[n].
    total
        G, the GPUs of the cluster.
    threshold
        Threshold e, ``1 <= threshold <= (total + 1) // 2``.
    """
    sizes, size_of = _distinct(gpus)
    capacity, width = _by_size(sizes, np.bincount(size_of), total, threshold)
    return GangMachine(threshold, capacity, width[size_of])


def machines_to_try(gpus: Ints, duration: Floats, total: int) -> list[GangMachine]:
    """Return the machine with threshold 1, then those with the most work; fewer of them for many jobs.

    Parameters
    ----------
    gpus
        GPUs of every gang, i64[n].
    duration
        Durations in seconds, f64[n].
    total
        G, the GPUs of the cluster.
    """
    sizes, size_of = _distinct(gpus)
    counts, seconds = np.bincount(size_of), np.bincount(size_of, weights=duration)
    most = _TRIED if gpus.size <= _MANY else _TRIED_WHEN_MANY
    plain = _by_size(sizes, counts, total, 1)[0]
    rivals = []
    for threshold in _thresholds(sizes, seconds, total, 2 * most):
        capacity, width = _by_size(sizes, counts, total, threshold)
        # neither a wide gang nor a smaller capacity: every p_j is at most that of threshold 1
        if bool(np.any(width > sizes)) or (capacity < plain and bool(np.any(width))):
            rivals.append((-float(width @ seconds) / capacity, threshold))
    best = [threshold for _, threshold in sorted(rivals)]
    return [gang_machine(gpus, total, threshold) for threshold in [1, *best[: most - 1]]]


def _distinct(gpus: Ints) -> tuple[Ints, Ints]:
    # gang sizes, ascending, and the position of every job's size among them; without a sort where tables are small
    if gpus.size and int(gpus.max()) > FILL_LIMIT:
        sizes, size_of = np.unique(gpus, return_inverse=True)
        return sizes, size_of
    sizes = np.flatnonzero(np.bincount(gpus))
    position = np.zeros(int(sizes[-1]) + 1 if sizes.size else 0, dtype=np.int64)
    position[sizes] = np.arange(sizes.size)
    return sizes, position[gpus]


def _by_size(sizes: Ints, counts: Ints, total: int, threshold: int) -> tuple[int, Ints]:
    # (capacity, effective width of every gang size) for counts[i] gangs of sizes[i] GPUs
    wide = sizes > total - threshold
    middle = (sizes >= threshold) & ~wide
    capacity = _largest_fill(sizes[middle], counts[middle], total) if middle.any() else 1
    return capacity, np.where(wide, capacity, np.where(middle, sizes, 0)).astype(np.int64)


def _thresholds(sizes: Ints, seconds: npt.NDArray[Any], total: int, most: int) -> list[int]:
    # only at a gang size or its complement does the family change: the sizes with most work, and one half
    heaviest = sizes[np.argsort(-sizes * seconds, kind="stable")[:most]]
    thresholds = {min(g, total + 1 - g) for g in heaviest.tolist()}
    return sorted((thresholds | {(total + 1) // 2}) - {1})


def _largest_fill(sizes: Ints, counts: Ints, total: int) -> int:
    # Subset sums of the gangs as the bits of one integer; equal gangs in batches of 1, 2, 4, ...
    if total > FILL_LIMIT:
        return total
    mask = (1 << (total + 1)) - 1
    filled = 1
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        left, batch = min(count, total // size), 1
        while left > 0:
            batch = min(batch, left)
            filled |= (filled << (size * batch)) & mask
            left -= batch
            batch *= 2
        if filled >> total & 1:
            return total
    return filled.bit_length() - 1


class RelaxedGangs(Relaxed):
    """Jobs with their own gangs, on the machines of a few thresholds."""

    mean_beside = True

    def machines(self, value: Value, rounds: int = 1) -> Iterator[Machines]:
        """Yield the machines of `machines_to_try`.

        Parameters
        ----------
        value
            Not used: all machines are tried.
        rounds
            Not used.
        """
        for machine in machines_to_try(self.instance.gpus, self.alone, self.instance.cluster.gpus):
            stated = partial(dict[str, Any], threshold=machine.threshold)
            yield (FastMachine(self.instance.arrival, self.alone, machine.width, machine.capacity, stated, self.alone),)


def gangs(instance: Instance, schedule_class: str) -> RelaxedGangs:
    """Return the relaxation of an instance.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    schedule_class
        Not used: the relaxation is the same for all its classes.
    """
    return RelaxedGangs(instance, seconds_alone(instance))


relaxation(
    Relaxation(
        name="gang",
        classes=GANG_CLASSES,
        find=gangs,
        text="gangs",
        names={
            "srpt": "srpt",
            "due-dates": "srpt-due-dates",
            "mean-busy-time": "mean-busy-time",
            "busy-time": "split-busy-time",
            "volume": "volume",
            "first-come": "first-come",
            "fair-share": "fair-share",
            "alone": {},
        },
    )
)
relaxation(
    Relaxation(
        name="rigid",  # a partner on its GPUs only slows a job down
        classes=SHARED_CLASSES,
        find=gangs,
        text="gangs, also where they share GPUs",
        names={
            "alone": {
                "release-plus-duration": SUMS,
                "critical-job": (MAKESPAN, LARGEST_FLOW),
                "fair-alone": (FAIR,),
                "utility-alone": (UTILITY,),
            },
        },
        only=("alone",),
    )
)
