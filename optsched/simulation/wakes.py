"""Times at which a policy in plain Python is asked, and stops that it has planned.

`Wakes` are times at which the policy wants to be asked, `Rounds` the rounds of a policy that is asked only then, and
`PlannedStops` the stops that happen without the policy.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from optsched.classes import class_of_means
from optsched.compiled import KERNEL, entry, njit, types, worked
from optsched.errors import InputError, SimulationError, check_legal
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.simulation.entry_points import EntryPoints
from optsched.simulation.next_event import last_of_instant
from optsched.simulation.policy import Policy
from optsched.simulation.records import RUNNING
from optsched.speeds.duration import paces
from optsched.speeds.goodput_rates import Goodputs

WOKEN_LIMIT = 10_000  # times in a row that a policy is woken for nothing; ten times as often if all else is over
HOPELESS = 1e7  # times more until the next event, as often as it was woken lately
MOST_ROUNDS = 1e6  # of the longest job alone: every round is played
FRUITLESS_LIMIT = 1000  # rounds, or restarts if these are longer, in which no job works


class Wakes:
    """A heap of the times at which a policy wants to be asked again.

    ``due`` drops times that have passed and counts how often a wake alone brought the policy on.

    A policy may wake often: every minute of a job that runs for a year, or while it lets a job wait. It would go on for
    ever if no event will come, or if the next event is out of reach at its pace, because it wakes ever sooner or every
    nanosecond.

    Parameters
    ----------
    policy
        Name of the policy, for messages.
    """

    def __init__(self, policy: str) -> None:
        self._policy = policy
        self._times: list[float] = []
        self._woken = 0
        self._since = 0.0

    def add(self, time: float) -> None:
        """Add a time at which the policy is to be asked.

        Parameters
        ----------
        time
            Seconds since the first arrival.
        """
        heapq.heappush(self._times, time)

    def of_instant(self, last: float) -> float:
        """Remove the times of an instant, which are one question, and return the last of them; inf if there is none.

        Parameters
        ----------
        last
            Last moment of the instant, in seconds.
        """
        time = math.inf
        while self._times and self._times[0] <= last:
            time = heapq.heappop(self._times)
        return time

    def due(self, now: float, event: float, *, quiet: bool, acted: bool) -> float:
        """Return the next time to ask the policy at, after it has been asked; inf if there is none.

        Parameters
        ----------
        now
            Time at which the policy has been asked, in seconds.
        event
            Time of the next event that happens by itself; inf for never.
        quiet
            Whether a wake alone had brought the policy on.
        acted
            Whether the policy started or stopped a job.

        Raises
        ------
        SimulationError
            The policy would go on for ever.
        """
        while self._times and self._times[0] <= now:
            heapq.heappop(self._times)
        if not quiet or not self._times:
            self._woken, self._since = 0, now
            return self._times[0] if self._times else math.inf
        self._woken += 1
        stopped = acted and event == math.inf  # it may be about to start what it stopped
        if self._woken % WOKEN_LIMIT == 0 and not stopped:
            self._judge(now, event)
        return self._times[0]

    def _judge(self, now: float, event: float) -> None:
        step = (now - self._since) / self._woken
        if event == math.inf and self._woken < 10 * WOKEN_LIMIT:
            return
        if event - now > HOPELESS * step:
            what = "nothing else will happen" if event == math.inf else f"the next event is at {event:g} s"
            raise SimulationError(
                f"policy {self._policy} at {now:g} s: it was woken {self._woken:,} times in a row, every {step:.3g} s "
                f"on average, while nothing happened; {what}"
            )
        self._woken, self._since = 0, now


class Rounds:
    """Times at which a policy that uses rounds is asked: only multiples of its ``round`` after the first arrival.

    A job that arrives at the instant of such a time (`optsched.simulation.next_event`) belongs to that round. If
    nothing runs after a decision, the next one is taken when another job has arrived.

    Parameters
    ----------
    policy
        The policy; its ``round`` is the length of a round in seconds.
    name
        Name of the run, for messages.
    instance
        Jobs and a cluster.
    uses
        The means that the policy declares.

    Attributes
    ----------
    length
        Seconds of a round.
    restart
        Most seconds that a job pays when it changes its GPUs.

    Raises
    ------
    InputError
        The round is not a positive number of seconds, or too short for the jobs.
    """

    def __init__(self, policy: Policy, name: str, instance: Instance, uses: frozenset[str]) -> None:
        self.name, self.length = name, float(policy.round)
        self.restart = float(np.fmax(instance.restart, policy.restart).max(initial=0.0))
        legal = "a finite number of seconds > 0"
        check_legal(0 < self.length < math.inf, f"{self.name}: round", policy.round, legal)
        longest, job = _longest(instance, class_of_means(uses).widths)
        require_rounds(self.name, self.length, longest + self.restart, job)
        self._first = float(instance.arrival.min(initial=math.inf))
        self._next = math.inf
        self._fruitless = 0
        self._news: tuple[list[int], list[int]] = [], []

    def begins(self, now: float, arrived: list[int], finished: list[int]) -> bool:
        """Keep the news of an instant, and return whether a round begins at it.

        Parameters
        ----------
        now
            The last event of the instant, in seconds.
        arrived
            Jobs that arrived.
        finished
            Jobs that completed.
        """
        self._news = self._news[0] + arrived, self._news[1] + finished
        return self._round_from(now) <= now

    def _round_from(self, t: float) -> float:
        # `next_tick`, which as a compiled function takes longer to call than to compute.
        k = round((t - self._first) / self.length)
        tick = self._first + k * self.length
        return tick if last_of_instant(tick) >= t else self._first + (k + 1) * self.length

    def news(self) -> tuple[list[int], list[int]]:
        """Return the jobs that have arrived and those that have finished since the last call."""
        found, self._news = self._news, ([], [])
        return found

    def waits(self, now: float, *, news: bool) -> float:
        """Return the time at which the policy is asked next, between two rounds.

        Parameters
        ----------
        now
            The present, in seconds.
        news
            Whether jobs have arrived.
        """
        if news and self._next == math.inf:
            self._next = self._round_from(now)
        return self._next

    def asked(self, now: float, *, busy: bool) -> float:
        """Return the time at which the policy is asked next, after a decision.

        Parameters
        ----------
        now
            Time of the decision, in seconds.
        busy
            Whether jobs run after it.
        """
        k = round((now - self._first) / self.length)
        self._next = self._first + (k + 1) * self.length if busy else math.inf
        return self._next

    def watch(self, now: float, paid: Floats) -> None:
        """Count rounds in which no job has worked, and refuse a policy that only moves jobs.

        Parameters
        ----------
        now
            The present, in seconds.
        paid
            Times at which the overheads of running jobs are over, f64[].

        Raises
        ------
        SimulationError
            All jobs have been moved again and again before any of them had worked.
        """
        self._fruitless = self._fruitless + 1 if paid.size and (paid >= now).all() else 0
        if self._fruitless * self.length > FRUITLESS_LIMIT * max(self.length, self.restart):
            raise SimulationError(
                f"policy {self.name} at {now:g} s after the first arrival: for {self._fruitless:,} rounds of "
                f"{self.length:g} s no job has worked: its GPUs change before its restart of {self.restart:g} s is over"
            )


def require_rounds(name: str, length: float, longest: float, job: str = "") -> None:
    """Check that no job needs more than `MOST_ROUNDS` rounds.

    Parameters
    ----------
    name
        Name of the run, for the message.
    length
        Seconds of a round.
    longest
        Seconds of the longest job alone.
    job
        Id of that job, for the message.

    Raises
    ------
    InputError
        Rounds are too short.
    """
    if longest / length > MOST_ROUNDS:
        legal = f"at least {longest / MOST_ROUNDS:.3g} s: a run of at most {MOST_ROUNDS:g} rounds"
        what = "too short for these jobs" if not job else f"too short for job {job!r} of {longest:g} s"
        raise InputError(what, field=f"{name}: round", value=length, legal=legal)


def require_rounds_of(instance: Instance, policy: Policy, name: str) -> None:
    """Check the same for a policy that keeps its own rounds and declares it (``plays_rounds``), before it plays them.

    A policy that sleeps while all jobs have the best GPUs (``sleeps``) plays rounds only if the long jobs do not fit
    together.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    policy
        The policy.
    name
        Name of the run, for the message.

    Raises
    ------
    InputError
        Rounds are too short.
    """
    if not policy.plays_rounds:
        return
    long = instance.work * paces(instance)[0] / policy.round > MOST_ROUNDS
    if not policy.sleeps or instance.gpus[long].sum() > instance.cluster.gpus:
        require_rounds(name, policy.round, *_longest(instance, any_width=False))


def _longest(instance: Instance, any_width: bool) -> tuple[float, str]:
    # Seconds of the longest job alone at its fastest, and which it is.
    alone = instance.work * paces(instance)[0]
    if any_width:
        goodputs = Goodputs(instance)
        best = [float(goodputs.options(j).rates.max(initial=0.0)) for j in range(instance.n)]
        alone = np.array([w / v if v > 0 else 0.0 for w, v in zip(instance.work.tolist(), best, strict=True)])
    j = int(np.argmax(alone)) if instance.n else -1
    return (float(alone[j]), instance.ids[j]) if instance.n else (0.0, "")


class PlannedStops:
    """Stops of running jobs that are planned for later; a plan ends with the present run of its job.

    Parameters
    ----------
    engine
        Compiled functions of the engine, with the state of the run.
    n
        Number of jobs in the instance.
    """

    def __init__(self, engine: EntryPoints, n: int) -> None:
        self._engine = engine
        self._status, self._now = engine.state.jobs["status"], engine.state.engine["now"]
        self._until = np.full(n, math.inf)
        self._planned = 0  # jobs
        # in order of (time, job) from ``at`` on, unless some have come or gone since
        self._times, self._jobs, self._at = np.zeros(0), np.zeros(0, dtype=np.int64), 0
        self._new: list[Ints] = []
        self._sorted = True

    def add_all(self, jobs: Ints, times: Floats) -> bool:
        """Plan stops of running jobs, in place of any that were planned for them.

        Parameters
        ----------
        jobs
            Indices of running jobs, i64[m].
        times
            Times of the stops, f64[m], in seconds and later than now.

        Returns
        -------
        bool
            False if one of the stops is not possible; nothing is changed then.
        """
        before, ordered = entry(plan)(jobs, times, self._status, float(self._now[0]), self._until)
        worked(plan, jobs.size)
        if before < 0:
            return False
        if self._planned == before and ordered:  # no other job, and no job twice
            self._times, self._jobs, self._at, self._new, self._sorted = times, jobs, 0, [], True
        else:
            self._new.append(jobs)
            self._sorted = False
        self._planned += jobs.size - before
        return True

    def drop_all(self, jobs: Sequence[int] | Ints) -> None:
        """Drop the plans of jobs that run no longer.

        Parameters
        ----------
        jobs
            Indices of jobs, i64[].
        """
        if self._planned and len(jobs):
            gone = np.asarray(jobs, dtype=np.int64)
            gone = gone[self._until[gone] < math.inf]
            if gone.size:
                self._until[gone] = math.inf
                self._planned -= np.unique(gone).size  # a job that stops and starts again is among them twice
                self._sorted = False

    def _sort(self) -> None:
        if self._sorted:
            return
        jobs = np.concatenate([self._jobs[self._at :], *self._new])
        times = self._until[jobs]
        order = np.lexsort((jobs, times))[: np.count_nonzero(times < math.inf)]
        jobs = jobs[order]
        once = np.append(True, jobs[1:] != jobs[:-1])[: jobs.size]  # a job may have been planned again
        self._jobs = jobs[once]
        self._times, self._at, self._new, self._sorted = times[order][once], 0, [], True
        self._planned = self._jobs.size

    def _over(self, end: int) -> None:
        # Those before ``end`` have been stopped.
        if end > self._at:
            self._until[self._jobs[self._at : end]] = math.inf
            self._planned -= end - self._at
            self._at = end

    def next_time(self) -> float:
        """Carry out the stops that precede all other events, and return the time of the next one, inf for none."""
        if self._planned:
            self._sort()
            self._over(self._engine.stop_as_planned(self._times, self._jobs, self._at))
        return self.first

    @property
    def first(self) -> float:
        """Time of the first planned stop, in seconds; inf if there is none."""
        if self._planned == 0:
            return math.inf
        self._sort()
        return float(self._times[self._at]) if self._at < self._times.size else math.inf

    def _until_then(self, last: float) -> int:
        self._sort()
        return int(self._times.searchsorted(last, side="right"))

    def with_wake(self, wake: float, last: float) -> float:
        """Return the last of the planned times of an instant, and of ``wake`` if it belongs to the instant.

        Parameters
        ----------
        wake
            Time at which the policy wants to be asked, in seconds.
        last
            Last moment of the instant, by which at least one stop is planned.
        """
        latest = float(self._times[self._until_then(last) - 1])
        return max(wake, latest) if wake <= last else latest

    def carry_out(self, last: float) -> None:
        """Carry out the stops that are planned up to the end of an instant.

        Parameters
        ----------
        last
            Last moment of the instant, in seconds.
        """
        end = self._until_then(last)
        for job in self._jobs[self._at : end].tolist():
            self._engine.stop(job)
        self._over(end)


@njit(
    signature=types.Tuple((types.int64, types.boolean))(
        types.int64[::1], types.float64[::1], types.int64[:], types.float64, types.float64[::1]
    ),
    **KERNEL,
)
def plan(jobs: Any, times: Any, status: Any, now: float, until: Any) -> tuple[int, bool]:
    """Write the times of stops to ``until`` if all of them are possible.

    Parameters
    ----------
    jobs
        Indices of jobs, i64[m].
    times
        Times of the stops, f64[m], in seconds.
    status
        Status of every job, i64[n].
    now
        The present, in seconds.
    until
        Planned stop of every job, f64[n]; inf for none. It is changed.

    Returns
    -------
    tuple
        The number of the jobs that had a stop planned, or -1 if one of the stops is not possible; whether the stops are
        in order of (time, job) and no job occurs twice.
    """
    before, ordered = 0, True
    for i in range(jobs.size):
        if not (0 <= jobs[i] < until.size and now < times[i] < math.inf) or status[jobs[i]] != RUNNING:
            return -1, False
    for i in range(jobs.size):
        if until[jobs[i]] < math.inf:
            before += 1
            until[jobs[i]] = math.inf
    for i in range(jobs.size):
        until[jobs[i]] = times[i]
        if i > 0 and (times[i] < times[i - 1] or (times[i] == times[i - 1] and jobs[i] <= jobs[i - 1])):
            ordered = False
    for i in range(jobs.size):
        ordered = ordered and until[jobs[i]] == times[i]
    return before, ordered
