"""SJF-FFS: shortest job first, first-fit sharing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from optsched.errors import check_legal
from optsched.policies import POLICIES
from optsched.policies.sharing_choice import best_sharing
from optsched.simulation.policy import Knowledge, KnownJobs, Order


@POLICIES.register("sjf-ffs")
@dataclass(frozen=True)
class SjfFfs:
    """SJF-FFS: without preemption; a job shares GPUs wherever there is room, whether or not that pays.

    **Problem** gangs, at most two jobs on a GPU, slow-downs xi >= 1 | sum (C_j - r_j). **Knowledge** clairvoyant (the
    order). At every arrival and completion the waiting jobs are asked about, shortest first; those behind one that waits are
    asked, too. A job takes idle GPUs first, then GPUs with one job and enough memory left, on nodes with fewest jobs first.
    ``accumulate``: where its whole batch does not fit beside a job, a smaller sub-batch may. ``consolidated``: first on one
    node alone. ``width``: shortest by seconds times GPUs. ``interval`` > 0: decisions only at multiples of so many seconds.

    **Guarantee** for two jobs, `optsched.guarantees.sjf_ffs`. **Complexity** O(G) a waiting job and event.
    **Reference** the baseline of SJF-BSBF (arXiv 2407.13088), as in its authors' public scheduler; see `sjf-bsbf`.
    """

    accumulate: bool = False
    consolidated: bool = False
    width: bool = False
    interval: float = 0.0
    name: ClassVar[str] = "sjf-ffs"
    knowledge: ClassVar[Knowledge] = Knowledge.CLAIRVOYANT
    uses: ClassVar[tuple[str, ...]] = ("sharing",)

    def __post_init__(self) -> None:
        check_legal(
            0 <= self.interval < math.inf, f"{self.name}: interval", self.interval, "a finite number of seconds >= 0"
        )

    def order(self, jobs: KnownJobs) -> Order:
        """Shortest first; the rule without its test."""
        key = jobs.duration * jobs.gpus if self.width else jobs.duration
        numbers = (0.0, self.consolidated, 0.0, 0.0, self.accumulate, 0.0)
        return Order(key, rule=best_sharing, numbers=tuple(map(float, numbers)), round=self.interval)
