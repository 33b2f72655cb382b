"""Hadar: the best plan is exactly the best, and what is bought is carried out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from examples import studied
from simulation.instances import MIXED, random_instance

from optsched.check.referee import check_schedule
from optsched.compiled import without_interpreting
from optsched.errors import InputError
from optsched.io.traces.generate import generate
from optsched.policies.exponential_prices import PriceFunction
from optsched.policies.hadar import Hadar
from optsched.policies.hadar_reservations import Request, Reservations
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.problem.throughputs import Throughput, Throughputs
from optsched.simulation.run import Run
from policies.hadar_plain import PlainHadar


def gangs(request: Request, speed: float, price: np.ndarray, room: np.ndarray) -> float:
    """The least price of a gang of that speed, over all sets of devices."""
    devices = [h for h in range(price.size) for _ in range(int(room[h]))]
    best = math.inf
    for chosen in itertools.combinations(devices, request.gang):
        used = sorted(set(chosen))
        rate = request.alone[used[0]] if len(used) == 1 else min(request.shared[h] for h in used)
        if rate >= speed and rate > 0:
            best = min(best, sum(price[h] for h in chosen))
    return best


def best_by_enumeration(reservations: Reservations, request: Request, first: int, horizon: int) -> float:
    """The largest payoff over every plan of S_j within ``horizon`` rounds: every speed and every set of k rounds."""
    assert reservations.price_of is not None
    seconds, best = reservations.length - request.restart, 0.0
    sold = np.vstack([reservations.sold, np.zeros((first + horizon, reservations.capacity.size), dtype=np.int64)])
    prices = reservations.price_of(sold)
    for x in {float(v) for v in (*request.alone, *request.shared) if v > 0}:
        k = max(1, math.ceil(request.work / (x * seconds) - 1e-9))
        rest = request.restart + request.work / x - (k - 1) * seconds
        cost = [gangs(request, x, prices[first + i], reservations.capacity) for i in range(horizon)]
        for rounds in itertools.combinations(range(horizon), k):
            age = request.age + rounds[-1] * reservations.length + rest
            worth = request.scale * max(0.0, 1 - age / request.span) if request.span > 0 else request.scale / age
            best = max(best, worth - sum(cost[i] for i in rounds))
    return best


def random_reservations(rng: np.random.Generator) -> Reservations:
    capacity = rng.integers(1, 4, int(rng.integers(1, 4))).astype(np.int64)
    reservations = Reservations(capacity, float(rng.choice([1.0, 4.0])))
    widest = np.array([int(rng.integers(1, c + 1)) for c in capacity])
    low = float(rng.choice([0.001, 0.05, 0.3]))
    reservations.price_of = PriceFunction(low, low * float(np.exp(rng.random() * 6)), capacity, widest)
    reservations.used = int(rng.integers(0, 6))
    reservations.sold[: reservations.used] = rng.integers(0, capacity + 1, (reservations.used, capacity.size))
    return reservations


def random_request(rng: np.random.Generator, resources: int) -> Request:
    alone = np.round(rng.random(resources) * 4, 1) * (rng.random(resources) < 0.85)
    shared = alone.copy() if rng.random() < 0.4 else np.round(rng.random(resources) * 4, 1)
    return Request(
        gang=int(rng.integers(1, 4)), work=float(rng.random() * 8 + 0.05), age=float(rng.random() * 5),
        alone=alone, shared=shared, scale=float(rng.random() * 20), span=float(rng.choice([0.0, 0.0, 30.0])),
        restart=float(rng.choice([0.0, 0.25])),
    )  # fmt: skip


def test_the_best_plan_is_the_best_of_all_plans() -> None:
    rng = np.random.default_rng([31, True])
    found = 0
    for _ in range(250):
        reservations = random_reservations(rng)
        request, first = random_request(rng, reservations.capacity.size), int(rng.integers(0, 4))
        speeds = request.speeds
        seconds = reservations.length - request.restart
        longest = max((math.ceil(request.work / (x * seconds) - 1e-9) for x in speeds), default=1)
        if longest > 8 or not speeds:
            continue
        horizon = max(0, reservations.used - first) + longest + 1  # and one more: nothing is gained behind
        expected = best_by_enumeration(reservations, request, first, min(horizon, 11)) if horizon <= 11 else None
        if expected is None:
            continue
        plan = reservations.best(request, first)
        assert (plan.payoff if plan else 0.0) == pytest.approx(expected, rel=1e-9, abs=1e-12)
        if plan is not None:
            found += 1
            check_plan(reservations, request, plan, first)
    assert found > 60


def check_plan(reservations: Reservations, request: Request, plan: Any, first: int) -> None:
    """It is what it says: rounds from ``first`` on, whole gangs of its speed, enough work, and its price."""
    assert reservations.price_of is not None
    assert plan.rounds[0] >= first
    assert (np.diff(plan.rounds) > 0).all()
    assert (plan.take.sum(axis=1) == request.gang).all()
    assert (plan.take <= reservations.capacity).all()
    done = plan.speed * (reservations.length - request.restart) * plan.rounds.size
    assert done >= request.work * (1 - 1e-8)
    cost = 0.0
    for number, take in zip(plan.rounds.tolist(), plan.take, strict=True):
        used = np.flatnonzero(take)
        rate = request.alone[used[0]] if used.size == 1 else request.shared[used].min()
        assert rate >= plan.speed
        sold = reservations.sold[number] if number < reservations.used else np.zeros_like(reservations.capacity)
        cost += float(reservations.price_of(sold) @ take)
    assert plan.payoff == pytest.approx(plan.utility - cost, rel=1e-9, abs=1e-12)
    assert plan.utility == pytest.approx(request.worth(plan.age))
    begins = request.age + reservations.length * (plan.rounds[-1] - first)
    assert begins < plan.age <= begins + reservations.length * (1 + 1e-8)


def test_raising_the_constants_raises_every_price_and_is_accounted_for() -> None:
    capacity = np.array([6, 4])
    reservations = Reservations(capacity, 1.0)
    reservations.raise_to(0.01, 2.0, 1)
    reservations.sold[:3] = [[1, 0], [3, 2], [0, 4]]
    reservations.used = 3
    before = reservations.prices
    reservations.raise_to(5.0, 3.0, 2)  # a low that comes later changes nothing
    after = reservations.prices
    assert reservations.price_of is not None
    assert (reservations.price_of.low, reservations.price_of.high) == (0.01, 3.0)
    assert (after >= before).all()
    assert reservations.jumps == pytest.approx(float(((after - before) * capacity).sum()))
    reservations.raise_to(0.01, 1.0, 1)
    assert np.array_equal(reservations.prices, after)


# -- the policy -----------------------------------------------------------------------------------------------------------

SPECS = [
    "hadar",
    "hadar:round=3",
    "hadar:round=2,restart=0.5",
    "hadar:round=3,fill=false",
    "hadar:round=3,utility=slowdown,low=0.001,high=50",
]


def mixed_speeds(seed: int) -> Instance:
    """Jobs at table speeds on three types, some faster apart than together, one node type with several nodes."""
    rng = np.random.default_rng([seed, 3])
    entries = {}
    for model in "abc":
        for gpu in ("V100", "P100", "K80"):
            for gang in (1, 2, 3):
                together, spread = (float(np.round(rng.random() * 6 + 0.2, 2)) for _ in range(2))
                entries[model, gpu, gang] = Throughput(together, None if rng.random() < 0.3 else spread)
    made = [
        Job(f"j{k}", arrival=float(np.round(rng.random() * 60, 2)), gpus=int(rng.integers(1, 4)),
            iterations=float(np.round(rng.random() * 80 + 1, 1)), profile="abc"[int(rng.integers(3))],
            weight=float(rng.integers(0, 4)))
        for k in range(25)
    ]  # fmt: skip
    return Instance(made, "2x2:V100+1x4:P100+3x1:K80", f"speeds-{seed}", throughputs=Throughputs(entries))


def instances() -> list[Instance]:
    return [random_instance(5, "2x4"), random_instance(6, MIXED, 20), mixed_speeds(1), mixed_speeds(2)]


def promises(run: Run) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    notes = run.notes
    return np.asarray(notes["hadar_end"]), np.asarray(notes["hadar_sold"]), np.asarray(notes["hadar_capacity"])


def fingerprint(run: Run) -> list[Any]:
    s = run.schedule
    arrays = (s.job, s.start, s.end, s.work, s.gpu_offset, s.gpu_node, s.gpu_index, *run.notes.values())
    return [run.events, *run.notes, *(np.asarray(array).tobytes() for array in arrays)]


def several(count: int) -> Iterator[tuple[Instance, dict[str, Any]]]:
    """Instances of all kinds, and parameters."""
    rng = np.random.default_rng(count)
    for seed in range(count):
        made = [random_instance(seed, ("2x4", "4x2", MIXED)[seed % 3], 16), mixed_speeds(seed)]
        made += [generate("philly-like", seed, jobs=25, cluster="4x8")] if seed % 4 == 0 else []
        for instance in made:
            round_ = float(rng.choice([1.0, 3.0, 7.0])) if instance.arrival.max() < 1e3 else 7200.0
            yield (
                instance,
                {
                    "round": round_,
                    "restart": round_ * float(rng.choice([0.0, 0.1])),
                    "utility": str(rng.choice(["throughput", "slowdown", "jct", "deadline", "fairness"])),
                    "fill": bool(rng.random() < 0.7),
                },
            )


def test_every_decision_is_that_of_the_plain_form() -> None:
    for instance, settings in several(6):
        run, plain = simulate(instance, ReadableHadar(**settings)), simulate(instance, PlainHadar(**settings))
        assert fingerprint(run) == fingerprint(plain), (instance.name, settings)


class ReadableHadar(Hadar):
    """The readable form, which the engine asks at every event."""

    def accelerator(self, jobs: Any) -> Any:
        return None


@pytest.mark.compiled
@pytest.mark.parametrize("count", [6, studied(220)])
def test_compiled_and_readable_schedules_are_the_same(count: int) -> None:
    for instance, settings in several(count):
        readable = fingerprint(simulate(instance, ReadableHadar(**settings)))
        with without_interpreting():
            assert fingerprint(simulate(instance, Hadar(**settings))) == readable, (instance.name, settings)
        if count < 10:
            assert fingerprint(simulate(instance, Hadar(**settings))) == readable, (instance.name, settings)


@pytest.mark.parametrize("spec", SPECS)
def test_what_is_promised_is_kept_and_every_job_finishes(spec: str) -> None:
    planned = 0
    for instance in instances():
        run = simulate(instance, spec)
        assert run.unfinished == []
        assert check_schedule(instance, run.schedule) == []
        end, sold, capacity = promises(run)
        assert (run.schedule.completion <= end * (1 + 1e-8)).all()
        assert (sold <= capacity).all()  # safe prices: without ever looking at what is left
        planned += int(np.isfinite(end).sum())
    assert planned > 30


def test_a_rejected_job_runs_on_what_the_others_leave() -> None:
    # Two jobs that need the whole node for one round each and are worth something only in the first: one is rejected.
    made = [Job(name, gpus=2, duration=10.0, due=15.0) for name in ("a", "b")]
    instance = Instance(made, "1x2")
    run = simulate(instance, "hadar:round=10,utility=deadline")
    assert np.asarray(run.notes["hadar_end"]).tolist() == [10.0, math.inf]
    assert run.schedule.completion.tolist() == [10.0, 20.0]


def test_whole_node_jobs_lose_what_comes_second_in_the_running_system_too() -> None:
    made = [Job("cheap", gpus=2, duration=10.0, due=15.0), Job("dear", gpus=2, duration=10.0, due=15.0, weight=1000.0)]
    run = simulate(Instance(made, "1x2"), "hadar:round=10,utility=deadline")
    promised = np.asarray(run.notes["hadar_utility"])
    assert promised.tolist() == pytest.approx([1 / 3, 0.0])  # the optimum is 1000 / 3


def test_a_plan_waits_for_the_fast_gpus_if_the_slow_ones_are_not_worth_it() -> None:
    table = Throughputs({("a", "V100", 1): Throughput(10.0), ("a", "K80", 1): Throughput(0.5)})
    made = [Job(f"j{k}", iterations=1000.0, profile="a") for k in range(2)]
    instance = Instance(made, "1x1:V100+1x1:K80", throughputs=table)
    run = simulate(instance, "hadar:round=100,fill=false,low=0.0001,high=20")
    assert run.schedule.completion.tolist() == [100.0, 200.0]  # 2000 s on the K80
    assert {s.gpus[0][0] for s in run.schedule.segments()} == {0}


def test_an_arrival_in_a_round_waits_for_the_next_one() -> None:
    run = simulate(Instance([Job("a", duration=30.0), Job("b", arrival=10.0, duration=30.0)], "2x1"), "hadar")
    assert run.schedule.completion.tolist() == [30.0, 390.0]


# -- late clocks ----------------------------------------------------------------------------------------------------------

UNIX = 1.6e9  # seconds: float64 tells times apart that are 2.4e-7 s from each other


TABLE = Throughputs(
    {("m", "V100", 1): Throughput(20.0), ("m", "K80", 1): Throughput(1.0), ("v", "V100", 1): Throughput(1.0)}
)


def shifted(instance: Instance, by: float, scale: float = 1.0) -> Instance:
    """The same, ``by`` seconds later; arrivals in units of 2^-6 s, so that the clock represents them exactly."""
    made = [
        replace(job, arrival=by + np.round(job.arrival * scale * 64) / 64, **{
            field: getattr(job, field) * scale for field in ("duration", "iterations") if getattr(job, field) is not None
        })
        for job in instance.jobs
    ]  # fmt: skip
    return Instance(made, instance.cluster, instance.name, throughputs=instance.throughputs)


def overtaken(length: float, excess: float, clock: float, first: float) -> Instance:
    """x has ``excess`` units left when y is done at 3 ``length``: a moment on the GPU of y, not on its own; z waits."""
    made = [
        Job("first", arrival=first, iterations=1, profile="v"),
        Job("y", arrival=clock, iterations=3 * length, profile="v"),
        Job("x", arrival=clock, iterations=3 * length + excess, profile="m"),
        Job("z", arrival=clock + 2.5 * length, iterations=length, profile="v"),
    ]
    return Instance(made, "1x1:V100+1x1:K80", throughputs=TABLE)


@pytest.mark.parametrize("length", [1.0, 10.0, 60.0])
@pytest.mark.parametrize("clock", [0.0, 1e8, UNIX])
def test_a_round_does_not_wait_for_a_job_that_would_end_soon_on_other_gpus(clock: float, length: float) -> None:
    start = clock + 10 * length
    run = simulate(overtaken(length, length / 4, start, clock), f"hadar:round={length}")
    end, *_ = promises(run)
    assert (run.schedule.completion <= end + 1e-5).all()
    assert run.schedule.completion[2] - start == pytest.approx(3 * length + length / 80, abs=1e-5)
    boundaries = (run.schedule.start - clock) / length
    assert np.abs(boundaries - np.round(boundaries)).max() < 1e-5


def test_an_arrival_within_a_round_of_a_second() -> None:
    made = [Job("a", arrival=UNIX, duration=2), Job("b", arrival=UNIX + 0.25, duration=2)]
    run = simulate(Instance(made, "1x1"), "hadar:round=1")
    assert (run.schedule.completion - UNIX).tolist() == [2.0, 4.0]


@pytest.mark.parametrize("clock", [0.0, UNIX])
def test_a_boundary_that_is_put_off_until_the_cluster_is_idle_is_forgotten(clock: float) -> None:
    length = 1024.0
    made = [
        Job("y", arrival=clock, iterations=length, profile="v"),
        Job("x", arrival=clock, iterations=length * (1 + 6e-10), profile="m"),  # ends a moment after the boundary
        Job("z", arrival=clock + 10.5 * length, iterations=length, profile="v"),
    ]
    run = simulate(Instance(made, "1x1:V100+1x1:K80", throughputs=TABLE), f"hadar:round={length}")
    assert run.schedule.completion[1] > clock + length
    end, *_ = promises(run)
    assert (end - clock).tolist() == pytest.approx([length, length, 12 * length], abs=1e-5)
    assert run.schedule.completion[2] == clock + 12 * length


def test_a_clock_too_coarse_for_its_rounds_ends_nevertheless() -> None:
    made = [Job("a", arrival=2.0**44, duration=0.03), Job("b", arrival=2.0**44, duration=0.03)]
    assert simulate(Instance(made, "1x1"), "hadar:round=0.001").unfinished == []  # an ulp is 0.004 s


def test_more_rounds_than_can_be_kept_are_refused() -> None:
    instance = Instance([Job("a", duration=1), Job("b", arrival=1.6e9, duration=1)], "1x1")
    with pytest.raises(InputError, match="rounds are too many to plan"):
        simulate(instance, "hadar:round=10")
    assert simulate(instance, "hadar").unfinished == []
