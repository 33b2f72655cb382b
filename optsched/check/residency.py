"""Who is resident where at the task level: memory, gangs, and what can be said of a schedule without a log of its tasks.

Rules and tolerances: `optsched.check.tasks`, whose judgement of tasks begins with the residencies judged here.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from optsched.check.context import Case, Findings, Violation
from optsched.check.feasibility import judge_gangs
from optsched.check.schedule_document import claim_of
from optsched.check.tolerance import MOST, RELATIVE, number, slack, whole
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule

__all__ = ["check_residency", "judge_residency"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def check_residency(instance: Instance, schedule: Schedule) -> list[Violation]:
    """What can be said of a schedule at the task level without its log: necessary conditions only.

    Instance, completeness, arrival, gang, type, memory at every moment, work; under rate, that a residency is long enough
    for its iterations when no other job is there: I (t_f + t_b + (a + b M if it spans nodes)); and under capacity, that
    the compute of the jobs that lie within an interval of time fits into it, for each GPU and each interval between a
    placement and a completion. **It cannot show** that tasks on a GPU can be ordered around barriers and all-reduces, nor
    that the all-reduces fit the network beside each other: a residency that passes may still be impossible. Keep the log.

    Raises
    ------
    InputError
        When the schedule's arrays do not fit together.
    """
    return judge_residency(Case(instance, claim_of(schedule, instance))).violations()


def judge_residency(case: Case) -> Findings:
    """Apply the rules of `check_residency`."""
    found = Findings()
    if not has_tasks(case, found):
        return found
    with np.errstate(all="ignore"):
        residency = judge_residents(case, found)
        _long_enough(residency, found)
        _volume(residency, found)
    return found


def has_tasks(case: Case, found: Findings) -> bool:
    if case.instance.at_task_level or not case.instance.n:
        return True
    message = "tasks of an instance whose jobs have none (legal: jobs with iterations and tasks)"
    found.add("instance", np.zeros(1, dtype=np.int64), lambda _: Violation("instance", message))
    return False


class Residency:
    """The first segment of every job. Arrays over jobs: ``segment`` i64[n] (-1: none), ``whole`` (finite, on its number of
    different GPUs that exist), ``spans`` (over several nodes), ``sends`` (and with a message), ``start``, ``end``.
    """

    def __init__(self, case: Case) -> None:
        self.case, instance, claim = case, case.instance, case.claim
        self.segment: Ints = np.full(instance.n, -1, dtype=np.int64)
        named = np.flatnonzero(case.known)[::-1]
        self.segment[claim.job[named]] = named  # the first of each job is written last
        count = claim.job.size
        fine = np.bincount(case.segment[case.first], minlength=count) == np.diff(claim.offset)
        fine &= case.sound & (np.diff(claim.offset) == case.per_segment(instance.gpus))
        self.whole: Bools = (self.segment >= 0) & np.append(fine, False)[self.segment]
        self.start: Floats = np.append(claim.start, np.nan)[self.segment]
        self.end: Floats = np.append(claim.end, np.nan)[self.segment]
        self.spans: Bools = np.diff(self.nodes[0]) > 1
        self.sends: Bools = self.spans & (instance.message > 0)

    @cached_property
    def pairs(self) -> tuple[Ints, Ints]:
        """(offset i64[n + 1], pairs): the (segment, GPU) pairs of every whole job's workers in order."""
        offset = self.case.claim.offset
        width = np.where(self.whole, self.case.instance.gpus, 0)
        first = np.concatenate([[0], np.cumsum(width)]).astype(np.int64)
        begin = np.where(self.whole, offset[self.segment], 0)
        return first, np.arange(first[-1]) + np.repeat(begin - first[:-1], width)

    @cached_property
    def nodes(self) -> tuple[Ints, Ints]:
        """(offset i64[n + 1], nodes): the different nodes of every whole job."""
        offset, pairs = self.pairs
        n, nodes = self.case.instance.n, self.case.instance.cluster.node_count
        job = np.repeat(np.arange(n), np.diff(offset))
        key = np.unique(job * nodes + self.case.node[pairs])
        return np.searchsorted(key, np.arange(n + 1) * nodes).astype(np.int64), key % nodes

    def name(self, j: int) -> str:
        """The residency of a job in words."""
        return self.case.name(int(self.segment[j]))


def judge_residents(case: Case, found: Findings) -> Residency:
    judge_gangs(case, found)
    residency = Residency(case)
    again = np.flatnonzero(case.known & (residency.segment[case.claim.job] != np.arange(case.claim.job.size)))
    legal = "one residency, from placement to completion"
    found.add(
        "completeness", again, lambda s: case.of_segment("completeness", s, "is a second residency of its job", legal)
    )
    backward = np.flatnonzero(case.finite & (case.claim.end < case.claim.start))
    found.add("rate", backward, lambda s: case.of_segment("rate", s, "ends before it starts", "an end after the start"))
    _memory(case, found)
    return residency


