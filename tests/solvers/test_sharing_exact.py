"""Optima of a few jobs that share GPUs, on three methods: branch and bound, orders with LPs, and trying everything.

The fourth method, the mixed-integer program, is in tests/models/test_gpu_sharing.py. The orders let starts lie anywhere in
time, the branch and bound only at events. For two jobs that is enough, for three it is not: see the counterexample.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import pytest
from events import least, shared
from examples import few, studied
from hypothesis import given, settings, strategies as st

from optsched.classes.gpu_sharing.solvers.sharing_orders import best_shared_order
from optsched.classes.gpu_sharing.solvers.sharing_search import SharingOptimum, sharing_optimum
from optsched.errors import InputError
from optsched.io.traces.generate import generate
from optsched.models.shared_jobs import SharedJobs, on_events, one_gang_set, shared_completions
from optsched.problem.instance import Cluster, Instance, Job, NodeGroup
from optsched.problem.interference import Interference
from optsched.problem.scaling import Scaling
from optsched.solvers.event_search import EventOrder, EventOrders
from optsched.speeds.sharing_pair import sharing_pair

SLOWDOWNS = ("1.1", "1.5", "1.8", "exp")
CLOSE = 1e-12  # relative: LPs of a few rows are exact to rounding here

seconds, eighths = st.integers(1, 40), st.integers(8, 24)


def some_jobs(seed: int, n: int, gpus: int, *, widest: int | None = None, blocked: float = 0.15) -> Instance:
    """Whole numbers; slow-downs of ordered pairs are multiples of 1/8, and some pairs never share."""
    rng = np.random.default_rng(seed)
    arrival, duration = rng.integers(0, 12, n) * (rng.random(n) < 0.6), rng.integers(1, 12, n)
    size = rng.integers(1, (widest or gpus) + 1, n)
    rows = zip(arrival.tolist(), size.tolist(), duration.tolist(), strict=True)
    jobs = [Job(f"j{j}", *row, model=f"m{j}") for j, row in enumerate(rows)]
    xi = (1 + rng.integers(0, 12, (n, n)) / 8).tolist()
    table = tuple(tuple(None if rng.random() < blocked / 2 else x for x in row) for row in xi)
    kinds = tuple(job.model or "" for job in jobs)
    return Instance(jobs, f"1x{gpus}", interference=Interference(kinds=kinds, ratios=table))


def is_a_schedule(found: SharingOptimum) -> None:
    """The event simulation gives these starts the value that was found."""
    start = list(found.start)
    exact = isinstance(found.value, Fraction)
    if not exact:
        start = on_events(found.jobs, start, found.gangs, found.options, CLOSE * found.value)
    ends = shared_completions(found.jobs, start, found.gangs, found.options, exact=exact)
    if exact:
        assert sum(ends) == found.value
    assert float(sum(ends)) == pytest.approx(float(found.value), rel=CLOSE)
    assert found.schedule.completion.tolist() == [float(c) for c in found.completion]
    flow = found.value - sum(type(found.value)(r) for r in found.jobs.release)
    assert found.flow_time == (flow if exact else pytest.approx(flow, rel=CLOSE))


# --- two jobs ----------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.tuples(seconds, seconds), seconds, st.tuples(eighths, eighths), st.booleans())
def test_two_jobs_are_the_pair_theorem(length: tuple, later: int, xi: tuple, at_once: bool) -> None:
    """In fractions: the closed forms of another module, for a second job that comes now or while the first one runs."""
    release = (0, 0 if at_once else later)
    one, other = Fraction(xi[0], 8), Fraction(xi[1], 8)
    table = Interference(kinds=("a", "b"), ratios=((1.0, float(one)), (float(other), 1.0)))
    jobs = [Job("a", release[0], 1, length[0], model="a"), Job("b", release[1], 1, length[1], model="b")]
    found = sharing_optimum(Instance(jobs, "1x1", interference=table), exact=True)
    assert found.complete
    assert found.optimal
    is_a_schedule(found)
    if release[1] >= length[0]:
        assert found.value == length[0] + release[1] + length[1]
        return
    first = 2 * release[1] + sharing_pair(Fraction(length[0] - release[1]), Fraction(length[1]), one, other).optimal_sum
    # or the first one waits for the second: side by side from its release on, or after it
    pair = sharing_pair(Fraction(length[1]), Fraction(length[0]), other, one)
    assert found.value == min(first, 2 * release[1] + pair.optimal_sum)


# --- orders and search -------------------------------------------------------------------------------------------


def starts_at_events_lose(instance: Instance) -> float:
    """How much more the best starts at events cost than the best ones, relatively; both are schedules."""
    search, orders = sharing_optimum(instance), best_shared_order(instance)
    assert search.complete
    assert search.bound <= orders.value * (1 + CLOSE)
    assert orders.schedule.completion.sum() == pytest.approx(orders.value, rel=CLOSE)
    is_a_schedule(search)
    return search.value / orders.value - 1


def agree(instance: Instance) -> None:
    assert abs(starts_at_events_lose(instance)) <= CLOSE


def test_starts_at_events_do_not_suffice_for_three_jobs() -> None:
    """In fractions. The long job starts at 5 so that the first one ends when the third one comes."""
    jobs = [Job("first", 0, 1, 10), Job("long", 0, 1, 100), Job("third", 12, 1, 1)]
    instance = Instance(jobs, "1x1", interference=Interference(1.4))
    at_events, best = sharing_optimum(instance, exact=True), best_shared_order(instance, certify=True)
    shared, xi = SharedJobs.of(instance), Fraction(1.4)
    assert everything(instance) == at_events.value
    assert float(at_events.value) == pytest.approx(133.8, rel=1e-12)
    between = 12 - 2 / (1 - 1 / xi)  # 10 seconds of work in 12, some of them at 1 / xi
    ends = shared_completions(shared, (0, between, 12), [(0,)] * 3, exact=True)
    assert ends[0] == 12
    assert float(sum(ends)) == pytest.approx(132.8, rel=1e-12)
    assert best.bound is not None
    assert sum(ends) * (1 - Fraction(1, 10**12)) <= best.bound <= sum(ends) < at_events.value
    assert best.schedule.start.tolist() == pytest.approx([0, 5, 12], rel=1e-12)


def test_two_jobs_never_need_a_start_between_events() -> None:
    for seed in range(40):
        agree(some_jobs(200 + seed, 2, 1 + seed % 3))


@pytest.mark.parametrize(
    ("n", "gpus", "first", "count"),
    [(2, 1, 100, 10), (3, 1, 100, 15), (4, 1, 100, 1), (3, 2, 0, 1), (3, 3, 1, 1), (3, 4, 2, 1)],
)
@pytest.mark.parametrize("xi", SLOWDOWNS)
def test_orders_and_search_agree(n: int, gpus: int, first: int, count: int, xi: str) -> None:
    for seed in range(first, first + count):
        agree(generate("sharing-small", seed, jobs=n, gpus=gpus, xi=xi))


@pytest.mark.parametrize("seed", few(range(8), 3))
def test_whole_numbers_and_pairs_that_never_share(seed: int) -> None:
    agree(some_jobs(seed, 3, 1, blocked=0.5))


@pytest.mark.study
@pytest.mark.parametrize(
    ("n", "gpus", "count"),
    [(2, 1, 100), (3, 1, 300), (4, 1, 40), (5, 1, 2), (3, 2, 100), (3, 3, 60), (3, 4, 40), (4, 2, 6)],
)
@pytest.mark.parametrize("xi", ["1.1", "1.3", "1.5", "1.8", "exp"])
def test_orders_and_search_seldom_differ(n: int, gpus: int, count: int, xi: str) -> None:
    instances = [generate("sharing-small", 5000 + seed, jobs=n, gpus=gpus, xi=xi) for seed in range(count)]
    lost = [starts_at_events_lose(instance) for instance in instances]
    assert min(lost) > -CLOSE
    assert sum(loss > CLOSE for loss in lost) <= (0 if n == 2 else 0.1 * count)
    assert max(lost) < 0.05


@pytest.mark.parametrize("seed", range(4))
def test_gangs_of_which_two_meet_and_no_three_fit_are_one_set(seed: int) -> None:
    """3 and 4 of 4 GPUs: the search puts them anywhere, the orders forget where."""
    rng = np.random.default_rng(seed)
    base = some_jobs(seed, 3, 4)
    rows = zip(base.arrival.tolist(), rng.integers(3, 5, 3).tolist(), base.duration.tolist(), strict=True)
    jobs = [Job(f"j{j}", *row) for j, row in enumerate(rows)]
    instance = Instance(jobs, "1x4", interference=Interference(1.25))
    assert one_gang_set(SharedJobs.of(instance)) is None
    agree(instance)


@pytest.mark.parametrize(("n", "xi"), [(1, "1.3"), (2, "exp"), (3, "1.3"), (3, "exp")])
def test_multipliers_prove_the_optimum_exactly(n: int, xi: str) -> None:
    instance = generate("sharing-small", 7, jobs=n, xi=xi)
    found, optimum = best_shared_order(instance, certify=True), sharing_optimum(instance, exact=True)
    assert found.bound is not None
    assert optimum.value * (1 - Fraction(1, 10**9)) <= found.bound <= optimum.value


def orders_of(n: int, sets: Iterable[int]) -> list[EventOrder]:
    return list(EventOrders([Fraction(1)] * n, [Fraction(0)] * n, dict.fromkeys([0, *sets], ())))


def test_the_sheets_counts_of_orders() -> None:
    for n, count in ((1, 1), (2, 6), (3, 54), (4, 648)):
        pairs = {1 << j | 1 << k for j, k in itertools.product(range(n), repeat=2)}
        orders = orders_of(n, pairs)
        assert len(orders) == len(set(orders)) == count
    alone = {0b001, 0b010, 0b100}
    assert len(orders_of(3, alone)) == 6
    assert len(orders_of(3, alone | {0b011})) == 6 + 4 * 2  # four ways to overlap, before or after the third
    assert len(orders_of(3, range(8))) == 90


def test_sub_batches_are_chosen_by_all_roads() -> None:
    """Whole batches do not fit side by side: one of the two accumulates, and which one depends on the lengths."""
    net = Scaling(compute=1.0, per_sample=1.0, memory=1.0, memory_per_sample=1.0)  # 9 bytes at 8 samples, 9 s a step
    for iterations, batch in (((4.0, 1.0), (8, 4)), ((1.0, 4.0), (4, 8)), ((1.0, 1.0), (8, 8))):
        jobs = [
            Job(f"j{j}", 0, 1, iterations=k, profile="net", batch_size=b)
            for j, (k, b) in enumerate(zip(iterations, batch, strict=True))
        ]
        where = Cluster((NodeGroup(gpus=1, gpu_memory=12.0),))
        instance = Instance(jobs, where, scalings={"net": net}, interference=Interference(1.1))
        found = sharing_optimum(instance)
        agree(instance)
        used = sum(found.jobs.memory(j, o) for j, o in enumerate(found.options))
        assert used <= 12
        assert set(found.options) != {0}
        assert found.value == pytest.approx(float(everything(instance)), rel=CLOSE)


# --- the search --------------------------------------------------------------------------------------------------


def everything(instance: Instance) -> Fraction:
    """The least sum C_j of all schedules with starts at events, on every subset of GPUs, without any symmetry."""
    jobs = SharedJobs.of(instance)
    every = range(len(jobs.gpu_node))
    own = [[*itertools.product(jobs.options[j], itertools.combinations(every, jobs.gang[j]))] for j in range(jobs.n)]
    seconds = [{way: Fraction(jobs.seconds(j, *way)) for way in some} for j, some in enumerate(own)]

    def legal(places: dict[int, tuple], g: int) -> bool:
        here = [j for j, (_, gang) in places.items() if g in gang]
        used = sum(jobs.memory(j, places[j][0]) for j in here)
        together = len(here) < 2 or jobs.pairs(here[0], here[1])
        return len(here) <= 2 and together and used <= jobs.node_memory[jobs.gpu_node[g]]

    def ways(j: int, running: dict[int, tuple]) -> list[tuple]:
        return [way for way in own[j] if all(legal({**running, j: way}, g) for g in way[1])]

    def pace(running: dict[int, tuple]) -> dict[int, Fraction]:
        alone = {j: seconds[j][way] for j, way in running.items()}
        return shared(lambda j, k: Fraction(jobs.xi[j][k]), alone.get)({j: gang for j, (_, gang) in running.items()})

    fastest = [min(each.values()) for each in seconds]
    return least([Fraction(r) for r in jobs.release], [Fraction(1)] * jobs.n, ways, pace, fastest=fastest)


@pytest.mark.parametrize(
    ("n", "gpus", "first", "count"),
    [
        *((1, 2, 0, 2), (2, 2, 0, 6), (2, 3, 0, 4), (3, 1, 0, 6), (3, 2, 0, 6), (4, 1, 0, 2), (3, 3, 0, 1)),
        *(studied(*row) for row in ((3, 2, 1000, 40), (4, 1, 1000, 20), (3, 3, 1000, 6), (4, 2, 1000, 2))),
    ],
)
def test_nothing_is_cut_that_is_better(n: int, gpus: int, first: int, count: int) -> None:
    for seed in range(first, first + count):
        instance = some_jobs(seed, n, gpus)
        found = sharing_optimum(instance, exact=True)
        assert found.value == everything(instance)
        assert found.bound <= found.value
        is_a_schedule(found)


def test_nodes_that_are_alike_are_interchangeable_and_others_are_not() -> None:
    jobs = [Job("a", 0, 2, 3), Job("b", 0, 1, 2), Job("c", 1, 1, 4)]
    for cluster in ("3x1", "1x1+1x2"):
        instance = Instance(jobs, cluster, interference=Interference(1.25))
        assert sharing_optimum(instance, exact=True).value == everything(instance)
    small, large = NodeGroup(gpus=1, gpu="A", gpu_memory=8.0), NodeGroup(gpus=1, gpu="B", gpu_memory=16.0)
    jobs = [Job("a", 0, 1, 4, gpu_memory=8.0), Job("b", 0, 1, 5, gpu_memory=8.0), Job("c", 0, 1, 6, gpu_memory=8.0)]
    instance = Instance(jobs, Cluster((small, large)), interference=Interference(1.125))
    found = sharing_optimum(instance, exact=True)
    assert found.value == everything(instance)
    assert found.gangs.count((0,)) == 1  # nobody fits beside another one on the small GPU


def test_floats_and_fractions_agree_and_symmetry_saves() -> None:
    instance = Instance([Job(f"j{j}", 0, 1, 3) for j in range(5)], "1x2", interference=Interference(1.25))
    exact, floats = sharing_optimum(instance, exact=True), sharing_optimum(instance)
    assert floats.value == pytest.approx(float(exact.value), rel=CLOSE)
    assert exact.nodes < 60


def test_a_search_that_was_stopped_says_so() -> None:
    instance = generate("sharing-small", 5, jobs=7, xi="exp")
    full, short = sharing_optimum(instance), sharing_optimum(instance, node_limit=10)
    assert full.complete
    assert not short.complete
    assert not short.optimal
    assert short.bound <= full.value <= short.value
    assert not sharing_optimum(instance, stop=lambda: True).complete
    is_a_schedule(short)


def test_what_is_not_legal_is_named() -> None:
    shared = Interference(1.5)
    plain = Instance([Job("a", duration=1)], "1x1")
    with pytest.raises(InputError, match="interference"):
        sharing_optimum(plain)
    many = Instance([Job(f"j{j}", duration=1) for j in range(13)], "1x1", interference=shared)
    with pytest.raises(InputError, match=r"n = 13.*at most 12"):
        sharing_optimum(many)
    with pytest.raises(InputError, match=r"n = 13.*1 to 5"):
        best_shared_order(many)
    with pytest.raises(InputError, match="nodes = 9"):
        sharing_optimum(Instance([Job("a", duration=1)], "9x1", interference=shared))
    wide = Instance([Job(x, 0, 4, 1) for x in "abcde"], "1x8", interference=shared)
    with pytest.raises(InputError, match=r"too many choices.*at most 2 for 5 jobs"):
        best_shared_order(wide)
    apart = Instance([Job("a", duration=1), Job("b", duration=1)], "1x2", interference=shared)
    assert "side by side" in str(one_gang_set(SharedJobs.of(apart)))
    three = Instance([Job(x, 0, 2, 1) for x in "abc"], "1x3", interference=shared)
    assert "three gangs" in str(one_gang_set(SharedJobs.of(three)))
    spread = Instance([Job("a", 0, 3, 1), Job("b", 0, 4, 1)], "2x2", interference=shared)
    assert "several nodes" in str(one_gang_set(SharedJobs.of(spread)))
    jobs = SharedJobs.of(Instance([Job(x, 1, 1, 2) for x in "abc"], "1x1", interference=shared))
    for starts, word in (((0, 1, 9), "release"), ((1, 1, 1), "cannot hold")):
        with pytest.raises(InputError, match=word):
            shared_completions(jobs, starts, [(0,)] * 3)
    never = Interference(kinds=("m",), ratios=((None,),))
    jobs = SharedJobs.of(Instance([Job(x, 0, 1, 2, model="m") for x in "ab"], "1x1", interference=never))
    with pytest.raises(InputError, match="cannot hold"):
        shared_completions(jobs, (0, 1), [(0,)] * 2)
