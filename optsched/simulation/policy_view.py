"""What a policy in plain Python sees: `View`, and of it the executions that ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.cluster import Places
from optsched.speeds.goodput import Goodputs
from optsched.speeds.type_speeds import GroupRates, TypeSpeeds


@dataclass(frozen=True, slots=True)
class Ended:
    """An execution that ended, by itself or stopped: ``work`` units in ``seconds``, overhead not counted, ``on`` nodes."""

    job: int
    on: Places
    work: float
    seconds: float


class View(Protocol):
    """What a policy sees at one instant. Jobs are indices; times in seconds since the first arrival of the log.

    ``remaining``, ``left``, ``left_of``, ``duration`` and ``alone`` raise `KnowledgeError` for a policy that is not
    clairvoyant, ``predicted`` for one without a predictor, and all of them for a job that has not arrived. A policy that
    keeps its own queue reads ``arrived`` and ``finished``; ``waiting`` and ``running`` are kept up to date once they have
    been asked for, and copied each time.
    """

    @property
    def now(self) -> float:
        """The present, in seconds since the first arrival (`Instance.epoch`), as all times here are."""

    @property
    def epoch(self) -> float:
        """What the log's clock says at time 0: ``now + epoch`` is a time that people know."""

    @property
    def waiting(self) -> list[int]:
        """Arrived jobs that are not running and not finished, in order of (arrival, index)."""

    @property
    def running(self) -> list[int]:
        """Running jobs in order of (arrival, index)."""

    @property
    def free_gpus(self) -> int:
        """GPUs that no job holds."""

    @property
    def arrived(self) -> list[int]:
        """Jobs that arrived since the policy was last asked, in order of (arrival, index)."""

    @property
    def finished(self) -> list[int]:
        """Jobs that completed since the policy was last asked."""

    @property
    def cluster_gpus(self) -> int:
        """G, the GPUs of the whole cluster."""

    @property
    def active(self) -> Ints:
        """Arrived jobs that are not finished, in order of (arrival, index), i64[]."""

    @property
    def left(self) -> Floats:
        """Units of work left of every job at this instant, f64[n]; use the entries of active jobs."""

    def left_of(self, jobs: Ints) -> Floats:
        """Units of work left of these jobs, each named once, f64[jobs]."""

    def done(self, jobs: Ints) -> Floats:
        """Units of work that these jobs have done, each named once, f64[jobs]: what a scheduler sees of any job."""

    @property
    def free(self) -> Ints:
        """Free GPUs of every node, i64[N]: a copy. For policies that name nodes."""

    @property
    def speeds(self) -> TypeSpeeds:
        """How fast jobs run by GPU type (use the entries of jobs that have arrived), and the nodes' types and sizes."""

    @property
    def node_kind(self) -> Ints:
        """Nodes of one kind (GPU type, memory of a GPU) suit the same jobs, i64[N]."""

    def eligible(self, job: int) -> Bools:
        """Nodes whose GPUs ``job`` may use, bool[N]."""

    def held(self, job: int) -> tuple[tuple[int, int], ...]:
        """(node, GPUs there) that the running job holds, in all its copies; () while it does not run."""

    def starts(self, job: int) -> int:
        """How often it has been started so far."""

    @property
    def ended(self) -> list[Ended]:
        """What has ended since the policy was last asked, also by what it decides now; of who uses copies."""

    @property
    def groups(self) -> GroupRates:
        """How fast jobs run on one node of every group of alike nodes. For policies that know rates."""

    @property
    def goodputs(self) -> Goodputs:
        """How fast jobs run on any number of GPUs: see `optsched.speeds.goodput`."""

    def fits(self, job: int) -> bool:
        """Would the placement find a place for ``job`` now?"""

    def kind(self, job: int) -> int:
        """Jobs of one kind (gang size, eligible nodes) fit or do not fit together."""

    def offer(self, job: int) -> float | None:
        """Seconds that a unit of the job's work would take on the GPUs that the placement would give it now, or None.

        1 for a job with a duration; for one with a profile its iteration time there.
        """

    def pace_on_idle(self, job: int) -> float:
        """The same on the GPUs that the placement would choose in an idle cluster; inf where it would find none."""

    def pace_range(self, job: int) -> tuple[float, float]:
        """Least and greatest seconds that a unit of the job's work can take on this cluster: alpha_min and alpha_max."""

    def idle(self, job: int) -> list[tuple[int, int]]:
        """Idle GPUs that ``job`` may use, (node, index). This and the next five: for policies that share GPUs."""

    def open(self, job: int, option: int = 0) -> list[tuple[int, int]]:
        """GPUs with one job, which ``job`` may share, where that sub-batch fits beside it."""

    def residents(self, gpu: tuple[int, int]) -> tuple[int, ...]:
        """Jobs on a GPU: none, one or two."""

    def options(self, job: int) -> int:
        """How many sub-batches it may choose from; the first is the largest."""

    def slowdown(self, job: int, other: int) -> float:
        """xi of ``job`` beside ``other``; inf: they never share."""

    def alone(self, job: int, option: int = 0) -> float:
        """Seconds alone with that sub-batch; of a running job, those that are left. Clairvoyant policies only."""

    def stretch(self, job: int, option: int) -> float:
        """Seconds that it takes alone with that sub-batch over those with its first, at best: what sub-steps cost, >= 1."""

    def predicted(self, job: int) -> float:
        """Units of work that the predictor said at the job's arrival: iterations with a profile, else seconds."""

    def arrival(self, job: int) -> float:
        """r_j, since the first arrival."""

    def gpus(self, job: int) -> int:
        """g_j."""

    def weight(self, job: int) -> float:
        """w_j."""

    def restart(self, job: int, usual: float) -> float:
        """Seconds that it costs to resume it: as the instance says, else ``usual``, what the policy itself says."""

    def due(self, job: int) -> float:
        """Due date, since the first arrival; inf where there is none."""

    def attained(self, job: int) -> float:
        """GPU-seconds that the job has held so far."""

    def duration(self, job: int) -> float:
        """Seconds alone at full speed."""

    def remaining(self, job: int) -> float:
        """Units of work left: iterations with a profile, else seconds."""
