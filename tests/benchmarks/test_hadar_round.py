"""A round of Hadar with 2,048 active jobs on three GPU types, beside building and solving Gavel's LP for the same state.

The floor is max-min fairness over the same jobs, types and throughputs: its sparse matrix built with numpy and handed to
HiGHS, and, for the readable form, the CVXPY model of `optsched.models.gavel_max_min`. ``ratio`` = LP / Hadar: the aim is 10.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from benchmarks.timing import cpu_seconds
from policies.gavel_problems import jobs_of, optimum
from scipy.optimize import linprog
from scipy.sparse import csr_array

from optsched.models.gavel_allocation import AllocationProblem
from optsched.models.gavel_max_min import build
from optsched.policies.gpu_pools import GpuPools
from optsched.policies.hadar_auction import Auction, Bidders
from optsched.speeds.throughput_table import built_in

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
@pytest.mark.parametrize("queue", ["greedy", "window=8", "by machine"])
def test_a_round_of_hadar_and_gavels_lp(benchmark: Any, queue: str, nodes: int) -> None:
    bidders, pools = state(nodes)
    auction = Auction(360.0, width=8 if queue == "window=8" else 1, by_machine=queue == "by machine")
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
