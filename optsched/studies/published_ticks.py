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

import numpy as np

from optsched.errors import InputError, check_legal
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.instance import Instance
from optsched.studies.tick_kernel import (
    ADADUAL,
    FIRST_FIT,
    GPU,
    IDLE,
    JOB,
    LEAST_LOADED,
    NEVER,
    NODE,
    RANDOM,
    READY_FORWARD,
    WORKER,
    World,
    simulate_ticks,
)

ACCOUNTINGS = ("faithful", "published_simulator")
LEGACY_COST = 7.8125e-9  # seconds a byte: the estimate of 1 Gbit/s that the published simulator keeps at 10 Gbit/s
TICK = 1e-3
RULES = "srsf:k=1, srsf:k=2, ..., or ada-srsf"
PLACEMENTS = "lwf:kappa=1, lwf:kappa=2, ..., list, first-fit, or random"


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
    contended = simulate_ticks(world, *kind, _rule(rule), accounting == "published_simulator")
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
        raise InputError("invalid", field="rule", value=text, legal=RULES)
    return int(found[1]) if found else ADADUAL


def _placement(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"lwf:kappa=([1-9]\d*)", text)
    named = {"list": (LEAST_LOADED, 2**40), "first-fit": (FIRST_FIT, 0), "random": (RANDOM, 0)}
    if text not in named and not found:
        raise InputError("invalid", field="placement", value=text, legal=PLACEMENTS)
    return (LEAST_LOADED, int(found[1])) if found else named[text]


def _world(instance: Instance, costs: Floats, load_comm_cost: float, given: Ints) -> World:
    n, cluster = instance.n, instance.cluster
    jobs, gpus, hosts = np.zeros(n, JOB), np.zeros(cluster.gpus, GPU), np.zeros(cluster.node_count, NODE)
    for name in ("arrival", "forward", "backward"):
        jobs[name] = _milliseconds(instance, name)
    jobs["size"], jobs["iterations"] = instance.gpus, instance.iterations
    jobs["service"] = jobs["size"] * jobs["iterations"] * (jobs["forward"] + jobs["backward"])
    jobs["message"], jobs["need"] = instance.message, instance.gpu_memory
    # in 1/1024 ms, so that loads are exact and return to zero
    jobs["cost"] = np.rint(instance.message * load_comm_cost / TICK * 1024) / 1024
    jobs["worker0"] = np.cumsum(instance.gpus) - instance.gpus
    workers = np.zeros(int(instance.gpus.sum()), WORKER)
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
    return World(jobs, workers, gpus, hosts, costs, queue, np.sort(jobs["arrival"]), given, *rows, *lists)
