"""Safe backfilling: reservations recomputed here, capacity second by second, and what they do for a whole run."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.io.traces.generate import generate
from optsched.policies.shadow_queue import ShadowQueue
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.simulation.run import Run
from optsched.speeds.duration import paces
from policies.a_srpt_model import dispatched

CLOSE = 1 + 1e-9


def latest_starts(instance: Instance, run: Run, tau: float, threshold: float) -> list[float]:
    """F_j: the strict queue with every job at alpha_max and every budget of delay spent to the end."""
    fastest, slowest = paces(instance)
    heavy = (slowest >= threshold * fastest) & (slowest > fastest)
    patience = tau * run.notes["virtual_length"] * heavy

    def offer(j: int, running: list[tuple[float, int]]) -> float | None:
        used = sum(int(instance.gpus[k]) for _, k in running)
        return float(slowest[j]) if used + instance.gpus[j] <= instance.cluster.gpus else None

    work = instance.work.tolist()
    times = dispatched(
        run.notes["eligible"].tolist(), work, offer, patience.tolist(), good=[0.0] * instance.n, alone=False
    )
    return [start for start, _ in times]


def runs(count: int) -> Iterator[tuple[Instance, Run, Run, float]]:
    """(instance, with shadow backfilling, strict, tau) on gangs with durations and on profiles."""
    rng = random.Random(2)
    for seed in range(count):
        tau = rng.choice([0.0, 0.5, 2.0])
        if seed % 2:
            latest, gpus = rng.choice([0, 8, 20]), rng.choice([2, 4, 8])
            instance = generate("a-srpt-small", seed, jobs=rng.randint(3, 12), gpus=gpus, latest=latest)
        else:
            nodes, gpus = rng.choice([(2, 2), (4, 1), (2, 4)])
            instance = generate("ddl-small", seed, jobs=8, nodes=nodes, gpus=gpus, heavy=1.0, span=rng.choice([0.2, 1]))
        spec = f"a-srpt:tau={tau},heavy_threshold=1,predictor=noisy/error=2"
        place = rng.choice(["heavy-edge", "random", "first-fit"])
        yield instance, *(simulate(instance, f"{spec},backfill={b}+{place}") for b in ("shadow", "none")), tau


def test_no_job_starts_after_its_reservation_and_the_total_falls() -> None:
    shadow, strict, earlier = 0.0, 0.0, 0
    for instance, run, plain, tau in runs(80):
        latest = latest_starts(instance, run, tau, 1.0)
        start = dict(zip(run.schedule.job.tolist(), run.schedule.start.tolist(), strict=True))
        assert all(start[j] <= latest[j] * CLOSE for j in range(instance.n)), instance.name
        assert run.notes["eligible"].tolist() == plain.notes["eligible"].tolist()
        order = sorted(range(instance.n), key=lambda j: (run.notes["eligible"][j], j))
        earlier += any(start[a] > start[b] for a, b in pairwise(order))
        shadow += run.value("total_completion_time")
        strict += plain.value("total_completion_time")
        # strict order keeps to the reservations too: they are made of upper bounds
        begun = dict(zip(plain.schedule.job.tolist(), plain.schedule.start.tolist(), strict=True))
        assert all(begun[j] <= latest[j] * CLOSE for j in range(instance.n))
    assert earlier > 10  # jobs did overtake
    assert 0.9 * strict < shadow < 0.998 * strict


def test_equal_one_gpu_jobs_are_served_as_in_strict_order() -> None:
    rng = random.Random(9)
    for _ in range(20):
        jobs = [Job(f"{j}", arrival=rng.randrange(12), duration=5) for j in range(15)]
        instance = Instance(jobs, "1x3")
        shadow, strict = (simulate(instance, f"a-srpt:backfill={b}").schedule.completion for b in ("shadow", "none"))
        assert shadow.tolist() == strict.tolist()


def test_a_job_goes_ahead_exactly_where_it_delays_nobody() -> None:
    # 4 GPUs. "long" runs from 10 to 50; "wide" is due at 50. Of the narrow ones, eligible at 20 and 27.625, one fits before.
    jobs = [
        Job("long", duration=40),
        Job("wide", gpus=4, duration=1, arrival=10),
        Job("fits", duration=30, arrival=12.5),
        Job("too-long", duration=30.5, arrival=12.5),
    ]
    run = simulate(Instance(jobs, "1x4"), "a-srpt:backfill=shadow")
    assert run.notes["eligible"].tolist() == [10, 11, 20, 27.625]
    assert run.schedule.completion.tolist() == [50, 51, 50, 81.5]
    strict, unrestricted = (
        simulate(Instance(jobs, "1x4"), f"a-srpt:backfill={b}").schedule.completion.tolist()
        for b in ("none", "unrestricted")
    )
    assert strict == [50, 51, 81, 81.5]
    assert unrestricted == [50, 59.125, 50, 58.125]


@pytest.mark.parametrize(("longest", "goes"), [(3.0, True), (3.5, False)])
def test_a_question_about_the_profile(longest: float, goes: bool) -> None:
    queue = ShadowQueue(3)
    queue.add(0, 0.0, 2, 3.0, 0.0)
    queue.start(0, 0.0)  # two of three GPUs until 3
    queue.add(1, 0.0, 3, 2.0, 0.0)
    assert queue.latest_start(1) == 3.0
    queue.add(2, 0.0, 1, longest, 0.0)
    assert queue.latest_start(2) == 5.0
    assert queue.next_start(0.0) == 3.0
    assert queue.next_start(3.0) == 5.0
    assert queue.may_start(2, 0.0) is goes


def test_a_reservation_counts_the_whole_budget_of_delay_and_the_next_one_comes_after_it() -> None:
    queue = ShadowQueue(2)
    queue.add(0, 1.0, 1, 4.0, 0.0)
    queue.add(1, 1.0, 2, 3.0, 2.5)
    queue.add(2, 1.0, 1, 1.0, 0.0)
    assert [queue.latest_start(j) for j in range(3)] == [1.0, 5.0 + 2.5, 5.0 + 2.5 + 3.0]


def test_a_reservation_much_shorter_than_the_clock_is_respected() -> None:
    # At 1e6 s a tolerance of a few parts in 1e9 would overlook a job of a millisecond and put a day in front of it.
    now = 1e6
    queue = ShadowQueue(2)
    queue.add(0, now, 1, 10.0, 0.0)
    queue.start(0, now)
    queue.add(1, now, 2, 1e-4, 0.0)
    queue.add(2, now, 1, 86400.0, 0.0)
    assert not queue.may_start(2, now)
    jobs = [Job("runs", arrival=now, duration=10), Job("short", arrival=now + 8, gpus=2, duration=1e-4)]
    jobs += [Job("day", arrival=now, duration=86400)]
    run = simulate(Instance(jobs, "1x2"), "a-srpt:backfill=shadow,beta=0.0001")
    assert run.schedule.completion[1] < now + 11


rows = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(1, 6), st.integers(1, 6)), max_size=9)


@given(rows)
def test_starts_in_any_allowed_order_never_exceed_the_gpus_and_keep_every_reservation(
    given_rows: list[tuple[int, int, int, int]],
) -> None:
    # (gap to the one before, GPUs, bound, true length); at every second: jobs at their reservation, then whoever may.
    queue, total, now = ShadowQueue(3), 3, 0
    waiting: list[int] = []
    ends: dict[int, int] = {}
    latest: dict[int, float] = {}
    joins, clock = [], 0
    for gap, gpus, bound, true in given_rows:
        clock += gap
        joins.append((clock, gpus, bound, min(bound, true)))
    while len(ends) < len(joins):
        for j in [j for j, end in ends.items() if end == now]:
            queue.finish(j)
        for j, (when, gpus, bound, _) in enumerate(joins):
            if when == now:
                queue.add(j, float(now), gpus, float(bound), 0.0)
                latest[j] = queue.latest_start(j)
                waiting.append(j)
        for j in list(waiting):
            used = sum(joins[k][1] for k, end in ends.items() if end > now)
            due = latest[j] <= now
            assert not due or used + joins[j][1] <= total, "a job does not fit at its reservation"
            if due or (used + joins[j][1] <= total and queue.may_start(j, float(now))):
                queue.start(j, float(now))
                waiting.remove(j)
                ends[j] = now + joins[j][3]
        now += 1
        assert now < 200
