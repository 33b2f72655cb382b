"""``whole-jobs``: gangs that hold their GPUs alone, with integer durations, on one node."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optsched.adversary.candidate import Candidate, Quantity
from optsched.adversary.space import SPACES, SearchSpace
from optsched.bounds.regular import regular_cost
from optsched.errors import check_legal
from optsched.guarantees.optimum import proved_here, stating
from optsched.policies import AnyPolicy
from optsched.policies.simulate import simulate
from optsched.policies.specification import at_task_level, resizes, shares_gpus
from optsched.problem.instance import Instance, Job
from optsched.problem.objectives import get_objective
from optsched.solvers.identical_machines import least_makespan, least_weighted_completion
from optsched.solvers.mode_search import Problem, branch, empty_stack
from optsched.solvers.solve import solve

NODES = 20_000  # of the search for a candidate's optimum: some milliseconds
PROOF_SECONDS = 60.0  # for the optimum of the instance that is reported
WEIGHTED = ("total_weighted_completion_time", "total_weighted_flow_time")
SUMS = ("total_completion_time", "total_flow_time", *WEIGHTED)


@SPACES.register("whole-jobs")
@dataclass(frozen=True)
class WholeJobs(SearchSpace):
    """P | r_j, size_j | f on one node of ``gpus`` GPUs: durations and, unless switched off, weights, arrivals and gangs.

    Durations and weights from 1 to ``longest``, arrivals up to ``latest``. What is known without preemption is the optimum
    (the best of `NODES` nodes of branch and bound, where they do not suffice); a policy that preempts is also held against
    the run of `srtf`, which is optimal on one machine.
    """

    longest: int = 24
    latest: int = 24
    arrivals: bool = True
    gangs: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_legal(1 <= self.longest <= 10**6, "longest", self.longest, "an integer from 1 to 1000000")
        check_legal(0 <= self.latest <= 10**6, "latest", self.latest, "an integer from 0 to 1000000")

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """Duration, weight, arrival, gang."""
        return (
            Quantity("duration", 1, self.longest, work=True),
            Quantity("weight", 1, self.longest if self.weights else 1, tied=True),
            Quantity("arrival", 0, self.latest if self.arrivals else 0, origin=True),
            Quantity("gpus", 1, self.gpus if self.gangs else 1),
        )

    @classmethod
    def serves(cls, policy: AnyPolicy) -> bool:
        """Policies that give whole gangs to whole jobs."""
        return not (at_task_level(policy) or shares_gpus(policy) or resizes(policy))

    def instance(self, candidate: Candidate, name: str = "") -> Instance:
        """Job j is named ``j`` + 1."""
        jobs = [
            Job(f"{j}", arrival=arrival, gpus=gpus, duration=duration, weight=weight)
            for j, (duration, weight, arrival, gpus) in enumerate(candidate.jobs, 1)
        ]
        return Instance(jobs, f"1x{self.gpus}", name)

    def reached(self, candidate: Candidate, instance: Instance, objective: str, preemptive: bool) -> float:
        """The optimum without preemption, or close to it."""
        best = float(self._machines(candidate, objective) or _branched(instance, objective))
        if preemptive:
            best = min(best, simulate(instance, "srtf").value(objective))
        return best

    def _machines(self, candidate: Candidate, objective: str) -> int | None:
        """The optimum of P || f, which has a faster way; None for other candidates."""
        lengths, weights, arrivals, gangs = zip(*candidate.jobs, strict=True)
        if any(arrivals) or max(gangs) > 1:
            return None
        if objective == "makespan":
            return least_makespan(lengths, self.gpus)
        if objective not in SUMS:
            return None
        return least_weighted_completion(lengths, weights if objective in WEIGHTED else (1,) * len(lengths), self.gpus)

    def proved(self, instance: Instance, objective: str) -> Instance:
        """By `optsched.solve`."""
        best = solve(instance, objective, time_limit=PROOF_SECONDS)
        if best.status != "optimal" or best.value is None:
            return instance
        return proved_here(instance.replace(optimum=stating(best.value, objective, "gang-nonpreemptive", best.model)))


def _branched(instance: Instance, objective: str) -> float:
    """The best value that `NODES` nodes of branch and bound find; the optimum where the search ends before."""
    cost, n = regular_cost(get_objective(objective), instance), instance.n
    problem = Problem(
        release=instance.arrival.copy(),
        offset=np.arange(n + 1, dtype=np.int64),
        held=instance.gpus.reshape(n, 1).copy(),
        seconds=instance.duration.copy(),
        capacity=instance.cluster.node_gpus.copy(),
        alike=np.zeros(1, dtype=np.int64),
        slope=cost.slope,
        kink=cost.kink,
        base=cost.base,
        maximum=cost.maximum,
    )
    stack = empty_stack(n, n, np.inf)
    branch(problem, stack, np.arange(n, dtype=np.int64), 0.0, NODES)
    return float(stack.best[0])
