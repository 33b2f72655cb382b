"""SJF-BSBF: shortest job first, with best sharing benefit first."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from optsched.errors import check_legal
from optsched.policies import POLICIES
from optsched.policies.sharing_choice import best_sharing
from optsched.simulation.policy import Knowledge, KnownJobs, Order

BY = ("pair", "saving")


@POLICIES.register("sjf-bsbf")
@dataclass(frozen=True)
class SjfBsbf:
    """SJF-BSBF: without preemption; a job shares GPUs where idle ones do not suffice and the pair's completions gain.

    **Problem** gangs, at most two jobs on a GPU, slow-downs xi >= 1, sub-batches by gradient accumulation | sum (C_j - r_j).
    **Knowledge** clairvoyant (seconds alone).
    At every arrival and completion the waiting jobs are asked about, shortest first; those behind one that waits are asked,
    too. Job A of n GPUs, nodes with fewest jobs first:

    1. n idle GPUs F: A takes them (nobody shares who need not).
    2. Else, for every job R alone on a GPU in O where A has room: t_con, the average completion of A and R if both run
       together from now on, with the sub-batch of A that makes it least; t_seq, if A ran after R with its whole batch. R is
       a partner when t_con < t_seq.
    3. Partners by t_con, the smallest first, give their GPUs in O until F and these are n: A starts on all of them, with the
       smallest of the chosen sub-batches. Otherwise it waits.

    ``consolidated``: first on one node alone, the tightest fit first. ``joint``: A starts beside several partners only where
    the sum of all their completions is less than if A waited for n idle GPUs (the pair test knows one partner only).
    ``accumulate`` = false: the whole batch only. ``by`` = saving: partners by t_con - t_seq. ``width``: shortest by seconds
    times GPUs. ``interval`` > 0: decisions only at multiples of that many seconds.

    **Guarantee** for two jobs, `optsched.guarantees.sjf_bsbf`; none for more. **Counterexample** there: pairwise tests
    are not joint ones. **Complexity** O(N + R) for N nodes and R running jobs, a waiting job and event, and again
    O(R + gang) a partner.
    **Reference** Lai-JX et al., "Scheduling Deep Learning Jobs in Multi-Tenant GPU Clusters via Wise Resource Sharing",
    IWQoS 2024, arXiv 2407.13088; the choice of the sub-batch and t_seq with the whole batch are this project's reading.
    """

    consolidated: bool = False
    joint: bool = False
    accumulate: bool = True
    by: str = "pair"
    width: bool = False
    interval: float = 0.0
    name: ClassVar[str] = "sjf-bsbf"
    knowledge: ClassVar[Knowledge] = Knowledge.CLAIRVOYANT
    uses: ClassVar[tuple[str, ...]] = ("sharing",)

    def __post_init__(self) -> None:
        check_legal(self.by in BY, f"{self.name}: by", self.by, " or ".join(BY))
        check_legal(
            0 <= self.interval < math.inf, f"{self.name}: interval", self.interval, "a finite number of seconds >= 0"
        )

    def order(self, jobs: KnownJobs) -> Order:
        """Shortest first; the rule with its test."""
        key = jobs.duration * jobs.gpus if self.width else jobs.duration
        numbers = (1.0, self.consolidated, self.joint, self.by == "saving", self.accumulate)
        return Order(key, rule=best_sharing, numbers=tuple(map(float, numbers)), round=self.interval)