def _memory(case: Case, found: Findings) -> None:
    """At every moment the residents of a GPU fit its memory; two that miss each other by rounding do not meet."""
    claim, instance = case.claim, case.instance
    pairs = np.flatnonzero(case.first & case.sound[case.segment])
    row, gpu = case.segment[pairs], case.gpu[pairs]
    start, end, need = claim.start[row], claim.end[row], instance.gpu_memory[claim.job[row]]
    end = np.maximum(end - slack(end - start, start, end), start)
    offer = instance.cluster.node_memory[case.node[pairs]]
    moment, which = np.concatenate([end, start]), np.concatenate([pairs, pairs])
    change, gpu = np.concatenate([-need, need]), np.concatenate([gpu, gpu])
    order = np.lexsort((np.arange(moment.size), moment, gpu))  # at one moment, ends first
    gpu, which = gpu[order], which[order]
    held = np.cumsum(change[order])
    # The sum before the first event of each GPU: 0 but for rounding.
    first = np.flatnonzero(np.diff(gpu, prepend=-1))
    held -= np.repeat(np.append(0.0, held)[first], np.diff(np.append(first, gpu.size)))
    offer = np.concatenate([offer, offer])[order]
    # One job alone that is too large has been told of already.
    over = (change[order] > 0) & ~(held <= offer * (1 + RELATIVE)) & (change[order] <= offer)

    def too_much(i: int) -> Violation:
        s = int(case.segment[which[i]])
        message = f"makes residents need {number(held[i])} bytes on {case.place(int(which[i]))}"
        return case.of_segment("memory", s, message, f"at most its {number(offer[i])} bytes")

    found.add("memory", np.flatnonzero(over), too_much)


def _long_enough(residency: Residency, found: Findings) -> None:
    case, instance = residency.case, residency.case.instance
    iteration = instance.forward + instance.backward
    if instance.contention is not None:
        alone = instance.contention.latency + instance.contention.seconds_per_byte * instance.message
        iteration = iteration + np.where(residency.sends, alone, 0.0)
    need, length = iteration * instance.iterations, residency.end - residency.start
    missing = need - length - _roundings(instance, residency.end)
    short = residency.whole & ~(missing <= slack(need, residency.start, residency.end, need))
    found.add(
        "rate",
        np.flatnonzero(short),
        lambda j: case.of_segment(
            "rate",
            int(residency.segment[j]),
            f"lasts {number(length[j])} s",
            f"at least {number(need[j])} s, its iterations without other jobs",
        ),
    )


def _roundings(instance: Instance, end: Floats) -> Floats:
    """Seconds that every job may lose because each task ends at a rounded time: half a unit in the last place, f64[n].

    Of the clock that counts from the first arrival; of the log's own no more than 1e-6 of the job's seconds. 0 where tasks
    last whole seconds.
    """
    need = (instance.forward + instance.backward) * instance.iterations
    exact = whole(instance.forward) & whole(instance.backward) & (instance.message == 0) & whole(end)
    first = instance.arrival.min(initial=np.inf)
    log, own = (1.5 * instance.iterations * np.spacing(np.abs(end - zero)) for zero in (0.0, first))
    return np.where(exact, 0.0, own + np.minimum(log, MOST * need))


def _volume(residency: Residency, found: Findings) -> None:
    """On every GPU: the compute of jobs that lie within [start of one, end of another] is at most its length."""
    case, instance = residency.case, residency.case.instance
    offset, pairs = residency.pairs
    job = np.repeat(np.arange(instance.n), np.diff(offset))
    need = (instance.forward + instance.backward) * instance.iterations
    lost = _roundings(instance, residency.end)
    order = np.lexsort((residency.end[job], case.gpu[pairs]))
    for own in np.split(order, np.flatnonzero(np.diff(case.gpu[pairs][order])) + 1):
        jobs = job[own]
        end = residency.end[jobs]
        for j in jobs.tolist():
            start = residency.start[j]
            inside = np.cumsum(np.where(residency.start[jobs] >= start, need[jobs], 0.0))
            room = np.maximum(end - start, 0.0)
            missing = inside - room - np.cumsum(np.where(residency.start[jobs] >= start, lost[jobs], 0.0))
            over = np.flatnonzero(~(missing <= slack(inside, end, np.full(end.size, start), inside)) & (end > start))
            if over.size:
                _say_volume(residency, found, int(pairs[own[0]]), j, float(inside[over[0]]), float(end[over[0]]))
                break


def _say_volume(residency: Residency, found: Findings, pair: int, j: int, need: float, end: float) -> None:
    case = residency.case
    message = f"and other jobs compute {number(need)} s on {case.place(pair)} until {number(end)} s"
    legal = f"at most the {number(end - residency.start[j])} s from its start"
    violation = case.of_segment("capacity", int(residency.segment[j]), message, legal)
    found.add("capacity", np.zeros(1, dtype=np.int64), lambda _: violation)
