"""The accounting of the published Ada-SRSF simulator, beside a faithful one: for the study ``ada-srsf`` alone.

In the public state of the authors' simulator (HKBU-HPML/dl-scheduling, January 2020; only its behaviour is described here,
no code is taken) the routine that reports what is left of a running transfer credits it with the progress since its last
update, and the regular update credits the same interval again. Only AdaDUAL asks for it: in every tick of 1 ms, once
for every waiting job that finds one transfer on its busiest node. So under AdaDUAL, and under no other rule, a transfer
moves the faster the more jobs wait for it. Besides, such a job tests one running transfer, not all of them. Whether the
published tables came from this state cannot be told: their job files are not public.

This is a small simulator with ticks of 1 ms that can do either:

* ``faithful``: a job is tested against every transfer on its nodes, and tests change nothing.
* ``published_simulator``: each waiting job whose busiest node carries one transfer tests only the one on the first of its
  nodes (by number) that carries any, and in every tick this test gives that transfer one extra tick of progress at its
  current rate. A job whose busiest node carries two or more tests nothing.

Everything else is the same for both and follows the task level of `optsched.simulation`: forward and backward on each GPU,
barrier, one all-reduce; queue by total compute, GPUs and transfers by what is left of it. Transfers end at the first tick at
which all bytes have moved, so that they last up to 1 ms longer than in continuous time. Nothing but the study of Ada-SRSF
may use this module: its numbers with the published accounting are those of a link that does not exist.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from optsched.compiled import njit
from optsched.errors import InputError, check_legal
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.instance import Instance

Records = npt.NDArray[np.void]

ACCOUNTINGS = ("faithful", "published_simulator")
LEGACY_COST = 7.8125e-9  # seconds a byte: the estimate of 1 Gbit/s that the published simulator keeps at 10 Gbit/s
TICK = 1e-3
RULES = "srsf:k=1, srsf:k=2, ..., or ada-srsf"
PLACEMENTS = "lwf:kappa=1, lwf:kappa=2, ..., list, first-fit, or random"

FIRST_FIT, LEAST_LOADED, RANDOM = 0, 1, 2
ALL_BUT = 1 - 1e-9  # of the bytes: the sum over the ticks is rounded
ADADUAL = 0  # in place of the k of SRSF(k)
READY_FORWARD, FORWARD, READY_BACKWARD, BACKWARD, WAITING = 0, 1, 2, 3, 4
IDLE, NEVER = -1, 2**62


@dataclass(frozen=True)
class TickedRun:
    """``completion`` f64[n] in seconds, ``utilization``: busy GPU-seconds over GPUs x makespan, ``spanning`` bool[n]: which
    gangs lie on several nodes, ``contended``: how many transfers started beside another one."""

    completion: Floats
    utilization: float
    spanning: Bools
    contended: int


def ticked(
    instance: Instance,
    rule: str,
    placement: str = "lwf:kappa=1",
    accounting: str = "faithful",
    *,
    load_comm_cost: float = LEGACY_COST,
    seed: int = 0,
) -> TickedRun:
    """Run ``rule`` (ada-srsf, srsf:k=K) with ``placement`` (lwf:kappa=K, list, first-fit, random) in ticks of 1 ms.

    ``load_comm_cost`` is the seconds a byte that LWF expects of a spanning gang's messages; ``seed`` serves ``random``.

    Raises
    ------
    InputError
        An instance that is not at the task level, or whose times are not whole milliseconds (tasks last one or more);
        measured contention, eta < 0 or a latency, which the published simulator does not have; unknown rules, placements
        and accountings.

    Complexity: O(GPUs + transfers x nodes) an event, and a tick where waiting jobs ask (the other ticks are passed over):
    some 0.05 s, or 0.5 s, for 160 jobs of 10 to 60 iterations.
    """
    check_legal(accounting in ACCOUNTINGS, "accounting", accounting, ", ".join(ACCOUNTINGS))
    b, eta = _rates(instance)
    n, kind = instance.n, _placement(placement)
    first = np.arange(n * instance.cluster.gpus).reshape(n, -1) % instance.cluster.gpus
    if kind[0] == RANDOM:
        first = np.random.default_rng(seed).permuted(first, axis=1)
    world = _world(instance, np.array([b / TICK, eta / TICK, b / (2 * (b + eta))]), load_comm_cost, first)
    compute = float(world.jobs["service"].sum())
    contended = _simulate(world, *kind, _rule(rule), accounting == "published_simulator")
    end = world.jobs["end"]
    return TickedRun(
        end * TICK, compute / (instance.cluster.gpus * float(end.max())), world.jobs["spans"] > 1, contended
    )


def _rates(instance: Instance) -> tuple[float, float]:
    contention = instance.contention
    if not instance.at_task_level or contention is None:
        raise InputError("jobs have no tasks, or messages no cost", field="instance", legal="an instance with tasks")
    contention.require_penalty("the published simulator")
    if contention.latency:
        raise InputError(
            "the published simulator has none", field="contention.latency", value=contention.latency, legal="0"
        )
    return contention.seconds_per_byte, contention.penalty


def _milliseconds(instance: Instance, field: str) -> Ints:
    seconds: Floats = getattr(instance, field)
    whole = np.rint(seconds / TICK)
    wrong = np.abs(whole - seconds / TICK) > 1e-6  # far above rounding, far below a tick
    if field != "arrival":
        wrong |= whole < 1  # what takes no time would take a tick
    if wrong.any():
        value = float(seconds[int(np.argmax(wrong))])
        raise InputError(
            "not whole milliseconds", field=field, value=value, legal="a multiple of 0.001 s, 0 for arrivals only"
        )
    return whole.astype(np.int64)


def _rule(text: str) -> int:
    found = re.fullmatch(r"srsf:k=([1-9]\d*)", text)
    if text != "ada-srsf" and not found:
        raise InputError("not legal", field="rule", value=text, legal=RULES)
    return int(found[1]) if found else ADADUAL


def _placement(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"lwf:kappa=([1-9]\d*)", text)
    named = {"list": (LEAST_LOADED, 2**40), "first-fit": (FIRST_FIT, 0), "random": (RANDOM, 0)}
    if text not in named and not found:
        raise InputError("not legal", field="placement", value=text, legal=PLACEMENTS)
    return (LEAST_LOADED, int(found[1])) if found else named[text]


def _record(whole: str, real: str = "") -> np.dtype[np.void]:
    return np.dtype([(name, np.int64) for name in whole.split()] + [(name, np.float64) for name in real.split()])


# ``cost``: of a message, as LWF expects it, in milliseconds; ``moved``, ``pace``: bytes, and bytes a tick, of the transfer
# that runs; ``service``: compute left, all workers together; ``barrier``: workers that wait for the others; ``spans``: nodes
_JOB = _record(
    "arrival size forward backward worker0 iterations service barrier placed spans end", "message need cost moved pace"
)
_WORKER = _record("job gpu phase")
_GPU = _record("node count working until", "free load")  # residents; the worker whose task runs, and until when; L_g
_NODE = _record("first last carried")  # its GPUs are first .. last - 1; transfers that run over it


class _World(NamedTuple):
    """All there is, in milliseconds and bytes. n jobs, G GPUs, H nodes, W workers: those of job j from ``worker0`` on.

    Lists in rows have their lengths elsewhere (``count``, ``carried``, ``spans``); ``active`` and ``waiting`` begin with it.
    """

    jobs: Records  # [n]
    workers: Records  # [W]
    gpus: Records  # [G]
    hosts: Records  # [H]
    costs: Floats  # b and eta in milliseconds a byte, theta
    queue: Ints  # jobs in the order of the queue, [n]
    arrivals: Ints  # ascending, [n]
    given: Ints  # GPUs in the order in which a job takes them, unless by load, [n, G]
    nodes: Ints  # of a gang, ascending, [n, H]
    residents: Ints  # workers on a GPU, [G, n]
    running: Ints  # jobs whose transfers run over a node, [H, n]
    active: Ints  # jobs whose transfers run, [n + 1]
    waiting: Ints  # jobs whose transfers wait, in their order, [n + 1]


def _world(instance: Instance, costs: Floats, load_comm_cost: float, given: Ints) -> _World:
    n, cluster = instance.n, instance.cluster
    jobs, gpus, hosts = np.zeros(n, _JOB), np.zeros(cluster.gpus, _GPU), np.zeros(cluster.node_count, _NODE)
    for name in ("arrival", "forward", "backward"):
        jobs[name] = _milliseconds(instance, name)
    jobs["size"], jobs["iterations"] = instance.gpus, instance.iterations
    jobs["service"] = jobs["size"] * jobs["iterations"] * (jobs["forward"] + jobs["backward"])
    jobs["message"], jobs["need"] = instance.message, instance.gpu_memory
    # in 1/1024 ms, so that loads are exact and return to zero
    jobs["cost"] = np.rint(instance.message * load_comm_cost / TICK * 1024) / 1024
    jobs["worker0"] = np.cumsum(instance.gpus) - instance.gpus
    workers = np.zeros(int(instance.gpus.sum()), _WORKER)
    workers["job"] = np.repeat(np.arange(n), instance.gpus)
    workers["phase"] = READY_FORWARD
    hosts["last"] = np.cumsum(cluster.node_gpus)
    hosts["first"] = hosts["last"] - cluster.node_gpus
    gpus["node"] = np.repeat(np.arange(cluster.node_count), cluster.node_gpus)
    gpus["free"] = cluster.node_memory[gpus["node"]]
    gpus["working"], gpus["until"] = IDLE, NEVER
    queue = np.lexsort((np.arange(n), jobs["service"]))
    rows = (
        np.zeros((length, width), dtype=np.int64)
        for length, width in ((n, len(hosts)), (len(gpus), n), (len(hosts), n))
    )
    lists = (np.zeros(n + 1, dtype=np.int64) for _ in range(2))
    return _World(jobs, workers, gpus, hosts, costs, queue, np.sort(jobs["arrival"]), given, *rows, *lists)


# --- compiled --------------------------------------------------------------------------------------------------------------


@njit(interpreted=False)
def _simulate(w: _World, kind: int, kappa: int, rule: int, published: bool) -> int:
    """Run to the end; the number of transfers that started beside another one."""
    contended, t, left, came = 0, 0, w.jobs.size, 0
    while left > 0:
        arrived, due, ended = False, False, 0
        while came < w.arrivals.size and w.arrivals[came] == t:
            arrived = True
            came += 1
        for gpu in w.gpus:
            due = due or gpu.until <= t
        if due:
            ended += _end_tasks(w, t)
        moved = _any_moved(w)
        if moved:
            ended += _end_transfers(w, t)
        left -= ended
        if arrived or ended > 0:
            for j in w.queue:
                if w.jobs[j].placed == 0 and w.jobs[j].arrival <= t:
                    _place(w, j, kind, kappa)
        changed = arrived or due or moved  # else no answer can be another one: what is left of a transfer only falls
        if changed or published:
            contended += _start_transfers(w, rule, published)
        if changed:
            _start_tasks(w, t)
        asked = published and rule == ADADUAL and w.waiting[0] > 0
        ticks = 1 if asked else _quiet_ticks(w, t, came)
        for i in range(1, w.active[0] + 1):
            w.jobs[w.active[i]].moved += ticks * w.jobs[w.active[i]].pace
        t += ticks
    return contended


@njit(interpreted=False)
def _quiet_ticks(w: _World, t: int, came: int) -> int:
    """How many ticks until something ends or arrives, when nobody asks meanwhile; at least one."""
    quiet = NEVER
    if came < w.arrivals.size:
        quiet = w.arrivals[came] - t
    for gpu in w.gpus:
        quiet = min(quiet, gpu.until - t)
    for i in range(1, w.active[0] + 1):
        job = w.jobs[w.active[i]]
        quiet = min(quiet, int(np.ceil((job.message * ALL_BUT - job.moved) / job.pace)))
    return max(quiet, 1)


@njit(interpreted=False)
def _place(w: _World, j: int, kind: int, kappa: int) -> None:
    room = 0
    for gpu in w.gpus:
        room += gpu.free >= w.jobs[j].need
    if room < w.jobs[j].size:
        return
    order = w.given[j]
    if kind == LEAST_LOADED:
        order = _by_load(w, w.jobs[j].size > kappa)
    worker = w.jobs[j].worker0
    for g in order:
        if w.gpus[g].free >= w.jobs[j].need and worker < w.jobs[j].worker0 + w.jobs[j].size:
            w.workers[worker].gpu = g
            w.residents[g, w.gpus[g].count] = worker
            w.gpus[g].count += 1
            w.gpus[g].free -= w.jobs[j].need
            worker += 1
    _find_nodes(w, j)
    _add_load(w, j, w.jobs[j].iterations * (w.jobs[j].forward + w.jobs[j].backward + _message_cost(w, j)))
    w.jobs[j].placed = 1


@njit(interpreted=False)
def _find_nodes(w: _World, j: int) -> None:
    for h in range(w.hosts.size):
        for worker in range(w.jobs[j].worker0, w.jobs[j].worker0 + w.jobs[j].size):
            if w.gpus[w.workers[worker].gpu].node == h:
                w.nodes[j, w.jobs[j].spans] = h
                w.jobs[j].spans += 1
                break


@njit(interpreted=False)
def _by_load(w: _World, by_node: bool) -> Ints:
    """The GPUs by their load; ``by_node``: by the mean load of their nodes, then by their own. Ties by number."""
    mean = np.zeros(w.gpus.size)
    if by_node:
        for g in range(w.gpus.size):
            host = w.hosts[w.gpus[g].node]
            for other in range(host.first, host.last):
                mean[g] += w.gpus[other].load / (host.last - host.first)
    order = np.zeros(w.gpus.size, dtype=np.int64)
    for g in range(w.gpus.size):
        i = g
        while i > 0 and _before(w, mean, g, order[i - 1]):
            order[i] = order[i - 1]
            i -= 1
        order[i] = g
    return order


@njit(interpreted=False)
def _before(w: _World, mean: Floats, g: int, other: int) -> bool:
    # g > other: at a tie the other one stays in front
    if mean[g] != mean[other]:
        return bool(mean[g] < mean[other])
    if mean[g] > 0 and w.gpus[g].node != w.gpus[other].node:
        return False
    return bool(w.gpus[g].load < w.gpus[other].load)


@njit(interpreted=False)
def _message_cost(w: _World, j: int) -> float:
    return w.jobs[j].cost if w.jobs[j].spans > 1 else 0.0


@njit(interpreted=False)
def _add_load(w: _World, j: int, amount: float) -> None:
    for worker in range(w.jobs[j].worker0, w.jobs[j].worker0 + w.jobs[j].size):
        w.gpus[w.workers[worker].gpu].load += amount


@njit(interpreted=False)
def _end_tasks(w: _World, t: int) -> int:
    """End the GPU tasks that are due; the number of jobs that end with them."""
    ended = 0
    for g in range(w.gpus.size):
        worker = w.gpus[g].working
        if w.gpus[g].until > t:
            continue
        w.gpus[g].working, w.gpus[g].until = IDLE, NEVER
        j = w.workers[worker].job
        seconds = w.jobs[j].forward if w.workers[worker].phase == FORWARD else w.jobs[j].backward
        w.jobs[j].service -= seconds
        w.gpus[g].load -= seconds
        if w.workers[worker].phase == FORWARD:
            w.workers[worker].phase = READY_BACKWARD
            continue
        w.workers[worker].phase = WAITING
        w.jobs[j].barrier += 1
        if w.jobs[j].barrier == w.jobs[j].size:
            ended += _pass_barrier(w, j, t)
    return ended


@njit(interpreted=False)
def _first(w: _World, j: int, other: int) -> bool:
    return w.jobs[j].service < w.jobs[other].service or (w.jobs[j].service == w.jobs[other].service and j < other)


@njit(interpreted=False)
def _pass_barrier(w: _World, j: int, t: int) -> int:
    if w.jobs[j].spans == 1 or w.jobs[j].message == 0:
        return int(_end_iteration(w, j, t))
    # the transfers that wait stand in the order of what their jobs have left to compute, which does not change meanwhile
    i = w.waiting[0] + 1
    while i > 1 and _first(w, j, w.waiting[i - 1]):
        w.waiting[i] = w.waiting[i - 1]
        i -= 1
    w.waiting[i] = j
    w.waiting[0] += 1
    return 0


@njit(interpreted=False)
def _has_moved(w: _World, j: int) -> bool:
    return bool(w.jobs[j].moved >= w.jobs[j].message * ALL_BUT)


@njit(interpreted=False)
def _any_moved(w: _World) -> bool:
    """Has any transfer moved all of its bytes?"""
    for i in range(1, w.active[0] + 1):
        if _has_moved(w, w.active[i]):
            return True
    return False


@njit(interpreted=False)
def _end_transfers(w: _World, t: int) -> int:
    """End the transfers whose bytes have moved; the number of jobs that end with them."""
    ended, kept, count = 0, 0, w.active[0]
    for i in range(1, count + 1):
        j = w.active[i]
        if not _has_moved(w, j):
            kept += 1
            w.active[kept] = j
            continue
        for h in w.nodes[j, : w.jobs[j].spans]:
            w.hosts[h].carried -= 1
            place = 0
            while w.running[h, place] != j:
                place += 1
            for other in range(place, w.hosts[h].carried):
                w.running[h, other] = w.running[h, other + 1]
        _add_load(w, j, -_message_cost(w, j))
        ended += _end_iteration(w, j, t)
    w.active[0] = kept
    _set_paces(w)
    return ended


@njit(interpreted=False)
def _end_iteration(w: _World, j: int, t: int) -> int:
    w.jobs[j].barrier = 0
    w.jobs[j].iterations -= 1
    for worker in range(w.jobs[j].worker0, w.jobs[j].worker0 + w.jobs[j].size):
        w.workers[worker].phase = READY_FORWARD
    if w.jobs[j].iterations > 0:
        return 0
    w.jobs[j].end = t
    for worker in range(w.jobs[j].worker0, w.jobs[j].worker0 + w.jobs[j].size):
        g, place = w.workers[worker].gpu, 0
        while w.residents[g, place] != worker:
            place += 1
        w.gpus[g].count -= 1
        w.residents[g, place] = w.residents[g, w.gpus[g].count]
        w.gpus[g].free += w.jobs[j].need
    return 1


@njit(interpreted=False)
def _start_transfers(w: _World, rule: int, published: bool) -> int:
    contended, kept, count = 0, 0, w.waiting[0]
    for i in range(1, count + 1):
        j = w.waiting[i]
        if not _admitted(w, j, rule, published):
            kept += 1
            w.waiting[kept] = j
            continue
        contended += _most(w, j) > 0
        w.jobs[j].moved = 0.0
        for h in w.nodes[j, : w.jobs[j].spans]:
            w.running[h, w.hosts[h].carried] = j
            w.hosts[h].carried += 1
        w.active[0] += 1
        w.active[w.active[0]] = j
        _set_paces(w)
    w.waiting[0] = kept
    return contended


@njit(interpreted=False)
def _admitted(w: _World, j: int, rule: int, published: bool) -> bool:
    """May the transfer start? With the published accounting AdaDUAL's question itself moves another transfer on."""
    most = _most(w, j)
    if rule != ADADUAL or most != 1:
        return bool(most < max(rule, 1))
    for h in w.nodes[j, : w.jobs[j].spans]:
        if w.hosts[h].carried == 0:
            continue
        old = w.running[h, 0]
        if published:
            w.jobs[old].moved += w.jobs[old].pace
        if w.jobs[j].message >= w.costs[2] * (w.jobs[old].message - w.jobs[old].moved):
            return False
        if published:
            return True
    return True


