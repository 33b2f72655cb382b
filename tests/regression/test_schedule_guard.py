"""Guards for anybody's batch scheduler: properties and known schedules, for policies, functions and command lines."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from check import batch_schedulers
from check.batch_schedulers import SCHEDULERS

from optsched.errors import InputError, SimulationError
from optsched.problem.instance import Instance, Job
from optsched.regression.guarded_subject import guarded_subject
from optsched.regression.guarded_suite import GuardSettings
from optsched.regression.schedule_guard import GuardedSchedules, guarded_schedules

SUITE = "known-schedules"


@pytest.fixture
def settings(tmp_path: Path) -> GuardSettings:
    return GuardSettings("test_a.py::test_b", tmp_path, tmp_path / "baseline.json", tmp_path / "failed")


def starts_of(scheduler: str) -> Callable[[Instance], dict[str, float]]:
    def made(instance: Instance) -> dict[str, float]:
        rows = [(job.arrival, job.duration, job.walltime, job.gpus) for job in instance.jobs]
        return dict(zip(instance.ids, SCHEDULERS[scheduler](rows, instance.cluster.gpus), strict=True))  # type: ignore[arg-type]

    made.__name__ = scheduler
    return made


def guard(scheduler: str, settings: GuardSettings, suite: Any = SUITE) -> GuardedSchedules:
    return guarded_schedules(guarded_subject(starts_of(scheduler)), suite, settings)


def test_easy_passes_and_whoever_ignores_the_reservation_fails(settings: GuardSettings) -> None:
    easy = guard("easy", settings)
    assert not easy.asked
    assert easy.hold("head-not-delayed", "no-backfill-missed", "work-conserved", "gang-whole").starts_as("easy").asked
    guard("conservative", settings).hold("promise-kept", "starts-as-promised").starts_as("conservative")
    with pytest.raises(AssertionError) as failed:
        guard("first-fit", settings).hold("work-conserved", "head-not-delayed")
    said, where, replay = str(failed.value).splitlines()
    assert said == (
        "first-fit on known-schedules: head-not-delayed is violated on wide-job-waits: at 7 s job '4' (1 GPU) starts with a "
        "limit of 20 s and moves the shadow time of the head, job '2' (4 GPUs), from 10 s to 27 s"
    )
    assert where.startswith("instance wide-job-waits, 5 jobs on 4 GPUs, written to ")
    assert replay == "replay: pytest test_a.py::test_b --ratio-instance=wide-job-waits"


@pytest.mark.parametrize("slip", ["strict", "until enough", "extra kept", "no spare"])
def test_the_slips_of_published_simulators_fail(slip: str, settings: GuardSettings) -> None:
    with pytest.raises(AssertionError, match=f"easy, {slip} on known-schedules: on .* starts at .*, under easy at"):
        guard(f"easy, {slip}", settings).starts_as("easy")
    with pytest.raises(AssertionError, match=r"(head-not-delayed|no-backfill-missed) is violated"):
        guard(f"easy, {slip}", settings).hold("head-not-delayed", "no-backfill-missed")


def test_policies_of_the_engine_are_subjects(settings: GuardSettings) -> None:
    for policy, known in {
        "fifo": "fcfs",
        "fifo:skip=true": "first-fit",
        "easy": "easy",
        "easy-sjbf": "easy-sjbf",
    }.items():
        guarded_schedules(guarded_subject(policy), SUITE, settings).hold("work-conserved").starts_as(known)
    conservative = guarded_schedules(guarded_subject("conservative"), SUITE, settings)
    conservative.hold("promise-kept", "starts-as-promised").starts_as("conservative")


def test_a_command_line_is_a_subject(settings: GuardSettings) -> None:
    command = [sys.executable, "-S", batch_schedulers.__file__, "easy, extra kept", "{instance}", "{schedule}"]
    scheduled = guarded_schedules(
        guarded_subject(command, name="mysched"), "known-schedules", settings_of_one(settings)
    )
    with pytest.raises(
        AssertionError, match="mysched on known-schedules: head-not-delayed is violated on spare-gpus-are-used"
    ):
        scheduled.hold("head-not-delayed")


def settings_of_one(settings: GuardSettings) -> GuardSettings:
    return GuardSettings(
        settings.test, settings.root, settings.baseline, settings.folder, only="spare-gpus-are-used-up"
    )


def test_own_instances_with_own_starts(settings: GuardSettings) -> None:
    instance = Instance([Job("a", duration=2), Job("b", duration=2, walltime=5)], "1x1", name="two")
    subject = guarded_subject(lambda _: {"a": 0, "b": 2}, name="mine")
    mine = guarded_schedules(subject, [instance], settings).starts_as({"two": {"a": 0, "b": 2}}).hold("work-conserved")
    with pytest.raises(AssertionError, match="on two job 'b' starts at 2 s, in the known schedule at 3 s"):
        mine.starts_as({"two": {"a": 0, "b": 3}})
    with pytest.raises(AssertionError, match="starts-as-promised is defined on no instance"):
        mine.hold("starts-as-promised")
    assert list(mine.schedules) == ["two"]


def test_mistakes_are_one_line(settings: GuardSettings) -> None:
    easy = guard("easy", settings, [Instance([Job("a", duration=2, walltime=2)], "1x1", name="one")])
    for mistake, said in {
        lambda: easy.hold(): "at least one of gang-whole, head-not-delayed",
        lambda: easy.hold("head-not-delay"): "did you mean head-not-delayed",
        lambda: easy.starts_as("easy"): "instances with known starts",
        lambda: easy.starts_as("slurm"): "one of fcfs, easy, easy-sjbf, first-fit, conservative",
    }.items():
        with pytest.raises(InputError, match=said):
            mistake()
    early = guarded_subject(lambda instance: dict.fromkeys(instance.ids, 0.0), name="early")
    with pytest.raises((SimulationError, InputError)) as failed:
        guarded_schedules(early, SUITE, settings)
    assert "early failed on an instance of known-schedules" in failed.value.__notes__[0]


TESTS = f"""
import sys
sys.path.insert(0, {str(Path(batch_schedulers.__file__).parents[1])!r})
COMMAND = [sys.executable, "-S", {batch_schedulers.__file__!r}, "easy, strict", "{{instance}}", "{{schedule}}"]
SUITE = dict(suite="known-schedules", name="mysched")


def test_properties(schedule_properties):
    schedule_properties(COMMAND, **SUITE).hold("head-not-delayed", "work-conserved")


def test_known(schedule_properties):
    schedule_properties(COMMAND, **SUITE).starts_as("easy")


def test_nothing(schedule_properties):
    schedule_properties("fifo", suite="known-schedules")
"""


@pytest.mark.release
def test_the_fixture(bare: Callable[..., pytest.RunResult], pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_schedules=TESTS)
    result = bare("--ratio-instance=end-at-the-shadow")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        [
            "E *mysched on known-schedules: on end-at-the-shadow job '3' starts at 15 s, under easy at 2 s",
            "E *replay: pytest test_schedules.py::test_known --ratio-instance=end-at-the-shadow",
            "schedule_properties('fifo', suite='known-schedules') was run and nothing asked: call .hold(PROPERTY, ...)*",
        ]
    )
