"""Tiresias by hand: thresholds, starvation, rounds, restarts."""

from __future__ import annotations

from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job


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
