"""What a second of a job may cost in every class of schedules: how much of its work, for how many GPUs of which type.

A *menu* of a job is a list of options (GPU type t, units of work a second, GPUs of type t that it pays for). Of options one
may be chosen at a time, or parts of several that are together at most one (class ``forking``: of every option at most
one, all at once). At every moment of a schedule of the class, each job can be given parts of its options that do the work
which it does then, so that all jobs together pay for no more GPUs of a type than there are. For a_jt the seconds of a unit
of work on type t at best, n_j GPUs of a gang and G_t GPUs of a type:

* ``gang``, ``gang-nonpreemptive``: on type t 1 / a_jt for n_j GPUs. A gang on k_t GPUs of the types t does x <= 1 / a_jt on
  each of them: the parts k_t / n_j do no less, and pay for what it holds.
* ``gpu-sharing``: on type t 1 / a_jt for n_j GPUs, and x_jt / a_jt for n_j c_jt x_jt of them, x_jt the largest speed (alone
  at its best: 1) at which j runs beside anybody on a GPU of that type, c_jt the charges of `optsched.bounds.shared_machine`.
  A GPU with one job is paid by nobody else, in full at most. Where it has two, each runs at a speed y <= x_jt and pays
  c_jt y, together at most 1: that is what charges are. What j pays rises with its speed and is convex, so that one that
  is slowed down on some GPUs pays, where it is alone, for no more than it holds; and parts as above do its work.
* ``forking``: on type t G_t / (n_j a_jt) for G_t GPUs: a copy takes the part of its GPUs, and copies add up.
* ``elastic``: with r GPUs v_j(r) for r of them, for every r (`optsched.bounds.elastic_machine`), on each type that suits.

Sharing pays in full for its full speed: `shared_machine`, which charges c_jt for every unit of work, cannot say so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from optsched.bounds.shared_machine import SharedMachineJobs
from optsched.bounds.typed_machine import TypedJobs
from optsched.problem.instance import Instance
from optsched.speeds.goodput import Goodputs

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Option = tuple[int, float, float]  # type, units of work a second, GPUs paid for


@dataclass(frozen=True, eq=False)
class Menus:
    """Options ``start[k]`` .. ``start[k + 1]`` of kind k: ``gpu_type`` i64, ``rate`` and ``charge`` f64.

    ``kind`` i64[n], ``work`` f64[n] units, ``capacity`` i64[T] GPUs; ``adds``: are options taken all at once?
    """

    types: tuple[str, ...]
    capacity: Ints
    kind: Ints
    work: Floats
    start: Ints
    gpu_type: Ints
    rate: Floats
    charge: Floats
    adds: bool

    @cached_property
    def fewest_gpu_seconds(self) -> Floats:
        """What the work of every job costs at least where all types cost the same, f64[n]."""
        least = np.minimum.reduceat(self.charge / self.rate, self.start[:-1])
        return self.work * least[self.kind]

    @cached_property
    def most_gpus(self) -> Floats:
        """GPUs that every job pays for at most, f64[n]."""
        return np.maximum.reduceat(self.charge, self.start[:-1])[self.kind]


def _menus(jobs: TypedJobs, kind: Ints, options: list[list[Option]], adds: bool = False) -> Menus:
    start = np.cumsum([0, *(len(row) for row in options)])
    columns = list(zip(*(option for row in options for option in row), strict=True)) or [(), (), ()]
    gpu_type, rate, charge = (np.array(column, dtype=np.float64) for column in columns)
    return Menus(jobs.types, jobs.capacity, kind, jobs.work, start, gpu_type.astype(np.int64), rate, charge, adds)


def _where(jobs: TypedJobs, kind: int) -> Iterator[tuple[int, float, int]]:
    for t in np.flatnonzero(np.isfinite(jobs.pace[kind])).tolist():
        yield t, 1.0 / float(jobs.pace[kind, t]), int(jobs.gang[kind])


def gang_menus(jobs: TypedJobs) -> Menus:
    """Class ``gang``. O(K T)."""
    options = [[(t, speed, float(gang)) for t, speed, gang in _where(jobs, k)] for k in range(jobs.gang.size)]
    return _menus(jobs, jobs.kind, options)


def forking_menus(jobs: TypedJobs) -> Menus:
    """Class ``forking``. O(K T)."""
    capacity = jobs.capacity.tolist()
    options = [
        [(t, speed * capacity[t] / gang, float(capacity[t])) for t, speed, gang in _where(jobs, k)]
        for k in range(jobs.gang.size)
    ]
    return _menus(jobs, jobs.kind, options, adds=True)


def sharing_menus(jobs: SharedMachineJobs) -> Menus:
    """Class ``gpu-sharing`` at charges that were rounded. O(K T)."""
    beside = jobs.pairs.fastest_beside
    options: list[list[Option]] = []
    for k in range(jobs.gang.size):
        row: list[Option] = []
        for t, speed, gang in _where(jobs, k):
            part = float(beside[jobs.kind_class[k], t])
            if part > 0:
                row.append((t, speed * part, gang * float(jobs.charge[jobs.kind_class[k], t]) * part))
            if part < 1:
                row.append((t, speed, float(gang)))
        options.append(row)
    return _menus(jobs, jobs.kind, options)


def elastic_menus(instance: Instance, jobs: TypedJobs) -> Menus:
    """Class ``elastic``. O(n) and the options of every different job."""
    goodputs, may = Goodputs(instance), np.isfinite(jobs.pace)[jobs.kind]
    known: dict[tuple[int, int], int] = {}
    options: list[list[Option]] = []
    kind = np.empty(instance.n, dtype=np.int64)
    elastic = goodputs.elastic
    for j in range(instance.n):
        limits = goodputs.limits(j) if elastic[j] else None
        key = (-1, int(jobs.kind[j])) if limits is None else (id(limits), int(instance.job_class[j]))
        if key not in known:
            known[key] = len(options)
            options.append(
                [(t, speed, float(gang)) for t, speed, gang in _where(jobs, int(jobs.kind[j]))]
                if limits is None
                else [(t, *each) for t in np.flatnonzero(may[j]).tolist() for each in _useful(limits)]
            )
        kind[j] = known[key]
    return _menus(jobs, kind, options)


def _useful(rates: Floats) -> list[tuple[float, float]]:
    # (rate, GPUs) on the upper hull of rate over GPUs: the others are never chosen, whatever GPUs cost
    hull: list[tuple[float, float]] = [(0.0, 0.0)]
    for r in np.flatnonzero(rates).tolist():
        rate = float(rates[r])
        if rate <= hull[-1][0]:
            continue
        while len(hull) > 1 and (hull[-1][0] - hull[-2][0]) * (r - hull[-1][1]) <= (rate - hull[-1][0]) * (
            hull[-1][1] - hull[-2][1]
        ):
            hull.pop()
        hull.append((rate, float(r)))
    return hull[1:]
