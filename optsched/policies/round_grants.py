"""GPUs of several types that jobs get in a round: the jobs that want some, and dealing GPUs that cost nothing.

`makespan_rounds` deals all GPUs this way, `hadar_auction` those that nobody has bought.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from optsched.policies.gpu_pools import GpuPools
from optsched.policies.hadar_allocation import SCALE, SPAN, Lots
from optsched.policies.hadar_round import FreeDevices, PriceRange, RoundJobs, Scratch, Taken, open_round, serve
from optsched.problem.arrays import Floats, Ints

Where = tuple[tuple[int, int], ...]  # (node, GPUs there)
ANYWHERE, LATER = -1, -2  # instead of a pool: any pool, several if need be; served after the jobs that have a pool


@dataclass(frozen=True, eq=False)
class Bidders:
    """The m active jobs of a round; their rates are f64[m, P] units of work a second on every pool (`GpuPools.rates`).

    ``gang`` i64[m]; ``left`` units of work, ``age`` seconds since the arrival, ``scale`` and ``span`` of the utility,
    ``restart`` seconds that a new allocation costs, all f64[m]; ``held`` is what each job holds now, () if it does not run.
    """

    gang: Ints
    together: Floats
    spread: Floats
    left: Floats
    age: Floats
    scale: Floats
    span: Floats
    restart: Floats
    held: Sequence[Where]


class Grant(NamedTuple):
    """GPUs for one round: bidder ``job`` (its position) runs on ``on``; ``kept``: it holds these GPUs already."""

    job: int
    on: Where
    kept: bool


class Deal:
    """The GPUs of one round while they are given away, in arrays for compiled code (`optsched.policies.hadar_round`)."""

    def __init__(self, bidders: Bidders, pools: GpuPools, length: float) -> None:
        b, count, nodes, gpus = bidders, pools.type.size, pools.pool.size, int(pools.size.sum())
        terms = np.column_stack(np.broadcast_arrays(b.left, b.age, b.scale, b.span, b.restart, length))
        first = np.zeros(b.gang.size + 1, dtype=np.int64)
        np.cumsum([len(where) for where in b.held], out=first[1:])
        held = np.array([number for where in b.held for entry in where for number in entry], dtype=np.int64)
        machine, amount = np.ascontiguousarray(held.reshape(-1, 2).T)
        served = min(b.gang.size, gpus)

        def zeros(*shape: int) -> Ints:
            return np.zeros(shape, dtype=np.int64)

        lots = Lots(np.arange(count), zeros(count), zeros(count), zeros(count), np.zeros(count), zeros(count))
        self.jobs = RoundJobs(b.gang, b.together, b.spread, terms, first[:-1], first[1:], machine, amount)
        self.devices = FreeDevices(pools.pool, pools.size.copy(), zeros(nodes), lots, zeros(count))
        self.scratch = Scratch(zeros(2, count), zeros(nodes))
        self.taken = Taken(zeros(2), zeros(served), zeros(served), zeros(served + 1), zeros(gpus), zeros(gpus))
        np.add.at(self.devices.claimed, machine, amount)

    def give(self, order: Ints, jobs: RoundJobs | None = None) -> None:
        """Give free GPUs away at a price of 0: every job gets those on which it ends first.

        Parameters
        ----------
        order
            Positions of the jobs in the order of service, i64[k].
        jobs
            The jobs with other rates, if they may use only some of the GPUs.
        """
        jobs = self.jobs if jobs is None else jobs
        jobs.terms[:, SCALE], jobs.terms[:, SPAN] = 1.0, 0.0
        none = np.zeros(self.devices.sold.size)
        prices = PriceRange(none, none, np.ones(none.size), np.array(False))
        open_round(self.devices, prices)
        serve(jobs, order, self.devices, prices, self.scratch, self.taken)

    def give_rest(self, order: Ints) -> None:
        """Give the GPUs that are still free to the jobs that have none yet.

        Parameters
        ----------
        order
            Positions of all jobs in the order of service, i64[m].
        """
        jobs, devices, taken = self.jobs, self.devices, self.taken
        waits = np.ones(jobs.gang.size, dtype=bool)
        waits[taken.job[: taken.size[0]]] = False
        rest = order[waits[order]]
        if rest.size and devices.free.any():
            theirs = np.repeat(waits, jobs.held_last - jobs.held_first)
            devices.claimed[:] = 0
            np.add.at(devices.claimed, jobs.held_machine[theirs], jobs.held_count[theirs])
            self.give(rest)

    @property
    def grants(self) -> list[Grant]:
        """The jobs that got GPUs, in the order of service."""
        taken = self.taken
        grants, entries = taken.size.tolist()
        first = taken.first[: grants + 1].tolist()
        held = list(zip(taken.machine[:entries].tolist(), taken.amount[:entries].tolist(), strict=True))
        rows = zip(taken.job[:grants].tolist(), taken.kept[:grants].tolist(), first, first[1:], strict=False)
        return [Grant(job, tuple(held[begin:end]), bool(kept)) for job, kept, begin, end in rows]


def placed(bidders: Bidders, pools: GpuPools, length: float, order: Ints, pool: Ints, fill: bool) -> list[Grant]:
    """Return who runs where if every job is to run on the GPUs of one pool, the widest gangs first.

    A job whose pool has too few GPUs left is one of the others.

    Parameters
    ----------
    bidders
        The active jobs.
    pools
        Free GPUs.
    length
        Seconds of a round.
    order
        Positions of the jobs in the order of service, i64[m].
    pool
        Pool of each job, or `ANYWHERE` or `LATER`, i64[m].
    fill
        If true, the other jobs then get what is left, in ``order``.

    Notes
    -----
    **Complexity** O(m P^2 + m log m), plus O(nodes) for each job that is served.
    """
    deal = Deal(bidders, pools, length)
    jobs = deal.jobs
    wide = order[np.argsort(-jobs.gang[order], kind="stable")]
    here = (pool[:, None] == np.arange(pools.type.size)) | (pool == ANYWHERE)[:, None]
    there = jobs._replace(together=np.where(here, jobs.together, 0.0), spread=np.where(here, jobs.spread, 0.0))
    deal.give(wide[pool[wide] != LATER], there)
    if fill:
        deal.give_rest(order)
    return deal.grants
