"""Ada-SRSF: shortest remaining service first, with AdaDUAL's rule for transfers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from optsched.policies import POLICIES
from optsched.policies.adadual import small_enough
from optsched.policies.shortest_service import check_theta, shortest_service, threshold
from optsched.simulation.policy import Knowledge
from optsched.simulation.task_policy import TaskJobs, TaskOrder


@POLICIES.register("ada-srsf")
@dataclass(frozen=True)
class AdaSrsf:
    """Ada-SRSF: LWF-1 placement, shortest remaining service first, and AdaDUAL says which all-reduces may overlap.

    **Problem** jobs of iterations (forward, backward, all-reduce) that share GPUs and network interfaces | sum (C_j - r_j).
    **Knowledge** clairvoyant (iterations). Jobs that wait for memory, tasks on a GPU and ready transfers are served in the
    order of the remaining service: compute seconds left, summed over the workers (``service_includes_comm``: and the
    transfers). A transfer starts when nothing runs on its nodes, or one transfer a node at most and it is smaller than theta
    times what is left of each of them; ``theta`` = b / (2 (b + eta)) unless given.

    **Guarantee** none known for clusters; on one link see ``adadual``. **Counterexample** `optsched.guarantees.adadual`.
    **Complexity** O(nodes of the gang) a test. **Reference** Wang, Shi, Wang, Chu, arXiv 2002.10105 (2020); its gains over
    SRSF(1) and SRSF(2) do not come out of a faithful model: ``optsched reproduce ada-srsf``.
    """

    theta: float = 0.0
    service_includes_comm: bool = False
    name: ClassVar[str] = "ada-srsf"
    knowledge: ClassVar[Knowledge] = Knowledge.CLAIRVOYANT
    default_placement: ClassVar[str] = "lwf"

    def __post_init__(self) -> None:
        check_theta(self.name, self.theta)

    def tasks(self, jobs: TaskJobs) -> TaskOrder:
        """By remaining service, transfers admitted by AdaDUAL."""
        theta = threshold(self.name, jobs, self.theta)
        return shortest_service(jobs, small_enough, (theta,), includes_comm=self.service_includes_comm)
