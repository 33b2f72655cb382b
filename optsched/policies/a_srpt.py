"""A-SRPT: a virtual single machine sets the order of the jobs; the cluster follows it without preemption.

The readable form is here. `optsched.policies.a_srpt_turns` makes the same decisions in a compiled loop, which runs unless
the predictor learns during the run.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass

import numpy as np

from optsched.errors import check_legal
from optsched.policies import POLICIES
from optsched.policies.a_srpt_turns import FASTEST, IDLE, SLOWEST, SrptTurns, join, new_turns, turns_loop
from optsched.policies.predictors import predictor
from optsched.policies.ties import TIE, leading_of
from optsched.problem.arrays import Floats
from optsched.simulation.policy import Decision, Knowledge, KnownJobs, Order, Policy, Start, View, Wake
from optsched.simulation.predictor import Predictor

VIRTUAL_ALPHA = {"min": FASTEST, "max": SLOWEST, "heavy-edge": IDLE}
Kind = tuple[int, float, float]  # jobs of one kind are offered the same GPUs at the same pace


@dataclass(slots=True)
class VirtualJob:
    """A job and its copy on the virtual machine."""

    gpus: int
    predicted: float  # units of work
    idle: float  # seconds a unit of work on the GPUs that it would get in an idle cluster
    kind: Kind
    length: float  # p_j, virtual seconds
    eligible: float = math.nan  # B_j
    delay_budget: float = 0.0  # idle seconds for which it may still wait at the head of the queue
    limit: float = math.inf  # of the charges of jobs that overtake it
    started: bool = False


@POLICIES.register("a-srpt")
@dataclass
class ASrpt(Policy):
    """A-SRPT: jobs start in the order in which SRPT completes them on one virtual machine as fast as the cluster.

    Job j becomes a virtual job of length ``p_j = g_j n^_j alpha~_j / G`` (n^_j predicted iterations, alpha~_j nominal
    iteration time: ``virtual_alpha``). At time B_j the machine has done ``beta p_j`` of it, and j joins a queue. The
    head of the queue starts as soon as g_j GPUs are free and the delay rule accepts them. Until then any job that has
    arrived may overtake the head, the shortest predicted one first, on a budget: from B_j until j starts, such jobs
    are charged at most ``overtake`` G B_j GPU-seconds (`Overtaking`). The defaults of ``overtake`` and ``tau`` were
    tuned (docs/theorems.md); smaller values have a smaller guarantee.

    **Delay rule.** A job may be offered more nodes than it needs. It starts there only if this costs it less, n^_j
    (alpha_now - alpha_idle), than the wait until running jobs are predicted to free a better place. A gang wider than
    a node waits for the fewest nodes that hold it in an idle cluster, unless its speed is the same everywhere.
    Predictions that have passed are doubled (`ExpectedPlaces`). The head waits for at most ``tau p_j`` seconds. Each
    of them counts by the idle share of G - g_max + 1 GPUs: while none of these is idle, waiting costs nothing.

    **Problem** P | r_j, size_j, online-r_j | sum C_j, speeds from placements. **Knowledge** predicted, by
    ``predictor``.

    **Guarantee** sum C <= [lam_o rho_1 (1 + (tau + lam_u rho_2 kappa)/beta + lam_u overtake kappa) + rho] OPT, kappa =
    G/(G - g_max + 1), with predictions in [n/lam_u, lam_o n], rho_1 = max alpha~/alpha_min, rho_2 = max
    alpha_max/alpha~, rho = max alpha_max/alpha_min (`optsched.guarantees.a_srpt_theorem`). **Counterexamples** the
    factor kappa is real: with gangs as wide as the cluster strict order loses about G/2; overtaking without a budget
    has no bound at all. **Complexity** O(log n) an event for the virtual machine, a placement for each kind of job
    that waits, and O(R N log N) for each kind that is offered too many of N nodes while R jobs run. **Reference** Luo,
    Liu, Lee, Shroff, INFOCOM 2025 (arXiv 2501.05563); overtaking, the rule of waiting, beta points and this theorem
    are this project's own.

    Parameters
    ----------
    virtual_alpha
        Nominal iteration time: ``min`` (fastest place), ``max`` (slowest), ``heavy-edge`` (in an idle cluster).
    beta
        Part of a virtual job that must be done before the job joins the queue.
    tau
        Longest wait of the head for a better place, in units of its virtual length p_j.
    overtake
        Budget of the jobs that overtake; 0: strict order; inf: no budget and no guarantee.
    predictor
        Predictor of lengths, ``NAME[/key=value]...``.
    """

    virtual_alpha: str = "min"
    beta: float = 1.0
    tau: float = 2.0
    overtake: float = 2.0
    predictor: str = "perfect"

    name = "a-srpt"
    knowledge = Knowledge.PREDICTED
    default_placement = "heavy-edge"
    noted_times = ("eligible",)

    def __post_init__(self) -> None:
        legal, alpha = self.virtual_alpha in VIRTUAL_ALPHA, self.virtual_alpha
        check_legal(legal, "a-srpt: virtual_alpha", alpha, ", ".join(VIRTUAL_ALPHA))
        check_legal(0 < self.beta <= 1, "a-srpt: beta", self.beta, "0 < beta <= 1")
        check_legal(0 <= self.tau < math.inf, "a-srpt: tau", self.tau, "a finite number >= 0")
        check_legal(self.overtake >= 0, "a-srpt: overtake", self.overtake, "a number >= 0; inf: no limit")
        predictor(self.predictor)
        self._turns: SrptTurns | None = None  # of a compiled run

    def make_predictor(self) -> Predictor:
        """Return the predictor of a run."""
        return predictor(self.predictor)

    def accelerator(self, jobs: KnownJobs) -> Order:
        """Return the same decisions in compiled form.

        Parameters
        ----------
        jobs
            Jobs of the run.
        """
        nominal = VIRTUAL_ALPHA[self.virtual_alpha]
        self._turns = new_turns(jobs, self.beta, self.tau, self.overtake, nominal)
        return Order(key=jobs.arrival, skip=False, plan=self._turns, loop=turns_loop)

    def begin(self, view: View) -> None:
        """Forget the last run.

        Parameters
        ----------
        view
            State of the run.
        """
        self._turns = None
        self._machine, self._places = VirtualMachine(self.beta), ExpectedPlaces()
        self._budget = Overtaking(view.cluster_gpus, self.overtake)
        self._jobs: dict[int, VirtualJob] = {}
        self._queue = deque[int]()  # in the order of B_j; a job that has started leaves it only at the head
        self._shortest: dict[Kind, list[tuple[float, int]]] = {}  # heaps of (seconds, job)
        self._waiting, self._widest = 0, 1  # jobs; g_max so far
        self._zero = math.nan  # the first arrival: budgets count from here
        self._delay: tuple[int, float, float] | None = None  # the head that waits, since, idle share

    def decide(self, view: View) -> Iterator[Decision]:
        """Advance the virtual machine and queue jobs at their points; start short jobs on the budget, then the head.

        Parameters
        ----------
        view
            State of the run.
        """
        self._spend_delay(view.now)
        self._join(view.now)  # before completions count: a budget depends on the time of joining
        for j in view.finished:
            self._budget.finish(j)
            self._places.finish(j)
        if math.isnan(self._zero):
            self._zero = view.now
        for j in view.arrived:
            self._arrive(j, view)
        self._join(view.now)  # again, for jobs shorter than the resolution of the clock: no later event would follow
        blocked: set[Kind] = set()
        while view.free_gpus:
            if (yield from self._overtake(view, blocked)):
                continue  # the head has started: another job is the head now
            head = self._head()
            pace = None if head is None else view.offer(head)
            if head is None or pace is None or not self._takes(head, pace, view):
                break
            yield self._start(head, pace, view.now)
        yield from self._wake(view)

    def _arrive(self, j: int, view: View) -> None:
        (fastest, slowest), gpus, predicted = view.pace_range(j), view.gpus(j), view.predicted(j)
        idle = view.pace_on_idle(j) if slowest > fastest else fastest
        nominal = {"min": fastest, "max": slowest, "heavy-edge": idle}[self.virtual_alpha]
        kind = (view.kind(j), fastest, slowest)
        job = VirtualJob(gpus, predicted, idle, kind, gpus * predicted * nominal / view.cluster_gpus)
        self._jobs[j], self._widest, self._waiting = job, max(self._widest, gpus), self._waiting + 1
        self._machine.release(j, view.now, job.length)
        heapq.heappush(self._shortest.setdefault(kind, []), (leading_of(predicted * fastest), j))

    def _join(self, now: float) -> None:
        for time, j in self._machine.advance(now):
            job = self._jobs[j]
            job.eligible = time
            job.delay_budget = self.tau * job.length if job.kind[2] > job.kind[1] else 0.0
            if not job.started:
                job.limit = self._budget.limit(time - self._zero)
                self._queue.append(j)

    def _head(self) -> int | None:
        while self._queue and self._jobs[self._queue[0]].started:
            self._queue.popleft()
        return self._queue[0] if self._queue else None

    def _overtake(self, view: View, blocked: set[Kind]) -> Generator[Decision, None, bool]:
        # Start the shortest jobs on the budget of the head until the head starts; skip a kind after its first refusal.
        head = self._head()
        limit = self._budget.limit(view.now - self._zero) if head is None else self._jobs[head].limit
        first = [self._first(kind) for kind in self._shortest if kind not in blocked]
        queue = [entry for entry in first if entry is not None]
        heapq.heapify(queue)
        while queue and view.free_gpus:
            j = heapq.heappop(queue)[1]
            job, pace = self._jobs[j], view.offer(j)
            if pace is None or not self._takes(j, pace, view):
                blocked.add(job.kind)
                continue
            if j != head and not self._budget.charge(j, job.gpus * job.predicted * pace, limit):
                continue
            yield self._start(j, pace, view.now)
            if j == head:
                return True
            following = self._first(job.kind)
            if following is not None:
                heapq.heappush(queue, following)
        return False

    def _first(self, kind: Kind) -> tuple[float, int] | None:
        heap = self._shortest[kind]
        while heap and self._jobs[heap[0][1]].started:
            heapq.heappop(heap)
        return heap[0] if heap else None

    def _takes(self, j: int, pace: float, view: View) -> bool:
        # True if the job starts at this pace, false if it waits for a better place.
        job = self._jobs[j]
        # It starts if its pace is the same everywhere (kind: gang and nodes, fastest, slowest pace), or the cluster is idle.
        if job.kind[1] == job.kind[2] or view.free_gpus == view.cluster_gpus:
            return True
        wait = self._places.wait(j, view)
        cost = job.predicted * (pace - job.idle) if self._places.fewest(j, view) == 1 else math.inf
        if wait == 0 or cost <= wait * (1 + TIE):
            return True
        rate = self._idle_share(view)
        may_delay = job.delay_budget > 0 and (rate == 0 or view.now + job.delay_budget / rate > view.now)
        return self._head() == j and not may_delay

    def _idle_share(self, view: View) -> float:
        # While the head does not fit, at least G - g_max + 1 GPUs are busy.
        return max(0.0, 1 - (view.cluster_gpus - view.free_gpus) / (view.cluster_gpus - self._widest + 1))

    def _spend_delay(self, now: float) -> None:
        if self._delay is not None:
            j, since, rate = self._delay
            job = self._jobs[j]
            spent = now >= since + job.delay_budget / rate  # equal at the time of the wake-up
            job.delay_budget = 0.0 if spent else max(0.0, job.delay_budget - rate * (now - since))

    def _start(self, j: int, pace: float, now: float) -> Start:
        job = self._jobs[j]
        job.started, self._waiting = True, self._waiting - 1
        self._places.start(j, now, job.predicted * pace)
        return Start(j)

    def _wake(self, view: View) -> Iterator[Decision]:
        # Wake up only if a job could start then: the next one in turn, or a head that has spent its delay budget.
        self._delay, head = None, self._head()
        if not self._waiting or not view.free_gpus:
            return
        time = self._machine.next_event()
        if head is not None:
            rate, time = self._idle_share(view), math.inf
            if rate > 0 and self._jobs[head].delay_budget > 0:
                self._delay, time = (head, view.now, rate), view.now + self._jobs[head].delay_budget / rate
        if view.now < time < math.inf:
            yield Wake(time)

    def notes(self) -> dict[str, Floats]:
        """Return ``virtual_length`` p_j and ``eligible`` B_j of the jobs that have arrived, in seconds; nan: none."""
        if self._turns is not None:
            join(self._turns, math.inf)
            rows = self._turns.jobs
            known = np.flatnonzero(~np.isnan(rows["length"])).max(initial=-1) + 1
            return {"virtual_length": rows["length"][:known].copy(), "eligible": rows["eligible"][:known].copy()}
        for time, j in self._machine.advance(math.inf):
            self._jobs[j].eligible = time
        length, eligible = np.full((2, max(self._jobs, default=-1) + 1), np.nan)
        for j, job in self._jobs.items():
            length[j], eligible[j] = job.length, job.eligible
        return {"virtual_length": length, "eligible": eligible}


# Overtaking on a budget: jobs may start before their turn, but no wait grows by more than a factor.
class Overtaking:
    """GPU-seconds of jobs that start out of turn, on a budget that bounds how long they delay a waiting job.

    For a job that joined the queue at t and waits, the charged jobs are those that run at t and those that start
    later. Their charges sum to at most ``share`` G t.

    A job joins the queue with a `limit`. A start out of turn is allowed if all charges so far and its own are within
    the limit of the head of the queue, or, if no job waits, within the limit of a job that joins now. Limits never
    fall along the queue, so the limit of the head is the least.

    Charges are predicted: g_j n^_j alpha GPU-seconds. **Guarantee** from the time t when a job joins until it starts,
    jobs out of turn hold at most lam_u ``share`` G t GPU-seconds, if predictions are at most lam_u times too small.
    **Complexity** O(1) each.

    Parameters
    ----------
    gpus
        GPUs of the cluster, G.
    share
        Budget for each GPU and second; inf: no budget.
    """

    def __init__(self, gpus: int, share: float) -> None:
        self._rate = share * gpus
        self._charged = 0.0  # all charges so far
        self._over = 0.0  # charges of jobs that have completed
        self._charge: dict[int, float] = {}

    def limit(self, now: float) -> float:
        """Return the limit of a job that joins the queue now, in GPU-seconds of all charges so far.

        Parameters
        ----------
        now
            Seconds since the first arrival.
        """
        return self._over + self._rate * now if self._rate < math.inf else math.inf

    def charge(self, job: int, gpu_seconds: float, limit: float) -> bool:
        """Charge a start out of turn, if it stays within the limit.

        Parameters
        ----------
        job
            Number of the job.
        gpu_seconds
            Predicted GPU-seconds of the job.
        limit
            Limit of the head of the queue.

        Returns
        -------
        bool
            True if the job may start; the charge is recorded.
        """
        if not (self._charged + gpu_seconds) * (1 - TIE) <= limit:
            return False
        self._charged += gpu_seconds
        self._charge[job] = gpu_seconds
        return True

    def finish(self, job: int) -> None:
        """Record that a job has completed; do nothing if it started in turn.

        Parameters
        ----------
        job
            Number of the job.
        """
        self._over += self._charge.pop(job, 0.0)


# The virtual machine of A-SRPT: one unit-speed machine that serves the shortest remaining work, preemptively.
class VirtualMachine:
    """1 | r_j, pmtn, online-r_j | sum C_j by SRPT, and the beta points of its jobs.

    When a job completes, the waiting job with the smallest (remaining work, number) is served. A new job preempts only
    with strictly less work, also if it arrives at the time of a completion. The beta point ``B_j(beta)`` is the time
    when ``beta p_j`` of job j is done (beta = 1: its completion). The machine never looks at the cluster: its schedule
    follows from the calls of `release` alone.

    **Guarantee** optimal for its problem (Schrage 1968). **Complexity** O(log n) a release or completion, O(1) a look
    ahead.

    Parameters
    ----------
    beta
        Part of a job that is done at its beta point, in (0, 1].
    """

    def __init__(self, beta: float = 1.0) -> None:
        self._beta = beta
        self._waiting: list[tuple[float, int]] = []  # a heap of (remaining, job)
        self._job = -1  # in service, with `_left` seconds left at the time `_since`
        self._left = 0.0
        self._since = 0.0
        self._after_point: dict[int, float] = {}  # work behind the beta point of jobs that have not reached it

    def __len__(self) -> int:
        """Return the number of jobs that are not complete."""
        return len(self._waiting) + (self._job >= 0)

    def release(self, job: int, now: float, work: float) -> None:
        """Release a new job; call `advance` (now) first.

        Parameters
        ----------
        job
            Number of the job.
        now
            Release date, in seconds.
        work
            Processing time on the machine, in seconds; > 0.
        """
        self._after_point[job] = (1.0 - self._beta) * work
        if self._job >= 0:
            left = self._left - (now - self._since)
            if not work < left:
                heapq.heappush(self._waiting, (work, job))
                return
            heapq.heappush(self._waiting, (left, self._job))
        self._job, self._left, self._since = job, work, now

    def next_event(self) -> float:
        """Return the next beta point or completion of the job in service, if no job arrives before; inf when idle."""
        if self._job < 0:
            return math.inf
        return self._since + (self._left - self._after_point.get(self._job, 0.0))

    def advance(self, now: float) -> list[tuple[float, int]]:
        """Serve until ``now`` and return the beta points reached since the last call.

        Parameters
        ----------
        now
            Time in seconds; inf completes all jobs.

        Returns
        -------
        list
            (time, job) in order of time.
        """
        reached = []
        while self._job >= 0 and (time := self.next_event()) <= now:
            if self._job in self._after_point:
                reached.append((time, self._job))
                del self._after_point[self._job]
            elif self._waiting:
                (self._left, self._job), self._since = heapq.heappop(self._waiting), time
            else:
                self._job = -1
        return reached


# The time at which a gang finds as few nodes as in an idle cluster, if running jobs end as predicted.
class ExpectedPlaces:
    """Running jobs with their predicted ends; a prediction that has passed is doubled until it lies in the future.

    **Complexity** O(R N log N) for R running jobs on N nodes, once a kind of job between two starts.
    """

    def __init__(self) -> None:
        self._running: dict[int, tuple[float, float]] = {}  # (start, predicted seconds)
        self._fewest: dict[int, int] = {}  # by kind of job
        self._wait: dict[int, float] = {}  # by kind of job, at the time `_known`
        self._known = -1.0

    def start(self, job: int, now: float, seconds: float) -> None:
        """Record the start of a job.

        Parameters
        ----------
        job
            Number of the job.
        now
            Start, in seconds.
        seconds
            Predicted running time.
        """
        self._running[job] = now, seconds
        self._wait.clear()

    def finish(self, job: int) -> None:
        """Record that a job has completed.

        Parameters
        ----------
        job
            Number of the job.
        """
        self._running.pop(job, None)

    def fewest(self, job: int, view: View) -> int:
        """Return the number of nodes that the gang of a job needs in an idle cluster.

        Parameters
        ----------
        job
            Number of the job.
        view
            State of the run.
        """
        kind = view.kind(job)
        if kind not in self._fewest:
            largest_first = np.sort(view.speeds.node_gpus[view.eligible(job)])[::-1]
            self._fewest[kind] = int(np.searchsorted(np.cumsum(largest_first), view.gpus(job))) + 1
        return self._fewest[kind]

    def wait(self, job: int, view: View) -> float:
        """Return the seconds until the fewest nodes that suffice have GPUs for the gang; 0: now.

        No other job is assumed to take them.

        Parameters
        ----------
        job
            Number of the job.
        view
            State of the run.
        """
        if view.now != self._known:
            self._wait.clear()
            self._known = view.now
        kind = view.kind(job)
        if kind not in self._wait:
            self._wait[kind] = self._seconds(view.gpus(job), self.fewest(job, view), job, view)
        return self._wait[kind]

    def _seconds(self, gang: int, nodes: int, job: int, view: View) -> float:
        now, eligible, free = view.now, view.eligible(job).tolist(), view.free.tolist()
        if len(free) < len(eligible):  # GPUs are only counted, by type: no node is better than another
            return 0.0
        free = [count if may else 0 for count, may in zip(free, eligible, strict=True)]
        if _most(free, nodes) >= gang:
            return 0.0
        for end, k in sorted((self._end(k, now), k) for k in self._running):
            for node, count in view.held(k):
                free[node] += count if eligible[node] else 0
            if _most(free, nodes) >= gang:
                return end - now
        return math.inf

    def _end(self, job: int, now: float) -> float:
        # A job that has outlived its prediction is expected to take twice as long.
        start, seconds = self._running[job]
        while start + (1 - TIE) * seconds <= now and seconds > 0:
            seconds = max(2 * seconds, math.ulp(now))
        return start + seconds


def _most(free: list[int], nodes: int) -> int:
    return max(free) if nodes == 1 else sum(sorted(free)[-nodes:])
