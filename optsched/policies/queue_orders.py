"""The queue orders, a row each: name, knowledge, parameters, known results, and the key.

`queue_order` turns such a function into a policy.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec

import numpy as np

from optsched.errors import InputError
from optsched.policies import POLICIES
from optsched.problem.arrays import Floats
from optsched.registry import Seconds, near_matches
from optsched.simulation.policy import BasePolicy, Knowledge, KnownJobs, Order, OrderedPolicy

P = ParamSpec("P")


def queue_order(
    name: str, knowledge: Knowledge, **members: Any
) -> Callable[[Callable[Concatenate[KnownJobs, P], Order]], Callable[P, OrderedPolicy]]:
    """Return a decorator that turns a function from `KnownJobs` to an `Order` into a policy.

    The other parameters of the function, which have defaults, are those of the policy. The decorated name is a frozen
    dataclass with these fields, the function's docstring, and a method ``order(jobs)``.

    Parameters
    ----------
    name
        Name of the policy.
    knowledge
        Facts that the policy may use.
    members
        Other members of the class, such as ``default_placement``, ``uses`` or ``__post_init__``.
    """
    return registering("order", OrderedPolicy, name, {"knowledge": knowledge, **members})


def registering(
    method: str, base: type[BasePolicy], name: str, members: dict[str, Any]
) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that turns a function of jobs into a registered policy, a frozen dataclass.

    Parameters
    ----------
    method
        Name of the method that calls the function.
    base
        Base class of the policy.
    name
        Name of the policy.
    members
        Other members of the class.
    """

    def registered(row: Callable[..., Any]) -> Any:
        _, *parameters = inspect.signature(row).parameters.values()

        def answer(self: Any, jobs: Any) -> Any:
            return row(jobs, **{parameter.name: getattr(self, parameter.name) for parameter in parameters})

        kind = dataclasses.make_dataclass(
            row.__name__,
            [
                (parameter.name, parameter.annotation, dataclasses.field(default=parameter.default))
                for parameter in parameters
            ],
            bases=(base,),
            namespace={"name": name, method: answer, "__doc__": row.__doc__, **members},
            frozen=True,
        )
        kind.__module__, kind.__qualname__ = row.__module__, row.__qualname__  # where a pickle looks for it
        return POLICIES.register(name)(kind)

    return registered


@queue_order("fifo", Knowledge.NON_CLAIRVOYANT)
def fifo(jobs: KnownJobs, skip: bool = False) -> Order:
    """FIFO (first come, first served): jobs start in order of (arrival, index).

    **Problem** P | r_j, size_j, online-r_j | sum C_j, C_max, F_max. **Knowledge** non-clairvoyant.
    Strict: the head of the queue blocks until it fits. With ``skip`` every queued job is tried in order (greedy
    backfilling), so that wide jobs may starve.

    **Guarantee** for rigid gangs: none that does not grow with G. C_max at r = 0, strict: m; with skip 2 - 1/m (it is
    list scheduling). Flow time with one GPU a job: the largest 3 - 2/m, the sum n (3 - 2/m) (Bender, Chakrabarti and
    Muthukrishnan 1998). **Tight families** strict, C_max: alternate (eps, width m) and (1, width 1), m times
    (``wide-and-narrow``); largest flow time: bursts whose long jobs come last, 3 - 2/m in the limit
    (``lagging-bursts``); their sum: a job of length n, then n unit jobs, (n + 3/2) / 3 (``convoy``). **Complexity**
    O(log n) an event. **Reference** folklore; Garey and Graham 1975 for list scheduling.

    Parameters
    ----------
    jobs
        Jobs of the run.
    skip
        Pass over jobs that do not fit.
    """
    return Order(key=jobs.arrival, skip=skip)


def _one_type(policy: Any) -> str:
    return f"one-type{':mixed=true' if policy.mixed else ''}"


@queue_order("yarn-cs", Knowledge.NON_CLAIRVOYANT, default_placement=property(_one_type))
def yarn_cs(jobs: KnownJobs, mixed: bool = False) -> Order:
    """YARN-CS: gangs start in order of arrival on free GPUs of one type and keep them; the head of the queue blocks.

    A gang larger than every type is left out: it blocks no job and does not finish. With ``mixed`` it uses several
    types.

    **Problem** P | r_j, size_j, online-r_j | sum C_j. **Knowledge** non-clairvoyant, and no speeds: the placement
    ``one-type`` takes the type with most free GPUs. **Guarantee** none known; that of FIFO at best (`fifo`). **Tight
    family** as for `fifo`; with types also speed: all jobs on the slowest type, idle fast GPUs unused by gangs.
    **Complexity** O(log n + nodes x types) an event. **Reference** the baseline of Hadar and of Philly's study (Jeon
    et al., ATC 2019); one queue, no preemption.

    Parameters
    ----------
    jobs
        Jobs of the run.
    mixed
        Let a gang that no type can hold use several types.
    """
    return Order(key=jobs.arrival, skip=False)


