"""What a policy in plain Python gets besides its view: a predictor told in time, a beginning, notes that are kept."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from optsched.errors import KnowledgeError, SimulationError
from optsched.io.traces.generate import generate
from optsched.policies.simulate import specify
from optsched.problem.instance import Instance, Job
from optsched.simulation.engine import run_policy
from optsched.simulation.policy import Knowledge, Start, View
from optsched.simulation.predictor import JobFacts
from optsched.simulation.run import Run

JOBS = [
    Job("b", arrival=3, duration=2),  # arrives when a completes
    Job("a", duration=3),
    Job("c", arrival=3, duration=1),
    Job("d", arrival=4, gpus=2, duration=5),
]
INSTANCE = Instance(JOBS, "1x2")


class Diary:
    """A predictor that says ``lengths`` and writes down what it hears."""

    name = "diary"

    def __init__(self, lengths: list[float] | None = None) -> None:
        self.lengths = lengths or [10.0, 20.0, 30.0, 40.0]
        self.lines: list[tuple[Any, ...]] = []
        self.facts: JobFacts | None = None

    def begin(self, jobs: JobFacts) -> None:
        self.facts = jobs
        self.lines.append(("begin", jobs.n))

    def predict(self, job: int, now: float) -> float:
        self.lines.append(("predict", job, now))
        return self.lengths[job]

    def observe(self, job: int, now: float, length: float) -> None:
        self.lines.append(("observe", job, now, length))


class Oracle(Diary):
    oracle = True


class Greedy:
    """Starts what fits in order of arrival; ``asks`` looks at the view at every question."""

    name = "greedy"
    knowledge = Knowledge.PREDICTED

    def __init__(self, predictor: Diary | None, asks: Any = lambda view: None) -> None:
        self.asks, self.begun, self.heard = asks, 0, []
        if predictor is not None:
            self.make_predictor = lambda: predictor

    def begin(self, view: View) -> None:
        self.begun += 1
        assert view.cluster_gpus == INSTANCE.cluster.gpus
        assert (view.arrived, view.finished) == ([], [])

    def decide(self, view: View) -> Iterator[Start]:
        self.heard.append((view.now, list(view.arrived), list(view.finished)))
        self.asks(view)
        yield from (Start(j) for j in view.waiting if view.fits(j))


def simulated(policy: Any, instance: Instance = INSTANCE) -> Run:
    return run_policy(instance, policy, specify("fifo").placement)


def test_the_predictor_hears_of_completions_before_it_is_asked_about_arrivals_of_that_instant() -> None:
    diary = Diary()
    run = simulated(Greedy(diary))
    assert (
        diary.lines
        == [
            ("begin", 4),
            ("predict", 1, 0.0),
            ("observe", 1, 3.0, 3.0),
            ("predict", 0, 3.0),
            ("predict", 2, 3.0),
            ("observe", 2, 4.0, 1.0),
            ("predict", 3, 4.0),
            ("observe", 0, 5.0, 2.0),
            ("observe", 3, 10.0, 5.0),
        ][: len(diary.lines)]
    )
    assert len(diary.lines) >= 8  # the completion that ends the run may go unheard
    assert run.predicted is not None
    assert run.predicted.tolist() == [10, 20, 30, 40]


def test_the_policy_is_told_what_arrived_and_what_finished_in_order() -> None:
    policy = Greedy(Diary())
    simulated(policy)
    assert policy.begun == 1
    assert policy.heard[:4] == [(0, [1], []), (3, [0, 2], [1]), (4, [3], [2]), (5, [], [0])]


def test_jobs_are_asked_about_once_each_and_only_after_their_arrival() -> None:
    instance = generate("ddl-small", 4, jobs=6)
    diary = Diary([float(j + 1) for j in range(6)])

    class OnProfiles(Greedy):
        def begin(self, view: View) -> None:
            pass

    simulated(OnProfiles(diary), instance)
    asked = [(line[1], line[2]) for line in diary.lines if line[0] == "predict"]
    assert sorted(asked) == [(j, r) for j, r in enumerate(instance.arrival.tolist())]
    heard = {line[1]: line[3] for line in diary.lines if line[0] == "observe"}
    assert all(length == instance.iterations[j] for j, length in heard.items())  # iterations, not seconds
    assert len(heard) >= 5


def test_only_an_oracle_is_told_true_lengths() -> None:
    oracle, honest = Oracle(), Diary()
    simulated(Greedy(oracle))
    simulated(Greedy(honest))
    assert oracle.facts is not None
    assert oracle.facts.length.tolist() == INSTANCE.duration.tolist()
    assert honest.facts is not None
    with pytest.raises(KnowledgeError, match="true lengths"):
        _ = honest.facts.length


def test_predictions_are_revealed_at_arrival_and_lengths_never() -> None:
    said = []

    def asks(view: View) -> None:
        said.extend(view.predicted(j) for j in view.arrived)
        for j in range(4):
            if view.now < JOBS[j].arrival:
                with pytest.raises(KnowledgeError, match="not arrived"):
                    view.predicted(j)
        for question in (view.duration, view.remaining):
            with pytest.raises(KnowledgeError, match="predicted policy asked"):
                question(view.arrived[0] if view.arrived else 1)

    simulated(Greedy(Diary(), asks))
    assert said == [20, 10, 30, 40]


def test_without_a_predictor_there_is_nothing_to_ask() -> None:
    def asks(view: View) -> None:
        with pytest.raises(KnowledgeError, match="without a predictor"):
            view.predicted(1)

    run = simulated(Greedy(None, asks))
    assert run.predicted is None
    assert dict(run.notes) == {}


@pytest.mark.parametrize("length", [0.0, -1.0, math.nan, math.inf])
def test_a_prediction_that_is_no_length_names_predictor_job_and_time(length: float) -> None:
    with pytest.raises(SimulationError, match=r"predictor diary at 3 s: job 'c'.*expected: a finite number > 0"):
        simulated(Greedy(Diary([1.0, 1.0, length, 1.0])))


def test_notes_are_kept() -> None:
    class Noting(Greedy):
        def notes(self) -> dict[str, Any]:
            return {"questions": np.array([len(self.heard)])}

    policy = Noting(None)
    assert simulated(policy).notes["questions"].tolist() == [len(policy.heard)]
