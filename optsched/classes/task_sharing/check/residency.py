"""Residencies of jobs at the task level: memory, gangs, and rules for a schedule without a log of its tasks.

Rules and tolerances: `task_rules`, whose judgement of tasks begins with the residencies judged here.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from optsched.check.context import CheckContext, Violation, Violations
from optsched.check.feasibility import judge_gangs
from optsched.check.speed_rules import backwards
from optsched.check.tolerance import MOST, RELATIVE, number, slack, whole
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.instance import Instance


def judge_residency(context: CheckContext) -> Violations:
    """Judge a schedule at the task level without its log, by necessary conditions only.

    The rules are instance, completeness, arrival, gang, type, memory at every moment, and work. The rule rate
    requires that a residency is long enough for its iterations when no other job is there: I (t_f + t_b + (a + b M
    if it spans nodes)). The rule capacity requires that the compute of the jobs that lie within an interval of
    time fits into it, for each GPU and each interval between a placement and a completion.

    **It cannot show** that tasks on a GPU can be ordered around barriers and all-reduces, nor that all all-reduces
    together fit the network: a residency that passes may still be impossible. Keep the log.

    Parameters
    ----------
    context
        Instance and schedule to be judged.
    """
    found = Violations()
    if not has_tasks(context, found):
        return found
    with np.errstate(all="ignore"):
        residency = judge_residents(context, found)
        _long_enough(residency, found)
        _volume(residency, found)
    return found


def has_tasks(context: CheckContext, found: Violations) -> bool:
    """Return whether the jobs of the instance have tasks; if not, add a violation of the rule instance.

    An instance without jobs passes.

    Parameters
    ----------
    context
        Instance and schedule to be judged.
    found
        Violations, to which this one is added.
    """
    if context.instance.at_task_level or not context.instance.n:
        return True
    message = "tasks of an instance whose jobs have none (expected: jobs with iterations and tasks)"
    found.add("instance", np.zeros(1, dtype=np.int64), lambda _: Violation("instance", message))
    return False


class Residency:
    """The first segment of every job, as arrays over jobs.

    ``segment`` i64[n] is its row (-1: none). Masks, bool[n]: ``whole`` (finite, on the job's number of different
    GPUs, all of which exist), ``spans`` (over several nodes), ``sends`` (spans nodes and has a message). ``start``
    and ``end``, f64[n], are its times in seconds.
    """

    def __init__(self, context: CheckContext) -> None:
        self.context, instance, document = context, context.instance, context.document
        self.segment: Ints = np.full(instance.n, -1, dtype=np.int64)
        named = np.flatnonzero(context.known)[::-1]
        self.segment[document.job[named]] = named  # the first of each job is written last
        count = document.job.size
        fine = np.bincount(context.segment[context.first], minlength=count) == np.diff(document.offset)
        fine &= context.sound & (np.diff(document.offset) == context.per_segment(instance.gpus))
        self.whole: Bools = (self.segment >= 0) & np.append(fine, False)[self.segment]
        self.start: Floats = np.append(document.start, np.nan)[self.segment]
        self.end: Floats = np.append(document.end, np.nan)[self.segment]
        self.spans: Bools = np.diff(self.nodes[0]) > 1
        self.sends: Bools = self.spans & (instance.message > 0)

    @cached_property
    def pairs(self) -> tuple[Ints, Ints]:
        """(offset i64[n + 1], pairs): the (segment, GPU) pairs of every whole job's workers in order."""
        offset = self.context.document.offset
        width = np.where(self.whole, self.context.instance.gpus, 0)
        first = np.concatenate([[0], np.cumsum(width)]).astype(np.int64)
        begin = np.where(self.whole, offset[self.segment], 0)
        return first, np.arange(first[-1]) + np.repeat(begin - first[:-1], width)

    @cached_property
    def nodes(self) -> tuple[Ints, Ints]:
        """(offset i64[n + 1], nodes): the different nodes of every whole job."""
        offset, pairs = self.pairs
        n, nodes = self.context.instance.n, self.context.instance.cluster.node_count
        job = np.repeat(np.arange(n), np.diff(offset))
        key = np.unique(job * nodes + self.context.node[pairs])
        return np.searchsorted(key, np.arange(n + 1) * nodes).astype(np.int64), key % nodes

    def name(self, j: int) -> str:
        """Return the residency of a job in words.

        Parameters
        ----------
        j
            Row of the job.
        """
        return self.context.name(int(self.segment[j]))


