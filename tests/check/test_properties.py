"""Properties of finished schedules: what holds for which scheduler, and which check catches which published slip."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from check.batch_schedulers import SCHEDULERS, Jobs
from optsched.check.properties import PROPERTIES, Breach, broken_properties
from optsched.check.properties.executions import Executions
from optsched.check.properties.head import backfillings
from optsched.check.properties.kept_promises import promises
from optsched.errors import InputError
from optsched.evaluation.known_schedules import known_schedules
from optsched.problem.instance import Instance, Job
from optsched.problem.schedule import Schedule, Segment

EVERY_EASY = "head-not-delayed", "no-backfill-missed", "work-conserved", "gang-whole"
HOLDS = {  # with limits that may be longer than the run times
    "fcfs": ("head-not-delayed", "work-conserved", "gang-whole"),
    "easy": EVERY_EASY,
    "easy-sjbf": EVERY_EASY,
    "first-fit": ("no-fitting-job-waits", "work-conserved", "gang-whole"),
    "conservative": ("promise-kept", "gang-whole"),
}
EXACT = {**HOLDS, "conservative": ("starts-as-promised", "promise-kept", "head-not-delayed", "work-conserved")}
CAUGHT = {  # what catches each slip: the property, and the workload of the known schedules
    "easy, strict": ("no-backfill-missed", "end-at-the-shadow"),
    "easy, until enough": ("no-backfill-missed", "all-that-end-at-the-shadow"),
    "easy, extra kept": ("head-not-delayed", "spare-gpus-are-used-up"),
    "easy, no spare": ("no-backfill-missed", "spare-gpus"),
    "first-fit": ("head-not-delayed", "no-spare-gpu"),  # the reservation is ignored
    "conservative, rebuilt": ("promise-kept", "promise-after-early-end"),
}


def drawn(seed: int, exact: bool) -> tuple[Jobs, int]:
    source = random.Random(seed)
    gpus, now, jobs = source.choice([4, 8]), 0, list[tuple[float, float, float, int]]()
    for _ in range(source.randint(4, 16)):
        now += source.choice([0, 0, 1, 2, 5])
        lasts = source.randint(1, 9)
        jobs.append((now, lasts, lasts if exact else lasts + source.choice([0, 2, 9]), source.randint(1, gpus)))
    return jobs, gpus


def executed(jobs: Jobs, gpus: int, starts: list[float]) -> Executions:
    columns = np.array(jobs)
    arrival, lasts, limit, width = columns.T
    ids, gang, start = tuple(map(str, range(1, len(jobs) + 1))), width.astype(np.int64), np.array(starts)
    return Executions(ids, gpus, 0.0, arrival, gang, limit, lasts, start, start + lasts, gang)


def broken(name: str, executions: Executions) -> list[Breach]:
    return PROPERTIES.get(name).check(executions)


def rows_of(instance: Instance) -> Jobs:
    return [(job.arrival, job.duration, job.walltime, job.gpus) for job in instance.jobs]  # type: ignore[misc]


@pytest.mark.parametrize("exact", [False, True])
def test_every_scheduler_has_its_properties_on_random_logs(exact: bool) -> None:
    held = EXACT if exact else HOLDS
    for seed in range(60):
        jobs, gpus = drawn(seed, exact)
        for scheduler, names in held.items():
            executions = executed(jobs, gpus, SCHEDULERS[scheduler](jobs, gpus))
            for name in names:
                assert broken(name, executions) == [], (seed, scheduler, name)


def test_easy_never_delays_the_head_in_a_thousand_logs() -> None:
    backfilled = 0
    for seed in range(1000):
        jobs, gpus = drawn(seed, exact=False)
        executions = executed(jobs, gpus, SCHEDULERS["easy"](jobs, gpus))
        backfilled += sum(1 for _ in backfillings(executions))
        assert [found for name in EVERY_EASY for found in broken(name, executions)] == [], seed
    assert backfilled > 800


def test_schedules_known_by_hand_are_those_of_plain_schedulers() -> None:
    assert len(known_schedules()) == 13
    for name, known in known_schedules().items():
        for policy, starts in known.starts.items():
            made = SCHEDULERS[policy](rows_of(known.instance), known.instance.cluster.gpus)
            assert made == list(starts.values()), (name, policy)


@pytest.mark.parametrize("slip", CAUGHT)
def test_every_slip_is_caught_by_a_property_and_by_a_known_schedule(slip: str) -> None:
    name, workload = CAUGHT[slip]
    right = "conservative" if slip.startswith("conservative") else "easy"
    known = known_schedules()[workload]
    made = SCHEDULERS[slip](rows_of(known.instance), known.instance.cluster.gpus)
    assert made != list(known.starts[right].values())
    (found, *_) = broken_properties(known.instance, Schedule.from_starts(known.instance, made), name)
    assert found.jobs
    assert (
        broken_properties(
            known.instance, Schedule.from_starts(known.instance, list(known.starts[right].values())), name
        )
        == []
    )


def test_a_slip_that_delays_nobody_is_not_found_at_the_head() -> None:
    # "<" for "<=", "until enough" and "no spare" make EASY start less than it may: only what is missed shows them
    for seed in range(100):
        jobs, gpus = drawn(seed, exact=False)
        for slip in ("easy, strict", "easy, until enough", "easy, no spare"):
            executions = executed(jobs, gpus, SCHEDULERS[slip](jobs, gpus))
            assert broken("head-not-delayed", executions) == []
            assert broken("work-conserved", executions) == []


def test_a_delayed_head_is_described_with_its_numbers() -> None:
    known = known_schedules()["no-spare-gpu"]
    later = known.instance.replace(name="another")
    (found,) = broken_properties(later, Schedule.from_starts(later, [0, 32, 2]), "head-not-delayed")
    assert found.text == (
        "at 2 s job '3' (1 GPU) starts with a limit of 30 s and moves the shadow time of the head, job '2' (4 GPUs), "
        "from 10 s to 32 s"
    )
    assert (found.instant, found.jobs, found.numbers) == (2, ("2", "3"), {"shadow before": 10, "shadow after": 32})


def test_promises_are_the_reservations_of_the_submission() -> None:
    known = known_schedules()["promise-after-early-end"]
    jobs, gpus = rows_of(known.instance), known.instance.cluster.gpus
    assert promises(executed(jobs, gpus, [0, 0, 18, 4])) == [0, 0, 20, 6]
    (found,) = broken("promise-kept", executed(jobs, gpus, [0, 0, 4, 14]))
    assert found.text == "job '4' (2 GPUs) starts at 14 s; it was promised 6 s on its submission at 2 s"


def test_times_are_on_the_clock_of_the_log() -> None:
    day = 1_600_000_000
    jobs = [Job("a", arrival=day, gpus=2, duration=10.1), Job("b", arrival=day + 1, gpus=2, duration=5)]
    instance = Instance([*jobs, Job("c", arrival=day + 1, duration=5)], "1x2")
    late = Schedule.from_starts(instance, [day, day + 10.1, day + 30])
    (found,) = broken_properties(instance, late, "work-conserved")
    assert found.instant == pytest.approx(day + 15.1)
    assert found.text == "at 1600000015.1 s the head of the queue, job 'c' (1 GPU), waits although 2 GPUs are free"
    assert (
        broken_properties(instance, Schedule.from_starts(instance, [day, day + 10.1, day + 15.1]), "work-conserved")
        == []
    )


def test_the_model_is_judged_too() -> None:
    jobs: Jobs = [(0, 4, 4, 2), (3, 4, 2, 2)]
    executions = executed(jobs, 3, [0, 2])
    assert [found.text for found in broken("gang-whole", executions)] == [
        "job '2' (2 GPUs) starts at 2 s, before its submission at 3 s",
        "job '2' (2 GPUs) starts at 2 s with 1 GPU too few",
    ]
    for ran, legal in {4: True, 2: True, 3: False}.items():  # the run time, or killed at the limit
        end = np.array([4.0, 4.0 + ran])
        one = Executions(**{**vars(executed(jobs, 3, [0, 4])), "end": end})
        assert (broken("gang-whole", one) == []) is legal


def test_a_job_that_never_runs_waits_for_ever() -> None:
    instance = Instance([Job("a", duration=2), Job("b", duration=2, arrival=1)], "1x1")
    one = Schedule.from_segments(instance, [Segment(0, ((0, 0),), 0, 2, 2)])
    assert [found.text for found in broken_properties(instance, one, "gang-whole")] == ["job 'b' (1 GPU) never runs"]
    (found,) = broken_properties(instance, one, "work-conserved")
    assert (found.instant, found.jobs) == (2, ("b",))
    (found,) = broken_properties(instance, one, "promise-kept")
    assert found.text == "job 'b' (1 GPU) starts at no time; it was promised 2 s on its submission at 1 s"


def test_what_cannot_be_judged_is_one_line() -> None:
    instance = Instance([Job("a", duration=2), Job("b", duration=2, walltime=5)], "1x1")
    pieces = [Segment(0, ((0, 0),), 0, 1, 1), Segment(1, ((0, 0),), 1, 3, 2), Segment(0, ((0, 0),), 3, 4, 1)]
    with pytest.raises(InputError, match="job 'a' runs in 2 pieces"):
        broken_properties(instance, Schedule.from_segments(instance, pieces), "work-conserved")
    with pytest.raises(InputError, match="limits that equal the run times"):
        broken_properties(instance, Schedule.from_starts(instance, [0, 2]), "starts-as-promised")
    with pytest.raises(InputError, match="did you mean head-not-delayed"):
        broken_properties(instance, Schedule.from_starts(instance, [0, 2]), "head-not-delay")


def kth(data_dir: Path) -> tuple[Any, int]:
    jobs = list[tuple[float, float, float, int]]()
    for line in (data_dir / "swf" / "KTH-SP2.swf").read_text().splitlines():
        if line.startswith(";") or not line.strip():
            continue
        fields = list(map(float, line.split()))
        if fields[3] > 0 and fields[4] > 0:
            limit = fields[8] if fields[8] > 0 else fields[3]
            jobs.append((fields[1], min(fields[3], limit), limit, int(fields[4])))
    return jobs, 100


def test_easy_on_a_whole_archive_log(data_dir: Path) -> None:
    jobs, gpus = kth(data_dir)
    starts = SCHEDULERS["easy"](jobs, gpus)
    executions = executed(jobs, gpus, starts)
    assert sum(start - job[0] + job[1] for start, job in zip(starts, jobs, strict=True)) == 448_506_807
    assert sum(1 for _ in backfillings(executions)) == 15_175
    assert broken("head-not-delayed", executions) == []


@pytest.mark.study
@pytest.mark.parametrize(
    ("slip", "count"), [("strict", 22), ("until enough", 196), ("extra kept", 160), ("no spare", 5313)]
)
def test_slips_on_a_whole_archive_log(data_dir: Path, slip: str, count: int) -> None:
    jobs, gpus = kth(data_dir)
    executions = executed(jobs, gpus, SCHEDULERS[f"easy, {slip}"](jobs, gpus))
    assert len(broken(CAUGHT[f"easy, {slip}"][0], executions)) == count
