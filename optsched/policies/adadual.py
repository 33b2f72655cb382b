"""AdaDUAL: may an all-reduce start beside one that runs? Only if it is small enough against what is left of that one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from optsched.policies import POLICIES
from optsched.policies.shortest_service import check_theta, shortest_service, threshold
from optsched.simulation.admission import admission
from optsched.simulation.links import bytes_left, most_running
from optsched.simulation.policy import Knowledge
from optsched.simulation.task_policy import Countdown, TaskJobs, TaskOrder


@admission
def small_enough(job: Any, links: Any, numbers: Any) -> bool:
    """At most one transfer runs on each node, and M_new < theta x what is left of every one of them."""
    most = most_running(links, job)
    if most != 1:
        return bool(most == 0)
    for e in range(links.first[job], links.first[job] + links.span[job]):
        other = links.head[links.job_node[e]]
        if other >= 0:
            left = bytes_left(links, links.sending[other].job)
            if not links.message[job] < numbers[0] * left:
                return False
    return True


@POLICIES.register("adadual")
@dataclass(frozen=True)
class AdaDual:
    """AdaDUAL on its own: shortest transfer first, and a second one joins a first iff M_new / M_left < theta.

    **Problem** transfers of M_j bytes with releases on network interfaces where k at once take k b + (k - 1) eta seconds a
    byte | sum (C_j - r_j); jobs with compute are placed and computed in the order of their remaining service.
    **Knowledge** clairvoyant. ``theta`` = b / (2 (b + eta)) unless given.

    Starting a transfer of M_2 bytes while M_1 are left of another: of all delays only "now" and "when it has ended" can be
    best, and now is better iff M_2 / M_1 < theta (proof in `optsched.speeds.two_transfers`).
    **Guarantee** two transfers on one link, any releases: (2 + theta) / (1 + 2 theta) on sum C_j and on flow time; that is
    1.25 for eta = 0, 2 for eta -> infinity. n transfers: not constant-competitive.
    **Tight family** M_2 / M_1 = theta; the unbounded family: `optsched.guarantees.adadual`.
    **Complexity** O(nodes of the gang) a test. **Reference** Wang, Shi, Wang, Chu, arXiv 2002.10105 (2020).
    """

    theta: float = 0.0
    name: ClassVar[str] = "adadual"
    knowledge: ClassVar[Knowledge] = Knowledge.CLAIRVOYANT
    default_placement: ClassVar[str] = "lwf"

    def __post_init__(self) -> None:
        check_theta(self.name, self.theta)

    def tasks(self, jobs: TaskJobs) -> TaskOrder:
        """Transfers by size, everything else by remaining service."""
        theta = threshold(self.name, jobs, self.theta)
        return shortest_service(jobs, small_enough, (theta,), link=Countdown(constant=jobs.message))
