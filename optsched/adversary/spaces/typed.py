"""``typed``: gangs on GPUs of two types, at speeds of their own on each, for policies that say themselves where jobs run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from optsched.adversary.space import SPACES, Candidate, Modes, Quantity, SearchSpace, branched, may_be_below
from optsched.errors import check_legal
from optsched.policies.simulate import names_nodes, simulate
from optsched.problem.instance import Instance, Job
from optsched.problem.throughputs import Key, Throughput, Throughputs
from optsched.simulation.policy import BasePolicy, class_of

TYPES = ("V100", "K80")
MINUTE = 60.0
FASTEST = 3  # a gang does 1, 2, 4 or 8 iterations a second
LEAST = MINUTE * 2**FASTEST  # iterations of work 1: a minute at full speed


@SPACES.register("typed")
@dataclass(frozen=True)
class Typed(SearchSpace):
    """R | r_j, size_j | f on two nodes of ``gpus`` / 2 GPUs, of a type each; gangs do 1, 2, 4 or 8 iterations/s on either.

    Work from 1 to ``longest``: at 8 iterations/s a minute each; arrivals up to ``latest`` minutes. What is known without
    preemption is the best that some nodes of branch and bound over (order, type) find; a policy that preempts is also
    held against the run of `srtf`.
    """

    jobs: int = 6
    gpus: int = 2
    longest: int = 60
    latest: int = 60
    gangs: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_legal(self.gpus % 2 == 0, "gpus", self.gpus, "an even number: half of each type")

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """Work, weight, arrival, gang, and the binary logarithms of the speeds on the two types."""
        return (
            Quantity("work", 1, self.longest, work=True),
            Quantity("weight", 1, self.longest if self.weights else 1, tied=True),
            Quantity("arrival", 0, self.latest, origin=True),
            Quantity("gpus", 1, self.gpus // 2 if self.gangs else 1),
            *(Quantity(f"speed on {name}", 0, FASTEST) for name in TYPES),
        )

    @classmethod
    def serves(cls, policy: BasePolicy) -> bool:
        """Return whether the policy names the nodes of whole gangs.

        Parameters
        ----------
        policy
            The policy.
        """
        return names_nodes(policy) and class_of(policy).keeps_gangs

    def instance(self, candidate: Candidate, name: str = "") -> Instance:
        """Return the instance of a candidate; its j-th job is named by the number j, from 1.

        The speeds of the job are those of the profile ``job-``j.

        Parameters
        ----------
        candidate
            The candidate.
        name
            Name of the instance.
        """
        jobs, entries = [], {}
        for j, (work, weight, arrival, gpus, *speeds) in enumerate(candidate.jobs, 1):
            jobs.append(
                Job(
                    f"{j}",
                    arrival=MINUTE * arrival,
                    gpus=gpus,
                    iterations=LEAST * work,
                    profile=f"job-{j}",
                    weight=weight,
                )
            )
            for gpu, speed in zip(TYPES, speeds, strict=True):
                key: Key = (f"job-{j}", gpu, gpus)
                entries[key] = Throughput(float(2**speed))
        cluster = "+".join(f"1x{self.gpus // 2}:{name}" for name in TYPES)
        return Instance(jobs, cluster, name, throughputs=Throughputs(entries))

    def reached(self, candidate: Candidate, instance: Instance, objective: str, preemptive: bool) -> float:
        """Return the best value found for schedules in which every job is on one type from its start to its end.

        Parameters
        ----------
        candidate
            The candidate.
        instance
            Its instance.
        objective
            Name of the objective.
        preemptive
            Whether the run of ``srtf`` is also considered.
        """
        best = branched(instance, objective, _modes(candidate))
        if preemptive:
            best = min(best, simulate(instance, "srtf").value(objective))
        return best

    def may_reach(
        self, candidate: Candidate, instance: Instance, objective: str, preemptive: bool, limit: float
    ) -> bool:
        """Return False if it is certain that `reached` is at least a limit.

        Parameters
        ----------
        candidate
            The candidate.
        instance
            Its instance.
        objective
            Name of the objective.
        preemptive
            Whether the run of ``srtf`` is also considered.
        limit
            Value of the objective.
        """
        return preemptive or may_be_below(instance, objective, _modes(candidate), limit)


def _modes(candidate: Candidate) -> Modes:
    modes: Modes = []
    for work, _, _, gpus, *speeds in candidate.jobs:
        held = [tuple(gpus if k == own else 0 for k in range(len(TYPES))) for own in range(len(TYPES))]
        modes.append([(where, LEAST * work / 2**speed) for where, speed in zip(held, speeds, strict=True)])
    return modes
