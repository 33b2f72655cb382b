"""The proof of a short horizon, against all active schedules; and left shifts, which it rests on."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from brute_force import earliest
from examples import examples
from hypothesis import given, settings, strategies as st
from tiny_instances import columns, tiny_instances

from optsched.errors import InputError
from optsched.models.latest_starts import in_sequence, latest_completions, latest_starts, left_shift, starts_of
from optsched.problem.instance import Instance, Job
from optsched.problem.objectives import get_objective
from optsched.problem.schedule import Schedule

REGULAR = ("total_flow_time", "total_weighted_completion_time", "total_weighted_tardiness", "makespan", "max_flow_time")


def active_schedules(instance: Instance) -> Any:
    """Starts of the schedules that serial generation makes of every order."""
    jobs, total = list(zip(*(each.tolist() for each in columns(instance)), strict=True)), instance.cluster.gpus
    for order in permutations(range(instance.n)):
        placed: list[Any] = []
        starts = np.zeros(instance.n, dtype=np.int64)
        for j in order:
            release, seconds, gpus = jobs[j]
            starts[j] = start = earliest(release, ((gpus,), seconds), placed, [total])
            placed.append((start, start + seconds, (gpus,)))
        yield starts


@settings(max_examples=examples(150))
@given(
    st.sampled_from(["1x4", "1x5"]).flatmap(lambda where: tiny_instances(where, widest=4, latest=20)),
    st.sampled_from(REGULAR),
)
def test_some_optimum_starts_in_the_windows(instance: Instance, objective: str) -> None:
    release, duration, gpus = columns(instance)
    last = latest_starts(release - release.min(), duration, gpus, instance.cluster.gpus - gpus + 1) + release.min()
    goal = get_objective(objective)
    found = [(goal.exact_of(instance, starts + duration), starts) for starts in active_schedules(instance)]
    best = min(paid for paid, _ in found)
    assert any(paid == best and np.all(starts <= last) for paid, starts in found)


def test_unit_jobs_do_not_wait_for_the_last_release() -> None:
    # B: at most two slots are blocked by the other two jobs, although the last release is far away
    one = np.ones(3, dtype=np.int64)
    assert latest_starts(np.array([0, 0, 1000]), one, one, one).tolist() == [2, 2, 1002]


def test_wide_gangs_cut_the_wait_by_what_they_leave_free() -> None:
    # A on 8 GPUs, all released at 0, four jobs of 4 GPUs and 10 s: at least 5 GPUs are busy while one waits
    four = np.full(4, 4)
    assert latest_starts(np.zeros(4, dtype=np.int64), np.full(4, 10), four, 8 - four + 1).tolist() == [24] * 4
    # one-GPU jobs on m machines: Graham's (sum of the others) / m
    one = np.ones(4, dtype=np.int64)
    assert latest_starts(np.zeros(4, dtype=np.int64), np.full(4, 10), one, 3 * one).tolist() == [10] * 4


def test_one_wide_gang_blocks_only_once() -> None:
    # the knapsack: only the gang of 8 waits beside one busy GPU, for at most the longest duration
    gpus, duration = np.array([8, 1, 1, 1, 1]), np.full(5, 10)
    last = latest_starts(np.zeros(5, dtype=np.int64), duration, gpus, 8 - gpus + 1)
    # 10 s of 1 GPU behind the gang, then (80 + 30 - 10) / 8 s with all 8 GPUs busy
    assert last.tolist() == [10 + 30 // 8, *[10 + 100 // 8] * 4]


@settings(max_examples=examples(80))
@given(instance=tiny_instances("1x3", most=4, widest=3), objective=st.sampled_from(REGULAR), data=st.data())
def test_no_schedule_as_good_as_its_value_is_later(instance: Instance, objective: str, data: Any) -> None:
    order = np.array(data.draw(st.permutations(range(instance.n))))
    release, duration, gpus = columns(instance)
    completion = (in_sequence(order, release, duration, gpus[:, None], np.array([3])) + duration).astype(float)
    goal = get_objective(objective)
    latest = latest_completions(instance, objective, goal.of(instance, completion))
    assert np.all(completion <= latest)


def test_what_a_value_says() -> None:
    instance = Instance([Job("a", 0, 1, 2, weight=2), Job("b", 1, 1, 3, weight=0), Job("c", 0, 1, 1, due=5)], "1x1")
    # the others pay at least 2 * 2 and 1 * 1; 4 + 1 + 2 = 7 leaves 2 to share
    weighted = latest_completions(instance, "total_weighted_completion_time", 7.0)
    assert weighted.tolist() == pytest.approx([3.0, np.inf, 3.0])
    assert latest_completions(instance, "total_weighted_tardiness", 2.0).tolist() == pytest.approx(
        [np.inf, np.inf, 7.0]
    )
    assert latest_completions(instance, "makespan", 6.0).tolist() == [6.0] * 3


@settings(max_examples=examples(80))
@given(instance=tiny_instances("1x3", most=6, widest=3), data=st.data())
def test_a_left_shift_moves_jobs_only_left_until_nothing_moves(instance: Instance, data: Any) -> None:
    release, duration, gpus = columns(instance)
    pools = data.draw(st.sampled_from([1, 2]))
    # in two pools every job takes its GPUs from both, as a mode of a placed model does
    size, capacity = np.repeat(gpus[:, None], pools, axis=1), np.full(pools, 3)
    order = data.draw(st.permutations(range(instance.n)))
    pauses = np.array(data.draw(st.lists(st.integers(0, 4), min_size=instance.n, max_size=instance.n)))
    start = np.empty_like(release)
    start[order] = release.max() + np.cumsum((duration + pauses)[order]) - duration[order]
    moved = left_shift(start, release, duration, size, capacity)
    assert np.all(moved <= start)
    assert np.all(moved >= release)
    # every job is where it would be put beside the jobs that start before it
    by_start = sorted(range(instance.n), key=lambda j: (moved[j], j))
    placed: list[Any] = []
    for j in by_start:
        way = tuple(size[j].tolist())
        assert moved[j] == earliest(release[j], (way, duration[j]), placed, capacity.tolist())
        placed.append((moved[j], moved[j] + duration[j], way))


def test_a_schedule_that_does_not_fit_is_refused() -> None:
    two = np.array([2, 2])
    with pytest.raises(InputError, match="capacity"):
        left_shift(np.array([0, 1]), np.zeros(2, dtype=np.int64), two, two[:, None], np.array([3]))


def test_starts_in_the_order_of_the_jobs() -> None:
    instance = Instance([Job("a", duration=2), Job("b", duration=1)], "1x1")
    schedule = Schedule.from_starts(instance, [1.0, 0.0])
    assert starts_of(schedule).tolist() == [1.0, 0.0]
