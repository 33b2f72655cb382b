"""The queue orders by hand. Their theorems and worst families are held in `tests/guarantees`."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from brute_force import optimum
from examples import examples
from hypothesis import given, settings, strategies as st

from optsched.errors import InputError
from optsched.policies.queue_orders import list_scheduling
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.simulation.policy import Knowledge, KnownJobs

# -- fifo --


def test_the_head_of_a_strict_queue_blocks() -> None:
    jobs = [Job("a", gpus=2, duration=4), Job("wide", arrival=1, gpus=3, duration=1), Job("b", arrival=2, duration=1)]
    instance = Instance(jobs, "1x3")
    assert simulate(instance, "fifo").schedule.completion.tolist() == [4, 5, 6]
    assert simulate(instance, "fifo:skip=true").schedule.completion.tolist() == [4, 5, 3]


def test_wide_jobs_may_starve_when_others_skip_them() -> None:
    stream = [Job(str(k), arrival=k, duration=2) for k in range(50)]
    instance = Instance([*stream, Job("wide", arrival=1, gpus=2, duration=1)], "1x2")
    assert simulate(instance, "fifo").schedule.completion[-1] < 10
    assert simulate(instance, "fifo:skip=true").schedule.completion[-1] == 52  # after the last of them


# -- list --

JOBS = [
    Job("a", gpus=2, duration=5, due=9),
    Job("b", gpus=3, duration=1),
    Job("c", gpus=1, duration=7, due=4),
    Job("d", gpus=3, duration=4, due=4),
]


@pytest.mark.parametrize(
    ("by", "order"),
    [
        ("given", "abcd"),
        ("shortest", "bdac"),
        ("longest", "cadb"),
        ("widest", "bdac"),
        ("narrowest", "cabd"),
        ("largest", "dacb"),
        ("due", "cdab"),
    ],
)
def test_by(by: str, order: str) -> None:
    known = KnownJobs(Instance(JOBS, "1x3"), Knowledge.CLAIRVOYANT)
    by_key = np.argsort(list_scheduling(by=by).order(known).key, kind="stable")
    assert "".join(JOBS[j].id for j in by_key) == order
    wide = Instance([dataclasses.replace(job, gpus=3) for job in JOBS], "1x3")
    run = simulate(wide, list_scheduling(jobs=tuple(order)))
    assert "".join(JOBS[j].id for j in np.argsort(run.schedule.completion)) == order


def test_any_list_and_the_jobs_it_leaves_out_come_last() -> None:
    instance = Instance([Job(name, gpus=3, duration=1) for name in "abcd"], "1x3")
    run = simulate(instance, list_scheduling(jobs=("c", "a")))
    assert run.schedule.completion.tolist() == [2, 3, 1, 4]


def test_what_is_not_an_order_or_a_job_is_one_line() -> None:
    with pytest.raises(InputError, match=r"list: by = 'wide': unknown order; did you mean widest"):
        list_scheduling(by="wide")
    with pytest.raises(InputError, match="list: jobs = 'z': no such job"):
        simulate(Instance(JOBS, "1x3"), list_scheduling(jobs=("a", "z")))


# -- sjf --


@settings(max_examples=examples(40))
@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(1, 3))
def test_spt_is_optimal_on_identical_machines(rows: list[int], m: int) -> None:
    instance = Instance([Job(str(j), duration=d) for j, d in enumerate(rows)], f"{m}x1")
    assert simulate(instance, "sjf").value("total_completion_time") == optimum(instance, "total_completion_time")


def test_jobs_that_do_not_fit_are_passed_over_and_nobody_is_stopped() -> None:
    jobs = [Job("a", gpus=2, duration=9), Job("b", arrival=1, gpus=2, duration=1), Job("c", arrival=1, duration=5)]
    assert simulate(Instance(jobs, "1x3"), "sjf").schedule.completion.tolist() == [9, 10, 6]


# -- srtf --


def test_the_least_important_are_evicted_and_only_as_many_as_needed() -> None:
    jobs = [
        Job("a", gpus=2, duration=20),
        Job("b", gpus=1, duration=30),
        Job("c", gpus=1, duration=40),
        Job("d", arrival=1, gpus=2, duration=2),
    ]
    run = simulate(Instance(jobs, "1x4"), "srtf")
    assert run.preemptions == 2  # b and c; a keeps its GPUs
    assert run.schedule.completion.tolist() == [20, 32, 42, 3]


def test_an_evicted_job_whose_gpus_are_not_needed_keeps_running() -> None:
    # d needs 3: c (3 GPUs) is the most important of the evicted that would do alone, so a (1 GPU, last) keeps its GPU.
    jobs = [Job("c", gpus=3, duration=20), Job("a", gpus=1, duration=30), Job("d", arrival=1, gpus=3, duration=2)]
    run = simulate(Instance(jobs, "1x4"), "srtf")
    assert run.preemptions == 1
    assert run.schedule.completion.tolist() == [22, 30, 3]


@pytest.mark.parametrize(("restart", "completion"), [(0, [7, 3]), (2, [9, 3]), (0.5, [7.5, 3])])
def test_a_resumption_costs_its_restart_and_a_start_does_not(restart: float, completion: list[float]) -> None:
    instance = Instance([Job("a", duration=5), Job("b", arrival=1, duration=2)], "1x1")
    run = simulate(instance, f"srtf:restart={restart}")
    assert run.schedule.completion.tolist() == completion
    assert run.schedule.received.tolist() == [5, 2]
    assert run.metrics["gpu_hours"]["overhead"] * 3600 == pytest.approx(restart)


def test_overhead_paid_in_vain_is_paid_again() -> None:
    # a resumes at 2 and pays 3 s, but c comes at 4: 2 s are lost; from 5 on a pays 3 s once more.
    jobs = [Job("a", duration=5), Job("b", arrival=1, duration=1), Job("c", arrival=4, duration=1)]
    run = simulate(Instance(jobs, "1x1"), "srtf:restart=3")
    assert run.schedule.completion.tolist() == [12, 2, 5]
    assert run.preemptions == 2


def test_overhead_brings_nobody_nearer_to_the_end() -> None:
    # a resumes at 2, pays until 5, works until 6 and has 8 s left; so d, with 6.5 s, goes first after c.
    jobs = [
        Job("a", duration=10),
        Job("b", arrival=1, duration=1),
        Job("c", arrival=6, duration=1),
        Job("d", arrival=6, duration=6.5),
    ]
    run = simulate(Instance(jobs, "1x1"), "srtf:restart=3")
    assert run.schedule.completion.tolist() == [24.5, 2, 7, 13.5]


# -- srtf-gpu --


def test_gpu_time_decides() -> None:
    # 3 GPUs x 2 s = 6 against 1 GPU x 5 s = 5: by GPU-time the narrow job is served first, by time the wide one.
    instance = Instance([Job("wide", gpus=3, duration=2), Job("narrow", duration=5)], "1x3")
    assert simulate(instance, "srtf-gpu").schedule.completion.tolist() == [7, 5]
    assert simulate(instance, "srtf").schedule.completion.tolist() == [2, 7]


def test_what_is_left_counts_not_what_was_asked_for() -> None:
    # At 4 the wide job has 3 x 1 = 3 GPU-seconds left, less than the 4 of the newcomer.
    jobs = [Job("wide", gpus=3, duration=5), Job("new", arrival=4, gpus=2, duration=2)]
    assert simulate(Instance(jobs, "1x3"), "srtf-gpu").schedule.completion.tolist() == [5, 7]
    jobs[1] = Job("new", arrival=3, gpus=2, duration=2)  # at 3 it has 6 left
    assert simulate(Instance(jobs, "1x3"), "srtf-gpu").schedule.completion.tolist() == [7, 5]


# -- wspt --


def test_jobs_of_weight_zero_come_last() -> None:
    jobs = [Job("nothing", duration=1, weight=0), Job("a", duration=9, weight=1), Job("b", duration=9, weight=2)]
    assert simulate(Instance(jobs, "1x1"), "wspt").schedule.completion.tolist() == [19, 18, 9]


def test_by_gpus_the_area_counts() -> None:
    jobs = [Job("wide", gpus=3, duration=2), Job("narrow", duration=5)]
    instance = Instance(jobs, "1x3")
    assert simulate(instance, "wspt").schedule.completion.tolist() == [2, 7]
    assert simulate(instance, "wspt:gpus=true").schedule.completion.tolist() == [7, 5]


# -- tiresias: thresholds, starvation, rounds, restarts --


def spans(instance: Instance, spec: str) -> dict[str, list[tuple[float, float]]]:
    found: dict[str, list[tuple[float, float]]] = {job: [] for job in instance.ids}
    for segment in sorted(simulate(instance, spec).schedule.segments(), key=lambda segment: segment.start):
        found[instance.ids[segment.job]].append((segment.start, segment.end))
    return found


def test_a_job_drops_when_its_gpu_seconds_reach_the_threshold() -> None:
    # a (2 GPUs) reaches 8 GPU-s at 4 and drops; b, which waited, takes the GPUs until it reaches 8 at 8; then a is first.
    instance = Instance([Job("a", gpus=2, duration=6), Job("b", arrival=1, gpus=2, duration=6)], "1x2")
    assert spans(instance, "tiresias:threshold=8") == {"a": [(0, 4), (8, 10)], "b": [(4, 8), (10, 12)]}


def test_starvation_brings_a_job_back_after_waiting_as_long_as_it_ran() -> None:
    # a ran 2 s until 2, so it is back in the first queue at 4, before c; b, stopped at 4 after 2 s, is back at 6, also
    # before c; a, stopped at 6, is back at 8. c has never run, and so it has nothing to come back from.
    instance = Instance([Job("a", duration=6), Job("b", arrival=1, duration=4), Job("c", arrival=3, duration=3)], "1x1")
    assert spans(instance, "tiresias:threshold=2,starvation=1") == {
        "a": [(0, 2), (4, 6), (8, 10)],
        "b": [(2, 4), (6, 8)],
        "c": [(10, 13)],
    }


def test_in_rounds_decisions_wait_for_the_end_of_the_round() -> None:
    jobs = [Job("first", duration=1), Job("a", arrival=1, duration=2), Job("b", arrival=10, duration=1)]
    instance = Instance(jobs, "1x1")  # rounds begin with the first arrival
    assert spans(instance, "tiresias:round=10") == {"first": [(0, 1)], "a": [(10, 12)], "b": [(20, 21)]}
    assert spans(instance, "tiresias:round=4") == {"first": [(0, 1)], "a": [(4, 6)], "b": [(12, 13)]}


def test_the_restart_counts_as_service() -> None:
    # a is back at 6 (it ran 4 s and waited half of that), pays 1 s and drops at 10, after 4 s held but 3 s of work.
    # b resumes at 10 with 2 s of service, pays 1 s and drops at 12, when a is back again for its last 2 s of work.
    instance = Instance([Job("a", duration=9), Job("b", arrival=1, duration=9)], "1x1")
    assert spans(instance, "tiresias:threshold=4,restart=1,starvation=0.5") == {
        "a": [(0, 4), (6, 10), (12, 15)],
        "b": [(4, 6), (10, 12), (15, 22)],
    }


def test_the_default_threshold_is_that_of_the_paper() -> None:
    instance = Instance([Job("a", gpus=8, duration=8000), Job("b", arrival=1, gpus=8, duration=60)], "1x8")
    assert spans(instance, "tiresias") == {"a": [(0, 7200), (7260, 8060)], "b": [(7200, 7260)]}


def test_a_restart_may_be_paid_at_the_first_start_too_and_counts_as_service() -> None:
    instance = Instance([Job("a", duration=9), Job("b", arrival=5, duration=2)], "1x1")
    # a works from 1 and drops at 3, b comes at 5, works from 6 to 8; a pays again
    assert spans(instance, "tiresias:threshold=3,restart=1,first=true") == {"a": [(0, 5), (8, 14)], "b": [(5, 8)]}
    assert spans(instance, "tiresias:threshold=3,restart=1") == {"a": [(0, 5), (7, 12)], "b": [(5, 7)]}


def test_service_may_be_time_whatever_the_gang() -> None:
    instance = Instance([Job("a", gpus=2, duration=6), Job("b", arrival=1, gpus=2, duration=6)], "1x2")
    assert spans(instance, "tiresias:threshold=4,by_time=true") == spans(instance, "tiresias:threshold=8")
    assert spans(instance, "tiresias:threshold=4,by_time=true,starvation=0.25") == {
        "a": [(0, 4), (5, 7)],  # back after waiting a quarter of 4 s
        "b": [(4, 5), (7, 12)],
    }


def test_the_second_queue_in_order_of_arrival_or_of_dropping() -> None:
    # a comes first, b drops first, after 2 s with four GPUs; while c holds two of the six there is room for one of them
    jobs = [
        Job("a", gpus=2, duration=20),
        Job("b", arrival=1, gpus=4, duration=20),
        Job("c", arrival=10, gpus=2, duration=3),
    ]
    instance = Instance(jobs, "1x6")
    assert spans(instance, "tiresias:threshold=8") == {"a": [(0, 20)], "b": [(1, 10), (13, 24)], "c": [(10, 13)]}
    behind = {"a": [(0, 10), (13, 23)], "b": [(1, 21)], "c": [(10, 13)]}
    assert spans(instance, "tiresias:threshold=8,requeue=true") == behind


def test_a_starved_job_may_come_back_behind_those_that_are_there() -> None:
    jobs = [Job("a", duration=9), Job("b", arrival=1, duration=9), Job("c", arrival=2, duration=3)]
    instance = Instance(jobs, "1x1")
    # a is back at 8, after 4 s, before c or behind it
    assert spans(instance, "tiresias:threshold=4,starvation=1")["a"] == [(0, 4), (8, 12), (16, 17)]
    found = spans(instance, "tiresias:threshold=4,starvation=1,requeue=true")
    assert (found["c"], found["a"][1][0]) == ([(8, 11)], 11)
