"""Policies and placements beside a floor in the same process: whole runs, rounds, and one job placed."""

from __future__ import annotations

import heapq
import time
from functools import cache, partial
from typing import Any

import numpy as np
import polars as pl
import pytest
from benchmarks.timing import cpu_seconds
from policies.gavel_problems import jobs_of, optimum
from scipy.optimize import linprog
from scipy.sparse import csr_array

from optsched.compiled import without_interpreting
from optsched.io.traces.generate import generate
from optsched.models.gavel_allocation import AllocationProblem
from optsched.models.gavel_max_min import build
from optsched.policies.a_srpt import VirtualMachine
from optsched.policies.gpu_pools import GpuPools
from optsched.policies.hadar_auction import Auction
from optsched.policies.placements.heavy_edge import heavy_edge
from optsched.policies.round_grants import Bidders
from optsched.policies.simulate import simulate
from optsched.policies.unified import Unified
from optsched.problem.instance import Instance
from optsched.problem.profile import Profile, Stage
from optsched.simulation.policy import Knowledge, Start, View
from optsched.speeds.network import Network
from optsched.speeds.speed_tables import profile_pace, tables_of
from optsched.speeds.throughput_sources import built_in

# -- A-SRPT: whole runs, how they grow with the queue; the virtual machine in units of a bare heap.
#
# An event cycle: a short job comes and preempts (a push), is done (a pop). The floor does the same push and pop on a heap of
# as many tuples in the same process. What grows faster than the floor's logarithm grows the ratio.


CYCLES = 5_000
WAITING = [10, 100, 1_000, 10_000, 100_000]


@pytest.mark.bench
@pytest.mark.parametrize("waiting", WAITING)
def test_an_event_of_the_virtual_machine(benchmark: Any, waiting: int) -> None:
    lengths = np.random.default_rng(0).uniform(1e6, 2e6, waiting).tolist()
    machine, heap = VirtualMachine(), []
    for j, length in enumerate(lengths):
        machine.release(j, 0.0, length)
        heapq.heappush(heap, (length, j))
    clock, done = 0.0, 0

    def cycles() -> None:
        nonlocal clock, done
        for _ in range(CYCLES):
            machine.release(waiting, clock, 0.5)
            clock = machine.next_event()
            done += len(machine.advance(clock))

    def floor() -> None:
        for _ in range(CYCLES):
            heapq.heappush(heap, (0.5, waiting))
            heapq.heappop(heap)

    benchmark.pedantic(cycles, rounds=1, warmup_rounds=1)
    done = 0
    seconds, bare = cpu_seconds(cycles), cpu_seconds(floor)
    assert done == 5 * CYCLES  # every short job preempted and was reported
    assert len(machine) == waiting
    benchmark.extra_info["waiting"] = waiting
    benchmark.extra_info["us_per_cycle"] = seconds / CYCLES * 1e6
    benchmark.extra_info["floor_us"] = bare / CYCLES * 1e6
    benchmark.extra_info["ratio"] = seconds / bare


@cache
def poisson(jobs: int, load: float) -> Instance:
    """Poisson arrivals on 8 x 8 GPUs."""
    rng = np.random.default_rng(0)
    gpus, duration = rng.choice([1, 2, 4, 8], jobs), rng.lognormal(6.0, 1.0, jobs)
    gaps = rng.exponential(float(gpus @ duration) / jobs / 64 / load, jobs)
    return Instance(pl.DataFrame({"arrival": np.cumsum(gaps), "gpus": gpus, "duration": duration}), "8x8")


