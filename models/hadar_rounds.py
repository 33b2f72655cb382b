"""Hadar's problem in rounds: gangs on machines with devices of several types, the slowest type used rules.

Jobs j = 0..n-1 ask W_j devices and E_j N_j iterations, machines h have c_h^r devices of type r, rounds t = 0..T-1 last L
seconds. In a round a job holds all W_j devices or none, on any machines and types (a *mode* says how fast that is), and
every one of its tasks runs at the speed of the slowest type it uses. A job is complete at the end of the first round
by which its work is done; its utility falls with that round. Jobs may be left out.

Work: L W_j X a round; a total within 1e-9 (relative) of E_j N_j is enough, so that 30 rounds of 0.1 are 3.

Reference: Sultana et al., Hadar, IPDPS 2024; arXiv 2503.10918.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from optsched.errors import InputError
from optsched.models.mapped_modes import counts
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.speeds.type_speeds import type_speeds


@dataclass(frozen=True, slots=True)
class JobSchedule:
    """One way to run a job: ``utility`` u_js, ``demand`` = ((q, devices w_q^js), ...) with increasing q, devices >= 1."""

    utility: float
    demand: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Packing:
    """The data of Hadar's packing LP: ``capacity`` c_q devices of Q resources, ``schedules[j]`` = S_j, perhaps empty.

    A resource q is what is sold: one type of device of one machine in one round (or of the whole cluster in one round).
    Job j takes at most one of its schedules s in S_j, which is worth u_js and holds w_q^js devices of q. Nothing here
    knows where the schedules come from. The LP over these data is `hadar_primal`, its dual `hadar_dual`. Reference:
    Bao, Peng, Wu and Li, Online job scheduling in distributed machine learning clusters (OASiS), INFOCOM 2018, arXiv
    1801.00936.
    """

    capacity: tuple[int, ...]
    schedules: tuple[tuple[JobSchedule, ...], ...]

    @property
    def jobs(self) -> int:
        """Number of jobs n."""
        return len(self.schedules)

    @property
    def resources(self) -> int:
        """Number of resources Q."""
        return len(self.capacity)

    @cached_property
    def flat(self) -> tuple[JobSchedule, ...]:
        """All S schedules, the jobs in order."""
        return tuple(one for of_job in self.schedules for one in of_job)

    @cached_property
    def job(self) -> Ints:
        """Job of every schedule, i64[S]."""
        return np.repeat(np.arange(self.jobs), [len(of_job) for of_job in self.schedules])

    @cached_property
    def utility(self) -> Floats:
        """u of every schedule, f64[S]."""
        return np.array([one.utility for one in self.flat], dtype=np.float64)

    @cached_property
    def demand(self) -> sp.csc_array:
        """w as a sparse matrix, f64[Q, S] csc."""
        rows = [q for one in self.flat for q, _ in one.demand]
        held = [float(w) for one in self.flat for _, w in one.demand]
        start = np.cumsum([0, *(len(one.demand) for one in self.flat)])
        return sp.csc_array((held, rows, start), shape=(self.resources, len(self.flat)))

    @cached_property
    def of_job(self) -> sp.csr_array:
        """1 where a schedule is of a job, f64[n, S] csr."""
        columns = np.arange(self.job.size)
        return sp.csr_array((np.ones(columns.size), (self.job, columns)), shape=(self.jobs, columns.size))

    def require_schedules(self) -> None:
        """`InputError` when no job has a schedule: there is nothing to choose, and the optimum is 0."""
        if not self.flat:
            legal = "more or longer rounds, or a device on which a job runs"
            raise InputError("no job has a schedule: nothing can be packed", field="schedules", legal=legal)


ENOUGH = 1 - 1e-9  # of the work is all of it: what rounding may take away
MOST_SCHEDULES = 200_000  # of all jobs together; some seconds of enumeration, and about all that HiGHS takes lightly


@dataclass(frozen=True, slots=True)
class Mode:
    """A speed at which a gang can run: iterations/s of one ``task``, and the cells (h, r) whose devices are that fast.

    ``machine`` is the only machine it may use; None: any, and at least two where gangs on one machine have their own
    modes.
    """

    task: float
    cells: tuple[tuple[int, int], ...]
    machine: int | None


@dataclass(frozen=True, slots=True)
class RoundAllocation:
    """W_j devices for one round: ``cells`` = ((h, r, devices), ...), and the iterations that the job does in it."""

    cells: tuple[tuple[int, int, int], ...]
    iterations: float


@dataclass(frozen=True, eq=False)
class RoundProblem:
    """The data. n jobs, H machines, R types, T rounds.

    work : iterations E_j N_j, f64[n], > 0.
    tasks : devices W_j, i64[n], >= 1.
    speed : iterations/s of one task on type r, f64[n, R]; 0: the job may not run there.
    arrival : first round in which the job may run, i64[n].
    devices : c_h^r, i64[H, R].
    seconds : length L of a round.
    utility : f64[n, T]; ``utility[j, t]`` is what j is worth when it completes at the end of round t: finite, >= 0, and
        not increasing in t from its arrival on (earlier entries are ignored).
    together : iterations/s of one task while the whole gang is on one machine, f64[n, R]; None: as ``speed``, which then
        is not only the speed of gangs that are spread.

    Raises `InputError` for utilities that are none.
    """

    work: Floats
    tasks: Ints
    speed: Floats
    arrival: Ints
    devices: Ints
    seconds: float
    utility: Floats
    together: Floats | None = None

    def __post_init__(self) -> None:
        for name in ("work", "speed", "utility", "together"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        for name in ("tasks", "arrival", "devices"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.int64))
        for j, first in enumerate(self.arrival.tolist()):
            after = self.utility[j, first:]
            if not np.all(np.isfinite(after) & (after >= 0)) or np.any(np.diff(after) > 0):
                legal = "finite, >= 0 and not increasing from the arrival on"
                raise InputError("invalid", row=j, field="utility", value=after.tolist(), legal=legal)

    @property
    def n(self) -> int:
        """Number of jobs."""
        return self.work.size

    @property
    def rounds(self) -> int:
        """Number of rounds T."""
        return int(self.utility.shape[1])

    @property
    def machines(self) -> int:
        """Number of machines H."""
        return int(self.devices.shape[0])

    @property
    def types(self) -> int:
        """Number of device types R."""
        return int(self.devices.shape[1])

    def resource(self, t: int, h: int, r: int) -> int:
        """Return the number q of the devices of a type of a machine in a round: rounds outermost, types innermost.

        Parameters
        ----------
        t
            Round, from 0.
        h
            Machine, from 0.
        r
            Type, from 0.
        """
        return (t * self.machines + h) * self.types + r

    @cached_property
    def modes(self) -> tuple[tuple[Mode, ...], ...]:
        """The speeds of every job, fastest first: one for each slowest type, on each machine alone where that differs."""
        found = []
        for j in range(self.n):
            modes = self._thresholds(j, self.speed[j], range(self.machines), None)
            if self.together is not None:
                for h in range(self.machines):
                    modes += self._thresholds(j, self.together[j], [h], h)
            found.append(tuple(sorted(modes, key=lambda mode: -mode.task)))
        return tuple(found)

    def _thresholds(self, j: int, speed: Floats, machines: Sequence[int], machine: int | None) -> list[Mode]:
        found = []
        for slowest in sorted({float(x) for x in speed if x > 0}, reverse=True):
            cells = [(h, r) for h in machines for r in range(self.types) if speed[r] >= slowest and self.devices[h, r]]
            if sum(int(self.devices[cell]) for cell in cells) >= self.tasks[j]:
                found.append(Mode(slowest, tuple(cells), machine))
        return found

    def iterations(self, j: int, mode: Mode) -> float:
        """Return the iterations of a job in a round in one mode, L W_j X.

        Parameters
        ----------
        j
            Number of the job.
        mode
            A mode of the job.
        """
        return self.seconds * int(self.tasks[j]) * mode.task

    def allocations(self, j: int) -> list[RoundAllocation]:
        """Return all ways to hold W_j devices in a round, exponential in H R.

        Parameters
        ----------
        j
            Number of the job.
        """
        cells = [(h, r) for h in range(self.machines) for r in range(self.types) if self.devices[h, r]]
        most = [int(self.devices[cell]) for cell in cells]
        found = []
        for held in reversed(list(counts(int(self.tasks[j]), most))):
            used = tuple((h, r, count) for (h, r), count in zip(cells, held, strict=True) if count)
            alone = self.together is not None and len({h for h, _, _ in used}) == 1
            table = self.together if alone and self.together is not None else self.speed
            task = min(float(table[j, r]) for _, r, _ in used)
            if task > 0:
                found.append(RoundAllocation(used, self.seconds * int(self.tasks[j]) * task))
        return found

    def job_schedules(self, j: int) -> Iterator[JobSchedule]:
        """Yield every schedule of a job of which no round is superfluous.

        A schedule with a superfluous round is dominated: without it, it asks less and completes no later. Hence the
        optimum over these schedules is that over all.

        Parameters
        ----------
        j
            Number of the job.
        """
        options = self.allocations(j)
        needed, first = float(self.work[j]) * ENOUGH, int(self.arrival[j])
        most = max((one.iterations for one in options), default=0.0)

        def extend(taken: tuple[tuple[int, RoundAllocation], ...], done: float) -> Iterator[JobSchedule]:
            if done >= needed:
                if done - min(one.iterations for _, one in taken) < needed:
                    demand = [(self.resource(t, h, r), count) for t, one in taken for h, r, count in one.cells]
                    yield JobSchedule(float(self.utility[j, taken[-1][0]]), tuple(sorted(demand)))
                return
            begin = taken[-1][0] + 1 if taken else first
            for t in range(begin, self.rounds):
                if done + (self.rounds - t) * most < needed:
                    return  # too late to do the rest
                for one in options:
                    yield from extend((*taken, (t, one)), done + one.iterations)

        return extend((), 0.0)

    def packing(self) -> Packing:
        """The schedule-indexed packing: every job with its schedules, the resources being (t, h, r).

        For small instances. Raises `InputError` above `MOST_SCHEDULES`, all jobs together.
        """
        schedules, left = [], MOST_SCHEDULES
        for j in range(self.n):
            schedules.append(tuple(itertools.islice(self.job_schedules(j), left + 1)))
            left -= len(schedules[-1])
            if left < 0:
                legal = f"at most {MOST_SCHEDULES:,}: fewer jobs, rounds or devices"
                raise InputError("too many schedules to enumerate", row=j, field="schedules", legal=legal)
        return Packing(tuple(np.tile(self.devices.ravel(), self.rounds).tolist()), tuple(schedules))


def round_problem(instance: Instance, seconds: float, rounds: int) -> RoundProblem:
    """Return an instance in rounds: machines are nodes, utility is w_j N_j / (end of the round - r_j).

    The first round begins with the first arrival; a job may run from the first round that begins at or after its own.
    Speeds are those of `type_speeds`, whole gangs on one node and spread over nodes. The true effective throughput
    of a schedule of rounds is at least its utility here, since work may be done before the round ends.

    Parameters
    ----------
    instance
        The instance.
    seconds
        Length of a round.
    rounds
        Number of rounds T.

    Raises
    ------
    InputError
        If nodes differ in more than the type of their GPUs (memory).
    """
    speeds, cluster = type_speeds(instance), instance.cluster
    if np.any(np.isfinite(cluster.node_memory)) and not np.isnan(instance.gpu_memory).all():
        raise InputError("jobs that need memory are not modelled in rounds", field="gpu_memory", legal="none")
    n, tasks = instance.n, instance.gpus
    devices = np.zeros((cluster.node_count, len(speeds.types)), dtype=np.int64)
    devices[np.arange(cluster.node_count), speeds.node_type] = cluster.node_gpus
    origin = float(instance.arrival.min(initial=np.inf)) if n else 0.0
    first = np.ceil((instance.arrival - origin) / seconds).astype(np.int64)
    ends = origin + seconds * np.arange(1, rounds + 1)
    stay = np.where(np.arange(rounds) >= first[:, None], ends - instance.arrival[:, None], np.inf)
    alone, spread = speeds.together / tasks[:, None], speeds.spread / tasks[:, None]
    same = speeds.one_gpu_nodes
    return RoundProblem(
        work=instance.work,
        tasks=tasks,
        speed=alone if same else spread,
        arrival=first,
        devices=devices,
        seconds=seconds,
        utility=(instance.weight * instance.work)[:, None] / stay,
        together=None if same else alone,
    )
