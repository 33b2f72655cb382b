"""List scheduling in a given order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from optsched.errors import InputError
from optsched.policies import POLICIES
from optsched.problem.arrays import Floats
from optsched.registry import near_matches
from optsched.simulation.policy import Knowledge, KnownJobs, Order

_KEYS: dict[str, Callable[[KnownJobs], Floats]] = {
    "given": lambda jobs: np.arange(jobs.n, dtype=np.float64),
    "shortest": lambda jobs: jobs.duration,
    "longest": lambda jobs: -jobs.duration,
    "widest": lambda jobs: -jobs.gpus.astype(np.float64),
    "narrowest": lambda jobs: jobs.gpus.astype(np.float64),
    "largest": lambda jobs: -jobs.gpus * jobs.duration,
    "due": lambda jobs: jobs.due,
}


@POLICIES.register("list")
@dataclass(frozen=True)
class ListScheduling:
    """List scheduling (Graham): whenever GPUs are free, the first job of the list that has arrived and fits starts.

    **Problem** P | r_j, size_j | C_max, sum w_j C_j. **Knowledge** clairvoyant (the list may depend on durations).
    ``by``: ``given`` (the order of the instance, default), ``shortest``, ``longest`` (LPT), ``widest``, ``narrowest``,
    ``largest`` (GPU-time), ``due`` (EDD). In Python ``jobs=(ids...)`` gives any list; jobs not named come last.

    **Guarantee** P || C_max: 2 - 1/m, by ``longest`` 4/3 - 1/(3m) (Graham 1966, 1969); P | size_j | C_max: 2 (Garey and
    Graham 1975). **Tight family** m (m - 1) unit jobs, then one of length m. **Complexity** O(log n) an event.
    """

    by: str = "given"
    jobs: tuple[str, ...] = ()
    name: ClassVar[str] = "list"
    knowledge: ClassVar[Knowledge] = Knowledge.CLAIRVOYANT

    def __post_init__(self) -> None:
        if self.by not in _KEYS:
            legal = near_matches(self.by, list(_KEYS), kind="order")
            raise InputError("unknown order", field="list: by", value=self.by, legal=legal)

    def order(self, jobs: KnownJobs) -> Order:
        """By the position in the list."""
        if not self.jobs:
            return Order(key=_KEYS[self.by](jobs))
        rank = {job: position for position, job in enumerate(self.jobs)}
        unknown = rank.keys() - set(jobs.ids)
        if unknown:
            raise InputError("no such job", field="list: jobs", value=min(unknown), legal="ids of the instance")
        return Order(key=np.array([rank.get(job, len(rank)) for job in jobs.ids], dtype=np.float64))