@njit(interpreted=False)
def _most(w: _World, j: int) -> int:
    most = 0
    for h in w.nodes[j, : w.jobs[j].spans]:
        most = max(most, w.hosts[h].carried)
    return most


@njit(interpreted=False)
def _set_paces(w: _World) -> None:
    for i in range(1, w.active[0] + 1):
        j = w.active[i]
        k = _most(w, j)
        w.jobs[j].pace = 1.0 / (k * w.costs[0] + (k - 1) * w.costs[1])


@njit(interpreted=False)
def _start_tasks(w: _World, t: int) -> None:
    for g in range(w.gpus.size):
        if w.gpus[g].working != IDLE:
            continue
        best = IDLE
        for worker in w.residents[g, : w.gpus[g].count]:
            if w.workers[worker].phase == READY_FORWARD or w.workers[worker].phase == READY_BACKWARD:
                j, other = w.workers[worker].job, w.workers[best].job
                if best == IDLE or _first(w, j, other):
                    best = worker
        if best != IDLE:
            ready = w.workers[best].phase == READY_FORWARD
            seconds = w.jobs[w.workers[best].job].forward if ready else w.jobs[w.workers[best].job].backward
            w.workers[best].phase = FORWARD if ready else BACKWARD
            w.gpus[g].working = best
            w.gpus[g].until = t + seconds
