"""The referee of elastic schedules: jobs at scaling profiles may have another number of GPUs in every segment.

The rules are those of `optsched.check.feasibility`, but for two:

=========== ==========================================================================================================
gang        a segment of an elastic job holds GPUs on which it can run at all: at least one, at most a sample of its
            largest batch each; other jobs hold their own gang. A job is in one place at a time
rate        a segment does no more iterations (of the job's own batch) than its length allows with the best batch there;
            beside others on its network interfaces, where jobs contend, with that batch's share of communication
=========== ==========================================================================================================

An elastic job is one at a scaling profile. How fast it can be on a placement is worked out here anew, batch by batch, apart
from `optsched.speeds.goodput` (which describes the model). A job that is resized pays what it says that resuming it costs
(`optsched.check.restarts`); how long the gang of any other idles is the policy's affair.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from optsched.check.certain_times import TIMES, CertainTimes
from optsched.check.class_rules import RULES, ClassRules
from optsched.check.context import CheckContext, Violations
from optsched.check.feasibility import judge
from optsched.problem.instance import Instance
from optsched.problem.scaling import Scaling
from optsched.speeds.scaling import seconds_on

ALIKE = 1e-9  # relative: closer than this, two batches are equally good


def judge_elastic(context: CheckContext, preemptive: bool = True) -> Violations:
    """Apply every rule but ``value`` to a schedule of the class ``elastic``.

    Parameters
    ----------
    context
        The schedule.
    preemptive
        May a job be stopped and resumed?
    """
    return judge(context, preemptive=preemptive, resized=resize(context))


def resize(context: CheckContext) -> dict[int, float]:
    """Give the segments of elastic jobs their own gangs and paces, and return their shares of communication.

    Parameters
    ----------
    context
        The schedule.
    """
    widths = np.diff(context.document.offset)
    elastic = np.isin(context.document.job, context.instance.jobs_at("scalings"))
    shares: dict[int, float] = {}
    for s in np.flatnonzero(elastic).tolist():
        nodes = context.node[context.document.offset[s] : context.document.offset[s + 1]]
        context.pace[s], shares[s] = _pace(context.instance, int(context.document.job[s]), nodes.tolist())
    context.gang[elastic] = np.where(np.isfinite(context.pace), widths, context.gang)[elastic]
    return shares


def _pace(instance: Instance, job: int, nodes: list[int]) -> tuple[float, float]:
    """The fewest seconds that an iteration with the job's own batch, or what is worth as much, takes there; nan: none.

    And its share of communication that contends; of batches that differ by rounding alone the least.
    """
    if not nodes:
        return math.nan, 0.0
    row = instance.table.row(job, named=True)
    scaling, own, memory = instance.scalings[row["profile"]], row["batch_size"], float(instance.gpu_memory[job])
    held = Counter(nodes)
    counts = [held[node] for node in sorted(held)]
    replicas = sum(counts)
    table = dict(scaling.iterations)
    needed = _iterations(scaling, own)
    choices = {own: 1.0}
    if needed is not None:
        choices.update({batch: count / needed for batch, count in table.items() if batch != own})
    latency = 0.0 if instance.contention is None else instance.contention.latency
    found: list[tuple[float, float]] = []
    for batch, count in choices.items():
        if replicas > batch and not (batch == own and replicas == row["gpus"]):
            continue
        chain = scaling.sub_batches(batch, replicas)
        fits = [each for each in chain if not scaling.knows_memory or each.memory <= memory]
        first = (fits or list(chain))[0]
        whole = seconds_on(scaling, first.size, first.steps, counts)
        compute_time = first.steps * (scaling.compute + scaling.per_sample * first.size) or math.inf
        found.append((count * whole, max(0.0, whole - compute_time - latency) / whole if len(counts) > 1 else 0.0))
    least = min((seconds for seconds, _ in found), default=math.nan)
    return least, min((share for seconds, share in found if seconds <= least * (1 + ALIKE)), default=0.0)


def _iterations(scaling: Scaling, batch: int) -> float | None:
    """I(b) between the rows of the table, None outside."""
    rows = scaling.iterations
    for (low, many), (high, few) in zip(rows, rows[1:] or rows, strict=False):
        if low <= batch <= high:
            return many if batch == low else many + (few - many) * (batch - low) / (high - low)
    return None


class CertainElastic(CertainTimes):
    """Completion times of jobs whose segments have gangs of their own."""

    def _resized(self) -> dict[int, float] | None:
        return resize(self._context)


RULES.register("elastic", ClassRules(judge=judge_elastic))
TIMES.register("elastic", CertainElastic)
