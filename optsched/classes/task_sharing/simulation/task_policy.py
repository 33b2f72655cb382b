"""Policies of the task level: which job is placed first, whose task a GPU takes, which transfers start.

At the task level every forward, backward and all-reduce is an event (`iterations`). Jobs share GPUs as far as memory goes; a
GPU runs one whole task at a time. All choices but one are orders, which the engine runs compiled: keys that fall as tasks
end. The other choice, whether a transfer that is ready starts now or waits, is an admission rule: compiled (`admission`), or
``communicate(view)`` in plain Python.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from optsched.classes.task_sharing.simulation.links import NOW, Links, bytes_left, new_links
from optsched.compiled import njit, types
from optsched.errors import KnowledgeError, SimulationError
from optsched.problem.arrays import Floats, Ints, is_whole
from optsched.problem.contention import Contention
from optsched.problem.instance import Instance
from optsched.simulation.policy import BasePolicy, Knowledge


@dataclass(frozen=True)
class Countdown:
    """A key of every job: constant + forward F + backward B + transfer T, arrays f64[n] (or one number for all).

    F and B: forward and backward tasks that are not finished, over all workers of the gang; T: all-reduces that are not
    finished (of a gang on one node, or without a message, none ever are). A smaller key goes first, then a smaller index.
    """

    constant: Floats | float = 0.0
    forward: Floats | float = 0.0
    backward: Floats | float = 0.0
    transfer: Floats | float = 0.0

    def columns(self, n: int) -> Floats:
        """Return the four coefficients of every job, f64[n, 4].

        Parameters
        ----------
        n
            Number of jobs.

        Raises
        ------
        ValueError
            A coefficient is no finite number.
        """
        parts = (self.constant, self.forward, self.backward, self.transfer)
        found = np.stack([np.broadcast_to(np.asarray(part, dtype=np.float64), (n,)) for part in parts], axis=1)
        if not np.isfinite(found).all():
            raise ValueError("keys are finite numbers")
        return np.ascontiguousarray(found)


@dataclass(frozen=True)
class TaskOrder:
    """The rules of one run.

    ``queue`` f64[n]: jobs that wait for memory are placed smallest first; one that does not fit lets later ones pass.
    ``gpu``: of the tasks that are ready on an idle GPU, that of the job with the smallest key starts.
    ``link``: the order in which ready transfers are asked about; one that is admitted starts at once.
    ``admit``: a compiled admission rule, with its ``numbers`` f64[]; None: the policy's ``communicate`` decides.
    """

    queue: Floats
    gpu: Countdown
    link: Countdown
    admit: Any = None
    numbers: tuple[float, ...] = ()


class TaskJobs:
    """Facts about the jobs at their arrival: arrays over all jobs, in seconds and bytes; times since the first arrival.

    An order may use the entries of a job for that job only: the engine serves a job after it has arrived.
    """

    def __init__(self, instance: Instance, knowledge: Knowledge | str, zero: float = 0.0) -> None:
        self._knowledge, self._zero = Knowledge(knowledge), zero
        self._iterations = instance.iterations
        self.n, self.ids = instance.n, instance.ids
        self.arrival, self.gpus, self.weight = instance.arrival, instance.gpus, instance.weight
        self.forward, self.backward, self.message = instance.forward, instance.backward, instance.message
        self.contention: Contention | None = instance.contention
        self._nodes = instance.cluster.node_count

    @property
    def clock_arrival(self) -> Floats:
        """Arrivals as admission rules see them, f64[n]: by the clock of the run, which began at ``zero``."""
        return self.arrival - self._zero

    @property
    def may_send(self) -> npt.NDArray[np.bool_]:
        """Mask of the jobs that can ever have an all-reduce, bool[n]: a message, and a gang that can span nodes."""
        return (self.message > 0) & (self.gpus > 1) & (self._nodes > 1)

    @property
    def compute(self) -> Floats:
        """t_j = forward + backward, f64[n] seconds."""
        return self.forward + self.backward

    @property
    def seconds_per_byte(self) -> float:
        """b; 0 where nothing is ever sent."""
        return 0.0 if self.contention is None else self.contention.seconds_per_byte

    @property
    def iterations(self) -> Floats:
        """I_j, f64[n]; `KnowledgeError` for a policy that is not clairvoyant."""
        if self._knowledge is Knowledge.CLAIRVOYANT:
            return self._iterations
        raise KnowledgeError(f"a {self._knowledge} policy asked for iterations")

    @property
    def service(self) -> Floats:
        """Compute of all workers together, n_j I_j t_j, f64[n] seconds; `KnowledgeError` as ``iterations``."""
        return self.gpus * self.iterations * self.compute


class LinkView:
    """View of the network for ``communicate``, at a moment at which a transfer became ready or another one ended."""

    def __init__(
        self,
        links: Links,
        instance: Instance,
        name: str,
        knowledge: Knowledge,
        zero: float,
        waiting: Callable[[], Ints],
        begin: Callable[[int], None],
    ) -> None:
        self._links, self._instance, self._name, self._knowledge = links, instance, name, knowledge
        self._zero, self._waiting, self._begin = zero, waiting, begin

    @property
    def now(self) -> float:
        """The present, in seconds since the first arrival (`Instance.epoch`), as all times here are."""
        return self._zero + float(self._links.clock[NOW])

    @property
    def epoch(self) -> float:
        """Time of the log's clock at time 0: ``now + epoch`` is a time that people know."""
        return self._instance.zero

    @property
    def ready(self) -> tuple[int, ...]:
        """Jobs whose all-reduce waits, in the order of the policy's ``link`` keys."""
        return tuple(self._waiting().tolist())

    def running(self, node: int) -> tuple[int, ...]:
        """Return the jobs whose all-reduces run over the interface of a node.

        Parameters
        ----------
        node
            Index of the node.
        """
        links, found = self._links, []
        if not 0 <= node < links.head.size:
            raise SimulationError(f"policy {self._name} asks about node {node!r} (expected: 0..{links.head.size - 1})")
        e = int(links.head[node])
        while e >= 0:
            found.append(int(links.sending[e].job))
            e = int(links.after[e])
        return tuple(sorted(found))

    def nodes(self, job: int) -> tuple[int, ...]:
        """Return the nodes that the gang of a job spans.

        Parameters
        ----------
        job
            Index of the job.
        """
        first = self._links.first[job]
        return tuple(self._links.job_node[first : first + self._links.span[job]].tolist())

    def message(self, job: int) -> float:
        """Return M_j in bytes.

        Parameters
        ----------
        job
            Index of the job.
        """
        return float(self._links.message[job])

    def bytes_left(self, job: int) -> float:
        """Return the bytes that are left of the running all-reduce of a job; all of them if it waits.

        Parameters
        ----------
        job
            Index of the job.
        """
        return float(_bytes_left(self._links, job))

    def transfers_left(self, job: int) -> int:
        """Return the number of all-reduces of a job that are not finished.

        Parameters
        ----------
        job
            Index of the job.

        Raises
        ------
        KnowledgeError
            The policy is not clairvoyant.
        """
        if self._knowledge is not Knowledge.CLAIRVOYANT:
            raise KnowledgeError(f"a {self._knowledge} policy asked for the transfers that are left")
        return int(self._links.transfers_left[job])

    def start(self, job: int) -> None:
        """Start the all-reduce of a job in ``ready`` at once.

        Parameters
        ----------
        job
            Index of the job.

        Raises
        ------
        SimulationError
            The job has no all-reduce that waits.
        """
        if not is_whole(job) or job not in self.ready:
            known = is_whole(job) and 0 <= job < self._instance.n
            named = f"job {self._instance.ids[job]!r} ({job})" if known else f"job {job!r}"
            waiting = ", ".join(f"{each} ({self._instance.ids[each]!r})" for each in self.ready)
            raise SimulationError(
                f"policy {self._name} at {self.now + self.epoch:.12g} s: {named} has no all-reduce that waits "
                f"(expected: {waiting})"
            )
        self._begin(job)


