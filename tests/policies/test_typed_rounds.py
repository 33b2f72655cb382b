"""Rounds on several GPU types, auctioned or by the makespan LP: who gets which GPUs, and what a change costs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from examples import few

from optsched.bounds import bound
from optsched.check.referee import check_schedule
from optsched.errors import OptschedError
from optsched.policies.arrived_jobs import AUCTIONED
from optsched.policies.gavel_allocations.share_program import ShareProgram
from optsched.policies.gpu_pools import GpuPools
from optsched.policies.hadar_auction import Auction
from optsched.policies.round_grants import Bidders, Grant
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.problem.throughputs import Throughput, Throughputs
from optsched.simulation.run import Run

PLANNED = ("makespan-rounds", "makespan-rounds:fair=true")


def pools_of(*nodes: tuple[int, int]) -> GpuPools:
    """Nodes as (GPUs, pool)."""
    size, pool = (np.array(each, dtype=np.int64) for each in zip(*nodes, strict=True))
    count = int(pool.max()) + 1
    return GpuPools(pool, size, np.arange(count), np.array([int(np.argmax(pool == p)) for p in range(count)]))


def bidders(rows: list[dict[str, Any]], pools: GpuPools) -> Bidders:
    """Each row: gang, rate by pool, left; age, scale, span, restart and held where they matter."""
    count = pools.type.size

    def column(name: str, default: float) -> np.ndarray:
        return np.array([float(row.get(name, default)) for row in rows])

    rate = np.array([np.broadcast_to(np.asarray(row.get("rate", 1.0), dtype=float), count) for row in rows])
    return Bidders(
        gang=np.array([row.get("gang", 1) for row in rows], dtype=np.int64),
        together=np.ascontiguousarray(rate),
        spread=np.ascontiguousarray(rate),
        left=column("left", 10.0),
        age=column("age", 0.0),
        scale=column("scale", 10.0),
        span=column("span", 0.0),
        restart=column("restart", 0.0),
        held=[row.get("held", ()) for row in rows],
    )


def legal(grants: list[Grant], b: Bidders, pools: GpuPools) -> None:
    used = np.zeros_like(pools.size)
    assert len({grant.job for grant in grants}) == len(grants)
    for grant in grants:
        assert sum(count for _, count in grant.on) == b.gang[grant.job]  # a whole gang or nothing
        for node, count in grant.on:
            used[node] += count
            assert b.together[grant.job, pools.pool[node]] > 0
    assert (used <= pools.size).all()


def random_round(rng: np.random.Generator) -> tuple[Bidders, GpuPools]:
    pools = pools_of(*[(int(rng.integers(1, 5)), p) for p in range(2) for _ in range(int(rng.integers(1, 4)))])
    rows = []
    free = pools.size.copy()
    for _ in range(int(rng.integers(1, 9))):
        gang, held = int(rng.choice([1, 1, 2, 3, 4])), ()
        node = int(rng.integers(pools.size.size))
        if rng.random() < 0.4 and free[node] >= gang:
            held, free[node] = ((node, gang),), free[node] - gang
        rate = rng.random(2) * 5 + 0.1
        rate[rng.integers(2)] *= 0.0 if rng.random() < 0.3 and not held else 1.0
        rows.append(
            {"gang": gang, "rate": rate, "left": rng.random() * 60 + 1, "age": rng.random() * 30, "scale": rng.random() * 50,
             "span": float(rng.choice([0, 0, 80])), "restart": float(rng.choice([0, 2])), "held": held}
        )  # fmt: skip
    return bidders(rows, pools), pools


def test_grants_are_legal_and_leave_no_gpu_that_somebody_could_use() -> None:
    rng = np.random.default_rng(3)
    for _ in range(240):
        b, pools = random_round(rng)
        grants = Auction(4.0).grants(b, pools)
        legal(grants, b, pools)
        free = pools.size.copy()
        for grant in grants:
            for node, count in grant.on:
                free[node] -= count
            if grant.kept:
                assert grant.on == b.held[grant.job]
        for j in set(range(b.gang.size)) - {grant.job for grant in grants}:
            assert free[b.together[j, pools.pool] > 0].sum() < b.gang[j]


def test_a_price_rises_from_a_quarter_of_the_least_value_to_the_greatest_and_refuses() -> None:
    # 4 GPUs, gangs of at most 2: the price is Up when 3 are sold. Values of a GPU and round: 10, 5 and 1 over 5 s.
    pools = pools_of((4, 0))
    b = bidders(
        [{"gang": gang, "left": 5.0, "scale": scale} for gang, scale in ((2, 100.0), (1, 25.0), (1, 5.0))], pools
    )
    prices = Auction(5.0).price_range(b, pools)
    low, high = float(prices.low[0]), float(prices.low[0] * np.exp(prices.log_range[0]))
    assert (low, high, prices.scale.tolist()) == (0.25, pytest.approx(10.0), [3.0])
    grants = Auction(5.0, fill=False).grants(b, pools)
    assert [grant.job for grant in grants] == [
        0,
        1,
    ]  # the second pays .25 * 40^(2/3) = 2.9, the third refuses to pay 10
    assert [grant.job for grant in Auction(5.0).grants(b, pools)] == [0, 1, 2]  # a GPU that nobody buys is given away


def test_the_job_of_more_value_a_gpu_and_round_goes_first() -> None:
    pools = pools_of((1, 0))
    b = bidders([{"left": 100.0}, {"left": 20.0}], pools)  # the same utility, but one is done in 2 rounds, not 10
    assert [g.job for g in Auction(10.0).grants(b, pools)] == [1]


def test_a_job_stays_where_it_is_if_moving_gains_nothing() -> None:
    pools = pools_of((2, 0), (2, 0))
    held = {"gang": 2, "held": ((1, 2),), "restart": 1.0, "left": 100.0}
    (grant,) = Auction(10.0).grants(bidders([held], pools), pools)
    assert (grant.on, grant.kept) == (((1, 2),), True)
    # and a newcomer does not take its GPUs while others are free
    grants = Auction(10.0).grants(bidders([{"gang": 2, "left": 10.0}, held], pools), pools)
    assert [(g.job, g.on, g.kept) for g in grants] == [(0, ((0, 2),), False), (1, ((1, 2),), True)]


# -- the policy -----------------------------------------------------------------------------------------------------------

TABLE = Throughputs(
    {("a", "V100", 1): Throughput(4.0), ("a", "K80", 1): Throughput(1.0), ("b", "V100", 1): Throughput(2.0),
     ("b", "K80", 1): Throughput(1.8), ("a", "V100", 2): Throughput(8.0, 5.0), ("a", "K80", 2): Throughput(2.0)}
)  # fmt: skip


def jobs(*rows: tuple[str, float, float]) -> list[Job]:
    return [Job(f"j{k}", arrival=r, iterations=n, profile=m) for k, (m, r, n) in enumerate(rows)]


def checked(instance: Instance, spec: str) -> Run:
    run = simulate(instance, spec)
    assert run.unfinished == []
    assert check_schedule(instance, run.schedule) == []
    return run


def test_the_job_that_gains_more_gets_the_fast_gpu() -> None:
    instance = Instance(jobs(("a", 0, 4000.0), ("b", 0, 2000.0)), "1x1:V100+1x1:K80", throughputs=TABLE)
    run = checked(instance, "makespan-rounds:round=100")
    first = {s.job: s.gpus[0][0] for s in run.schedule.segments() if s.start == 0}
    assert first == {0: 0, 1: 1}  # a is 4 times as fast on V100, b hardly


def test_restarts_are_paid_when_the_gpus_change_and_only_then() -> None:
    # One GPU; the long job is pushed aside once by the short one at 100 and comes back at 200 for the rest.
    instance = Instance([Job("long", duration=250.0), Job("short", arrival=50.0, duration=100.0)], "1x1")
    run = checked(instance, "auction-rounds:utility=jct,round=100,restart=7")
    assert run.schedule.completion.tolist() == [200 + 7 + 150, 200]
    assert run.preemptions == 1
    alone = checked(Instance([Job("long", duration=250.0)], "1x1"), "makespan-rounds:round=100,restart=7")
    assert alone.schedule.completion.tolist() == [250.0]  # three rounds on the same GPU


@pytest.mark.parametrize("policy", [*PLANNED, "auction-rounds"])
def test_free_gpus_go_to_who_waits_at_once_and_without_fill_when_a_round_ends(policy: str) -> None:
    instance = Instance([Job("a", duration=30.0), Job("b", arrival=10.0, duration=5.0)], "2x1")
    spec = f"{policy}{',' if ':' in policy else ':'}round=100"
    assert checked(instance, spec).schedule.completion.tolist() == [30.0, 15.0]
    run = checked(instance, f"{spec},fill=false")
    assert run.schedule.completion.tolist() == [30.0, 35.0]  # nothing runs: the round is over
    two = Instance([*instance.jobs, Job("c", duration=150.0)], "3x1")
    assert checked(two, f"{spec},fill=false").schedule.completion.tolist() == [30.0, 105.0, 150.0]
    later = Instance([Job("a", duration=30.0), Job("b", arrival=40.0, duration=5.0)], "2x1")
    assert checked(later, spec).schedule.completion.tolist() == [30.0, 45.0]  # idle: a round begins


@pytest.mark.parametrize("policy", [*(f"auction-rounds:utility={name}" for name in AUCTIONED), *PLANNED])
def test_every_utility_and_order_finishes_every_job(policy: str) -> None:
    rng = np.random.default_rng(8)
    rows = [("ab"[int(rng.integers(2))], float(rng.random() * 300), float(rng.random() * 900 + 1)) for _ in range(20)]
    instance = Instance(jobs(*rows), "2x2:V100+2x1:K80", throughputs=TABLE)
    checked(instance, f"{policy}{',' if ':' in policy else ':'}round=60")


def test_for_the_makespan_the_critical_job_goes_first_and_then_the_shortest() -> None:
    # Two GPUs, 500 s of work, so T = 300: the long job must never wait. By slowdown it would, for the two short ones.
    made = [Job("mid", duration=200.0), Job("short", duration=100.0), Job("long", duration=300.0)]
    instance = Instance(made, "2x1")
    assert checked(instance, "makespan-rounds:round=20").schedule.completion.tolist() == [300.0, 100.0, 300.0]
    assert checked(instance, "auction-rounds:round=20").schedule.completion.max() == 400.0


def test_for_the_makespan_nobody_is_critical_where_capacity_alone_decides_it() -> None:
    # On one GPU no order changes the total time; and who is about to end keeps what it has.
    one = Instance([Job("long", duration=1000.0), Job("short", duration=300.0)], "1x1")
    assert checked(one, "makespan-rounds").schedule.completion.tolist() == [1300.0, 300.0]
    wide = Instance([Job("all", gpus=4, duration=1e5), Job("half", gpus=2, duration=5e4)], "1x4")
    assert checked(wide, "makespan-rounds").schedule.completion.tolist() == [150_000.0, 50_000.0]


def test_for_the_makespan_a_job_that_gains_nothing_by_moving_stays() -> None:
    # b is alone and starts on the V100; when a comes, the LP means that for a, but b would lose more than it gains.
    made = jobs(("b", 0, 300.0), ("a", 10, 400.0))
    run = checked(Instance(made, "1x1:V100+1x1:K80", throughputs=TABLE), "makespan-rounds:round=100,restart=1000")
    assert run.preemptions == 0


def test_for_the_makespan_jobs_wait_for_the_type_that_the_lp_means_for_them() -> None:
    # V100s are for a, 4 times as fast there: 3 rounds of 100 s in turn. All b on K80, 3 rounds. LP: T = 300 s.
    made = jobs(*[("a", 0, 400.0)] * 3, *[("b", 0, 180.0)] * 3)
    run = checked(Instance(made, "1x1:V100+1x1:K80", throughputs=TABLE), "makespan-rounds:round=100,restart=0")
    assert run.metrics["makespan"] == pytest.approx(300.0)
    assert all((s.gpus[0][0] == 0) == (s.job < 3) for s in run.schedule.segments())


def test_for_the_makespan_rounds_follow_the_lp_closely() -> None:
    # One-GPU jobs at time 0: but for rounds and packing the fluid LP can be followed, and no schedule is below it.
    rng, ratios, before = np.random.default_rng(12), [], []
    for _ in few(range(3), 1):
        rows = [("ab"[int(rng.integers(2))], 0.0, float(rng.random() * 9000 + 500)) for _ in range(24)]
        instance = Instance(jobs(*rows), "3x1:V100+4x1:K80", throughputs=TABLE)
        least = float(bound(instance, "makespan").value)
        for found, spec in (
            (ratios, "makespan-rounds:round=20,restart=0"),
            (before, "auction-rounds:round=20,restart=0"),
        ):
            found.append(checked(instance, spec).metrics["makespan"] / least)
    assert min(ratios) >= 1 - 1e-9
    assert max(ratios) <= 1.03 < min(before)


def test_for_the_makespan_a_gang_larger_than_each_type_takes_several_when_it_is_critical() -> None:
    # At 2 steps/s it needs all 4 GPUs for 500 s; then four of the ten others at a time.
    table = Throughputs({("a", "V100", 4): Throughput(8.0, 8.0), ("a", "K80", 4): Throughput(2.0, 2.0)})
    small = [Job(f"s{k}", duration=20.0) for k in range(10)]
    instance = Instance(
        [*small, Job("wide", gpus=4, iterations=1000.0, profile="a")], "1x2:V100+1x2:K80", throughputs=table
    )
    run = checked(instance, "makespan-rounds:round=100")
    assert run.schedule.completion[10] == 500.0
    assert run.metrics["makespan"] == 500.0 + 3 * 20.0


def test_for_fairness_the_earliest_due_date_goes_first() -> None:
    # T: 400, 2 * 100 and 3 * 200 s. At 100 a would come to 1, no worse than any: due in 300, b in 150, c in 560 s. At 200 a
    # would come to 1.25: it is due in 300, c in 610 s. By slowdown c, the shorter, goes before a, which is older.
    made = [Job("a", duration=400.0), Job("b", 50.0, duration=100.0), Job("c", 60.0, duration=200.0)]
    instance = Instance(made, "1x1")
    fair = checked(instance, "makespan-rounds:fair=true,round=100,restart=0")
    assert fair.schedule.completion.tolist() == [500.0, 200.0, 700.0]
    slowdown = checked(instance, "auction-rounds:round=100,restart=0")
    assert slowdown.schedule.completion.tolist() == [700.0, 200.0, 400.0]
    heavy = Instance([replace(job, weight=k) for k, job in enumerate(made)], "1x1")  # weights count for nothing
    weighted = checked(heavy, "makespan-rounds:fair=true,round=100,restart=0")
    assert weighted.schedule.completion.tolist() == fair.schedule.completion.tolist()


def test_for_fairness_a_stream_of_short_jobs_cannot_starve_a_long_one() -> None:
    short = [Job(f"s{k}", 100.0 * k, duration=100.0) for k in range(1, 81)]
    instance = Instance([Job("long", duration=1000.0), *short], "1x1")
    fair, auction = (
        checked(instance, f"{policy}round=100,restart=0")
        for policy in ("makespan-rounds:fair=true,", "auction-rounds:")
    )
    assert fair.schedule.completion[0] < 8000 < auction.schedule.completion[0]
    assert fair.metrics["max_ftf"] < auction.metrics["max_ftf"]


@pytest.mark.parametrize("policy", ["makespan-rounds:round=100,restart=0", "gavel:policy=min_total_duration_perf"])
def test_a_program_that_loses_itself_on_its_last_basis_is_solved_from_none(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = jobs(*[("a", 0, 400.0)] * 3, *[("b", 0, 180.0)] * 3)
    instance = Instance(made, "1x1:V100+1x1:K80", throughputs=TABLE)
    untouched = checked(instance, policy)
    solved, programs = ShareProgram.solved, list[ShareProgram]()

    def fails_from_the_second_call_on(self: ShareProgram, *arguments: Any) -> Any:
        if programs and self is programs[0]:
            raise OptschedError("HiGHS: run ended with Unknown")
        programs.append(self)
        return solved(self, *arguments)

    monkeypatch.setattr(ShareProgram, "solved", fails_from_the_second_call_on)
    run = checked(instance, policy)
    assert len({id(program) for program in programs}) == 2
    assert run.metrics["makespan"] == untouched.metrics["makespan"]


def test_where_the_solver_loses_the_second_program_the_shares_of_the_first_are_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    solve, reward, rewarded = ShareProgram.solve, ShareProgram.reward, list[ShareProgram]()

    def notes(self: ShareProgram, *arguments: Any) -> None:
        rewarded.append(self)
        reward(self, *arguments)

    def lost(self: ShareProgram, slots: Any) -> Any:
        if rewarded and self is rewarded[-1]:
            raise OptschedError("HiGHS: shares of time: unknown")
        return solve(self, slots)

    monkeypatch.setattr(ShareProgram, "reward", notes)
    monkeypatch.setattr(ShareProgram, "solve", lost)
    made = jobs(*[("a", 0, 400.0)] * 3, *[("b", 0, 180.0)] * 3)
    run = checked(Instance(made, "1x1:V100+1x1:K80", throughputs=TABLE), "makespan-rounds:round=100,restart=0")
    assert run.metrics["makespan"] == pytest.approx(300.0)
    assert len({id(program) for program in rewarded}) == len(rewarded) > 1  # each round begins anew


def test_a_due_date_that_can_be_kept_goes_before_one_that_cannot() -> None:
    made = [Job("lost", duration=500.0, due=300.0), Job("kept", duration=200.0, due=1000.0)]
    run = checked(Instance(made, "1x1"), "auction-rounds:utility=deadline,round=100")
    assert run.schedule.completion.tolist() == [700.0, 200.0]


def test_a_job_that_ends_at_a_boundary_but_for_rounding_does_not_hold_its_gpu_for_another_round() -> None:
    length = 0.1
    made = [Job("first", duration=3 * length), Job("next", arrival=0.05, duration=5.0)]
    run = checked(Instance(made, "1x1"), f"auction-rounds:utility=jct,round={length}")
    assert run.schedule.completion[1] == pytest.approx(0.3 + 5.0, abs=1e-6)


@pytest.mark.parametrize(
    ("policy", "waits"), [("makespan-rounds", 0), ("makespan-rounds:fill=false", 99), ("hadar", 99)]
)
def test_no_round_is_held_while_nothing_can_become_better(policy: str, waits: float) -> None:
    # 10^9 s are millions of rounds; each job runs as fast as it can, so only arrivals and completions matter.
    made = [Job("long", duration=1e9), Job("late", arrival=5e8 + 1, duration=1e9)]
    run = checked(Instance(made, "2x1"), f"{policy}{',' if ':' in policy else ':'}round=100")
    assert run.schedule.completion.tolist() == [1e9, 5e8 + 1 + waits + 1e9]  # rounds still begin at multiples of 100
    assert run.events < 20


def test_fairness_where_the_last_job_ends_as_another_one_comes() -> None:
    jobs = [Job("a", 0, 1, duration=5), Job("b", 5, 1, duration=5)]
    run = simulate(Instance(jobs, "1x1"), "makespan-rounds:fair=true")
    assert run.schedule.completion.tolist() == [5, 10]
