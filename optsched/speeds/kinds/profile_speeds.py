"""Jobs at stage profiles: a graph of pipeline stages with replicas; the placement on the network decides the speed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache

import numpy as np
from pydantic import Field

from optsched.problem.arrays import Bools, Floats
from optsched.problem.cluster import MAX_GPUS
from optsched.problem.documents import MAX_INTEGER, Document, Integer, Number
from optsched.problem.job_speeds import JobSpeeds, Nodes, StagePaces
from optsched.problem.profile import Profile
from optsched.problem.speed_model import SPEED_MODELS, NamedModel
from optsched.speeds.network import Network
from optsched.speeds.stage_graph import Node, alpha_max, alpha_min, best_pace, iteration_time


class StageDocument(Document):
    """A pipeline stage: one GPU for each replica. Seconds and bytes an iteration."""

    replicas: int = Field(ge=1, le=MAX_GPUS)
    forward: Number = Field(ge=0, description="seconds of one replica for its share of the batch")
    backward: Number = Field(ge=0)
    parameters: Number = Field(0, ge=0, description="bytes, all-reduced among the replicas of the stage")
    activations: Number = Field(0, ge=0, description="bytes that leave the stage (as many gradients come back)")
    name: str = ""


class ProfileDocument(Document):
    """A stage profile: a graph of stages; without edges a chain that carries the stages' activations."""

    stages: list[StageDocument] = Field(min_length=1)
    edges: list[tuple[Integer, Integer] | tuple[Integer, Integer, Number]] | None = Field(
        None, description="[from, to] or [from, to, bytes]; stages by position"
    )
    micro_batches: int | None = Field(
        None, ge=1, le=MAX_INTEGER, description="absent: filling the pipeline costs nothing"
    )


class StageSpeeds(JobSpeeds):
    """Speeds between alpha_min and alpha_max of the profile; see `optsched.speeds.stage_graph`."""

    sees_nodes = is_ordered = communicates = True
    given: dict[str, Profile]

    @cached_property
    def used(self) -> dict[str, Profile]:
        """Profiles of the jobs, by name."""
        return {name: self.given[name] for name in sorted(set(self.names))}

    @cached_property
    def _network(self) -> Network:
        return Network.of(self.instance.cluster)

    @cached_property
    def _profile(self) -> list[str]:
        return self.instance.table["profile"].to_list()

    def paces(self) -> tuple[Floats, Floats]:
        return self.in_range(self._of_jobs(alpha_min), self._of_jobs(alpha_max))

    def _of_jobs(self, alpha: Callable[[Profile, Network], float]) -> Floats:
        seconds = {name: alpha(profile, self._network) for name, profile in self.used.items()}
        return np.array([seconds[name] for name in self.names])

    def solo(self) -> tuple[Floats, Bools]:
        instance, fastest = self.instance, self.paces()[0]
        seconds, exact = instance.work[self.jobs] * fastest, np.ones(self.jobs.size, dtype=np.bool_)
        nodes: dict[int, tuple[tuple[Node, int], ...]] = {}
        for k, j in enumerate(self.jobs.tolist()):
            kind = int(instance.job_class[j])
            if kind not in nodes:
                # kinds of nodes that differ for a mapping, with their numbers; the fastest and largest first
                on, network = np.flatnonzero(instance.eligible(j)), self._network
                rows = np.column_stack([-network.intra[on], -network.cross[on], -network.gpus[on]])
                looks, count = np.unique(rows, axis=0, return_counts=True)
                alike = zip(looks.tolist(), count.tolist(), strict=True)
                nodes[kind] = tuple((Node(-a, -b, int(-c)), n) for (a, b, c), n in alike)
            pace = _remembered(self.used[self.names[k]], nodes[kind], float(fastest[k]))
            exact[k] = pace is not None
            if pace is not None:
                seconds[k] = instance.work[j] * pace
        return seconds, exact

    def alike(self, job: int) -> str:
        """Return a key that jobs share if they are equally fast on the same nodes.

        Parameters
        ----------
        job
            Number of the job.
        """
        return self._profile[job]

    def pace(self, job: int, nodes: Nodes) -> float:
        """Return the seconds of a unit of work of a job on some nodes.

        Parameters
        ----------
        job
            Number of the job.
        nodes
            Node of every replica.
        """
        return iteration_time(self.used[self._profile[job]], self._network, nodes)

    def rates_by_type(self, may: Floats) -> tuple[Floats, Floats]:
        """Return the units of work a second on GPUs of one type, together and spread, f64[k, T] each.

        Parameters
        ----------
        may
            1 where a job may use a type, otherwise 0, f64[k, T].
        """
        rates = may * (1.0 / self._of_jobs(alpha_min))[:, None]
        return rates, rates

    def compute_time(self, job: int, nodes: Nodes, steps: int) -> float:
        """Return the seconds of a unit of work with infinitely fast network interfaces.

        Parameters
        ----------
        job
            Number of the job.
        nodes
            Node of every replica.
        steps
            Sub-steps of an iteration.
        """
        return iteration_time(self.used[self._profile[job]], self._network.compute_time, nodes)

    def compiled(self) -> tuple[StagePaces]:
        position = {name: k for k, name in enumerate(self.used)}
        row = np.array([position[name] for name in self.names], dtype=np.int64)
        return (StagePaces(row, list(self.used.values())),)

    def compiled_compute_time(self, job: int) -> list[float]:
        """Return the seconds of a unit of work without communication, for every sub-batch.

        Parameters
        ----------
        job
            Number of the job.
        """
        return [np.nan]


_remembered = lru_cache(maxsize=4096)(best_pace)


@SPEED_MODELS.register("profiles")
class StageProfiles(NamedModel[Profile]):
    """Stage profiles by name; a gang has one GPU for each replica of its profile."""

    formulas = StageSpeeds
    name, noun, rank = "profiles", "a stage profile", 2
    description = "what an iteration costs, by name"
    value, entry = Profile, ProfileDocument

    make = Profile.from_json

    def gang(self, name: str) -> int:
        """Return the gang size that a profile needs.

        Parameters
        ----------
        name
            Name of the profile.
        """
        return self.given[name].gpus