@pytest.mark.bench
@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("jobs", [1_000, 10_000])
@pytest.mark.parametrize("policy", ["a-srpt", "a-srpt:overtake=0", "wcs-duration"])
def test_a_whole_run(benchmark: Any, policy: str, jobs: int) -> None:
    """At load 0.9; the ratio is to the compiled srtf on the same instance."""
    instance = poisson(jobs, 0.9)
    with without_interpreting():
        simulate(instance.head(50), policy)  # compiles
        run = benchmark.pedantic(simulate, (instance, policy), rounds=1)
        seconds = cpu_seconds(lambda: simulate(instance, policy))
        floor = cpu_seconds(lambda: simulate(instance, "srtf"))
    benchmark.extra_info["events_per_second"] = run.events / seconds
    benchmark.extra_info["srtf_seconds"] = floor
    benchmark.extra_info["ratio"] = seconds / floor
    assert run.unfinished == []


@pytest.mark.bench
@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("load", [0.9, 1.2])
def test_it_grows_as_the_jobs_do(benchmark: Any, load: float) -> None:
    """Seconds of a run grow as jobs ** ``exponent`` from 3,000 to 30,000; above load 1 the queue grows with them."""
    sizes, seconds = np.array([3_000, 10_000, 30_000]), []
    with without_interpreting():
        simulate(poisson(300, load), "a-srpt")  # compiles
        for jobs in sizes.tolist():
            seconds.append(cpu_seconds(partial(simulate, poisson(jobs, load), "a-srpt")))
        run = benchmark.pedantic(simulate, (poisson(30_000, load), "a-srpt"), rounds=1)
    benchmark.extra_info["exponent"] = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    benchmark.extra_info["events_per_second"] = run.events / seconds[-1]
    assert run.unfinished == []


class ReadableUnified(Unified):
    """`unified` without its compiled steps."""

    compiled = False


@pytest.mark.bench
@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize(("jobs", "cluster"), [(500, "64x8"), (2_000, "64x8"), (500, "1000x8")])
def test_compiled_steps_of_unified(benchmark: Any, jobs: int, cluster: str) -> None:
    """The ratio is that of the readable form to the compiled one on the same instance: the aim is 50."""
    instance = generate("philly-like", 1, jobs=jobs, cluster=cluster)
    with without_interpreting():
        simulate(instance.head(50), "unified")  # compiles
        run = benchmark.pedantic(simulate, (instance, "unified"), rounds=1)
        seconds = cpu_seconds(lambda: simulate(instance, "unified"))
        readable = simulate(instance, ReadableUnified())
    benchmark.extra_info["events_per_second"] = run.events / seconds
    benchmark.extra_info["ratio"] = readable.seconds / seconds
    assert run.value() == readable.value()


# -- A round of Hadar with 2,048 active jobs on three GPU types, beside building and solving Gavel's LP for the same state.
#
# The floor is max-min fairness over the same jobs, types and throughputs: its sparse matrix built with numpy and handed to
# HiGHS, and, for the readable form, the CVXPY model `optsched.models.gavel_max_min`. ``ratio`` = LP / Hadar: the aim is 10.


JOBS, TYPES = 2048, ("V100", "P100", "K80")


def state(nodes: int) -> tuple[Bidders, GpuPools]:
    """Jobs of the public table that wait or run on ``nodes`` nodes of 4 GPUs, a third of them of each type."""
    rng, table = np.random.default_rng(7), built_in()
    pool = np.arange(nodes, dtype=np.int64) * len(TYPES) // nodes
    pools = GpuPools(pool, np.full(nodes, 4, dtype=np.int64), np.arange(3), np.searchsorted(pool, np.arange(3)))
    gang, together, spread = [], [], []
    models = sorted(table.job_types)
    while len(gang) < JOBS:
        size, model = int(rng.choice([1, 2, 4, 8], p=[0.7, 0.1, 0.15, 0.05])), models[int(rng.integers(len(models)))]
        found = [table.get(model, gpu, size) for gpu in TYPES]
        if all(each is not None for each in found):
            gang.append(size)
            together.append([each.together for each in found if each])
            spread.append([each.together if each.spread is None else each.spread for each in found if each])
    rate = np.array(together)
    alone = 60 * 10 ** rng.uniform(1.5, 4, JOBS)
    free, held = pools.size.copy(), []
    for j in range(JOBS):  # a few hold GPUs
        node = int(rng.integers(nodes))
        holds = free[node] >= gang[j] and together[j][pool[node]] > 0 and rng.random() < 0.5
        free[node] -= gang[j] if holds else 0
        held.append(((node, gang[j]),) if holds else ())
    age = rng.random(JOBS) * 36_000
    best = np.maximum(rate, np.array(spread)).max(axis=1)
    return (
        Bidders(np.array(gang), rate, np.array(spread), alone * best * rng.random(JOBS), age, alone, np.zeros(JOBS),
                np.full(JOBS, 10.0), held),
        pools,
    )  # fmt: skip


