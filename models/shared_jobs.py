"""Jobs that may share GPUs in pairs, as exact methods see them; and what given starts lead to.

**Notation**: job j needs n_j GPUs at once from its start S_j to its end C_j >= r_j; option o of j is a sub-batch, with
``memory`` on each of its GPUs and e_jo seconds alone. Beside k on some GPU its work advances at 1 / xi_{j|k}, with several
partners at the slowest of these speeds; at most two jobs are on a GPU, and their memory fits.

**Options left out**: one that is slower than another and leaves memory for no further partner. Such an option never lowers
the optimum: with the faster one, and the same starts, every job is always at least as far.

`shared_completions` is the referee of every exact method here: it shares nothing with the searches.
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
from optsched.problem.instance import Instance
from optsched.problem.schedule import SharedSchedule, node_first
from optsched.speeds.duration import segment_paces
from optsched.speeds.partner_rates import SharingRates, sharing_rates

ROUNDING = 1e-13  # relative

Number = Any  # float or Fraction
Gang = tuple[int, ...]  # GPUs, numbered through all nodes


@dataclass(frozen=True, eq=False)
class SharedJobs:
    """n jobs, N nodes, G GPUs. Seconds and bytes; ``options`` of a job are positions in `Instance.sub_batches`.

    ``xi[j][k]``: slow-down of j beside k, inf where the two never share; ``suits[j][v]``: may j use node v?
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
        """The jobs of an instance. Raises `InputError` without interference, and for jobs with tasks or stages."""
        require_whole_jobs(instance, "an exact method for shared GPUs")
        if usual_class(instance).alone:
            raise InputError(
                "nothing says what sharing costs", field="interference", legal="Instance(interference=...)"
            )
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
        kept = tuple(tuple(_useful(jobs, j)) for j in range(jobs.n))
        for j, options in enumerate(kept):
            if not options:
                raise InputError(f"job {instance.ids[j]!r} fits on no GPU", field="gpu_memory")
        return replace(jobs, options=kept)

    @property
    def n(self) -> int:
        """Number of jobs."""
        return len(self.release)

    @cached_property
    def relative(self) -> SharedJobs:
        """The same jobs with time counted from the first arrival; themselves where that is 0."""
        instance = self.instance.relative
        return self if instance is self.instance else SharedJobs.of(instance)

    @property
    def clock_part(self) -> Fraction:
        """What the log's clock adds to sum C_j."""
        return self.n * Fraction(self.instance.epoch)

    def memory(self, j: int, option: int) -> float:
        """Bytes on each GPU."""
        return float(self.rates.memory[j, option])

    def pairs(self, j: int, k: int) -> bool:
        """May the two share a GPU, if their memory fits?"""
        return math.isfinite(self.xi[j][k]) and math.isfinite(self.xi[k][j])

    def slowdown(self, j: int, others: Iterable[int]) -> float:
        """By what factor j is slower beside these others."""
        return max([1.0, *(self.xi[j][k] for k in others if k != j)])

    def seconds(self, j: int, option: int, gang: Gang) -> float:
        """e_jo on these GPUs."""
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
        """The fewest seconds that each job can take alone, on any GPUs."""
        least = []
        for j, size in enumerate(self.gang):
            nodes = [v for v, suits in enumerate(self.suits[j]) if suits]
            own = {v: [g for g, node in enumerate(self.gpu_node) if node == v] for v in nodes}
            gangs = []  # one for every set of nodes that it may be spread over
            for chosen in (some for k in range(1, min(size, len(nodes)) + 1) for some in combinations(nodes, k)):
                rest = [g for v in chosen for g in own[v][1:]]
                if len(chosen) + len(rest) >= size:
                    gangs.append(tuple(sorted([own[v][0] for v in chosen] + rest[: size - len(chosen)])))
            least.append(min(self.seconds(j, o, gang) for o in self.options[j] for gang in gangs))
        return tuple(least)

    def schedule(
        self, start: Sequence[float], end: Sequence[float], gangs: Sequence[Gang], options: Sequence[int], policy: str
    ) -> SharedSchedule:
        """The schedule with these starts, ends, GPUs and options; nothing is checked."""
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
    """Options that fit somewhere, each slower one only if it leaves memory for a partner that no faster one has."""
    kept: list[int] = []
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
            kept.append(o)
            seen.append(partners)
    return kept


def on_events(
    jobs: SharedJobs, start: Sequence[float], gangs: Sequence[Gang], options: Sequence[int], within: float
) -> list[float]:
    """The same starts, each on the release, start or completion (of jobs that start before) that it misses by ``within`` s.

    None is left before its release. A solver says when a job starts only up to its tolerance, and a job that starts a
    moment before another one ends is a third one on the GPU. O(n) calls of `shared_completions`.
    """
    order = sorted(range(jobs.n), key=lambda j: start[j])
    moved = list(start)
    for k, j in enumerate(order):
        ends = _completions(jobs, {i: moved[i] for i in order[:k]}, gangs, options, float)
        events = [*ends.values(), *(moved[i] for i in order[:k]), *jobs.release]
        nearest = min(events, key=lambda at: abs(at - start[j]))
        if abs(nearest - start[j]) <= within:
            # events that rounding alone keeps apart are one: the last of them, when everybody has left
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
    """C_j when job j starts at ``start[j]`` on the GPUs ``gangs[j]``; fractions with ``exact``. O(n^2 (n + sum n_j)).

    Raises `InputError` for a start before the release, a third job on a GPU, a pair that never shares, memory that is short.
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
    """C_j of the jobs that start at ``begin``, and of no others."""
    work = {j: number(jobs.seconds(j, options[j], gangs[j])) for j in begin}

    def slow(running: set[int]) -> dict[int, Number]:
        for g in sorted({g for j in running for g in gangs[j]}):
            here = [j for j in sorted(running) if g in gangs[j]]
            if not may_be_on(jobs, here, g, options):
                legal = "at most two jobs that may share, with memory for both"
                raise InputError(f"GPU {g} cannot hold these jobs", field="jobs", value=here, legal=legal)
        meets = {j: [k for k in running if k != j and not set(gangs[j]).isdisjoint(gangs[k])] for j in running}
        return {j: number(jobs.slowdown(j, others)) for j, others in meets.items()}

    return event_completions(begin, work, slow)


def may_be_on(jobs: SharedJobs, here: Sequence[int], g: int, options: Sequence[int]) -> bool:
    """May these jobs, with these options, be on GPU ``g`` at once: at most two, that share, with memory for both?"""
    fits = sum(jobs.memory(j, options[j]) for j in here) <= jobs.node_memory[jobs.gpu_node[g]]
    return fits and len(here) <= 2 and (len(here) < 2 or jobs.pairs(here[0], here[1]))


# One gang set: jobs of which every two meet on some GPU and no three can run at once, wherever they are put.
#
# Then it does not matter which GPUs a job has: at any time at most two run, and they share. That is so if all jobs need
# all G GPUs, and on one node with n_j + n_k > G for every two and n_i + n_j + n_k > 2 G for every three (a GPU holds two).


def one_gang_set(jobs: SharedJobs) -> str | None:
    """None where the jobs are one gang set, else one sentence why not."""
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
    """The GPUs of every job, the first ones: all that matters is how many."""
    return tuple(tuple(range(size)) for size in jobs.gang)