def judge_residents(context: CheckContext, found: Violations) -> Residency:
    """Judge the residencies of all jobs: gangs, one residency a job, times in order, memory.

    Parameters
    ----------
    context
        Instance and schedule to be judged.
    found
        Violations, to which those of the residencies are added.

    Returns
    -------
    Residency
        The first segment of every job.
    """
    judge_gangs(context, found)
    residency = Residency(context)
    again = context.known & (residency.segment[context.document.job] != np.arange(context.document.job.size))
    tell, legal = context.of_segment, "one residency, from placement to completion"
    found.blame(tell, "completeness", again, "is a second residency of its job", legal)
    backwards(context, found)
    _memory(context, found)
    return residency


def _memory(context: CheckContext, found: Violations) -> None:
    """At every moment the residents of a GPU fit its memory; two that miss each other by rounding do not meet."""
    document, instance = context.document, context.instance
    pairs = np.flatnonzero(context.first & context.sound[context.segment])
    row, gpu = context.segment[pairs], context.gpu[pairs]
    start, end, need = document.start[row], document.end[row], instance.gpu_memory[document.job[row]]
    end = np.maximum(end - slack(end - start, start, end), start)
    offer = instance.cluster.node_memory[context.node[pairs]]
    moment, which = np.concatenate([end, start]), np.concatenate([pairs, pairs])
    change, gpu = np.concatenate([-need, need]), np.concatenate([gpu, gpu])
    order = np.lexsort((np.arange(moment.size), moment, gpu))  # at one moment, ends first
    gpu, which = gpu[order], which[order]
    held = np.cumsum(change[order])
    # The sum before the first event of each GPU: 0 but for rounding.
    first = np.flatnonzero(np.diff(gpu, prepend=-1))
    held -= np.repeat(np.append(0.0, held)[first], np.diff(np.append(first, gpu.size)))
    offer = np.concatenate([offer, offer])[order]
    # One job alone that is too large has been reported already.
    over = (change[order] > 0) & ~(held <= offer * (1 + RELATIVE)) & (change[order] <= offer)

    def too_much(i: int) -> Violation:
        s = int(context.segment[which[i]])
        message = f"makes residents need {number(held[i])} bytes on {context.place(int(which[i]))}"
        return context.of_segment("memory", s, message, f"at most its {number(offer[i])} bytes")

    found.add("memory", np.flatnonzero(over), too_much)


def _long_enough(residency: Residency, found: Violations) -> None:
    context, instance = residency.context, residency.context.instance
    iteration = instance.forward + instance.backward
    if instance.contention is not None:
        alone = instance.contention.latency + instance.contention.seconds_per_byte * instance.message
        iteration = iteration + np.where(residency.sends, alone, 0.0)
    need, length = iteration * instance.iterations, residency.end - residency.start
    missing = need - length - _roundings(instance, residency.end)
    short = residency.whole & ~(missing <= slack(need, residency.start, residency.end, need))

    def least(j: int) -> str:
        return f"at least {number(need[j])} s, its iterations without other jobs"

    found.blame(context.of_segment, "rate", short, lambda j: f"lasts {number(length[j])} s", least, residency.segment)


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


def _volume(residency: Residency, found: Violations) -> None:
    """On every GPU: the compute of jobs that lie within [start of one, end of another] is at most its length."""
    context, instance = residency.context, residency.context.instance
    offset, pairs = residency.pairs
    job = np.repeat(np.arange(instance.n), np.diff(offset))
    need = (instance.forward + instance.backward) * instance.iterations
    lost = _roundings(instance, residency.end)
    order = np.lexsort((residency.end[job], context.gpu[pairs]))
    for own in np.split(order, np.flatnonzero(np.diff(context.gpu[pairs][order])) + 1):
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


def _say_volume(residency: Residency, found: Violations, pair: int, j: int, need: float, end: float) -> None:
    context = residency.context
    message = f"and other jobs compute {number(need)} s on {context.place(pair)} until {number(end)} s"
    legal = f"at most the {number(end - residency.start[j])} s from its start"
    violation = context.of_segment("capacity", int(residency.segment[j]), message, legal)
    found.add("capacity", np.zeros(1, dtype=np.int64), lambda _: violation)
