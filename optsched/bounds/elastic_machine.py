"""The fast machine of a cluster whose jobs may run on any number of GPUs: what a job costs at least in GPU-seconds.

Let v_j(r) be the most work a second that job j does on r GPUs, with any batch and on any placement
(`optsched.speeds.goodput`; a rigid job has its own gang only), and work_j what it asks for. Then

    d_j = work_j x min over r of  r / v_j(r)   GPU-seconds,        e_j = work_j / max over r of v_j(r)   seconds.

**Theorem.** In a schedule of the class ``elastic`` on G GPUs, C_j >= r_j + e_j; and its completion times are those of a
preemptive schedule on one unit-speed machine with works p_j = d_j / G.
**Proof.** Work is done at no more than max v_j a second: the first. On r GPUs it is done at v_j(r) <= r work_j / d_j, so the
machine that serves j with the share r / G of itself has served it for d_j / G seconds, at least, when its work is done; the
shares of jobs that run together add up to at most 1.

A job that scales well has about the d_j of one GPU; one whose overhead is large for small batches has less with more GPUs.
Rates are floats, taken as exact; d_j and e_j are rounded down to floats, so all is exact from there.

`elastic_numbers` and the verifier's `proved_numbers` are two ways to the same numbers; `elastic_machine_of` is the
verifier's machine, in Python integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from optsched.bounds.certificate import Certificate, data_integer, rounded_down
from optsched.bounds.gang_machine import GangMachine
from optsched.bounds.grid import GridJobs, on_grid
from optsched.bounds.verifier import MAX_EXPONENT, Machine, Times, floor_to_grid, over_common
from optsched.problem.instance import Instance
from optsched.speeds.duration import seconds_alone
from optsched.speeds.goodput import Goodputs

Floats = npt.NDArray[np.float64]

ELASTIC = "elastic"


@dataclass(frozen=True, eq=False)
class ElasticNumbers:
    """``alone`` e_j seconds and ``volume`` d_j GPU-seconds, f64[n]."""

    alone: Floats
    volume: Floats

    def on_grid(self, instance: Instance) -> GridJobs:
        """The jobs of the fast machine."""
        machine = GangMachine(1, instance.cluster.gpus, np.ones(instance.n, dtype=np.int64))
        return on_grid(instance.arrival, self.volume, machine)


@lru_cache(maxsize=4)
def elastic_numbers(instance: Instance) -> ElasticNumbers:
    """The numbers of every job; O(K G) fractions for K classes of jobs, then O(n). Kept for the next bound."""
    goodputs, rigid = Goodputs(instance), seconds_alone(instance)
    alone, volume = rigid.copy(), np.array([rounded_down(Fraction(d) * g) for d, g in _pairs(instance, rigid)])
    units: dict[int, tuple[Fraction, Fraction]] = {}
    for j in np.flatnonzero(goodputs.elastic).tolist():
        limits = goodputs.limits(j)
        if id(limits) not in units:
            units[id(limits)] = _units(limits)
        fastest, cheapest = units[id(limits)]
        work = Fraction(float(instance.work[j]))
        alone[j], volume[j] = rounded_down(work * fastest), rounded_down(work * cheapest)
    found = ElasticNumbers(alone, volume.astype(np.float64))
    found.alone.flags.writeable = found.volume.flags.writeable = False
    return found


def _pairs(instance: Instance, seconds: Floats) -> list[tuple[float, int]]:
    return list(zip(seconds.tolist(), instance.gpus.tolist(), strict=True))


def _units(rates: Floats) -> tuple[Fraction, Fraction]:
    """(1 / max v, min r / v) of a unit of work."""
    cheapest = min(Fraction(int(r)) / Fraction(float(rates[r])) for r in np.flatnonzero(rates))
    return 1 / Fraction(float(rates.max())), cheapest


def proved_numbers(instance: Instance) -> tuple[list[float], list[float]]:
    """(e_j, d_j) again: placement by placement for every job, in fractions."""
    rigid, limits = seconds_alone(instance).tolist(), proved_limits(instance)
    alone, volume = [], []
    for j in range(instance.n):
        if j not in limits:
            alone.append(rigid[j])
            volume.append(rounded_down(Fraction(rigid[j]) * int(instance.gpus[j])))
            continue
        work = Fraction(float(instance.work[j]))
        alone.append(rounded_down(work * min(1 / rate for _, rate in limits[j])))
        volume.append(rounded_down(work * min(r / rate for r, rate in limits[j])))
    return alone, volume


def proved_limits(instance: Instance) -> dict[int, list[tuple[int, Fraction]]]:
    """(r, v_j(r)) of every elastic job j, for all r on which it runs: placement by placement."""
    goodputs, sizes = Goodputs(instance), instance.cluster.node_gpus.tolist()
    known: dict[tuple[int, int], list[tuple[int, Fraction]]] = {}
    found = {}
    for j in range(instance.n):
        goodput = goodputs.of(j)
        if goodput is None:
            continue
        key = id(goodput), int(instance.job_class[j])
        if key not in known:
            mine = [size for size, may in zip(sizes, instance.eligible(j).tolist(), strict=True) if may]
            places = tuple(sorted(mine, reverse=True))
            rates = [(r, Fraction(goodput.limit(r, places))) for r in range(1, sum(mine) + 1)]
            known[key] = [(r, rate) for r, rate in rates if rate > 0]
        found[j] = known[key]
    return found


def elastic_machine_of(certificate: Certificate, instance: Instance, times: Times, volume: list[float]) -> Machine:
    """The machine that a certificate's data name (``grid_exponent``), built from the volumes."""
    exponent = data_integer(certificate, "grid_exponent", -MAX_EXPONENT, MAX_EXPONENT)
    capacity = instance.cluster.gpus
    units, per_second = over_common(volume)
    release = [capacity * floor_to_grid(r, times.per_second, exponent) for r in times.release]
    return Machine(1, capacity, exponent, release, [floor_to_grid(d, per_second, exponent) for d in units])
