"""The modes of jobs in a class of schedules: the work that a job does a second on a number of GPUs of a type.

A *mode* of a job, as in multi-mode scheduling, consists of a GPU type t, a seconds a unit of work, and n GPUs of type t
that the job pays for. A job takes one mode at a time, or parts of several that are together at most one (class
``forking``: at most one of every mode, all at once). At every moment of a schedule of the class, each job can be given
parts of its modes that do the work which it does at that moment, so that all jobs together pay for no more GPUs of a
type than there are. Let a_jt be the seconds of a unit of work on type t at best, n_j the GPUs of a gang and G_t the
GPUs of a type:

* ``gang``, ``gang-nonpreemptive``: on type t 1 / a_jt a second for n_j GPUs. A gang on k_t GPUs of the types t does
  x <= 1 / a_jt on each of them: the parts k_t / n_j do no less work, and pay for the GPUs that it holds.
* other classes: the modes that their folders register in `MODES`.

Speeds are floats that are taken as exact rationals, as in the engine: ``1 / rate`` of `optsched.speeds.type_speeds`
(for stage graphs one number for all types), and rates of goodputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from optsched.bounds.certificate import rounded_down
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.registry import PartsByClass
from optsched.speeds.duration import paces
from optsched.speeds.type_speeds import type_speeds

TypeMode = tuple[int, Fraction, Fraction]  # type, seconds a unit of work, GPUs paid for


@dataclass(frozen=True, eq=False)
class Turns:
    """Resources that jobs of K kinds take in turns, R of them (`modes_of_tasks`).

    Attributes
    ----------
    taken
        Mean units of every resource while the job runs, f64[K, R].
    bends
        Bounds on savings, f64[K, V, R]: where prices change by x[R], turns save at most the largest of 0 and ``bends[k,
        v] @ x``.
    """

    taken: Floats
    bends: Floats


def _of_modes(number: Callable[[int, Fraction, Fraction], float], kind: type = np.float64) -> cached_property[Any]:
    """A number of every mode, [O]."""
    return cached_property(lambda self: np.array([number(*mode) for mode in chain(*self.by_kind)], dtype=kind))


@dataclass(frozen=True, eq=False)
class Modes:
    """n jobs of K kinds on T GPU types, with O modes of all kinds.

    With ``turns`` the types are resources, several of which the one mode of a kind, at pace 1, takes.

    Attributes
    ----------
    types
        Names of the GPU types.
    capacity
        GPUs of every type, i64[T].
    gang
        GPUs of a gang of every kind, i64[K].
    kind
        Kind of every job, i64[n].
    work
        Units of work of every job, f64[n].
    release
        Release date of every job in seconds, f64[n].
    by_kind
        Modes of every kind.
    adds
        True if a job takes all its modes at once.
    turns
        Resources that jobs take in turns, if any.
    """

    types: tuple[str, ...]
    capacity: Ints
    gang: Ints
    kind: Ints
    work: Floats
    release: Floats
    by_kind: list[tuple[TypeMode, ...]]
    adds: bool
    turns: Turns | None = field(default=None, kw_only=True)

    @cached_property
    def start(self) -> Ints:
        """Offsets of the kinds, i64[K + 1]: modes ``start[k]`` .. ``start[k + 1]`` are those of kind k."""
        return np.cumsum([0, *map(len, self.by_kind)])

    gpu_type = _of_modes(lambda t, seconds, gpus: t, np.int64)
    pace = _of_modes(lambda t, seconds, gpus: float(seconds))  # seconds a unit of work
    rate = _of_modes(lambda t, seconds, gpus: float(1 / seconds))
    gpus = _of_modes(lambda t, seconds, gpus: float(gpus))  # paid for
    gpu_seconds = _of_modes(lambda t, seconds, gpus: float(seconds * gpus))  # a unit of work

    def least(self, of_mode: Floats) -> Floats:
        """Return the smallest number among the modes of every kind, f64[K].

        Parameters
        ----------
        of_mode
            A number for every mode, f64[O].
        """
        return np.minimum.reduceat(of_mode, self.start[:-1]) if self.by_kind else np.zeros(0)

    @cached_property
    def fewest_gpu_seconds(self) -> Floats:
        """GPU-seconds that the work of every job takes at least if all types cost the same, f64[n]."""
        return self.work * self.least(self.gpu_seconds)[self.kind]

    @property
    def busy(self) -> float:
        """Rough least number of seconds for which the cluster is busy with all work."""
        if self.turns is not None:
            return float((self.work @ self.turns.taken[self.kind] / self.capacity).max())
        return float(self.fewest_gpu_seconds.sum()) / float(self.capacity.sum())

    @cached_property
    def most_gpus(self) -> Floats:
        """Most GPUs that every job pays for, f64[n]."""
        most = -self.least(-self.gpus) if self.turns is None else self.turns.taken.sum(axis=1)
        return most[self.kind]

    @cached_property
    def fewest_seconds(self) -> list[Fraction]:
        """Least seconds of a unit of work of every kind: in its best mode, or in all modes at once."""
        if self.adds:
            return [1 / sum((1 / seconds for _, seconds, _ in modes), Fraction(0)) for modes in self.by_kind]
        return [min(seconds for _, seconds, _ in modes) for modes in self.by_kind]

    @cached_property
    def alone(self) -> Floats:
        """Least seconds that all work of every job takes, rounded down, f64[n]."""
        rows = zip(self.work.tolist(), self.kind.tolist(), strict=True)
        return np.array([rounded_down(Fraction(work) * self.fewest_seconds[k]) for work, k in rows], dtype=np.float64)

    def work_by_kind(self, work: Floats) -> Floats:
        """Return work added up by kind, f64[K].

        Parameters
        ----------
        work
            Units of work of every job, f64[n].
        """
        return np.bincount(self.kind, weights=work, minlength=len(self.by_kind)).astype(np.float64)


def type_paces(instance: Instance) -> tuple[Floats, tuple[str, ...], Ints]:
    """Return the seconds of a unit of work of every job on every GPU type.

    Parameters
    ----------
    instance
        Jobs and a cluster.

    Returns
    -------
    tuple
        Seconds at best, f64[n, T], inf on a type that the job may not use; names of the types; their GPUs, i64[T].

    Raises
    ------
    InputError
        The seconds of a job are out of range.
    """
    paces(instance)  # says which job's seconds are out of range
    speeds = type_speeds(instance)
    together, spread = speeds.reachable
    with np.errstate(divide="ignore"):
        return 1.0 / np.maximum(together, spread), speeds.types, speeds.capacity


def modes_of_gangs(instance: Instance) -> Modes:
    """Return the modes of class ``gang``. Complexity O(n log n).

    Parameters
    ----------
    instance
        Jobs and a cluster.

    Raises
    ------
    InputError
        A profile or a bandwidth is missing.
    """
    pace, types, capacity = type_paces(instance)
    kinds, kind = np.unique(np.column_stack([instance.gpus.astype(np.float64), pace]), axis=0, return_inverse=True)
    gang = kinds[:, 0].astype(np.int64)
    rows = zip(gang.tolist(), kinds[:, 1:].tolist(), strict=True)
    modes = [tuple((t, Fraction(a), Fraction(g)) for t, a in enumerate(row) if math.isfinite(a)) for g, row in rows]
    return Modes(types, capacity, gang, kind.reshape(-1), instance.work, instance.arrival, modes, adds=False)


Ways = Callable[[Instance], list[tuple[Modes, dict[str, Any]]]]


def _ways_of_gangs(instance: Instance) -> list[tuple[Modes, dict[str, Any]]]:
    return [(modes_of_gangs(instance), {})]


# By class, the modes to choose from, each with what else a certificate must state.
MODES: PartsByClass[Ways] = PartsByClass("optsched.bounds", _ways_of_gangs)

# By class, the seconds f64[n] that every job takes at least; None: those of its gang alone.
ALONE: PartsByClass[Callable[[Instance], Floats | None]] = PartsByClass("optsched.bounds", lambda _: None)


def modes_for(instance: Instance, schedule_class: str) -> list[tuple[Modes, dict[str, Any]]]:
    """Return the modes of jobs to choose from, each with the further facts that a certificate must state.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    schedule_class
        Name of the class of schedules.
    """
    return MODES.of(schedule_class)(instance)