@queue_order("tiresias", Knowledge.NON_CLAIRVOYANT)
def tiresias(
    jobs: KnownJobs,
    threshold: Seconds = 57600.0,
    starvation: Seconds = 0.0,
    round: Seconds = 0.0,
    restart: Seconds = 0.0,
    first: bool = False,
    by_time: bool = False,
    requeue: bool = False,
) -> Order:
    """Tiresias-L: preemptive; jobs that have held less than ``threshold`` GPU-seconds go before the others.

    **Problem** P | r_j, size_j, pmtn, online-r_j | sum (C_j - r_j). **Knowledge** non-clairvoyant. There are two
    queues, each in order of arrival. A job moves to the second when its attained service (GPUs x time held, restarts
    included) reaches ``threshold``. With ``starvation`` > 0, a job of the second queue that has waited ``starvation``
    times as long as it ran starts again in the first.

    **Settings.** The simulator of the Pollux artifact: ``round=60,restart=30,first=true,requeue=true+most-free``
    (threshold 57600, starvation 0). The authors of SJF-BSBF use a threshold of 700 s by time and starvation 1:
    ``threshold=700,by_time=true,requeue=true,starvation=1``. Two of their rules are not implemented: jobs with at most
    100 iterations left are not stopped, and waiting jobs go behind the running ones of their queue after every
    decision.

    **Guarantee** none known: FIFO within a queue already has none. **Complexity** O(running jobs) an event.
    **Reference** Gu et al., Tiresias, NSDI 2019 (Discretized 2D-LAS).

    Parameters
    ----------
    jobs
        Jobs of the run.
    threshold
        Attained service at which a job moves to the second queue, in GPU-seconds.
    starvation
        Waiting time over running time at which a job returns to the first queue; 0: never.
    round
        Decisions are made only at multiples of these seconds; 0: at every event.
    restart
        Overhead of every resumption, in seconds.
    first
        Charge ``restart`` at the first start, too.
    by_time
        Count attained service in seconds instead of GPU-seconds.
    requeue
        Put a job that changes queues behind the jobs there, not in order of arrival.
    """
    return Order(
        key=jobs.arrival,
        preemptive=True,
        thresholds=(threshold,),
        starvation=starvation,
        round=round,
        restart=restart,
        first=first,
        by_time=by_time,
        requeue=requeue,
    )


@queue_order("sjf", Knowledge.CLAIRVOYANT)
def sjf(jobs: KnownJobs) -> Order:
    """SJF, not preemptive: queued jobs start in order of their duration; those that do not fit are passed over.

    **Problem** P | r_j, size_j, online-r_j | sum C_j. **Knowledge** clairvoyant.

    **Guarantee** 1 for 1 || sum C_j and P || sum C_j (SPT); none with release dates. **Counterexample** 1 | r_j | sum
    C_j: a job of length 10 n at 0 and n unit jobs at 1: up to 21, and more the longer it is (family ``greedy-start``).
    **Complexity** O(log n) an event. **Reference** Smith 1956 (SPT).

    Parameters
    ----------
    jobs
        Jobs of the run.
    """
    return Order(key=jobs.duration)


@queue_order("srtf", Knowledge.CLAIRVOYANT)
def srtf(jobs: KnownJobs, restart: Seconds = 0.0) -> Order:
    """SRTF (SRPT): preemptive; the active jobs with the least remaining time run.

    **Problem** P | r_j, size_j, pmtn, online-r_j | sum C_j, sum (C_j - r_j). **Knowledge** clairvoyant.

    **Guarantee** with one GPU a job and restart = 0: optimal for one machine (Schrage 1968); for P machines 1.25 on
    sum C_j (Sitters 2010, from recollection) and Theta(log min(n/m, P)) on flow time (Leonardi and Raz 1997). None
    known for gangs. **Complexity** O(running jobs) an event. **Reference** Schrage 1968.

    Parameters
    ----------
    jobs
        Jobs of the run.
    restart
        Overhead of every resumption, in seconds.
    """
    return Order(key=jobs.duration, slope=np.full(jobs.n, -1.0), preemptive=True, restart=restart)


@queue_order("srtf-gpu", Knowledge.CLAIRVOYANT)
def srtf_gpu(jobs: KnownJobs, restart: Seconds = 0.0) -> Order:
    """SRTF by GPU-time: preemptive; the active jobs with the least remaining time x GPUs run.

    **Problem** P | r_j, size_j, pmtn, online-r_j | sum C_j. **Knowledge** clairvoyant.

    The order is that of SRPT on the single-machine relaxation (p_j = g_j d_j / G), used on the real cluster.
    **Guarantee** none known for gangs; `srtf` where every job takes one GPU. **Complexity** O(running jobs) an event.
    **Reference** the "2D" orders of Tiresias (NSDI 2019), with remaining instead of attained service.

    Parameters
    ----------
    jobs
        Jobs of the run.
    restart
        Overhead of every resumption, in seconds.
    """
    gpus = jobs.gpus.astype(float)
    return Order(key=jobs.duration * gpus, slope=-gpus, preemptive=True, restart=restart)


