"""Hadar's auction held again in every round, as a running system does."""

from __future__ import annotations

from dataclasses import dataclass

from optsched.policies import POLICIES
from optsched.policies.arrived_jobs import AUCTIONED, require_one_of
from optsched.policies.gpu_pools import GpuPools
from optsched.policies.hadar_auction import Auction
from optsched.policies.round_grants import Bidders, Grant
from optsched.policies.typed_rounds import TypedRounds
from optsched.problem.arrays import Ints


@POLICIES.register("auction-rounds")
@dataclass
class AuctionRounds(TypedRounds):
    """Hadar as a running system holds it: in every round all GPUs are sold again, at prices that rise as they are sold.

    Each active job is valued by its best allocation (`optsched.policies.hadar_allocation`, exact): the ``utility`` of its
    completion if it kept these GPUs to the end, less their prices over all of these rounds. Jobs are served by payoff for a
    GPU and round, the largest first; a job whose payoff the prices have turned negative is refused. GPUs that nobody
    bought go to the others in the same order, each to where it ends first. The price of a GPU type rises
    (`optsched.policies.exponential_prices`) from a quarter of the least value of a GPU among the active jobs to the greatest
    (`optsched.policies.hadar_auction`). A gang may have GPUs of several types and nodes; it then runs at its slowest.

    A round lasts ``round`` seconds; the first begins at an arrival in an idle cluster, and a round ends early when nothing
    runs. With ``fill`` GPUs that are free within a round are sold at once to jobs that wait; without it nothing is decided
    between two rounds, and what nobody bought stays idle. A job that keeps its GPUs pays no ``restart`` (seconds).

    ``utility``, with x the age of the job at its completion, w its weight, N its iterations and d its seconds alone:
    ``slowdown`` w d / x (d is at least a round), ``throughput`` w N / x in iterations/s, ``jct`` w / x, ``deadline``
    w max(0, 1 - x / D), D its due date after the arrival. ``slowdown`` keeps models with many iterations a second from
    going before all others, as they do with ``throughput``.

    **Problem** P | r_j, size_j, pmtn, online-r_j | max sum U_j(C_j - r_j), speeds by GPU type. **Knowledge** clairvoyant:
    remaining work and rates. **Guarantee** none: the prices of a round know nothing of later arrivals; `hadar` has one.
    **Complexity** O(m T^2 + m log m) a round for m jobs and T types, O(nodes) for each job served.
    **Reference** Sultana et al., Hadar, IPDPS 2024 (arXiv 2503.10918) for the system; the rules in detail are this
    project's own, since the paper's are known from summaries only.
    """

    utility: str = "slowdown"

    name = "auction-rounds"

    def __post_init__(self) -> None:
        require_one_of(self, utility=AUCTIONED)
        super().__post_init__()

    @property
    def measured_by(self) -> str:
        """The utility of the auction."""
        return self.utility

    def grants(self, jobs: Ints, bidders: Bidders, pools: GpuPools, begins: bool) -> list[Grant]:
        """Return who buys which GPUs.

        Parameters
        ----------
        jobs
            Numbers of the jobs, i64[m].
        bidders
            The same jobs with what counts for a round.
        pools
            GPUs that are for sale.
        begins
            Not used: the rule is the same within a round.
        """
        return Auction(self.round, self.fill).grants(bidders, pools)
