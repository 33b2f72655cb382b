"""Least time, GPUs and network interfaces that a job at the task level needs: the basis of the bounds at that level.

**Model** (`optsched.problem.contention`; class ``task-sharing``): job j repeats I_j times: t_j = forward + backward seconds
of compute on each of its n_j GPUs, a barrier, then, if its gang spans nodes, an all-reduce of M_j bytes. GPUs and
network interfaces are shared. That tasks are not preempted, that placement is final, and how many jobs fit a GPU's
memory is not used below.

* q_j: the GPUs of the largest node that suits j. A gang with n_j > q_j must span nodes, at least **m_j** of them: as few of
  the largest as have n_j GPUs together. A gang with n_j <= q_j may stay on one: m_j = 0.
* A transfer takes at least **c_j = a + b M_j** seconds: a before the bytes move, then k b + (k - 1) eta >= b seconds a byte
  (since eta > -b), or b over a measured ratio <= 1. c_j = 0 where m_j = 0 or nothing is sent.
* **L_j = I_j (t_j + c_j)**, the *path*: C_j >= r_j + L_j, since nothing of one job overlaps but its workers.

**Two resources** serve all jobs; each is a machine of one unit a second once it is divided by its capacity.

* GPUs: j takes n_j I_j t_j GPU-seconds of G, from r_j on; its last compute ends at least c_j before C_j.
* Interfaces: k transfers over an interface move at most k / (k b + (k - 1) eta) bytes a second together: at most 1 / beta
  with **beta = b for eta >= 0, b + eta for eta < 0** (the quotient is monotone in k between these two). A transfer moves at
  the pace of its busiest node, so on each of its nodes beta times the rates of all transfers there is at most 1. Added up
  over N nodes, with the rate of j counted m_j times (its gang uses m_j nodes or more), that is at most N: j takes
  m_j I_j beta M_j interface-seconds of N, from r_j + t_j + a on; none while it waits for a. Measured ratios give no such
  limit (k ratios near 1 move nearly k / b bytes a second): then nothing is said of interfaces.

**Mean busy times**: count iterations from the last, i = 1, 2, ... After the i-th barrier come c_j seconds of its transfer
and i - 1 whole iterations, so it is at most C_j - c_j - (i - 1)(t_j + c_j); the t_j seconds of every worker before it are on
average at least t_j / 2 before it. The transfer ends at most at C_j - (i - 1)(t_j + c_j), and its bytes, never faster than
1 / b, move on average at least b M_j / 2 before that. The average over i = 1 .. I_j gives, for the mean moments M^G_j of
compute and M^N_j of bytes,

    M^G_j <= C_j - L_j / 2 - c_j / 2,        M^N_j <= C_j - L_j / 2 + (t_j + a) / 2.

**Prices over time** (`optsched.bounds.priced_time`): a second of a GPU costs omega^G, one of an interface omega^N. Let A_j
and B_j be the iterations of compute (the mean of the workers) and of bytes that j has done so far, and P_j = t_j A_j plus
what its transfers have done of their c_j seconds: a while they wait for a, then b M_j for all bytes. So P_j, which ends at
L_j, grows by at most 1 a second. j pays int n_j t_j omega^G dA_j + int m_j beta M_j omega^N dB_j or more. Write A_j = P_j /
(t_j + c_j) + x and B_j = P_j / (t_j + c_j) + y. Then that is what it pays **on average**,

    int (n_j t_j omega^G + m_j beta M_j omega^N) / (t_j + c_j) dP_j,

and, by parts, - n_j t_j x D^G - m_j beta M_j y D^N at every moment at which prices rise by D^G and D^N, since x = y = 0
where an iteration begins or ends. Within one (x, y) goes straight to (c_j, -t_j) / (t_j + c_j) while it computes, on to
(c_j - a, -t_j - a) / (t_j + c_j) while it waits for a, and back while bytes move. So turns **save** at most the largest of 0
and of what these two corners save, at every change of prices after r_j. All payments together are at most what all GPUs and
interfaces are worth, as above; and a job costs and pays at least the least over all ways to do L_j seconds at speed <= 1
and the average price, less all that it may save.

All numbers are computed in fractions and rounded **down** to a float64 (works, releases, paths, distances: a bound becomes
smaller by it), and are exact rationals afterwards. The engine adds up floats: a run may be below by rounding alone.

**Source**: derived here, for the model of Wang, Shi, Wang and Chu, arXiv 2002.10105 (2020).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from optsched.bounds.certificate import Proof, best_proof, ratio_text, rounded_down
from optsched.bounds.exact_dot import exact_dot
from optsched.bounds.modes import ALONE, MODES, Modes, Turns, TypeMode
from optsched.bounds.proof import proved_bound
from optsched.bounds.relaxation import FastMachine, Machines, Relaxation, Relaxed, Value, relaxation
from optsched.bounds.sum_costs import MAKESPAN, SUMS
from optsched.errors import InputError
from optsched.problem.arrays import Floats, Ints
from optsched.problem.contention import Contention
from optsched.problem.instance import Instance
from optsched.problem.job_table import LONGEST

GPUS, LINKS = "gpus", "links"


@dataclass(frozen=True, eq=False)
class TaskTimes:
    """``path`` L_j, f64[n] seconds, and the two resources as machines: who takes nothing of one has the width 0 there."""

    path: Floats
    gpus: FastMachine
    links: FastMachine


def task_times(instance: Instance) -> TaskTimes:
    """Compute the least time, GPUs and network interfaces that every job needs.

    Parameters
    ----------
    instance
        Instance whose jobs have tasks.

    Raises
    ------
    InputError
        If a path is longer than times of jobs may be; the message reports the first such job.

    Notes
    -----
    Complexity: O(n + K N log N) for K classes of jobs and N nodes.
    """
    spans, gpus_count, node_count = _spans(instance)
    contention = instance.contention or Contention(1.0)  # without it nobody sends
    a, b, eta = (Fraction(getattr(contention, name)) for name in ("latency", "seconds_per_byte", "penalty"))
    # seconds of an interface a byte; 0: unknown
    beta = Fraction(0) if contention.measured else b + min(eta, Fraction(0))
    columns: list[list[float]] = [[] for _ in range(7)]
    numbers = zip(*(getattr(instance, name).tolist() for name in _READ), spans.tolist(), strict=True)
    for r, iterations, forward, backward, message, nodes in numbers:
        t, size = Fraction(forward) + Fraction(backward), Fraction(message if nodes else 0.0)
        c = a + b * size if size else Fraction(0)
        count, release = Fraction(iterations), Fraction(r)
        path = count * (t + c)
        moving = (count * beta * size, release + t + a, path - t - a) if size else (Fraction(0), release, Fraction(0))
        for column, value in zip(columns, (path, count * t, c, path + c, *moving), strict=True):
            column.append(rounded_down(value))
    path_f, compute, tail, gpu_reach, bytes_f, link_release, link_reach = (np.array(column) for column in columns)
    for j in np.flatnonzero(~(path_f <= LONGEST))[:1].tolist():
        legal, given = f"at most {LONGEST:g} seconds for all iterations", float(instance.iterations[j])
        text = f"job {instance.ids[j]!r} takes {path_f[j]:g} s at least"
        raise InputError(text, field="iterations", value=given, legal=legal)
    held, sent = np.where(compute > 0, instance.gpus, 0), np.where(bytes_f > 0, spans, 0)
    gpus = FastMachine(instance.arrival, compute, held, gpus_count, {"resource": GPUS}.copy, gpu_reach, tail)
    links = FastMachine(link_release, bytes_f, sent, node_count, {"resource": LINKS}.copy, link_reach)
    return TaskTimes(path_f, gpus, links)


_READ = ("arrival", "iterations", "forward", "backward", "message")


def modes_of_tasks(instance: Instance) -> Modes:
    """Return the modes of jobs with tasks that pay for GPUs and interfaces by time, in floats.

    A unit of work is a second of the path.

    Parameters
    ----------
    instance
        Instance whose jobs have tasks.
    """
    times = task_times(instance)
    compute, sent = instance.forward + instance.backward, _tail(times.gpus)
    latency = np.where(sent > 0, instance.contention.latency if instance.contention else 0.0, 0.0)
    with np.errstate(all="ignore"):
        held = np.nan_to_num(times.links.width * times.links.seconds / instance.iterations)
        taken = np.nan_to_num(np.column_stack([instance.gpus * compute, held]) / (compute + sent)[:, None])
        computed = np.column_stack([taken[:, 0] * sent, -taken[:, 1] * compute])
        waited = np.column_stack([taken[:, 0] * (sent - latency), -taken[:, 1] * (compute + latency)])
    rows, kind = np.unique(np.column_stack([taken, computed, waited]), axis=0, return_inverse=True)
    turns = Turns(rows[:, :2].copy(), rows[:, 2:].reshape(-1, 2, 2).copy())
    one: list[tuple[TypeMode, ...]] = [((0, Fraction(1), Fraction(1)),)] * len(rows)
    gang, capacity = np.ones(len(rows), dtype=np.int64), np.array([times.gpus.capacity, times.links.capacity])
    jobs = kind.reshape(-1), times.path, instance.arrival
    return Modes((GPUS, LINKS), capacity, gang, *jobs, one, adds=False, turns=turns)


def _spans(instance: Instance) -> tuple[Ints, int, int]:
    """(m_j i64[n], GPUs that somebody may use, nodes that a gang that must span may use; both at least 1)."""
    sizes = instance.cluster.node_gpus
    fewest = np.zeros(instance.class_gpus.size, dtype=np.int64)
    for position, (gang, eligible) in enumerate(zip(instance.class_gpus, instance.class_eligible, strict=True)):
        together = np.cumsum(np.sort(sizes[eligible])[::-1])
        if gang > together[0]:
            fewest[position] = np.searchsorted(together, gang) + 1
    usable = instance.class_eligible.any(axis=0)
    crossed = instance.class_eligible[fewest > 0].any(axis=0)
    return fewest[instance.job_class], int(sizes[usable].sum()), max(int(crossed.sum()), 1)


@dataclass(frozen=True, eq=False)
class Tasks(Relaxed):
    """Jobs with tasks, on the machines of some resources."""

    resources: Machines

    def machines(self, value: Value, rounds: int = 1) -> Iterator[Machines]:
        """Yield all machines at once, as one product; nothing if no job needs any of the resources.

        Parameters
        ----------
        value
            Not used: there is only one choice of machines.
        rounds
            Not used.
        """
        if any(resource.width.any() for resource in self.resources):
            yield self.resources


def tasks(names: tuple[str, ...], instance: Instance, schedule_class: str) -> Tasks | None:
    """Return the relaxation of an instance on some resources, or None if its jobs have no tasks.

    Parameters
    ----------
    names
        The resources: ``gpus``, ``links`` or both.
    instance
        The instance.
    schedule_class
        Not used: the relaxation is registered for one class.
    """
    if not instance.at_task_level:
        return None
    times = task_times(instance)
    return Tasks(instance, times.path, tuple({GPUS: times.gpus, LINKS: times.links}[name] for name in names))


relaxation(
    Relaxation(
        name="task",
        classes=("task-sharing",),
        find=partial(tasks, (GPUS,)),
        text="tasks on all GPUs",
        # tasks and transfers share one mixture; what is left of them from a moment on is `task-volume`
        names={"mean-busy-time": {"task-busy-time": SUMS}, "alone": "task-path", "busy-time": {}, "volume": {}},
    )
)
relaxation(
    Relaxation(
        name="link",
        classes=("task-sharing",),
        find=partial(tasks, (LINKS,)),
        text="transfers on all network interfaces, of gangs that must span nodes",
        names={"mean-busy-time": {"link-busy-time": SUMS}, "alone": {}, "busy-time": {}, "volume": {}},
    )
)
relaxation(
    Relaxation(
        name="split-task",
        classes=("task-sharing",),
        find=partial(tasks, (GPUS, LINKS)),
        text="tasks on all GPUs, and transfers on all network interfaces",
        only=("busy-time",),
    )
)


# What is left of compute, or of bytes to send, from a moment on: the makespan of jobs with tasks.
#
# **Problem**: jobs with tasks (class ``task-sharing``); C_max.
# **Bound**: for a set S of jobs, ``min_S release + sum_S width x seconds / capacity + min_S tail``, on the GPUs (release
# r_j, n_j I_j t_j of G, tail c_j) or on the network interfaces (r_j + t_j + a, m_j I_j beta M_j of N, 0); see
# above. S: the jobs with release >= R and tail >= Q, with the best R and Q.
# **Proof**: nothing of S is done before the first release, capacity units of it a second afterwards, and the job of S that
# is the last to be done completes its own tail later.
# **Tight**: the best S of this form gives the optimum of 1 | r_j, q_j, pmtn | C_max on the machine (Jackson's rule; Horn,
# Naval Research Logistics 21 (1974), 177-185), so no other S says more of one resource.
# **Complexity** O(n log n + n D) for D different tails, as many as there are kinds of transfers.
# **Reference**: derived here.


@proved_bound(
    "task-volume",
    objectives=(MAKESPAN,),
    classes=("task-sharing",),
    statement="a moment plus compute or bytes still to come, over all GPUs or interfaces",
)
def build(instance: Instance, objective: str, schedule_class: str) -> Proof | None:
    """Return the better proof of the two resources, or None if no job computes or sends.

    The data of the certificate are the resource, the least release and the least tail.

    Parameters
    ----------
    instance
        The instance.
    objective
        Not used: the bound is registered for the makespan.
    schedule_class
        Not used: the bound is registered for one class.
    """
    if not instance.at_task_level:
        return None
    times = task_times(instance)
    return best_proof(_best(each) for each in (times.gpus, times.links) if each.width.any())


def _tail(resource: FastMachine) -> Floats:
    return np.zeros(resource.release.size) if resource.tail is None else resource.tail


def _best(resource: FastMachine) -> Proof:
    # R and Q are looked for in floats; their bound is then exact
    order = np.argsort(resource.release, kind="stable")
    order = order[resource.width[order] > 0]
    tails = _tail(resource)
    release, tail = resource.release[order], tails[order]
    seconds = (resource.width * resource.seconds)[order] / resource.capacity
    found = []
    for least in np.unique(tail).tolist():
        ends = release + np.cumsum(np.where(tail >= least, seconds, 0.0)[::-1])[::-1] + least
        ends[tail < least] = -np.inf
        first = int(np.argmax(ends))
        found.append((float(ends[first]), float(release[first]), least))
    _, moment, least = max(found)
    chosen = (resource.width > 0) & (resource.release >= moment) & (tails >= least)
    volume = exact_dot(resource.width[chosen].astype(np.float64), resource.seconds[chosen]) / resource.capacity
    start, end = Fraction(float(resource.release[chosen].min())), Fraction(float(tails[chosen].min()))
    return start + volume + end, {**resource.stated(), "release": ratio_text(start), "tail": ratio_text(end)}


MODES.register("task-sharing", lambda instance: [(modes_of_tasks(instance), {})] if instance.at_task_level else [])
ALONE.register("task-sharing", lambda instance: task_times(instance).path if instance.at_task_level else None)
