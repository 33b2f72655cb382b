"""The referee of requests: schedules that were forged are refused, by the right rule."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import optsched as osd
from kv_cache.every_start import random_requests
from optsched.check.referee import check_file
from optsched.classes.kv_cache.problem.request_schedule import request_schedule
from optsched.classes.kv_cache.problem.requests import request_instance
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule
from optsched.simulation.run import Run

TWO = request_instance([1, 2], [4, 5], 9, arrival=[1, 0])


@pytest.mark.parametrize(
    ("starts", "rules"),
    [([5, 0], set()), ([2, 0], {"memory"}), ([0, 4], {"arrival"}), ([5.5, 0], {"rate"})],
)
def test_starts_are_judged(starts: list[float], rules: set[str]) -> None:
    """The cells of every round, arrivals, and boundaries between rounds."""
    assert {v.rule for v in osd.check_schedule(TWO, request_schedule(TWO, starts))} == rules


def test_executions_that_were_thrown_out_are_judged() -> None:
    """They have no tokens, end before the last one, and hold cells."""
    good = request_schedule(TWO, [5, 0])
    more = {"job": np.array([0, 1, 0]), "start": np.array([5.0, 0, 1]), "work": np.array([4.0, 5, 0])}
    offset, where = np.arange(4), np.zeros(3, dtype=np.int64)
    parts = {**more, "gpu_offset": offset, "gpu_node": where, "gpu_index": where}
    for end, work, rules in (
        (2.0, 0.0, set()),
        (5.0, 0.0, {"rate", "memory"}),
        (3.0, 2.0, {"work"}),
        (6.0, 0.0, {"gang"}),
    ):
        changed = replace(good, **parts, end=np.array([9.0, 5, end]))  # type: ignore[arg-type]
        changed.work[2] = work
        assert rules <= {v.rule for v in osd.check_schedule(TWO, changed)}
        assert bool(rules) == bool(osd.check_schedule(TWO, changed))


def forged(run: Run, rng: np.random.Generator) -> Schedule:
    """Return the schedule of a run with one number that is wrong."""
    schedule: Schedule = run.schedule
    s = int(rng.integers(len(schedule)))
    names = ("start", "end", "work", "job", "both")
    name = names[int(rng.integers(len(names)))]
    columns = {each: getattr(schedule, each).copy() for each in names[:4]}
    if name == "job":
        columns["job"][s] = (columns["job"][s] + 1) % max(schedule.instance.n, 2)
    elif name == "both":  # a start before the arrival, or where the cells are taken
        shift = float(rng.integers(1, 9))
        columns["start"][s] -= shift
        columns["end"][s] -= shift
    else:
        columns[name][s] += rng.choice([-2, -1, -0.5, 0.25, 1, 3])
    return replace(schedule, **columns)


def is_legal(instance: Instance, schedule: Schedule) -> bool:
    """Judge a schedule in which every request starts once, by the definition."""
    if sorted(schedule.job.tolist()) != list(range(instance.n)):
        return False
    used: dict[int, int] = {}
    rows = zip(
        schedule.job.tolist(), schedule.start.tolist(), schedule.end.tolist(), schedule.work.tolist(), strict=True
    )
    for j, start, end, work in rows:
        s, o = int(instance.job(j).profile.removeprefix("prompt-")), instance.iterations[j]  # type: ignore[union-attr]
        if start != int(start) or start < instance.arrival[j] or end - start != o or work != o:
            return False
        for q in range(1, int(o) + 1):
            used[int(start) + q] = used.get(int(start) + q, 0) + s + q
    return all(cells <= instance.cluster.nodes[0].gpu_memory for cells in used.values())  # type: ignore[operator]


def forged_schedules_are_refused(count: int, first: int) -> None:
    refused, seed = 0, first
    while refused < count:
        seed += 1
        instance, rng = random_requests(seed, 6), np.random.default_rng(seed)
        schedule = forged(osd.simulate(instance, ("mc-sf", "mc-fcfs", "least-volume")[seed % 3]), rng)
        legal = is_legal(instance, schedule)
        assert (seed, not osd.check_schedule(instance, schedule)) == (seed, legal)
        refused += not legal


def test_forged_schedules_are_refused() -> None:
    """100 of them; those that happen to be legal are accepted."""
    forged_schedules_are_refused(100, 0)


@pytest.mark.study
def test_many_forged_schedules_are_refused() -> None:
    """5,000 of them."""
    forged_schedules_are_refused(5000, 10_000)


def test_a_file_is_judged(tmp_path: Path) -> None:
    """A schedule file is accepted; one that claims less than any schedule has is refused."""
    osd.simulate(TWO, "vllm-fcfs").schedule.save(tmp_path / "run.json", objective="total_flow_time")
    assert check_file(tmp_path / "run.json", TWO).holds
    request_schedule(TWO, [2, 0]).save(tmp_path / "forged.json")
    assert not check_file(tmp_path / "forged.json", TWO).holds