def gavel_lp(bidders: Bidders, capacity: np.ndarray) -> float:
    """max t with (gang_m / sum_r T_mr c_r / c) sum_r T_mr X_mr >= t, shares and capacities kept; built and solved."""
    m, types = bidders.together.shape
    equal = bidders.together @ (capacity / capacity.sum())
    level = bidders.gang[:, None] * bidders.together / equal[:, None]
    job = np.repeat(np.arange(m), types)
    column = np.arange(m * types)
    entries = np.concatenate([-level.ravel(), np.ones(m), np.ones(m * types), np.repeat(bidders.gang, types)])
    rows = np.concatenate([job, np.arange(m), m + job, 2 * m + np.tile(np.arange(types), m)])
    columns = np.concatenate([column, np.full(m, m * types), column, column])
    matrix = csr_array((entries, (rows, columns)), shape=(2 * m + types, m * types + 1))
    limit = np.concatenate([np.zeros(m), np.ones(m), capacity])
    gain = np.zeros(m * types + 1)
    gain[-1] = -1.0
    found = linprog(gain, A_ub=matrix, b_ub=limit, bounds=(0, None), method="highs")
    assert found.status == 0
    return -float(found.fun)


@pytest.mark.bench
@pytest.mark.parametrize("nodes", [15, 250])
def test_a_round_of_hadar_and_gavels_lp(benchmark: Any, nodes: int) -> None:
    bidders, pools = state(nodes)
    auction = Auction(360.0)
    auction.grants(bidders, pools)  # compiles
    grants = benchmark.pedantic(auction.grants, (bidders, pools), rounds=5)
    assert sum(count for grant in grants for _, count in grant.on) > 0.9 * pools.size.sum()
    seconds = cpu_seconds(lambda: auction.grants(bidders, pools))
    capacity = pools.capacity.astype(np.float64)
    lean = cpu_seconds(lambda: gavel_lp(bidders, capacity))
    problem = AllocationProblem(jobs_of(bidders.together, bidders.gang.tolist()), capacity)
    start = time.process_time()
    value = optimum(build(problem))
    benchmark.extra_info["cvxpy_seconds"] = time.process_time() - start
    assert value == pytest.approx(gavel_lp(bidders, capacity), rel=1e-6)
    benchmark.extra_info["gpus"] = int(pools.size.sum())
    benchmark.extra_info["hadar_ms"] = seconds * 1e3
    benchmark.extra_info["lp_ms"] = lean * 1e3
    benchmark.extra_info["ratio"] = lean / seconds


# -- Whole runs of the policies that know GPU types, on 1,000 GPUs of three of them, beside FIFO on the same jobs.
#
# ``ratio`` = the policy / FIFO in plain Python: how much longer it thinks than the engine takes to move the jobs.


CLUSTER = "84x4:V100+83x4:P100+83x4:K80"


class PlainFifo:
    """In order of arrival, those that do not fit skipped."""

    name, knowledge = "plain-fifo", Knowledge.NON_CLAIRVOYANT

    def decide(self, view: View) -> Any:
        for j in view.waiting:
            if view.fits(j):
                yield Start(j)