# As plain Python: a call of the compiled form would look up the types of all arrays of the links first.
_bytes_left = getattr(bytes_left, "py_func", bytes_left)


class TaskPolicy(BasePolicy, ABC):
    """An online algorithm at the task level."""

    uses: Sequence[str] = ("tasks",)

    @abstractmethod
    def tasks(self, jobs: TaskJobs) -> TaskOrder:
        """Return orders and admission rule for the jobs of a run.

        Parameters
        ----------
        jobs
            Facts about the jobs at their arrival.
        """

    def communicate(self, view: LinkView) -> Iterable[int] | None:
        """Return the jobs whose transfers start now, in this order, in addition to those that it started through the view.

        The engine asks it where the order of the policy has no admission rule. A policy with neither is refused.

        Parameters
        ----------
        view
            View of the network.
        """
        return None


# --- a compiled admission rule ----------------------------------------------------------------------------------------

_EMPTY = np.zeros(0, dtype=np.int64)
_NOTHING = new_links(np.zeros(0), np.zeros(1, np.int64), _EMPTY, _EMPTY, 0, np.zeros(3), _EMPTY, np.zeros((0, 0)))
ADMIT_SIGNATURE = types.boolean(types.int64, numba.typeof(_NOTHING), types.float64[::1])


def admission(function: Callable[..., bool]) -> Callable[..., bool]:
    """Compile a function as an admission rule, which tells if an all-reduce may start now; it is kept on disk.

    The engine asks ``admit(job, links, numbers) -> bool`` about ready transfers in their order: about each when it becomes
    ready, and again whenever another one has ended on one of its nodes. Those admitted before it run already. (At any
    other moment AdaDUAL and SRSF(k) would refuse again. The k-way rule could change its mind when another transfer
    *starts*; it is not asked then.) A transfer that waits while nothing runs on its nodes is asked about again only when
    one has ended there.

    Parameters
    ----------
    function
        The rule. It may read all of `links.Links`, and change its scratch ``senders`` only. Its ``numbers`` are those of the
        policy's order, then nan.
    """
    result: Callable[..., bool] = njit(signature=ADMIT_SIGNATURE)(function)
    return result


@admission
def always(job: Any, links: Any, numbers: Any) -> bool:
    """Admit every transfer: nothing ever waits.

    Parameters
    ----------
    job
        Index of the job.
    links
        Links.
    numbers
        Numbers of the policy's order; none is used.
    """
    return True
