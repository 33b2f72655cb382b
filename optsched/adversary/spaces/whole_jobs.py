"""``whole-jobs``: gangs alone on their GPUs, integer durations, one node; ``predicted-jobs``: with wrong predictions."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from optsched.adversary.space import MOST_JOBS, SPACES, Candidate, Modes, Quantity, SearchSpace, branched, may_be_below
from optsched.policies.simulate import Specification, simulated_value, specify
from optsched.problem.cluster import Cluster
from optsched.problem.instance import Instance
from optsched.problem.plain_jobs import PlainJobs
from optsched.simulation.policy import BasePolicy, class_of
from optsched.solvers.identical_machines import least_makespan, least_weighted_completion

_IDS = tuple(map(str, range(1, MOST_JOBS + 1)))
WEIGHTED = ("total_weighted_completion_time", "total_weighted_flow_time")
SUMS = ("total_completion_time", "total_flow_time", *WEIGHTED)


@SPACES.register("whole-jobs")
@dataclass(frozen=True)
class WholeJobs(SearchSpace):
    """P | r_j, size_j | f on one node of ``gpus`` GPUs: durations and, unless switched off, weights, arrivals and gangs.

    Durations and weights from 1 to ``longest``, arrivals up to ``latest``. What is known without preemption is the optimum
    (or the best that some nodes of branch and bound find); a policy that preempts is also held against
    the run of `srtf`, which is optimal on one machine.
    """

    arrivals: bool = True
    gangs: bool = True

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
    def serves(cls, policy: BasePolicy) -> bool:
        """Return whether the policy gives whole gangs to whole jobs.

        Parameters
        ----------
        policy
            The policy.
        """
        return class_of(policy).keeps_gangs

    def instance(self, candidate: Candidate, name: str = "") -> Instance:
        """Return the instance of a candidate; its j-th job is named by the number j, from 1.

        Parameters
        ----------
        candidate
            A legal candidate.
        name
            Name of the instance.
        """
        duration, weight, arrival, gpus = zip(*candidate.jobs, strict=True)
        numbers = {"arrival": arrival, "duration": duration, "weight": weight, "due": (math.nan,) * len(gpus)}
        columns = {key: np.array(values, dtype=np.float64) for key, values in numbers.items()}
        return Instance(PlainJobs(_IDS[: len(gpus)], np.array(gpus, dtype=np.int64), columns), self._cluster, name)

    @cached_property
    def _cluster(self) -> Cluster:
        return Cluster.parse(f"1x{self.gpus}")

    def reached(self, candidate: Candidate, instance: Instance, objective: str, preemptive: bool) -> float:
        """Return the optimum without preemption, or the best value that a limited search finds.

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
        best = float(self._machines(candidate, objective) or branched(instance, objective, _modes(instance)))
        if preemptive:
            best = min(best, _srtf_value(instance, objective))
        return best

    def has_run(self, policy: Specification, instance: Instance, objective: str, value: float) -> None:
        """Keep the value of ``srtf`` if it is the policy that ran, so that it does not run again.

        Parameters
        ----------
        policy
            The policy.
        instance
            Instance of a candidate.
        objective
            Name of the objective.
        value
            Value of the run.
        """
        if policy.text == _srtf().text:
            _last[:] = [(instance, objective, value)]

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
        if self._has_faster_way(candidate, objective) or may_be_below(instance, objective, _modes(instance), limit):
            return True
        return preemptive and _srtf_value(instance, objective) < limit

    def _has_faster_way(self, candidate: Candidate, objective: str) -> bool:
        at_once = not any(row[2] or row[3] > 1 for row in candidate.jobs)
        return at_once and (objective == "makespan" or objective in SUMS)

    def _machines(self, candidate: Candidate, objective: str) -> int | None:
        """The optimum of P || f, which has a faster way; None for other candidates."""
        if not self._has_faster_way(candidate, objective):
            return None
        lengths, weights, _, _ = zip(*candidate.jobs, strict=True)
        if objective == "makespan":
            return least_makespan(lengths, self.gpus)
        return least_weighted_completion(lengths, weights if objective in WEIGHTED else (1,) * len(lengths), self.gpus)


def _modes(instance: Instance) -> Modes:
    columns = instance.gpus.tolist(), instance.duration.tolist()
    return [[((gpus,), seconds)] for gpus, seconds in zip(*columns, strict=True)]


@cache
def _srtf() -> Specification:
    return specify("srtf")


_last: list[tuple[Instance, str, float]] = []  # the instance, the objective and the value of the last run of srtf


def _srtf_value(instance: Instance, objective: str) -> float:
    if not (_last and _last[0][0] is instance and _last[0][1] == objective):
        _last[:] = [(instance, objective, simulated_value(instance, _srtf(), objective)[0])]
    return _last[0][2]


SEEDS = 999
_NOISY = re.compile(r"predictor=(noisy(?:/error=[^/,+]+)?)[^,+]*")


@SPACES.register("predicted-jobs")
@dataclass(frozen=True)
class PredictedJobs(WholeJobs):
    """Whole jobs under a policy with the predictor ``noisy``: who is over- and who underestimated, its seed, is searched.

    The policy is text that says the error, ``a-srpt:predictor=noisy/error=2``.
    """

    @property
    def shared(self) -> tuple[Quantity, ...]:
        """The seed."""
        return (Quantity("seed", 0, SEEDS),)

    @classmethod
    def serves(cls, policy: BasePolicy) -> bool:
        """Return whether the policy gives whole gangs to whole jobs and has the predictor ``noisy``.

        Parameters
        ----------
        policy
            The policy.
        """
        return super().serves(policy) and str(getattr(policy, "predictor", "")).startswith("noisy")

    def specification(self, policy: Specification, candidate: Candidate) -> Specification:
        """Return the policy with the seed of the candidate.

        A policy without ``predictor=noisy`` in its text is returned unchanged.

        Parameters
        ----------
        policy
            The policy that is attacked.
        candidate
            Candidate whose only shared number is the seed.
        """
        text = _NOISY.sub(rf"predictor=\1/seed={candidate.shared[0]}", policy.text)
        return policy if text == policy.text else specify(text)
