"""Jobs that may share GPUs in pairs, as exact methods see them, and the completion times that given starts lead to.

**Notation**: job j needs n_j GPUs at once from its start S_j to its end C_j >= r_j; option o of j is a sub-batch, with
``memory`` on each of its GPUs and e_jo seconds alone. While it shares some GPU with k its work advances at 1 / xi_{j|k},
with several partners at the slowest of these speeds; at most two jobs are on a GPU, and their memory fits.

**Options left out**: an option that is slower than another one and leaves memory for no further partner. Such an option
never lowers the optimum: with the faster one, and the same starts, every job is always at least as far.

`shared_completions` is the referee of every exact method for such jobs: it shares no code with the searches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from optsched.classes import require_whole_jobs, usual_class
from optsched.errors import InputError, check_legal
from optsched.models.event_completions import event_completions
from optsched.problem.gpu_names import node_first
from optsched.problem.instance import Instance
from optsched.problem.schedule import SharedSchedule
from optsched.speeds.duration import segment_paces
from optsched.speeds.partner_rates import SharingRates, sharing_rates

ROUNDING = 1e-13  # relative

Number = Any  # float or Fraction
Gang = tuple[int, ...]  # GPUs, numbered through all nodes


@dataclass(frozen=True, eq=False)
class SharedJobs:
    """n jobs on N nodes with G GPUs, in seconds and bytes.

    ``options`` of a job are positions in `Instance.sub_batches`. ``xi[j][k]``: slow-down of j while it shares with k, inf
    where the two never share. ``suits[j][v]``: whether j may use node v.
    """

    instance: Instance
    rates: SharingRates
    release: tuple[float, ...]
    gang: tuple[int, ...]
    options: tuple[tuple[int, ...], ...]
    xi: tuple[tuple[float, ...], ...]
    suits: tuple[tuple[bool, ...], ...]
    node_memory: tuple[float, ...]
    gpu_node: tuple[int, ...]
    _seconds: dict[tuple[int, int, tuple[int, ...]], float] = field(default_factory=dict)

    @classmethod
    def of(cls, instance: Instance) -> SharedJobs:
        """Return the jobs of an instance.

        Parameters
        ----------
        instance
            Jobs and cluster.

        Raises
        ------
        InputError
            If the instance has no interference, or a job has tasks or stages or fits on no GPU.
        """
        require_whole_jobs(instance, "an exact method for shared GPUs")
        if usual_class(instance).alone:
            raise InputError("the cost of sharing is unknown", field="interference", legal="Instance(interference=...)")
        for j in instance.jobs_at("profiles")[:1].tolist():
            legal = "jobs with durations, throughputs or scaling profiles"
            raise InputError(f"job {instance.ids[j]!r} has stages", field="profile", legal=legal)
        rates, cluster = sharing_rates(instance), instance.cluster
        kinds, nodes = rates.kind.tolist(), range(cluster.node_count)
        jobs = cls(
            instance,
            rates,
            tuple(instance.arrival.tolist()),
            tuple(instance.gpus.tolist()),
            tuple(tuple(range(count)) for count in rates.options.tolist()),
            tuple(tuple(float(rates.xi[a, b]) for b in kinds) for a in kinds),
            tuple(tuple(bool(row[v]) for v in nodes) for row in instance.class_eligible[instance.job_class]),
            tuple(cluster.node_memory.tolist()),
            tuple(v for v, count in enumerate(cluster.node_gpus.tolist()) for _ in range(count)),
        )
        useful = tuple(tuple(_useful(jobs, j)) for j in range(jobs.n))
        for j, options in enumerate(useful):
            if not options:
                raise InputError(f"job {instance.ids[j]!r} fits on no GPU", field="gpu_memory")
        return replace(jobs, options=useful)

    @property
    def n(self) -> int:
        """Number of jobs."""
        return len(self.release)

    @cached_property
    def relative(self) -> SharedJobs:
        """The same jobs with time counted from the first arrival; the object itself if that is 0."""
        instance = self.instance.relative
        return self if instance is self.instance else SharedJobs.of(instance)

    @property
    def clock_part(self) -> Fraction:
        """Part of sum C_j that the clock of the log adds, in seconds."""
        return self.n * Fraction(self.instance.epoch)

    def memory(self, j: int, option: int) -> float:
        """Return the memory of a job on each of its GPUs, in bytes.

        Parameters
        ----------
        j
            Number of the job.
        option
            Number of the option.
        """
        return float(self.rates.memory[j, option])

    def pairs(self, j: int, k: int) -> bool:
        """Return whether two jobs may share a GPU, if their memory fits.

        Parameters
        ----------
        j
            Number of the one job.
        k
            Number of the other job.
        """
        return math.isfinite(self.xi[j][k]) and math.isfinite(self.xi[k][j])

    def slowdown(self, j: int, others: Iterable[int]) -> float:
        """Return the factor by which j is slower while it shares with other jobs.

        Parameters
        ----------
        j
            Number of the job.
        others
            Numbers of the jobs that share with it; j itself is ignored.
        """
        return max([1.0, *(self.xi[j][k] for k in others if k != j)])

    def seconds(self, j: int, option: int, gang: Gang) -> float:
        """Return e_jo, the seconds that a job takes alone on the given GPUs.

        Parameters
        ----------
        j
            Number of the job.
        option
            Number of the option.
        gang
            The GPUs.
        """
        nodes = tuple(self.gpu_node[g] for g in gang)
        used = tuple(sorted(set(nodes)))
        if (j, option, used) not in self._seconds:
            job, offset = np.array([j]), np.array([0, len(nodes)])
            pace = float(segment_paces(self.instance, job, offset, np.array(nodes))[0])
            stretch = float(self.rates.stretch[j, option, int(len(used) > 1)])
            self._seconds[j, option, used] = float(self.instance.work[j]) * (pace * stretch)
        return self._seconds[j, option, used]

    @cached_property
    def least_seconds(self) -> tuple[float, ...]:
        """Fewest seconds that each job can take alone, on any GPUs."""
        least = []
        for j, size in enumerate(self.gang):
            nodes = [v for v, suits in enumerate(self.suits[j]) if suits]
            gpus_of_node = {v: [g for g, node in enumerate(self.gpu_node) if node == v] for v in nodes}
            gangs = []  # one gang for every set of nodes over which the job may be spread
            for chosen in (subset for k in range(1, min(size, len(nodes)) + 1) for subset in combinations(nodes, k)):
                rest = [g for v in chosen for g in gpus_of_node[v][1:]]
                if len(chosen) + len(rest) >= size:
                    gangs.append(tuple(sorted([gpus_of_node[v][0] for v in chosen] + rest[: size - len(chosen)])))
            least.append(min(self.seconds(j, o, gang) for o in self.options[j] for gang in gangs))
        return tuple(least)

    def schedule(
        self, start: Sequence[float], end: Sequence[float], gangs: Sequence[Gang], options: Sequence[int], policy: str
    ) -> SharedSchedule:
        """Return the schedule with the given starts, ends, GPUs and options, unchecked.

        Parameters
        ----------
        start
            Start of every job in seconds.
        end
            End of every job in seconds.
        gangs
            GPUs of every job.
        options
            Option of every job.
        policy
            Name that the schedule records.
        """
        first, node_of = node_first(self.instance), np.array(self.gpu_node, dtype=np.int64)
        gpu = np.array([g for gang in gangs for g in gang], dtype=np.int64)
        node = node_of[gpu] if gpu.size else gpu
        return SharedSchedule(
            self.instance,
            np.arange(self.n, dtype=np.int64),
            np.array([float(s) for s in start]),
            np.array([float(c) for c in end]),
            self.instance.work.astype(np.float64),
            np.concatenate([[0], np.cumsum(self.gang)]).astype(np.int64),
            node,
            gpu - first[node],
            policy,
            np.array([self.rates.steps[j, o] for j, o in enumerate(options)], dtype=np.int64),
        )


def _useful(jobs: SharedJobs, j: int) -> list[int]:
    """Return the options that fit somewhere; a slower one must leave memory for a partner for which no faster one does."""
    useful: list[int] = []
    seen: list[set[tuple[int, int, float]]] = []
    for o in jobs.options[j]:
        rooms = {
            m for m, suits in zip(jobs.node_memory, jobs.suits[j], strict=True) if suits and jobs.memory(j, o) <= m
        }
        if not rooms:
            continue
        partners = {
            (k, p, m)
            for k in range(jobs.n)
            if k != j and jobs.pairs(j, k)
            for p in jobs.options[k]
            for m in rooms
            if jobs.memory(j, o) + jobs.memory(k, p) <= m
        } | {(j, -1, m) for m in rooms}
        if not any(partners <= before for before in seen):
            useful.append(o)
            seen.append(partners)
    return useful


def on_events(
    jobs: SharedJobs, start: Sequence[float], gangs: Sequence[Gang], options: Sequence[int], within: float
) -> list[float]:
    """Return the starts, each moved to the event that it misses by at most ``within`` seconds.

    Events are releases, and starts and completions of jobs that start before. No start ends up before its release. A solver
    returns starts with its tolerance, and a job that starts a moment before another one ends would be a third one on the
    GPU. Calls `shared_completions` O(n) times.

    Parameters
    ----------
    jobs
        The jobs.
    start
        Start of every job in seconds.
    gangs
        GPUs of every job.
    options
        Option of every job.
    within
        Largest distance to an event, in seconds.
    """
    order = sorted(range(jobs.n), key=lambda j: start[j])
    moved = list(start)
    for k, j in enumerate(order):
        ends = _completions(jobs, {i: moved[i] for i in order[:k]}, gangs, options, float)
        events = [*ends.values(), *(moved[i] for i in order[:k]), *jobs.release]
        nearest = min(events, key=lambda at: abs(at - start[j]))
        if abs(nearest - start[j]) <= within:
            # events that only rounding separates are one event: take the last of them, when all jobs have left
            moved[j] = max(at for at in events if at - nearest <= ROUNDING * abs(nearest))
        moved[j] = max(moved[j], jobs.release[j])
    return moved


def shared_completions(
    jobs: SharedJobs,
    start: Sequence[Number],
    gangs: Sequence[Gang],
    options: Sequence[int] | None = None,
    *,
    exact: bool = False,
) -> list[Number]:
    """Return C_j when job j starts at ``start[j]`` on the GPUs ``gangs[j]``. O(n^2 (n + sum n_j)).

    Parameters
    ----------
    jobs
        The jobs.
    start
        Start of every job in seconds.
    gangs
        GPUs of every job.
    options
        Option of every job; None: the first option of each.
    exact
        Compute in fractions.

    Raises
    ------
    InputError
        If a job starts before its release, a third job is on a GPU, a pair never shares, or memory is short.
    """
    number: Any = Fraction if exact else float
    chosen = [own[0] for own in jobs.options] if options is None else list(options)
    begin = [number(s) for s in start]
    for j, s in enumerate(begin):
        check_legal(s >= number(jobs.release[j]), f"job {j}, start", float(s), "at least its release")
    ends = _completions(jobs, dict(enumerate(begin)), gangs, chosen, number)
    return [ends[j] for j in range(jobs.n)]


def _completions(
    jobs: SharedJobs, begin: dict[int, Number], gangs: Sequence[Gang], options: Sequence[int], number: Any
) -> dict[int, Number]:
    """Return C_j of the jobs that start at ``begin``, without all other jobs."""
    work = {j: number(jobs.seconds(j, options[j], gangs[j])) for j in begin}

    def slow(running: set[int]) -> dict[int, Number]:
        for g in sorted({g for j in running for g in gangs[j]}):
            sharers = [j for j in sorted(running) if g in gangs[j]]
            if not may_be_on(jobs, sharers, g, options):
                legal = "at most two jobs that may share, with memory for both"
                raise InputError(f"GPU {g} cannot hold these jobs", field="jobs", value=sharers, legal=legal)
        meets = {j: [k for k in running if k != j and not set(gangs[j]).isdisjoint(gangs[k])] for j in running}
        return {j: number(jobs.slowdown(j, others)) for j, others in meets.items()}

    return event_completions(begin, work, slow)


def may_be_on(jobs: SharedJobs, here: Sequence[int], g: int, options: Sequence[int]) -> bool:
    """Return whether the jobs may be on one GPU at once: at most two, which share, with memory for both.

    Parameters
    ----------
    jobs
        The jobs.
    here
        Numbers of the jobs on the GPU.
    g
        Number of the GPU.
    options
        Option of every job.
    """
    fits = sum(jobs.memory(j, options[j]) for j in here) <= jobs.node_memory[jobs.gpu_node[g]]
    return fits and len(here) <= 2 and (len(here) < 2 or jobs.pairs(here[0], here[1]))


# One gang set: jobs of which every two meet on some GPU and no three can run at once, wherever they are.
#
# It does not matter which GPUs a job has: at any time at most two run, and they share. Jobs are one gang set if all
# need all G GPUs, and on one node if n_j + n_k > G for every two and n_i + n_j + n_k > 2 G for every three (a GPU holds
# two).


def one_gang_set(jobs: SharedJobs) -> str | None:
    """Return None if the jobs are one gang set, else one sentence that says why not.

    Parameters
    ----------
    jobs
        The jobs.
    """
    G, sizes = len(jobs.gpu_node), sorted(jobs.gang)
    if all(size == G for size in sizes):
        return None
    if len(jobs.node_memory) > 1:
        return f"on several nodes every job must need all {G} GPUs, one needs {sizes[0]}"
    if sum(sizes[:2]) <= G and len(sizes) > 1:
        return f"gangs of {sizes[0]} and {sizes[1]} GPUs run side by side on {G}"
    if sum(sizes[:3]) <= 2 * G and len(sizes) > 2:
        return f"three gangs of {', '.join(map(str, sizes[:3]))} GPUs run at once on {G} GPUs, two jobs on each"
    return None


def first_gangs(jobs: SharedJobs) -> tuple[Gang, ...]:
    """Return the first GPUs for every job: in a gang set only their number matters.

    Parameters
    ----------
    jobs
        The jobs.
    """
    return tuple(tuple(range(size)) for size in jobs.gang)
