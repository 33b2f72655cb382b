"""Modes of gangs whose speed depends on their placement: GPUs a node, the best mapping of replicas, seconds.

A mode of job j is a vector u of GPU counts a node (all that `splits` lists). Among the mappings of the job's
replicas to the nodes that use u, the fastest is kept: other jobs depend on u and the time only, and less time is never
worse for a regular objective. So only mappings are dominated. No mode dominates another one of the same job: its vectors
have the same sum, so none is smaller than another in every node, and a slow mode may use nodes that no other job wants.
Vectors on alike nodes are equally fast but not interchangeable, since the nodes may be in use; all are kept.

Replicas of a stage are alike, so a mapping is a table (stage, node) of counts with the right sums. Every mapping is timed
for one vector out of each set of vectors that differ only by alike nodes. Jobs with durations have modes that are equally
fast; modes of a job with a throughput table are as fast as the slowest GPU type in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

import numpy as np

from optsched.errors import InputError
from optsched.models.time_grid import TimeGrid, on_common_unit, releases
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.profile import Profile
from optsched.problem.schedule import Schedule
from optsched.speeds.duration import fixed_durations, paces
from optsched.speeds.network import Network
from optsched.speeds.speed_tables import profile_pace, tables_of
from optsched.speeds.stage_graph import iteration_time

# A way to put a gang on named nodes: (node, GPUs there), nodes ascending.
Mode = tuple[tuple[int, int], ...]

MODES = 500  # of one class of jobs; a model has modes x starts columns for each job


def modes_of_classes(instance: Instance) -> list[list[Mode]]:
    """Return the modes of every class of jobs (`Instance.job_class`).

    Parameters
    ----------
    instance
        Jobs and cluster.

    Raises
    ------
    InputError
        If a class has no mode or too many modes.
    """
    sizes = instance.cluster.node_gpus
    modes = []
    for gpus, eligible in zip(instance.class_gpus.tolist(), instance.class_eligible, strict=True):
        nodes = np.flatnonzero(eligible)
        class_modes = list(islice(splits(gpus, nodes.tolist(), sizes[nodes].tolist()), MODES + 1))
        if not class_modes:
            raise InputError(f"no placement of a gang of {gpus} GPUs on {nodes.size} nodes", field="gpus")
        if len(class_modes) > MODES:
            raise InputError(
                f"a gang of {gpus} GPUs has more than {MODES} placements on {nodes.size} nodes",
                field="gpus",
                legal="smaller gangs or fewer nodes, or rigid-time-indexed, which counts",
            )
        modes.append(class_modes)
    return modes


def counts(total: int, most: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield all vectors of integers 0..most[i] that add up to ``total``, the largest first.

    Parameters
    ----------
    total
        The sum.
    most
        Largest value of each entry.
    """
    if not most:
        if total == 0:
            yield ()
        return
    for first in range(min(total, most[0]), max(total - sum(most[1:]), 0) - 1, -1):
        for rest in counts(total - first, most[1:]):
            yield (first, *rest)


def splits(gpus: int, nodes: Sequence[int], sizes: Sequence[int]) -> Iterator[Mode]:
    """Yield every way to take ``gpus`` GPUs from nodes of the given sizes.

    Parameters
    ----------
    gpus
        Number of GPUs.
    nodes
        Numbers of the nodes.
    sizes
        GPUs of each of these nodes.
    """
    for taken in counts(gpus, sizes):
        yield tuple((node, count) for node, count in zip(nodes, taken, strict=True) if count)


MAPPINGS = 50_000  # mappings of one profile to one vector, which take about a second


def speed_depends_on_placement(instance: Instance) -> bool:
    """Return whether some placement makes a job faster than another placement.

    Parameters
    ----------
    instance
        Jobs and cluster.

    Raises
    ------
    InputError
        If bandwidths are missing.
    """
    if not instance.profiled.any():
        return False
    fastest, slowest = paces(instance)
    return bool(np.any(slowest > fastest * (1 + 1e-12)))  # beyond rounding, as in `fixed_durations`


