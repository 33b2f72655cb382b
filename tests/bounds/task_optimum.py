"""The best schedule of a few jobs with tasks, by exhaustion in fractions: the optimum that no bound may exceed.

Every placement of the gangs (of alike GPUs and nodes one), and in each of them every way to start, at the moments at which
something ends or arrives, a ready task on each free GPU or none, and each all-reduce that is due or none. What cannot beat
the best schedule so far is cut, with the time that every job needs alone; a state that was reached as cheaply before is not
looked at again.

**Exact** where no two all-reduces can meet on an interface: lengths are then fixed, and the orders of tasks on the GPUs are
all that decides; moved to the left, every task starts where another ends or a job arrives. Where all-reduces meet, starts
between events are left out, and the value is that of the best schedule that starts at events: an upper bound on the optimum.
(`bounds.task_cases` makes single schedules by other code.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product

from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective

FORWARD, BACKWARD, DONE = 0, 1, 2
Gang = tuple[int, ...]


@dataclass(frozen=True)
class Job:
    """Where a job stands: ``todo`` iterations with this one, what every worker does next, the bytes of its all-reduce."""

    todo: int
    step: tuple[int, ...]
    busy: tuple[Fraction | None, ...]  # of every worker, when its task ends
    bytes: Fraction | None = None  # None: not started
    wakes: Fraction = Fraction(0)

    @property
    def due(self) -> bool:
        """Have all workers passed the barrier, and nothing been sent?"""
        return self.todo > 0 and self.bytes is None and all(step == DONE for step in self.step)


class TaskOptimum:
    """The search over one instance and objective; ``value`` is the result, ``states`` what it took."""

    def __init__(self, instance: Instance, objective: str) -> None:
        self.instance, self.goal, self.n = instance, get_objective(objective), instance.n
        self.release = [Fraction(r) for r in instance.arrival.tolist()]
        self.weight = [Fraction(w) for w in instance.weight.tolist()]
        self.due = [d if d == float("inf") else Fraction(d) for d in self.goal.dates(instance).tolist()]
        self.size = instance.gpus.tolist()
        self.iterations = [int(i) for i in instance.iterations.tolist()]
        own = [instance.tasks[str(name)] for name in instance.table["profile"].to_list()]
        self.length = [(Fraction(t.forward), Fraction(t.backward)) for t in own]
        self.message = [Fraction(t.message or 0) for t in own]
        assert instance.contention is not None
        self.b, self.eta = Fraction(instance.contention.seconds_per_byte), Fraction(instance.contention.penalty)
        self.latency = Fraction(instance.contention.latency)
        self.node = [v for v, count in enumerate(instance.cluster.node_gpus.tolist()) for _ in range(count)]
        self.best: Fraction | None = None
        self.states = 0
        for gangs in self._placements():
            self.gangs = gangs
            self.nodes = [{self.node[g] for g in gang} for gang in gangs]
            self.sends = [len(nodes) > 1 and sent > 0 for nodes, sent in zip(self.nodes, self.message, strict=True)]
            self.seen: dict[tuple[Fraction, tuple[Job, ...], tuple[int, ...]], Fraction] = {}
            first = tuple(Job(i, (FORWARD,) * k, (None,) * k) for i, k in zip(self.iterations, self.size, strict=True))
            self._explore(min(self.release), first, {})
        assert self.best is not None
        self.value = self.best

    def _placements(self) -> Iterator[tuple[Gang, ...]]:
        suits = [[g for g, v in enumerate(self.node) if self.instance.eligible(j)[v]] for j in range(self.n)]
        groups, seen = self.instance.cluster.node_group.tolist(), set()
        for gangs in product(*(combinations(own, size) for own, size in zip(suits, self.size, strict=True))):
            on = [tuple(j for j in range(self.n) if g in gangs[j]) for g in range(len(self.node))]
            looks = tuple(
                sorted(
                    (groups[v], tuple(sorted(on[g] for g, node in enumerate(self.node) if node == v)))
                    for v in set(self.node)
                )
            )
            if looks not in seen:
                seen.add(looks)
                yield gangs

    # --- one moment ----------------------------------------------------------------------------------------------------

    def _explore(self, now: Fraction, jobs: tuple[Job, ...], ends: dict[int, Fraction]) -> None:
        jobs, ends = self._settled(now, jobs, ends)
        least = [ends[j] if j in ends else self._alone(now, j, jobs[j]) for j in range(self.n)]
        cost = self._cost(least)
        if self.best is not None and cost >= self.best:
            return
        if len(ends) == self.n:
            self.best = cost
            return
        key = (now, jobs, tuple(sorted(ends)))
        paid = self._cost([ends.get(j, self.release[j]) for j in range(self.n)])
        if key in self.seen and self.seen[key] <= paid:
            return
        self.seen[key] = paid
        self.states += 1
        for started in self._starts(now, jobs):
            then = self._next(now, started)
            if then is not None:
                self._explore(then, self._moved(now, then, started), ends)

    def _cost(self, completion: list[Fraction]) -> Fraction:
        terms = [
            Fraction(self.goal.term(*row)) for row in zip(completion, self.release, self.weight, self.due, strict=True)
        ]
        return max(terms) if self.goal.maximum else sum(terms, Fraction(0))

    def _alone(self, now: Fraction, j: int, job: Job) -> Fraction:
        """When the job ends if nobody else is there from now on."""
        begin, (f, b) = max(now, self.release[j]), self.length[j]
        reduce = self.latency + self.b * self.message[j] if self.sends[j] else Fraction(0)
        rest = (job.todo - 1) * (f + b + reduce)
        if job.bytes is not None:
            return max(begin, job.wakes) + self.b * job.bytes + rest
        after = {FORWARD: f + b, BACKWARD: b, DONE: Fraction(0)}
        left = [
            after[step] if end is None else end - begin + after[step + 1]
            for step, end in zip(job.step, job.busy, strict=True)
        ]
        return begin + max(left) + reduce + rest

    def _settled(
        self, now: Fraction, jobs: tuple[Job, ...], ends: dict[int, Fraction]
    ) -> tuple[tuple[Job, ...], dict[int, Fraction]]:
        settled, ends = [], dict(ends)
        for j, job in enumerate(jobs):
            over = [end is not None and end <= now for end in job.busy]
            step = tuple(s + done for s, done in zip(job.step, over, strict=True))
            job = replace(
                job, step=step, busy=tuple(None if done else end for end, done in zip(job.busy, over, strict=True))
            )
            if (job.due and not self.sends[j]) or (job.bytes == 0 and job.wakes <= now):
                job = Job(job.todo - 1, (FORWARD,) * self.size[j], (None,) * self.size[j])
                if job.todo == 0:
                    ends[j] = now
            settled.append(job)
        return tuple(settled), ends

    def _starts(self, now: Fraction, jobs: tuple[Job, ...]) -> Iterator[tuple[Job, ...]]:
        """The jobs after each choice of what starts now; to leave something undone comes last."""
        here = [j for j, job in enumerate(jobs) if self.release[j] <= now and job.todo > 0]
        taken = {self.gangs[j][w] for j in here for w, end in enumerate(jobs[j].busy) if end is not None}
        options: list[list[tuple[int, int] | None]] = []
        for g in sorted(set(range(len(self.node))) - taken):
            ready = [(j, w) for j in here for w, at in enumerate(self.gangs[j]) if at == g and jobs[j].step[w] < DONE]
            if ready:
                options.append([*ready, None])
        options += [[(j, -1), None] for j in here if jobs[j].due and self.sends[j]]
        for chosen in product(*options):
            after = list(jobs)
            for j, w in filter(None, chosen):
                job = after[j]
                if w < 0:
                    after[j] = replace(job, bytes=self.message[j], wakes=now + self.latency)
                else:
                    end = now + self.length[j][job.step[w]]
                    after[j] = replace(job, busy=(*job.busy[:w], end, *job.busy[w + 1 :]))
            yield tuple(after)

    # --- time ----------------------------------------------------------------------------------------------------------

    def _paces(self, now: Fraction, jobs: tuple[Job, ...]) -> dict[int, Fraction]:
        moving = [j for j, job in enumerate(jobs) if job.bytes is not None and job.wakes <= now]
        counts = {j: max(sum(v in self.nodes[i] for i in moving) for v in self.nodes[j]) for j in moving}
        return {j: k * self.b + (k - 1) * self.eta for j, k in counts.items()}

    def _next(self, now: Fraction, jobs: tuple[Job, ...]) -> Fraction | None:
        """The next moment at which something happens; None: nothing ever will."""
        moments = [end for job in jobs for end in job.busy if end is not None]
        moments += [now + (jobs[j].bytes or 0) * pace for j, pace in self._paces(now, jobs).items()]
        moments += [job.wakes for job in jobs if job.bytes is not None and job.wakes > now]
        moments += [release for release in self.release if release > now]
        return min(moments, default=None)

    def _moved(self, now: Fraction, then: Fraction, jobs: tuple[Job, ...]) -> tuple[Job, ...]:
        after = list(jobs)
        for j, pace in self._paces(now, jobs).items():
            after[j] = replace(jobs[j], bytes=(jobs[j].bytes or 0) - (then - now) / pace)
        return tuple(after)
