"""Resuming a job costs what the job says, in every class: the referee refuses schedules that do not pay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import few

import optsched as osd
from optsched.check.context import CheckContext, Violation
from optsched.check.referee import check_file, check_schedule
from optsched.check.restarts import restarts
from optsched.check.schedule_document import document_of
from optsched.contract.instances import random_instance
from optsched.guarantees.guarantee import GUARANTEES
from optsched.policies.simulate import simulate, specify
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference
from optsched.problem.scaling import Scaling
from optsched.problem.schedule import Schedule, Segment, SharedSchedule
from optsched.simulation.run import Run

ONE, TWO = ((0, 0),), ((0, 1),)
LONG, SHORT = Job("long", duration=10, restart=4), Job("short", arrival=3, duration=5)
FORKING = "forking"


def found(instance: Instance, *rows: tuple[int, Any, float, float, float], **options: Any) -> list[Violation]:
    schedule = Schedule.from_segments(instance, [Segment(*row) for row in rows])
    return check_schedule(instance, schedule, **options)


@pytest.mark.parametrize(
    ("rows", "legal"),
    [
        ([(0, ONE, 0, 3, 3), (1, ONE, 3, 8, 5), (0, ONE, 8, 19, 7)], True),
        ([(0, ONE, 0, 3, 3), (1, ONE, 3, 8, 5), (0, ONE, 8, 15, 7)], False),  # nothing is paid
        ([(0, ONE, 0, 3, 3), (1, ONE, 3, 8, 5), (0, ONE, 8, 18.999, 7)], False),  # a part of it
        ([(0, ONE, 0, 3, 3), (1, ONE, 3, 8, 5), (0, ONE, 8.5, 19, 7)], False),  # begun too late
        ([(0, ONE, 0, 3, 3), (1, ONE, 3, 8, 5), (0, TWO, 3, 14, 7)], True),  # moved
        ([(0, ONE, 0, 3, 3), (1, ONE, 3, 8, 5), (0, TWO, 3, 10, 7)], False),
        ([(0, ONE, 0, 3, 3), (0, ONE, 3, 10, 7), (1, TWO, 3, 8, 5)], True),  # it goes on
        ([(0, ONE, 0, 3, 3), (0, ONE, 3.5, 10.5, 7), (1, TWO, 3, 8, 5)], False),  # it stopped for a moment
        ([(0, ONE, 0, 3, 0), (1, ONE, 3, 8, 5), (0, ONE, 8, 22, 10)], True),  # it had begun, and did nothing
        ([(0, ONE, 0, 3, 0), (1, ONE, 3, 8, 5), (0, ONE, 8, 18, 10)], False),
        (
            [(0, ONE, 0, 3, 3), (1, ONE, 3, 8, 5), (0, ONE, 8, 11, 0), (0, TWO, 11, 22, 7)],
            True,
        ),  # stopped while resumed
        ([(0, ONE, 0, 3, 3), (1, ONE, 3, 8, 5), (0, ONE, 8, 12, 0), (0, TWO, 12, 19, 7)], False),  # pays anew elsewhere
    ],
)
def test_a_job_that_was_stopped_pays_before_it_works(rows: list[Any], legal: bool) -> None:
    violations = found(Instance([LONG, SHORT], "1x2"), *rows)
    assert [each.rule for each in violations] == ([] if legal else ["rate"])


def test_the_line_says_what_is_to_pay(tmp_path: Path) -> None:
    instance = Instance([LONG, SHORT], "1x1")
    rows = [(0, ONE, 0, 3, 3), (1, ONE, 3, 8, 5), (0, ONE, 8, 15, 7)]
    Schedule.from_segments(instance, [Segment(*row) for row in rows]).save(tmp_path / "s.json")
    (only,) = check_file(tmp_path / "s.json", instance).violations
    assert str(only) == (
        "rate: segment 2 (job 'long', 8 to 15 s) does 7 s of work "
        "(expected: at most its 7 s less 4 s, which resuming the job costs, at rate 1)"
    )


def test_a_checkpoint_is_paid_as_it_is_read() -> None:
    jobs = [Job("a", duration=10, checkpoint=8e9), SHORT]
    instance = Instance(jobs, Cluster((NodeGroup(gpus=1, storage_bandwidth=2e9),)))
    rows = (0, ONE, 0, 3, 3), (1, ONE, 3, 8, 5)
    assert found(instance, *rows, (0, ONE, 8, 19, 7)) == []
    assert [each.rule for each in found(instance, *rows, (0, ONE, 8, 18, 7))] == ["rate"]


def test_copies_that_begin_later_pay() -> None:
    instance = Instance([LONG], "2x1")
    first, second = ((0, 0),), ((1, 0),)
    assert (
        found(instance, (0, first, 0, 5, 5), (0, second, 0, 5, 5), schedule_class=FORKING) == []
    )  # it starts in two copies
    assert found(instance, (0, first, 0, 7, 7), (0, second, 0.5, 7.5, 3), schedule_class=FORKING) == []
    assert [
        each.rule for each in found(instance, (0, first, 0, 7, 7), (0, second, 0.5, 4, 3), schedule_class=FORKING)
    ] == ["rate"]


@pytest.mark.parametrize(("restart", "serves"), [(None, True), (10, True), (11, False)])
def test_the_theorem_on_copies_asks_what_resuming_costs(restart: float | None, serves: bool) -> None:
    # Rounds of 360 s, of which a copy takes 10 to begin, or what the job says where that is more: then a third one begins.
    instance = Instance([Job("a", duration=700, restart=restart)], "1x1")
    chosen = specify("hadar-e")
    assert simulate(instance, "hadar-e").schedule.completion.tolist() == [720 if serves else 733]
    assert (not GUARANTEES.get("hadar-e").assumptions(chosen.policy, chosen.placement, instance)) is serves


def test_a_job_that_is_resized_pays() -> None:
    scaling = Scaling(0.0, 1.0, iterations=((8, 10.0),))
    job = Job("a", gpus=1, iterations=3, profile="s", batch_size=8, restart=5)
    instance = Instance([job], "1x2", scalings={"s": scaling})
    before, both = (0, ONE, 0, 8, 1), ONE + TWO  # r GPUs do r / 8 iterations a second
    assert found(instance, before, (0, both, 8, 21, 2), schedule_class="elastic") == []
    assert [each.rule for each in found(instance, before, (0, both, 8, 16, 2), schedule_class="elastic")] == ["rate"]


@pytest.mark.parametrize(
    ("restart", "ends", "legal"), [(4, (24, 24), True), (4, (20, 22), False), (None, (20, 22), True)]
)
def test_who_resumes_beside_a_partner_pays_too(restart: float | None, ends: tuple[float, float], legal: bool) -> None:
    # Both work at half speed beside each other: long resumes at 8, and has 6 s to do from 12 on; its partner 8 from 8 on.
    jobs = [replace(LONG, duration=9, restart=restart), SHORT, Job("partner", arrival=8, duration=8)]
    instance = Instance(jobs, "1x1", interference=Interference(2.0))
    rows = [(0, 0, 3, 3), (1, 3, 8, 5), (0, 8, ends[0], 6), (2, 8, ends[1], 8)]
    schedule = Schedule.from_segments(instance, [Segment(job, ONE, *times) for job, *times in rows])
    violations = check_schedule(instance, SharedSchedule(**vars(schedule), steps=np.ones(4, dtype=np.int64)))
    assert [(each.rule, each.job) for each in violations] == ([] if legal else [("rate", "long")])
    assert (
        legal or "at most 4, what its 12 s less 4 s, which resuming the job costs, beside its" in violations[0].message
    )


# --- what the engine makes -----------------------------------------------------------------------------------------------

RECIPES = {"rigid": 16, "ddl-small": 10, "hetero-small": 10, "hadar-mix": 5, "all-four": 12, "sharing-small": 8}
POLICIES = (
    *("srtf", "srtf-gpu", "preemptive-wspt", "setf:quantum=4", "tiresias:threshold=4", "gavel:round=4"),
    *(
        "immediate-dispatch",
        "makespan-rounds:round=4",
        "hadar:round=8",
        "goodput:round=7,restart=2",
        "unified:restart=1",
    ),
    *("unified:fork=true,restart=1", "hadar-e:round=8,overhead=1", "hadar-e:round=8,overhead=1,rule=lp"),
)


def flags(run: Run) -> dict[str, Any]:
    return {"preemptive": run.preemptive, "schedule_class": run.schedule_class}


def costly(instance: Instance, seed: int, unit: float) -> Instance:
    """Jobs of which every fifth says nothing, the others that resuming costs up to 2.5 units, in fractions of it."""
    rng = np.random.default_rng(seed)
    says = [None if k % 5 == 4 else unit * float(rng.choice([0, 0.3, 1, 2.5])) for k in range(instance.n)]
    return instance.replace(jobs=[replace(job, restart=own) for job, own in zip(instance.jobs, says, strict=True)])


def without_paying(schedule: Schedule, paid: np.ndarray[Any, Any]) -> Schedule:
    """Every segment that resumes a job begins to work at once, and ends as much earlier."""
    end = np.where(schedule.work > 0, schedule.end - paid, schedule.end)
    return replace(schedule, end=np.maximum(end, schedule.start))


@pytest.mark.parametrize("recipe", [*RECIPES, "random"])
def test_what_policies_make_pays_and_what_drops_it_is_refused(recipe: str) -> None:
    short = recipe in ("rigid", "ddl-small", "hetero-small", "sharing-small", "random")
    made = (
        random_instance(16, "2x2", jobs=20)
        if recipe == "random"
        else osd.generate(recipe, seed=1, jobs=RECIPES[recipe])
    )
    instance = costly(made, 1, 1.0 if short else 30.0)
    resumed = 0
    for policy in few(POLICIES, 7):
        run = simulate(instance, policy if short else policy.partition(":")[0])
        assert check_schedule(instance, run.schedule, **flags(run)) == [], policy
        paid = restarts(CheckContext(instance, document_of(run.schedule, instance)))
        cheap = without_paying(run.schedule, paid)
        if (cheap.end < run.schedule.end).any():
            resumed += 1
            assert "rate" in {each.rule for each in check_schedule(instance, cheap, **flags(run))}, policy
    assert resumed or recipe == "sharing-small"
