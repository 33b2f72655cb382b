"""``transfers``: all-reduces on one link, for policies of the task level."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from optsched.adversary.space import SPACES, Candidate, Quantity, Reached, SearchSpace
from optsched.classes.task_sharing.problem.transfers import TransferProblem, transfer_instance, transfers_of
from optsched.classes.task_sharing.solvers.transfer_search import (
    best_event_order,
    transfer_optimum,
    two_transfer_optimum,
)
from optsched.deadline import NEVER, Deadline
from optsched.errors import InputError, check_legal
from optsched.guarantees.optimum import proved_here, stating
from optsched.problem.contention import Contention
from optsched.problem.instance import Instance
from optsched.simulation.policy import BasePolicy, class_of

NODES = 300  # of the search for a candidate's optimum
MOST_PROVED = 4  # transfers: the linear programs of all orders take a second
AGREE = 1e-7  # relative: what a linear program may miss
SUMS = ("total_completion_time", "total_flow_time")


@SPACES.register("transfers")
@dataclass(frozen=True)
class Transfers(SearchSpace):
    """r_j | sum C_j of transfers of 1 to ``longest`` bytes on one link, b = 1 s a byte, penalty ``eta``, in any order.

    Releases up to ``latest``. The best schedule that is known: the optimum in closed form for two transfers, else the best
    that starts transfers at events, by branch and bound.
    """

    gpus: int = 2
    jobs: int = 4
    eta: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_legal(self.gpus == 2, "gpus", self.gpus, "2: both ends of the link")
        check_legal(0 <= self.eta < float("inf"), "eta", self.eta, "a number of seconds a byte >= 0")

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """Bytes and release."""
        return Quantity("bytes", 1, self.longest, work=True), Quantity("arrival", 0, self.latest, origin=True)

    @classmethod
    def serves(cls, policy: BasePolicy) -> bool:
        """Tell if a policy is one for jobs that have tasks.

        Parameters
        ----------
        policy
            The policy that is attacked.
        """
        return class_of(policy).name == "task-sharing"

    def instance(self, candidate: Candidate, name: str = "") -> Instance:
        """Return the transfers as an instance. Policies that know no better order ask about them in the order of their rows.

        Parameters
        ----------
        candidate
            Bytes and release of every transfer.
        name
            Name of the instance.
        """
        return transfer_instance(self._problem(candidate), name, in_order=True)

    def _problem(self, candidate: Candidate) -> TransferProblem:
        sizes, releases = np.array(candidate.jobs, dtype=np.float64).T
        return TransferProblem(releases, sizes, Contention(1.0, self.eta))

    def reached(self, candidate: Candidate, instance: Instance, objective: str, preemptive: bool) -> float:
        """Return the value of the best schedule that is known. Links have no preemption.

        Parameters
        ----------
        candidate
            Bytes and release of every transfer.
        instance
            The same as an instance.
        objective
            Sum of completion times or of flow times.
        preemptive
            Without meaning for transfers.

        Raises
        ------
        InputError
            Another objective.
        """
        if objective not in SUMS:
            raise InputError("not of transfers", field="objective", value=objective, legal=" or ".join(SUMS))
        problem = self._problem(candidate)
        two = len(candidate.jobs) == 2
        value = two_transfer_optimum(problem) if two else transfer_optimum(problem, node_limit=NODES).value
        return float(value) - (float(instance.arrival.sum()) if objective == "total_flow_time" else 0.0)

    def proved(self, instance: Instance, objective: str, deadline: Deadline = NEVER) -> Reached:
        """Return the instance with its optimum if two exact methods agree on it, and the value of the best known schedule.

        The methods are branch and bound, and the linear programs of all event orders. The schedule is that of the best
        starts at events.

        Parameters
        ----------
        instance
            Transfers on one link.
        objective
            Sum of completion times or of flow times.
        deadline
            Nothing is proved after it.
        """
        problem, reached = transfers_of(instance), _reached(instance, objective)
        if problem.n > MOST_PROVED or deadline.passed:
            return instance, reached
        found = transfer_optimum(problem)
        value = float(found.value)
        if not found.proved or abs(best_event_order(problem).value - value) > AGREE * value:
            return instance, reached
        stated = stating(value, "total_completion_time", "task-sharing", "transfer-search", "transfer-orders")
        return proved_here(instance.replace(optimum=stated)), reached


def _reached(instance: Instance, objective: str) -> Fraction:
    value = transfer_optimum(transfers_of(instance), exact=True, node_limit=100 * NODES).value
    before = sum(map(Fraction, instance.arrival.tolist())) if objective == "total_flow_time" else Fraction(0)
    return Fraction(value) - before
