"""The levels at which policies decide: whole jobs, jobs that share GPUs, tasks; with the instances of each level.

`Subject` is a policy under examination with its runs on the instances of its level. The changes that checks
make to an instance (another clock, another unit, other names) are defined here once for every level.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any

from optsched.classes import class_names, usual_class
from optsched.contract.instances import MIXED, random_instance, real_instance
from optsched.errors import InputError
from optsched.policies.simulate import Specification, form_on, simulate, specify
from optsched.problem.contention import Contention
from optsched.problem.instance import Instance, Job
from optsched.registry import PartsByClass
from optsched.simulation.policy import BasePolicy, Knowledge, KnownJobs, Order, OrderedPolicy, Policy, Wake, class_of
from optsched.simulation.run import Run

Rows = list[tuple[Any, ...]]
SHIFT = 1024.0  # seconds, a multiple of every round that the tests know
FASTER = 8  # a power of two: exact
ROUNDED = 1e-8  # seconds, of rows


def whole_rows(run: Run, time: Callable[[float], float] = float) -> Rows:
    """Return every segment with its GPUs, sorted; exact.

    Parameters
    ----------
    run
        The run.
    time
        Applied to every time.
    """
    every = run.schedule.segments()
    return sorted((s.job, time(s.start), time(s.end), s.work, tuple(sorted(s.gpus))) for s in every)


def changed(instance: Instance, change: Callable[[Job], Job]) -> Instance:
    """Return an instance with changed jobs.

    Parameters
    ----------
    instance
        The instance.
    change
        Job -> changed job.
    """
    jobs = Instance(
        [change(job) for job in instance.jobs], instance.cluster, tasks=instance.tasks, contention=instance.contention
    )
    return instance.replace(jobs=jobs.table)


def later(instance: Instance) -> Instance:
    """Return the instance on a clock that is `SHIFT` seconds later.

    Parameters
    ----------
    instance
        The instance.
    """
    return changed(
        instance,
        lambda job: dataclasses.replace(
            job, arrival=job.arrival + SHIFT, due=None if job.due is None else job.due + SHIFT
        ),
    )


def faster(instance: Instance) -> Instance:
    """Return the instance on a clock that ticks `FASTER` times as fast: every time is multiplied by that.

    Parameters
    ----------
    instance
        The instance.
    """

    def scaled(job: Job) -> Job:
        lasts = None if job.duration is None else job.duration * FASTER
        due = None if job.due is None else job.due * FASTER
        limit = None if job.walltime is None else job.walltime * FASTER
        return dataclasses.replace(job, arrival=job.arrival * FASTER, duration=lasts, due=due, walltime=limit)

    if usual_class(instance).whole:
        return changed(instance, scaled)
    cost = instance.contention
    assert cost is not None
    slow = Contention(cost.seconds_per_byte * FASTER, cost.penalty * FASTER, cost.latency * FASTER)
    tasks = {
        name: dataclasses.replace(each, forward=each.forward * FASTER, backward=each.backward * FASTER)
        for name, each in instance.tasks.items()
    }
    jobs = [dataclasses.replace(job, arrival=job.arrival * FASTER) for job in instance.jobs]
    return Instance(jobs, instance.cluster, tasks=tasks, contention=slow)


def renamed(instance: Instance) -> Instance:
    """Return the instance with other ids, users and groups, and other models if no speed depends on them.

    Parameters
    ----------
    instance
        The instance.
    """
    free: dict[str, Any] = {"model": "m"} if usual_class(instance).alone else {}
    names = {job.id: f"{97 * j % 101}-{j}" for j, job in enumerate(instance.jobs)}
    return changed(
        instance, lambda job: dataclasses.replace(job, id=names[job.id], user=f"u-{job.id}", group="g", **free)
    )


@dataclasses.dataclass(frozen=True)
class Level:
    """A kind of jobs that policies are made for, with its test instances.

    Parameters
    ----------
    name
        The kind of jobs in words.
    instances
        Makes the instances of most checks.
    shifted, scaled
        Make the instances for another clock and another unit of time.
    secretive
        Seed -> an instance on which much is unknown for long.
    seeds
        The seeds for ``secretive``.
    rows
        Run -> its segments or tasks, as comparable rows.
    late
        Job -> another job, for one that has yet to arrive.
    gangs
        True for whole jobs, which queue orders know as `KnownJobs`.
    preferred
        True to check a policy that takes another form on these instances in that form.
    """

    name: str
    instances: Callable[[], tuple[Instance, ...]]
    shifted: Callable[[], tuple[Instance, ...]]
    scaled: Callable[[], tuple[Instance, ...]]
    secretive: Callable[[int], Instance]
    seeds: tuple[int, ...]
    rows: Callable[..., Rows]
    late: Callable[[Job], Job]
    gangs: bool = False
    preferred: bool = False


@cache
def _whole() -> tuple[Instance, ...]:
    # Small ones with ties, larger ones without, homogeneous and mixed.
    mixed = random_instance(800, MIXED, jobs=30)
    return random_instance(16, "2x4", jobs=14), mixed, real_instance(820, "2x2", jobs=14), real_instance(803, MIXED)


WHOLE = Level(
    "whole jobs",
    _whole,
    lambda: _whole()[:2],  # integers: exact
    cache(lambda: (real_instance(839, "2x2", jobs=14),)),
    lambda seed: random_instance(seed, "2x4", jobs=25),
    (821, 887, 888, 891),  # where many jobs arrive late, so that clairvoyants do not know them either
    whole_rows,
    lambda job: job,
    gangs=True,
)
# By class of schedules.
LEVELS: PartsByClass[Level] = PartsByClass("optsched.contract", WHOLE)


def level_of(policy: BasePolicy) -> Level:
    """Return the level at which a policy decides.

    Parameters
    ----------
    policy
        The policy.

    Raises
    ------
    InputError
        The policy changes the number of GPUs of jobs; nothing is checked of such policies.
    """
    levels = [LEVELS.of(name) for name in class_names()]
    for level in levels:
        if level.preferred:
            policy = form_on(policy, level.instances()[0])
    kind = class_of(policy)
    if kind.widths:
        legal = "a policy for whole jobs, for jobs that share GPUs, or for tasks"
        raise InputError("policies that resize jobs cannot be checked", field="policy", value=policy, legal=legal)
    return LEVELS.of(kind.name)


class Subject:
    """A policy under examination; it is made again for every run.

    ``base`` runs on `Level.instances` are made once and kept. ``asked`` is the instance of the last run, which
    shows where an exception was raised.

    Parameters
    ----------
    text
        The policy and its placement.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.asked: Instance | None = None
        self._secret: dict[int, Run] = {}

    @cached_property
    def chosen(self) -> Specification:
        """One such policy and its placement."""
        return specify(self.text)

    @property
    def policy(self) -> BasePolicy:
        """One such policy."""
        return self.chosen.policy

    @cached_property
    def level(self) -> Level:
        """The kind of jobs that the policy is for."""
        return level_of(self.policy)

    @cached_property
    def knowledge(self) -> str:
        """The knowledge of the policy, in the form that it has at its level."""
        return str(form_on(self.policy, self.level.instances()[0]).knowledge)

    def run(self, instance: Instance) -> Run:
        """Run a new object of the policy.

        Parameters
        ----------
        instance
            The instance.
        """
        self.asked = instance
        return simulate(instance, self.text)

    @cached_property
    def base(self) -> tuple[Run, ...]:
        """The runs on the instances of the level."""
        return tuple(map(self.run, self.level.instances()))

    def known_run(self, instance: Instance) -> Run:
        """Return the run on an instance; the kept one if the instance is one of the level's.

        Parameters
        ----------
        instance
            The instance.
        """
        return next((run for run in self.base if run.instance is instance), None) or self.run(instance)

    @cached_property
    def base_rows(self) -> tuple[list[tuple[Any, ...]], ...]:
        """The rows of the base runs."""
        return tuple(map(self.level.rows, self.base))

    def secret_run(self, seed: int) -> Run:
        """Return the run on an instance of which much is unknown for long (see the check ``knowledge``).

        Parameters
        ----------
        seed
            Seed of the instance.
        """
        if seed not in self._secret:
            self._secret[seed] = self.run(self.level.secretive(seed))
        return self._secret[seed]

    @property
    def knows_durations_at_arrival(self) -> bool:
        """True if the policy knows durations at arrival, by itself or through an oracle."""
        if self.knowledge == Knowledge.PREDICTED:
            return bool(getattr(self.policy.make_predictor(), "oracle", False))
        return self.knowledge == Knowledge.CLAIRVOYANT

    @property
    def rounds(self) -> bool:
        """True if the policy is asked only at multiples of some time."""
        if isinstance(self.policy, OrderedPolicy):
            return self.order is not None and self.order.round > 0
        return isinstance(self.policy, Policy) and self.policy.round > 0

    @cached_property
    def order(self) -> Order | None:
        """The policy's order of the jobs of the first instance; None for a policy in plain Python or for tasks."""
        instance = self.level.instances()[0].relative
        if not isinstance(self.policy, OrderedPolicy):
            return None
        return self.policy.order(KnownJobs(instance, self.policy.knowledge))

    @cached_property
    def own_seconds(self) -> str:
        """The reason why another unit of time makes it another policy; empty if it does not."""
        if self.rounds:
            return "its rounds are a number of seconds"
        if isinstance(self.policy, Policy) and (self.policy.restart or self.policy.first_start):
            return "its restart cost is a number of seconds"
        if self.order is not None:
            if self.order.restart:
                return "its restart cost is a number of seconds"
            return "its levels have thresholds" if self.order.thresholds else ""
        return "it wakes itself at times of its own" if self.wakes else ""

    @cached_property
    def wakes(self) -> bool:
        """True if the policy yields `Wake` on the first instance."""
        chosen = specify(self.text)
        policy = chosen.policy
        if not isinstance(policy, Policy):
            return False
        decide = policy.decide
        woken: list[Wake] = []

        def watched(view: Any) -> Any:
            for decision in decide(view):
                each = decision if isinstance(decision, list) else [decision]
                woken.extend(one for one in each if isinstance(one, Wake))
                yield decision

        object.__setattr__(policy, "decide", watched)  # also where the fields of the policy are frozen
        simulate(self.level.instances()[0], chosen)
        return bool(woken)
