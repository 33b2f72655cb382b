"""A new speed model is one file, here this test: no other file names it, and everything works with it."""

from __future__ import annotations

import json
import pickle
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulation.plain_policies import FirstFree

import optsched as osd
from optsched.check.referee import check_schedule
from optsched.compiled import without_interpreting
from optsched.errors import InputError, RowErrors
from optsched.problem.arrays import Floats
from optsched.problem.documents import Document, Number
from optsched.problem.instance import Instance, Job
from optsched.problem.instance_file import json_schema
from optsched.problem.job_speeds import JobSpeeds, Nodes, PlacementPaces
from optsched.problem.objectives import get_objective
from optsched.problem.profile import Profile, Stage
from optsched.problem.speed_model import SPEED_MODELS, NamedModel
from optsched.speeds.duration import paces, seconds_alone, segment_paces, solo_times
from optsched.speeds.speed_tables import pace, speed_tables
from optsched.speeds.type_speeds import type_speeds

# --- the new file -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Amdahl:
    """An iteration takes ``serial`` + ``parallel`` / GPUs seconds, and ``hop`` more for every node beyond the first."""

    serial: float
    parallel: float
    hop: float = 0.0

    def __post_init__(self) -> None:
        if not self.serial + self.parallel > 0:
            raise InputError("an iteration takes no time", field="serial", value=self.serial, legal="seconds > 0")

    def seconds(self, gpus: int, nodes: int) -> float:
        return self.serial + self.parallel / gpus + self.hop * (nodes - 1)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class AmdahlDocument(Document):
    """Seconds."""

    serial: Number
    parallel: Number
    hop: Number = 0


class AmdahlSpeeds(JobSpeeds):
    """By the number of nodes."""

    sees_nodes = True

    def _by_nodes(self, job: int) -> list[float]:
        law, gang = self.given[self.names[int(np.searchsorted(self.jobs, job))]], self.gang(job)
        return [law.seconds(gang, nodes) for nodes in range(1, gang + 1)]

    def gang(self, job: int) -> int:
        return int(self.instance.gpus[job])

    def _reached(self, job: int) -> list[float]:
        room = np.cumsum(np.sort(self.instance.cluster.node_gpus[self.instance.eligible(job)])[::-1])
        counts = range(1, min(room.size, self.gang(job)) + 1)
        return [self._by_nodes(job)[k - 1] for k in counts if room[k - 1] >= self.gang(job)]

    def paces(self) -> tuple[Floats, Floats]:
        reached = [self._reached(job) for job in self.jobs.tolist()]
        return self.in_range(np.array([each[0] for each in reached]), np.array([each[-1] for each in reached]))

    def pace(self, job: int, nodes: Nodes) -> float:
        return self._by_nodes(job)[len(set(nodes)) - 1]

    def rates_by_type(self, may: Floats) -> tuple[Floats, Floats]:
        fastest = may / self.paces()[0][:, None]
        return fastest, fastest

    def compiled(self) -> tuple[PlacementPaces]:
        by_nodes = [tuple(self._by_nodes(job)) for job in self.jobs.tolist()]
        return (PlacementPaces(np.arange(self.jobs.size), [{}] * len(by_nodes), by_nodes),)


class AmdahlProfiles(NamedModel[Amdahl]):
    """Given by name."""

    name, noun, description = "amdahl", "a profile of Amdahl's law", "seconds of an iteration by Amdahl's law"
    value, entry, formulas = Amdahl, AmdahlDocument, AmdahlSpeeds


# --- and what works with it -------------------------------------------------------------------------------------------

LAWS = {"wide": Amdahl(0.25, 4.0, 0.5), "still": Amdahl(1.0, 0.0)}


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    _ = SPEED_MODELS.names()
    monkeypatch.setattr(SPEED_MODELS, "_things", dict(SPEED_MODELS._things))
    SPEED_MODELS.register("amdahl")(AmdahlProfiles)


def mixed() -> Instance:
    """Jobs at the new model beside jobs with durations and at a stage profile, on nodes of four and two GPUs."""
    jobs = [
        Job("a", arrival=0, gpus=4, iterations=8, profile="wide"),
        Job("b", arrival=1, gpus=2, duration=3),
        Job("c", arrival=1, gpus=3, iterations=6, profile="wide"),
        Job("d", arrival=2, gpus=1, iterations=5, profile="still"),
        Job("e", arrival=2, gpus=2, iterations=2, profile="graph"),
    ]
    cluster = osd.Cluster(
        (
            osd.NodeGroup(4, 1, nic_bandwidth=4.0, intra_bandwidth=10.0),
            osd.NodeGroup(2, 2, nic_bandwidth=4.0, intra_bandwidth=10.0),
        )
    )
    return Instance(jobs, cluster, profiles={"graph": Profile((Stage(2, 0.5, 0.5, 5.0),))}, amdahl=LAWS)


