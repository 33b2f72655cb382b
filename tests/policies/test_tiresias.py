"""Tiresias by hand: what the reference of queue orders does not know."""

from __future__ import annotations

from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job


def spans(instance: Instance, spec: str) -> dict[str, list[tuple[float, float]]]:
    found: dict[str, list[tuple[float, float]]] = {job: [] for job in instance.ids}
    for segment in sorted(simulate(instance, spec).schedule.segments(), key=lambda segment: segment.start):
        found[instance.ids[segment.job]].append((segment.start, segment.end))
    return found


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
