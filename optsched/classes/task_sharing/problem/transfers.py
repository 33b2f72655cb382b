"""`TransferProblem`: n transfers on shared links, the communication side of a cluster on its own; and as an `Instance`.

**Problem**. Transfer j is released at r_j seconds and has M_j bytes to move over one or several links at once (an all-reduce
over several nodes uses the network interface of each). Once started it runs to its end: no preemption. While k is the
largest number of started, unfinished transfers on any of its links, it moves 1 / (k b + (k - 1) eta) bytes a second.
Choose the starts S_j >= r_j; minimise sum C_j, or sum (C_j - r_j), which differs by a constant.

**As an instance** of the task level, which every task policy can schedule (`transfer_instance`): transfer j becomes a job of
one iteration without compute on a cluster of two one-GPU nodes: its gang takes both, sends M_j bytes over both interfaces
and contends with all others there. So k, and with it every rate, is that of the one link.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from optsched.errors import InputError, check_legal
from optsched.problem.arrays import Bools, Floats, is_whole
from optsched.problem.contention import Contention, IterationTasks
from optsched.problem.epoch import epoch_of
from optsched.problem.instance import Instance

Links = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class TransferProblem:
    """``release`` f64[n] seconds, ``size`` f64[n] bytes, ``links``: the numbers of the links of each transfer.

    Links are integers >= 0 that name network interfaces; without any all transfers share link 0. The theory is of
    the linear model with eta >= 0 and without latency: with a > 0 a transfer would not contend during its first a
    seconds, and nothing here is proved for that.

    Raises `InputError` naming the transfer, the field, the value and what is legal.
    """

    release: Floats
    size: Floats
    contention: Contention
    links: Links = ()

    def __post_init__(self) -> None:
        self.contention.require_penalty("the theory of transfers on links", latency=False)
        size = _numbers(self.size, "size")
        release = _numbers(self.release, "release")
        legal = f"{size.size} numbers, as many as sizes"
        check_legal(release.size == size.size, "release", release.size, legal)
        _each(size > 0, size, "size", "a transfer of 0 bytes or less transfers nothing", "a finite number of bytes > 0")
        _each(np.isfinite(size), size, "size", "invalid", "a finite number of bytes > 0")
        fine = np.isfinite(release) & (release >= 0)
        _each(fine, release, "release", "invalid", "a finite number of seconds >= 0")
        for name, array in (("release", release), ("size", size)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        object.__setattr__(self, "links", _links(self.links, size.size))

    @property
    def n(self) -> int:
        """Number of transfers."""
        return int(self.size.size)

    @cached_property
    def epoch(self) -> float:
        """First release, in seconds, if the other releases less it are floats without rounding; see `epoch_of`."""
        return epoch_of(self.release, np.zeros(0))

    @cached_property
    def relative(self) -> TransferProblem:
        """The same transfers with time counted from `epoch`, as methods that compute in floats see them."""
        return self if self.epoch == 0 else replace(self, release=self.release - self.epoch)

    @cached_property
    def link_numbers(self) -> tuple[int, ...]:
        """The links that are used, ascending."""
        return tuple(sorted({link for links in self.links for link in links}))

    def users(self, link: int) -> tuple[int, ...]:
        """Return the transfers that use a link, ascending.

        Parameters
        ----------
        link
            Number of the link.
        """
        return tuple(j for j, links in enumerate(self.links) if link in links)

    @cached_property
    def alone(self) -> Floats:
        """b M_j, f64[n]: the seconds of each transfer when it has its links to itself."""
        return self.contention.seconds_per_byte * self.size


def _numbers(values: Any, field: str) -> Floats:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("not numbers", field=field, legal="one number for each transfer") from None
    check_legal(array.ndim == 1, field, array.shape, "one number for each transfer")
    return array


def _each(fine: Bools, values: Floats, field: str, message: str, legal: str) -> None:
    for j in np.flatnonzero(~fine)[:1].tolist():
        raise InputError(message, field=f"transfer {j}, {field}", value=float(values[j]), legal=legal)


def _links(links: Sequence[Sequence[int]], n: int) -> Links:
    if len(links) == 0:
        return ((0,),) * n
    check_legal(len(links) == n, "links", len(links), f"{n} tuples, one for each transfer")
    found = []
    for j, own in enumerate(links):
        some = isinstance(own, Sequence) and len(own) > 0
        if not some or not all(is_whole(link) and link >= 0 for link in own) or len(set(own)) < len(own):
            legal = "at least one link, integers >= 0, each once"
            raise InputError("invalid", field=f"transfer {j}, links", value=own, legal=legal)
        found.append(tuple(sorted(int(link) for link in own)))
    return tuple(found)


# --- as an instance -----------------------------------------------------------------------------------------------------


def transfer_instance(
    problem: TransferProblem,
    name: str = "",
    *,
    objective: str = "total_completion_time",
    optimum: Mapping[str, Any] | None = None,
    in_order: bool = False,
) -> Instance:
    """Return the instance of a problem whose transfers all use the same links; seconds and bytes stay.

    The job of transfer j has the id ``"j"``. No job computes, so all have the same service, and policies that
    order by service ask about the first job first. A transfer that is released at the moment at which another
    one ends is asked about after those that wait.

    Parameters
    ----------
    problem
        Transfers.
    name
        Name of the instance.
    objective
        Objective of the instance.
    optimum
        Proven optimum that the instance states.
    in_order
        Order the jobs by index; otherwise by (size, index).

    Raises
    ------
    InputError
        If transfers use different links, which two nodes cannot keep apart.

    Notes
    -----
    O(n log n).
    """
    if len(set(problem.links)) > 1:
        raise InputError(
            "they use different links", field="links", value=problem.link_numbers, legal="one link for all"
        )
    size = problem.size.tolist()
    order = list(range(problem.n)) if in_order else sorted(range(problem.n), key=lambda j: (size[j], j))
    names = [f"transfer-{j}" for j in order]
    table = pl.DataFrame({"id": [str(j) for j in order], "arrival": problem.release[order], "profile": names})
    return Instance(
        table.with_columns(pl.lit(2).alias("gpus"), pl.lit(1.0).alias("iterations")),
        "2x1",
        name,
        objective,
        optimum=optimum,
        tasks={key: IterationTasks(0, 0, size[j]) for key, j in zip(names, order, strict=True)},
        contention=problem.contention,
    )


def transfers_of(instance: Instance) -> TransferProblem:
    """Return the transfers of an instance that `transfer_instance` could have made, in the order of its jobs.

    Parameters
    ----------
    instance
        Jobs that only send one message each.

    Raises
    ------
    InputError
        If jobs do more than send one message.
    """
    alone = instance.cluster.node_count == 2 and bool((instance.cluster.node_gpus == 1).all())
    sizes = []
    for job in instance.jobs:
        tasks = instance.tasks.get(job.profile or "")
        whole = alone and job.gpus == 2 and job.iterations == 1
        if tasks is None or not whole or tasks.compute > 0 or not tasks.message:
            legal = "jobs of one iteration without compute that send a message between two nodes of one GPU each"
            raise InputError(
                f"job {job.id!r} is no transfer", field="instance", value=instance.name or None, legal=legal
            )
        sizes.append(tasks.message)
    if instance.contention is None:
        raise InputError("nothing says what a byte costs", field="contention", legal="Instance(contention=...)")
    return TransferProblem(instance.arrival, np.array(sizes), instance.contention)
