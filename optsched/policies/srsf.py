"""SRSF(k): shortest remaining service first, at most k transfers on a network interface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from optsched.errors import check_legal
from optsched.policies import POLICIES
from optsched.policies.shortest_service import shortest_service
from optsched.simulation.admission import admission
from optsched.simulation.links import most_running
from optsched.simulation.policy import Knowledge
from optsched.simulation.task_policy import TaskJobs, TaskOrder


@admission
def fewer_than(job: Any, links: Any, numbers: Any) -> bool:
    """Are there fewer than ``numbers[0]`` transfers on every node of the job?"""
    return bool(most_running(links, job) < numbers[0])


@POLICIES.register("srsf")
@dataclass(frozen=True)
class Srsf:
    """SRSF(k): shortest remaining service first at the task level; ``k`` = 1 never lets transfers overlap, 2 in pairs.

    **Problem** jobs of iterations (forward, backward, all-reduce) that share GPUs and network interfaces | sum (C_j - r_j).
    **Knowledge** clairvoyant (iterations). Jobs are placed, GPUs and transfers are served in the order of the remaining
    service; ``service_includes_comm`` counts transfers, too.

    **Guarantee** none known for clusters. Two transfers on one link: 2 for k = 1, (4 + 2 eta / b) / 3 for k >= 2, both
    tight; for n transfers SRSF(1) is not constant-competitive (a long one blocks n short ones).
    **Tight family** `optsched.guarantees.srsf`, `optsched.guarantees.adadual`. **Complexity** O(nodes of the gang) a test.
    **Reference** the baselines of Wang, Shi, Wang, Chu, arXiv 2002.10105 (2020).
    """

    k: int = 1
    service_includes_comm: bool = False
    name: ClassVar[str] = "srsf"
    knowledge: ClassVar[Knowledge] = Knowledge.CLAIRVOYANT
    default_placement: ClassVar[str] = "lwf"

    def __post_init__(self) -> None:
        check_legal(self.k >= 1, "srsf: k", self.k, "an integer >= 1")

    def tasks(self, jobs: TaskJobs) -> TaskOrder:
        """By remaining service; a transfer starts beside fewer than k others."""
        return shortest_service(jobs, fewer_than, (float(self.k),), includes_comm=self.service_includes_comm)