def smith_ratio(length: Floats, weight: Floats) -> Floats:
    """Return Smith's ratio, f64[n]; inf for jobs of weight 0, so that they come last.

    Parameters
    ----------
    length
        Processing times, f64[n].
    weight
        Weights, f64[n].
    """
    ratio = np.full(length.size, np.inf)
    np.divide(length, weight, out=ratio, where=weight > 0)
    return ratio


@queue_order("wspt", Knowledge.CLAIRVOYANT)
def wspt(jobs: KnownJobs, gpus: bool = False) -> Order:
    """WSPT (Smith's rule), not preemptive: queued jobs start in order of duration / weight.

    **Problem** P | r_j, size_j, online-r_j | sum w_j C_j. **Knowledge** clairvoyant. Jobs that do not fit are passed
    over.

    **Guarantee** 1 || sum w C: 1 (Smith 1956); P || sum w C: (1 + sqrt 2) / 2 (Kawaguchi and Kyan 1986), tight as m
    grows; none with release dates or gangs. **Tight family** ``sand``. **Complexity** O(log n) an event.

    Parameters
    ----------
    jobs
        Jobs of the run.
    gpus
        Order by gpus x duration / weight: Smith's rule of the single-machine relaxation.
    """
    return Order(key=smith_ratio(jobs.duration * jobs.gpus if gpus else jobs.duration, jobs.weight))


@queue_order("preemptive-wspt", Knowledge.CLAIRVOYANT)
def preemptive_wspt(jobs: KnownJobs, restart: Seconds = 0.0) -> Order:
    """WSPT with preemption: the active jobs with the least duration / weight run; remaining times do not count.

    **Problem** P | r_j, size_j, pmtn, online-r_j | sum w_j C_j. **Knowledge** clairvoyant. Jobs that do not fit are
    passed over.

    **Guarantee** with one GPU a job and restart = 0: 2 on any number of machines (one: Schulz and Skutella 2002; m:
    Megow and Schulz 2004). **Tight family** unit jobs released a little faster than they can be served, each a little
    heavier than the one before (``overtaking``). **Complexity** O(running jobs) an event. **Reference** Schulz and
    Skutella 2002.

    Parameters
    ----------
    jobs
        Jobs of the run.
    restart
        Overhead of every resumption, in seconds.
    """
    return Order(key=smith_ratio(jobs.duration, jobs.weight), preemptive=True, restart=restart)


_LISTS: dict[str, Callable[[KnownJobs], Floats]] = {
    "given": lambda jobs: np.arange(jobs.n, dtype=np.float64),
    "shortest": lambda jobs: jobs.duration,
    "longest": lambda jobs: -jobs.duration,
    "widest": lambda jobs: -jobs.gpus.astype(np.float64),
    "narrowest": lambda jobs: jobs.gpus.astype(np.float64),
    "largest": lambda jobs: -jobs.gpus * jobs.duration,
    "due": lambda jobs: jobs.due,
}


def _require_list(policy: Any) -> None:
    if policy.by not in _LISTS:
        legal = near_matches(policy.by, list(_LISTS), kind="order")
        raise InputError("unknown order", field="list: by", value=policy.by, legal=legal)


@queue_order("list", Knowledge.CLAIRVOYANT, __post_init__=_require_list)
def list_scheduling(known: KnownJobs, by: str = "given", jobs: tuple[str, ...] = ()) -> Order:
    """List scheduling (Graham): whenever GPUs are free, the first job of the list that has arrived and fits starts.

    **Problem** P | r_j, size_j | C_max, sum w_j C_j. **Knowledge** clairvoyant (the list may depend on durations).

    **Guarantee** P || C_max: 2 - 1/m, by ``longest`` 4/3 - 1/(3m) (Graham 1966, 1969); P | size_j | C_max: 2 (Garey
    and Graham 1975). **Tight family** m (m - 1) unit jobs, then one of length m. **Complexity** O(log n) an event.

    Parameters
    ----------
    known
        Jobs of the run.
    by
        ``given`` (order of the instance), ``shortest``, ``longest`` (LPT), ``widest``, ``narrowest``, ``largest``
        (GPU-time) or ``due`` (EDD).
    jobs
        Ids in any order, in Python only; jobs that are not listed come last.
    """
    if not jobs:
        return Order(key=_LISTS[by](known))
    rank = {job: position for position, job in enumerate(jobs)}
    unknown = rank.keys() - set(known.ids)
    if unknown:
        raise InputError("no such job", field="list: jobs", value=min(unknown), legal="ids of the instance")
    return Order(key=np.array([rank.get(job, len(rank)) for job in known.ids], dtype=np.float64))