@dataclass(frozen=True)
class MappedModes:
    """B modes of n jobs, those of a job adjacent.

    ``job`` i64[B]; ``mapping``: (node, GPUs) in the order of the replicas, a node may appear several times; ``held``
    i64[B, N] GPUs held of every node; ``seconds`` f64[B] for which they are held; ``offset`` i64[n + 1] first mode of a job.
    """

    job: Ints
    mapping: list[Mode]
    held: Ints
    seconds: Floats
    offset: Ints

    @classmethod
    def of(cls, instance: Instance) -> MappedModes:
        """Return the modes of an instance.

        Parameters
        ----------
        instance
            Jobs and cluster.

        Raises
        ------
        InputError
            If the modes, or the mappings behind one of them, are too many.
        """
        vectors = modes_of_classes(instance)
        timing = _Timing(instance)
        job, mapping, pace = [], [], []
        for j, kind in enumerate(instance.job_class.tolist()):
            for vector in vectors[kind]:
                fastest, seconds = timing.of(j, vector)
                job.append(j)
                mapping.append(fastest)
                pace.append(seconds)
        jobs = np.array(job, dtype=np.int64)
        return cls._in(instance, jobs, mapping, instance.work[jobs] * np.array(pace))

    @classmethod
    def rigid(cls, instance: Instance) -> MappedModes:
        """Return the modes of jobs that are equally fast everywhere.

        Parameters
        ----------
        instance
            Jobs and cluster.

        Raises
        ------
        InputError
            If the modes are too many, or a duration depends on the placement.
        """
        modes_of_job = [modes_of_classes(instance)[kind] for kind in instance.job_class.tolist()]
        jobs = np.repeat(np.arange(instance.n), [len(modes) for modes in modes_of_job])
        return cls._in(
            instance, jobs, [mode for modes in modes_of_job for mode in modes], fixed_durations(instance)[jobs]
        )

    @classmethod
    def _in(cls, instance: Instance, job: Ints, mapping: list[Mode], seconds: Floats) -> MappedModes:
        held = np.zeros((job.size, instance.cluster.node_count), dtype=np.int64)
        for b, parts in enumerate(mapping):
            for v, count in parts:
                held[b, v] += count
        return cls(job, mapping, held, seconds, np.searchsorted(job, np.arange(instance.n + 1)).astype(np.int64))

    def grid(self, instance: Instance) -> tuple[TimeGrid, Ints]:
        """Return a grid with the shortest duration of every job, and the slots of every mode.

        Parameters
        ----------
        instance
            Jobs and cluster.

        Returns
        -------
        grid
            The grid.
        slots
            Duration of every mode, i64[B].

        Raises
        ------
        InputError
            If arrivals and the durations of the modes are multiples of no useful unit.
        """
        origin, exact = releases(instance)
        unit, release, slots = on_common_unit(exact, [Fraction(p) for p in self.seconds.tolist()])
        return TimeGrid(origin, unit, release, np.minimum.reduceat(slots, self.offset[:-1])), slots

    def only(self, kept: Ints) -> MappedModes:
        """Return the modes with the given numbers.

        Parameters
        ----------
        kept
            Numbers of modes, ascending.
        """
        job = self.job[kept]
        offset = np.searchsorted(job, np.arange(self.offset.size)).astype(np.int64)
        return MappedModes(job, [self.mapping[b] for b in kept.tolist()], self.held[kept], self.seconds[kept], offset)

    def schedule(self, instance: Instance, mode: Ints, start: Floats, policy: str) -> Schedule:
        """Return the schedule that starts every job j in ``mode[j]`` at ``start[j]``.

        Parameters
        ----------
        instance
            Jobs and cluster.
        mode
            Mode of every job, i64[n].
        start
            Start of every job in seconds, f64[n].
        policy
            Name that the schedule records.
        """
        counts = {j: self.mapping[b] for j, b in enumerate(mode.tolist())}
        return Schedule.from_starts(instance, start, node_counts=counts, duration=self.seconds[mode], policy=policy)

    def find(self, j: int, held: Ints) -> int:
        """Return the mode of job j that holds the given GPUs of every node; -1 if there is none.

        Parameters
        ----------
        j
            Number of the job.
        held
            GPUs of every node, i64[N].
        """
        own = slice(int(self.offset[j]), int(self.offset[j + 1]))
        same = np.flatnonzero((self.held[own] == held).all(axis=1))
        return int(same[0]) + own.start if same.size else -1