def test_one_job_by_hand() -> None:
    alone = Instance([Job("a", gpus=3, iterations=4, profile="wide")], "3x2", amdahl=LAWS)
    assert [each.tolist() for each in paces(alone)] == [[0.25 + 4 / 3 + 0.5], [0.25 + 4 / 3 + 1.0]]
    assert solo_times(alone).seconds.tolist() == [4 * (0.25 + 4 / 3 + 0.5)]
    assert osd.simulate(alone, "fifo").schedule.completion.tolist() == [4 * (0.25 + 4 / 3 + 0.5)]


@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_an_instance_file_keeps_it(tmp_path: Path, suffix: str) -> None:
    made, file = mixed(), tmp_path / f"mixed.{suffix}"
    made.save(file)
    read = Instance.load(file)
    assert read == made
    assert read.digest == made.digest != made.replace(amdahl={**LAWS, "wide": Amdahl(0.25, 4.0)}).digest
    assert made.replace(amdahl={**LAWS, "unused": Amdahl(1, 1)}).digest == made.digest
    assert pickle.loads(pickle.dumps(made)) == made
    assert [read.jobs_at(name).tolist() for name in ("amdahl", "duration", "profiles")] == [[0, 2, 3], [1], [4]]
    assert "amdahl" in json_schema()["properties"]


def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    made = mixed()
    document = made.to_json()
    for change, said in (({"serial": "1"}, "amdahl.wide.serial = '1'"), ({"serial": 0, "parallel": 0}, "amdahl.wide")):
        file = tmp_path / "wrong.json"
        file.write_text(json.dumps({**document, "amdahl": {"wide": {**document["amdahl"]["wide"], **change}}}))
        with pytest.raises(InputError, match=said):
            Instance.load(file)
    with pytest.raises(InputError, match="both a profile of Amdahl's law and a stage profile"):
        made.replace(amdahl={"graph": Amdahl(1, 1)})
    with pytest.raises(InputError, match=r"amdahl\.wide = 3: invalid \(expected: [\w.]*\.Amdahl"):
        made.replace(amdahl={"wide": 3})
    with pytest.raises(RowErrors, match="larger than the cluster"):
        made.replace(jobs=[Job("a", gpus=9, iterations=1, profile="wide")])
    with pytest.raises(TypeError, match="unexpected keyword argument 'amdhal'"):
        Instance([], "1x1", amdhal={})


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.compiled)])
def test_the_compiled_formula_is_the_readable_one(compiled: bool) -> None:
    made = mixed()
    tables, together = speed_tables(made), type_speeds(made)
    for j, entries in (
        (0, [(0, 4)]),
        (0, [(0, 3), (2, 1)]),
        (0, [(2, 1), (0, 2), (1, 1)]),
        (2, [(1, 2), (2, 1)]),
        (3, [(2, 1)]),
    ):
        pool, count = np.array(entries).T.copy()
        nodes = np.repeat(pool, count)
        with without_interpreting() if compiled else nullcontext():
            found = pace(tables, j, int(made.gpus[j]), pool, count)
        assert found == segment_paces(made, np.array([j]), np.array([0, nodes.size]), nodes)[0]
        assert paces(made)[0][j] <= found <= paces(made)[1][j]
        assert found >= 1 / together.rate(j, nodes.tolist())
    assert np.isnan(segment_paces(made, np.array([0]), np.array([0, 2]), np.array([0, 0])))  # not its gang


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.compiled)])
@pytest.mark.parametrize("policy", ["fifo", "srtf", "fifo:skip=true+consolidated", "plain"])
def test_runs_are_accepted_by_the_referee_and_bounded(policy: str, compiled: bool) -> None:
    made = mixed()
    with without_interpreting() if compiled else nullcontext():
        run = osd.simulate(made, FirstFree("nodes") if policy == "plain" else policy)
    assert check_schedule(made, run.schedule, preemptive=True) == []
    assert not run.unfinished
    hasty = replace(run.schedule, end=run.schedule.start + 0.9 * (run.schedule.end - run.schedule.start))
    assert any(found.rule == "rate" for found in check_schedule(made, hasty, preemptive=True))
    for objective in ("total_completion_time", "makespan", "total_flow_time"):
        low = osd.bound(made, objective)
        low.verify(made)
        assert low.value <= get_objective(objective).of(made, run.schedule.completion)


def test_the_volume_of_its_least_work_is_a_bound() -> None:
    """Eight alike gangs of four on one node of four run one after the other."""
    jobs = [Job(str(j), gpus=4, iterations=2, profile="wide") for j in range(8)]
    made = Instance(jobs, "1x4", amdahl=LAWS)
    assert seconds_alone(made).tolist() == [2.5] * 8
    low = osd.bound(made, "makespan")
    low.verify(made)
    assert float(low.value) == osd.simulate(made, "fifo").schedule.completion.max() == 20.0