@cache
def trace(jobs: int) -> Instance:
    return generate("gavel-continuous", 1, jobs=jobs, cluster=CLUSTER)


@pytest.mark.bench
@pytest.mark.parametrize(
    ("policy", "jobs"), [("makespan-rounds", 2000), ("gavel:policy=max_min_fairness_perf", 2000), ("hadar-e", 500)]
)
def test_a_trace_on_a_thousand_gpus_of_three_types(benchmark: Any, policy: str, jobs: int) -> None:
    instance = trace(jobs)
    with without_interpreting():
        for each in (policy, PlainFifo()):  # compiles
            simulate(instance.head(50), each)
        run = benchmark.pedantic(simulate, (instance, policy), rounds=1)
        seconds = cpu_seconds(lambda: simulate(instance, policy), 2)
        floor = cpu_seconds(lambda: simulate(instance, PlainFifo()), 2)
    assert run.metrics["finished"] == jobs
    benchmark.extra_info["cpu_seconds"] = seconds
    benchmark.extra_info["events"] = run.events
    benchmark.extra_info["ratio"] = seconds / floor


# -- Events per CPU second of jobs that share GPUs, on 1,000 of them: what the rule looks at, and what sub-batches cost.


@pytest.mark.bench
@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("policy", ["sjf-ffs", "sjf-bsbf"])
@pytest.mark.parametrize("load", [0.5, 0.8, 1.0, 1.2])
def test_events_per_cpu_second(benchmark: Any, load: float, policy: str) -> None:
    """Nearly all jobs alone; some share; most share; and a queue of up to 29 jobs, which is asked about at every event."""
    instance = generate("sharing-cluster", 1, jobs=20_000, nodes=250, load=load)
    with without_interpreting():
        simulate(instance.head(50), policy)  # compiles
        run = benchmark.pedantic(simulate, (instance, policy), rounds=1)
        begun = time.process_time()
        simulate(instance, policy)
    benchmark.extra_info["events_per_second"] = run.events / (time.process_time() - begun)
    assert not run.unfinished


# -- Seconds that ``heavy-edge`` takes to place one job, against the time of a single iteration time, both compiled -------


CALLS = 200
SHAPES = {"8x8": [8] * 8, "64x1": [1] * 64, "4x16": [16] * 4, "1x64": [64]}


@pytest.mark.bench
@pytest.mark.parametrize("variant", ["plain", "auto", "local-search"])
@pytest.mark.parametrize("shape", SHAPES)
def test_placing_a_job_of_64_replicas(benchmark: Any, shape: str, variant: str) -> None:
    rng = np.random.default_rng(0)
    profile = Profile.of_stages([Stage(k, 0.05, 0.1, 1e9, 1e8) for k in SHAPES[shape]], micro_batches=8)
    nodes = 32
    network = Network(np.full(nodes, 8), np.full(nodes, 25e9), np.full(nodes, 1.25e9))
    t = tables_of([profile], np.zeros(1, dtype=np.int64), network)
    free, size, eligible = rng.integers(0, 9, nodes), np.full(nodes, 8), np.ones(nodes, dtype=np.bool_)
    rule, out = heavy_edge(variant), np.zeros((2, 64), dtype=np.int64)
    state = rule.random_state()

    def place() -> int:
        return rule.place(0, 64, free, size, eligible, state, t, out[0], out[1])

    entries = benchmark.pedantic(place, rounds=5, warmup_rounds=1)
    assert out[1, :entries].sum() == 64
    floor = cpu_seconds(lambda: profile_pace(t, 0, out[0], out[1]), calls=CALLS)
    seconds = cpu_seconds(place, calls=CALLS)
    benchmark.extra_info["seconds"] = seconds
    benchmark.extra_info["alpha_seconds"] = floor
    benchmark.extra_info["ratio"] = seconds / floor
    if variant in ("plain", "auto"):
        assert seconds < 1e-3