class _Timing:
    # The mapping and the pace of a job on a vector; results for alike nodes are kept.
    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._names = instance.table["profile"].to_list()
        self._network = Network.of(instance.cluster) if instance.jobs_at("profiles").size else None
        self._known: dict[tuple[str, tuple[tuple[float, float, int], ...]], tuple[Mode, float]] = {}

    def of(self, j: int, vector: Mode) -> tuple[Mode, float]:
        """(nodes and counts in the order of the replicas, seconds a unit of work)."""
        speeds, name, network = self._instance.speeds_of(j), self._names[j], self._network
        if network is None or not speeds.is_ordered:
            return vector, speeds.pace(j, tuple(v for v, count in vector for _ in range(count)))
        # alike nodes are adjacent: a result for one vector is stored by place, not by node
        placed = sorted(vector, key=lambda part: (network.intra[part[0]], network.cross[part[0]], part[1]))
        alike = tuple((float(network.intra[v]), float(network.cross[v]), count) for v, count in placed)
        if (name, alike) not in self._known:
            fastest, alpha = best_mapping(self._instance.profiles[name], network, tuple(placed))
            place = {v: i for i, (v, _) in enumerate(placed)}
            self._known[name, alike] = tuple((place[v], count) for v, count in fastest), alpha
        parts, alpha = self._known[name, alike]
        return tuple((placed[i][0], count) for i, count in parts), alpha


def mappings(replicas: tuple[int, ...], vector: Mode) -> Iterator[Mode]:
    """Yield every way to put the replicas on the GPUs of ``vector``, in the order of the replicas.

    Parameters
    ----------
    replicas
        Number of replicas of each stage.
    vector
        GPUs of each node; they may be more than the replicas.
    """
    if not replicas:
        yield ()
        return
    nodes, room = [v for v, _ in vector], [count for _, count in vector]
    for first in splits(replicas[0], nodes, room):
        taken = dict(first)
        for rest in mappings(replicas[1:], tuple((v, count - taken.get(v, 0)) for v, count in vector)):
            yield first + rest


def best_mapping(profile: Profile, network: Network, vector: Mode) -> tuple[Mode, float]:
    """Return the fastest mapping of a profile to a vector, and its seconds an iteration.

    It is the first one of equally fast mappings. The search is exhaustive: exponential in the number of stages.

    Parameters
    ----------
    profile
        Stages of the job.
    network
        Bandwidths of the nodes.
    vector
        GPUs of each node.

    Returns
    -------
    mapping
        (node, GPUs) in the order of the replicas.
    alpha
        Seconds an iteration.

    Raises
    ------
    InputError
        If there are more than `MAPPINGS` mappings, or fewer GPUs than replicas.
    """
    table = tables_of([profile], np.array([0], dtype=np.int64), network)
    best, fastest = None, np.inf
    for tried, mapping in enumerate(mappings(tuple(stage.replicas for stage in profile.stages), vector)):
        if tried == MAPPINGS:
            raise InputError(
                f"a gang of {profile.gpus} GPUs has more than {MAPPINGS} mappings to {len(vector)} nodes",
                field="profile",
                legal="fewer stages, smaller gangs or fewer nodes",
            )
        parts = np.array(mapping, dtype=np.int64)
        alpha = profile_pace(table, 0, parts[:, 0].copy(), parts[:, 1].copy())
        if alpha < fastest:
            best, fastest = mapping, alpha
    if best is None:
        raise InputError("fewer GPUs than the profile has replicas", field="gpus", value=vector)
    # the readable formula gives the result, because the referee times the schedule by it
    return best, iteration_time(profile, network, [v for v, count in best for _ in range(count)])
