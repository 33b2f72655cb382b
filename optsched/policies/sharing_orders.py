"""The policies under which two jobs share GPUs: shortest job first, with a rule for partners."""

from __future__ import annotations

import math
from typing import Any

from optsched.errors import check_legal
from optsched.policies.decorators import queue_order
from optsched.policies.sharing_choice import best_sharing
from optsched.simulation.policy import Knowledge, KnownJobs, Order

BY = ("pair", "saving", "cost")


def _require_interval(policy: Any) -> None:
    legal = "a finite number of seconds >= 0"
    check_legal(0 <= policy.interval < math.inf, f"{policy.name}: interval", policy.interval, legal)


def _order(jobs: KnownJobs, width: bool, interval: float, *numbers: float) -> Order:
    key = jobs.duration * jobs.gpus if width else jobs.duration
    return Order(key, rule=best_sharing, numbers=tuple(map(float, numbers)), round=interval)


@queue_order("sjf-ffs", Knowledge.CLAIRVOYANT, uses=("sharing",), __post_init__=_require_interval)
def sjf_ffs(
    jobs: KnownJobs,
    accumulate: bool = False,
    consolidated: bool = False,
    width: bool = False,
    interval: float = 0.0,
) -> Order:
    """SJF-FFS: without preemption; a job shares GPUs wherever memory allows, whether or not that pays.

    **Problem** gangs, at most two jobs on a GPU, slow-downs xi >= 1 | sum (C_j - r_j). **Knowledge** clairvoyant (the
    order). At every arrival and completion the waiting jobs are asked about, shortest first; those behind one that waits are
    asked, too. A job takes idle GPUs first, then GPUs with one job and enough memory left, on nodes with fewest jobs first.
    ``accumulate``: where its whole batch does not fit beside a job, a smaller sub-batch may. ``consolidated``: first on one
    node alone. ``width``: shortest by seconds times GPUs. ``interval`` > 0: decisions only at multiples of so many seconds.

    **Guarantee** for two jobs, `optsched.guarantees.sjf_bsbf`. **Complexity** O(G) a waiting job and event.
    **Reference** the baseline of SJF-BSBF (arXiv 2407.13088), as in its authors' public scheduler; see `sjf-bsbf`.
    """
    return _order(jobs, width, interval, 0, consolidated, 0, 0, accumulate, 0)  # the rule without its test


def _require_legal(policy: Any) -> None:
    check_legal(policy.by in BY, "sjf-bsbf: by", policy.by, ", ".join(BY))
    check_legal(0 <= policy.outlook < math.inf, "sjf-bsbf: outlook", policy.outlook, "a finite number >= 0")
    _require_interval(policy)


@queue_order("sjf-bsbf", Knowledge.CLAIRVOYANT, uses=("sharing",), __post_init__=_require_legal)
def sjf_bsbf(
    jobs: KnownJobs,
    consolidated: bool = True,
    joint: bool = True,
    accumulate: bool = True,
    by: str = "cost",
    outlook: float = 0.5,
    width: bool = False,
    interval: float = 0.0,
) -> Order:
    """SJF-BSBF: without preemption; a job shares GPUs where idle ones do not suffice and all completions gain.

    **Problem** gangs, at most two jobs on a GPU, slow-downs xi >= 1, sub-batches by gradient accumulation | sum (C_j - r_j).
    **Knowledge** clairvoyant (seconds alone).
    At every arrival and completion the waiting jobs are asked about, shortest first; those behind one that waits are asked,
    too. Job A of n GPUs, on one node first, the tightest fit first, then on nodes with fewest jobs:

    1. n idle GPUs F: A takes them (nobody shares who need not), unless it would be done sooner by waiting for one node.
    2. Else, for every job R alone on a GPU in O that A fits: t_con, the average completion of A and R if both run
       together from now on, with the sub-batch of A that makes it least; t_seq, if A ran after R with its whole batch. R is
       a partner when t_con < t_seq.
    3. Partners give their GPUs in O until F and these are n, those first whose pair loses least for a GPU, 2 t_con less what
       both take alone; with the smallest of the chosen sub-batches. A starts beside all of them if the sum of all their
       completions is less than if A waited for n idle GPUs, by more than ``outlook`` times what jobs yet to come lose by
       the GPUs that two jobs close to them. Otherwise A waits.
    4. A waits, too, while ``outlook`` times what jobs yet to come would lose by running beside it is more than the time that
       it has waited and takes: who holds many GPUs for hours starts when fewer come, or when it has waited long.

    Jobs to come: as if those that came lately came again (`optsched.policies.sharing_choice`).

    **The published rule** is ``consolidated=false,joint=false,by=pair,outlook=0``: the whole cluster at once, pair tests
    alone (``joint``: all partners together), partners by t_con, nobody yet to come. ``by`` = saving: by t_con - t_seq.
    ``accumulate`` = false: whole batches only. ``width``: shortest by seconds times GPUs. ``interval`` > 0: decisions only
    at multiples of that many seconds.

    **Guarantee** for two jobs, `optsched.guarantees.sjf_bsbf`; none for more. **Counterexample** there: pairwise tests
    are not joint ones. **Complexity** O(N + R) for N nodes and R running jobs, a waiting job and event, and again
    O(R + gang) a partner; O(G) where enough GPUs are open.
    **Reference** Luo et al., "Scheduling Deep Learning Jobs in Multi-Tenant GPU Clusters via Wise Resource Sharing",
    IWQoS 2024, arXiv 2407.13088; the choice of the sub-batch and t_seq with the whole batch are this project's reading,
    the joint test, jobs to come and the order of partners its own.
    """
    return _order(jobs, width, interval, 1, consolidated, joint, BY.index(by), accumulate, outlook)
