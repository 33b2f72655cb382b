"""``sharing``: jobs of which two may be on a GPU at once, for policies that share GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from optsched.adversary.space import SPACES, Candidate, Quantity, Reached, SearchSpace
from optsched.check.certain_times import certain_value
from optsched.check.referee import check_schedule
from optsched.classes.gpu_sharing.guarantees.sjf_bsbf import two_sharers
from optsched.classes.gpu_sharing.solvers.sharing_preemptive import meet_in_pairs, preemptive_sharing_optimum
from optsched.classes.gpu_sharing.solvers.sharing_search import sharing_optimum
from optsched.deadline import NEVER, Deadline
from optsched.errors import InputError, check_legal
from optsched.evaluation.accepted_run import refereed
from optsched.guarantees.optimum import proved_here, stating
from optsched.policies.simulate import simulate, specify
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference
from optsched.simulation.policy import BasePolicy, class_of
from optsched.speeds.sharing_pair import sharing_pair

NODES, WITNESS_NODES = 60, 20_000  # of the search for a candidate, and for the instance that is reported
MOST_PROVED = 4  # jobs: the linear programs of all orders take a second
SUMS = ("total_completion_time", "total_flow_time")


@SPACES.register("sharing")
@dataclass(frozen=True)
class SharedGpus(SearchSpace):
    """r_j | sum C_j of jobs that run ``xi`` times as long beside another one on their GPUs; with ``gangs`` of 1 to ``gpus``.

    Durations from 1 to ``longest`` s, arrivals up to ``latest``. The best schedule that is known, preemption allowed: for
    two jobs that cannot run apart in closed form; else the better of SRPT and of the best starts at events.
    """

    gpus: int = 1
    jobs: int = 5
    longest: int = 60
    latest: int = 60
    xi: float = 2.0
    gangs: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_legal(1 <= self.xi < float("inf"), "xi", self.xi, "a number >= 1")

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """Duration, arrival, gang."""
        return (
            Quantity("duration", 1, self.longest, work=True),
            Quantity("arrival", 0, self.latest, origin=True),
            Quantity("gpus", 1, self.gpus if self.gangs else 1),
        )

    @classmethod
    def serves(cls, policy: BasePolicy) -> bool:
        """Return whether two jobs may be on a GPU under the policy.

        Parameters
        ----------
        policy
            The policy.
        """
        return class_of(policy).name == "gpu-sharing"

    def instance(self, candidate: Candidate, name: str = "") -> Instance:
        """Return the instance of a candidate; its j-th job is named by the number j, from 1.

        Parameters
        ----------
        candidate
            The candidate.
        name
            Name of the instance.
        """
        jobs = [
            Job(f"{j}", arrival=arrival, gpus=gpus, duration=duration)
            for j, (duration, arrival, gpus) in enumerate(candidate.jobs, 1)
        ]
        return Instance(jobs, f"1x{self.gpus}", name, interference=Interference(self.xi))

    def reached(self, candidate: Candidate, instance: Instance, objective: str, preemptive: bool) -> float:
        """Return a sum of completion times or of flow times that some schedule reaches.

        Parameters
        ----------
        candidate
            The candidate.
        instance
            Its instance.
        objective
            ``total_completion_time`` or ``total_flow_time``.
        preemptive
            Not used: the schedules may always preempt.

        Returns
        -------
        float
            The sum in seconds: the optimum in closed form for two jobs that cannot run apart, else the better of SRPT
            and of the best starts at events that a limited search finds.

        Raises
        ------
        InputError
            If the objective is another one.
        """
        if objective not in SUMS:
            raise InputError("not of jobs that share", field="objective", value=objective, legal=" or ".join(SUMS))
        before = float(instance.arrival.sum()) if objective == "total_flow_time" else 0.0
        if len(candidate.jobs) == 2 and meet_in_pairs(instance) is None:
            return float(_of_two(instance)) - before
        starts = float(sharing_optimum(instance, node_limit=NODES).value) - before
        return min(starts, simulate(instance, "srtf").value(objective))

    def proved(self, instance: Instance, objective: str, deadline: Deadline = NEVER) -> Reached:
        """Prove the optimum of an instance by the linear programs of all orders of events.

        The proof needs jobs of which every two meet, and at most `MOST_PROVED` of them. The schedule is the better of
        the run of SRPT and of starts at events.

        Parameters
        ----------
        instance
            The instance.
        objective
            Objective of the value that a schedule reaches.
        deadline
            No proof begins after it.

        Returns
        -------
        tuple
            The instance, which states its optimum if it is proved, and a value that a schedule certainly reaches (a
            fraction), or None.
        """
        schedules = [refereed(instance, specify("srtf")).schedule]
        found = sharing_optimum(instance, node_limit=WITNESS_NODES).schedule
        if not check_schedule(instance, found):
            schedules.append(found)
        certain = (certain_value(instance, each, objective) for each in schedules)
        reached = min((each for each in certain if each is not None), default=None)
        if instance.n > MOST_PROVED or meet_in_pairs(instance) is not None or deadline.passed:
            return instance, reached
        value = float(_of_two(instance)) if instance.n == 2 else preemptive_sharing_optimum(instance).value
        stated = stating(value, "total_completion_time", "gpu-sharing", "sharing-preemptive")
        return proved_here(instance.replace(optimum=stated)), reached


def _of_two(instance: Instance) -> Fraction:
    """The least sum of completion times of two jobs that cannot run apart (`sjf_bsbf`)."""
    pair = two_sharers(instance)
    first, second = sorted(map(Fraction, instance.arrival.tolist()))
    if pair.left <= 0:
        return first + second + pair.gap + pair.left + pair.alone
    return 2 * second + Fraction(sharing_pair(pair.left, pair.alone, pair.first, pair.second).preemptive_sum)
