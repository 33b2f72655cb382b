"""``requests``: requests on one worker, for policies that serve them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from optsched.adversary.space import LEAST, SECONDS, SPACES, Candidate, Quantity, Reached, SearchSpace
from optsched.check.certain_times import certain_value
from optsched.classes.kv_cache.problem.requests import request_instance
from optsched.classes.kv_cache.solvers.methods.cache_states import NAME, RequestSearch
from optsched.deadline import NEVER, Deadline
from optsched.errors import check_legal
from optsched.guarantees.optimum import proved_here, stating
from optsched.problem.instance import Instance
from optsched.problem.objectives import get_objective
from optsched.simulation.policy import BasePolicy, class_of
from optsched.solvers.solve import solve
from optsched.solvers.solve_state import SolveState


@SPACES.register("requests")
@dataclass(frozen=True)
class RequestSpace(SearchSpace):
    """Requests of 0 to ``prompts`` prompt tokens and 1 to ``longest`` output tokens on a worker with ``cells`` cells.

    By default all arrive at 0, and no peak is above half the cache, as the theorem about least-volume demands; without
    ``half`` peaks reach the whole cache. Longer answers are cut to the largest peak. With ``equal`` all have the same
    prompt. The best schedule is the optimum where states of the cache are few.
    """

    jobs: int = 8
    gpus: int = 1
    weights: bool = False
    longest: int = 9
    latest: int = 0
    cells: int = 24
    prompts: int = 3
    equal: bool = False
    half: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_legal(self.gpus == 1, "gpus", self.gpus, "1: there is one worker")
        check_legal(self.cells >= 2, "cells", self.cells, "an integer >= 2")
        most = self.peak - 1
        check_legal(0 <= self.prompts <= most, "prompts", self.prompts, f"from 0 to {most}, so that one token fits")

    @property
    def peak(self) -> int:
        """The largest peak, in cells."""
        return self.cells // 2 if self.half else self.cells

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """Output, arrival, weight, prompt."""
        return (
            Quantity("output", 1, self.longest, work=True),
            Quantity("arrival", 0, self.latest, origin=True),
            Quantity("weight", 1, self.longest if self.weights else 1),
            Quantity("prompt", 0, 0 if self.equal else self.prompts),
        )

    @property
    def shared(self) -> tuple[Quantity, ...]:
        """The prompt of all requests, if it is one."""
        return (Quantity("prompt", 0, self.prompts if self.equal else 0),)

    @classmethod
    def serves(cls, policy: BasePolicy) -> bool:
        """Return whether the policy is for requests.

        Parameters
        ----------
        policy
            The policy.
        """
        return class_of(policy).name == "kv-cache"

    def instance(self, candidate: Candidate, name: str = "") -> Instance:
        """Return the instance of a candidate.

        Parameters
        ----------
        candidate
            The candidate.
        name
            Name of the instance.
        """
        output, arrival, weight, prompt = zip(*candidate.jobs, strict=True)
        prompts = [own + candidate.shared[0] for own in prompt]
        cut = [min(length, self.peak - s) for length, s in zip(output, prompts, strict=True)]
        return request_instance(prompts, cut, self.cells, arrival=arrival, weight=weight, name=name)

    def reached(self, candidate: Candidate, instance: Instance, objective: str, preemptive: bool) -> float:
        """Return the value of the best schedule that the search over states of the cache finds.

        Parameters
        ----------
        candidate
            The candidate.
        instance
            Its instance.
        objective
            Name of the objective.
        preemptive
            Not used: a request that is thrown out starts again, which is never better.
        """
        state = SolveState(instance.relative, get_objective(objective), schedule_class="kv-cache")
        RequestSearch(state).run()
        return float(state.value or 0)

    def proved(self, instance: Instance, objective: str, deadline: Deadline = NEVER) -> Reached:
        """Prove the optimum of an instance, if possible.

        Parameters
        ----------
        instance
            The instance.
        objective
            Name of the objective.
        deadline
            Time at which the proof ends.
        """
        best = solve(instance, objective, time_limit=max(min(SECONDS, deadline.left), LEAST))
        reached: Fraction | None = None
        if best.schedule is not None:
            reached = certain_value(instance, best.schedule, objective, preemptive=False)
        if best.status != "optimal" or best.value is None:
            return instance, reached
        return proved_here(instance.replace(optimum=stating(best.value, objective, "kv-cache", NAME))), reached
