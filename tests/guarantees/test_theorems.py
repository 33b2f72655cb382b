"""The classical theorems and the inequalities of their proofs against exhaustive optima; printed values of families."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from brute_force import optimum, preemptive_optimum
from examples import examples
from hypothesis import given, settings, strategies as st

from optsched.bounds.best_bound import bound
from optsched.check.referee import check_schedule, schedule_value
from optsched.errors import InputError
from optsched.evaluation.optimum_bounds import OptimumBounds
from optsched.guarantees import GUARANTEES
from optsched.guarantees.family import FAMILIES, family_member
from optsched.guarantees.judge import judge
from optsched.policies.simulate import simulate, specify
from optsched.problem.instance import Instance, Job
from optsched.problem.schedule import Schedule


def one_gpu_jobs(rows: list[tuple[int, int]], cluster: str = "1x1") -> Instance:
    """Jobs of (release, length); weights 1, 2, 3, 1, ..."""
    return Instance([Job(f"{j}", arrival=r, duration=p, weight=1 + j % 3) for j, (r, p) in enumerate(rows)], cluster)


def first_at_zero(rows: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """A run is judged by times since the first release."""
    return [(r - min(r for r, _ in rows), p) for r, p in rows]


def drawn(**fields: st.SearchStrategy[int]) -> st.SearchStrategy[list[Job]]:
    """One to six jobs."""
    rows = st.lists(st.fixed_dictionaries(fields), min_size=1, max_size=6)
    return rows.map(lambda rows: [Job(f"{j}", **row) for j, row in enumerate(rows)])


def on(jobs: st.SearchStrategy[Any], most: int, least: int = 1) -> st.SearchStrategy[Instance]:
    """Such jobs on so many GPUs of a node."""
    return st.builds(Instance, jobs, st.integers(least, most).map("1x{}".format))


at_once, turns = drawn(duration=st.integers(1, 9)), drawn(duration=st.integers(1, 5).map(lambda p: 2 * p))
gangs = drawn(gpus=st.integers(1, 3), duration=st.integers(1, 6))
some_gang = gangs.filter(lambda jobs: any(job.gpus > 1 for job in jobs))
weighted = drawn(duration=st.integers(1, 6), weight=st.integers(0, 5))
released = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 4)), min_size=1, max_size=4).map(
    lambda rows: one_gpu_jobs(first_at_zero(rows)).jobs
)
SKIPPING = [
    *(f"list:by={by}" for by in ("given", "narrowest", "longest", "widest", "largest")),
    "fifo:skip=true",
    "sjf",
    "wspt",
]

HELD = [  # theorem, policies, instances, optimum of the class; do its own bounds show so much, too?
    ("graham-list", [*SKIPPING, "list:by=shortest", "fifo"], on(at_once, 4), optimum, True),  # by volume and p_max
    ("lpt", ["list:by=longest"], on(at_once, 4), optimum, False),
    ("srpt-one-machine", ["srtf", "srtf-gpu"], on(released, 1), preemptive_optimum, True),
    ("srpt-parallel-machines", ["srtf"], on(released, 2, 2), preemptive_optimum, False),
    ("srpt-order", ["a-srpt:overtake=0"], on(released, 1), preemptive_optimum, False),
    ("preemptive-wspt", ["preemptive-wspt"], on(released, 2), preemptive_optimum, False),
    ("delayed-spt", ["delayed-spt"], on(released, 1), optimum, False),
    ("round-robin", ["setf:quantum=2"], on(turns, 1), optimum, False),
    ("fifo-flow", ["fifo"], on(released, 3), preemptive_optimum, False),
    ("fifo-flow", ["fifo"], on(released, 1), preemptive_optimum, True),  # optimal there
    ("fifo-total-flow", ["fifo"], on(released, 3), preemptive_optimum, False),
    ("fifo-gangs", ["fifo"], on(gangs, 3, 3), optimum, False),
    ("garey-graham", SKIPPING, on(some_gang, 3, 3), optimum, False),
    ("wspt-parallel-machines", ["wspt"], on(weighted, 3), optimum, False),
]


@pytest.mark.parametrize(
    ("name", "policies", "instances", "optimum_of", "proved"), HELD, ids=[name for name, *_ in HELD]
)
@settings(max_examples=examples(40))
@given(st.data())
def test_it_is_kept(
    name: str, policies: list[str], instances: Any, optimum_of: Any, proved: bool, data: st.DataObject
) -> None:
    """It applies, factor and audit hold for the run against the optimum, and it is never found violated."""
    theorem, chosen = GUARANTEES.get(name), specify(data.draw(st.sampled_from(policies)))
    instance = data.draw(instances)
    best = optimum_of(instance, theorem.objective)
    assert theorem.applies(chosen.policy, chosen.placement, instance)
    run = simulate(instance, chosen)
    assert check_schedule(instance, run.schedule, preemptive=run.preemptive) == []
    value = float(schedule_value(run.relative.instance, run.relative.schedule, theorem.objective))
    assert value <= float(theorem.ratio(chosen.policy, run)) * float(best) * (1 + 1e-12)
    assert theorem.audit(chosen.policy, run) == []
    proven = OptimumBounds(instance, [run])
    lower = proven.lower(theorem.objective, theorem.schedule_class)
    assert lower is None or lower <= best
    assert judge(theorem, chosen.policy, run, proven).holds in ((True,) if proved else (True, None))


def test_longest_first_is_about_lists_by_longest_alone() -> None:
    chosen = specify("list")
    assert not GUARANTEES.get("lpt").applies(chosen.policy, chosen.placement, one_gpu_jobs([(0, 1)]))


times = st.floats(0, 1e6, allow_nan=False).map(abs)


@settings(max_examples=examples(40))
@given(st.lists(st.tuples(times, st.floats(0.01, 1e5)), min_size=1, max_size=12))
def test_srpt_holds_up_to_rounding_with_real_times(rows: list[tuple[float, float]]) -> None:
    instance = Instance([Job(f"{j}", arrival=r, duration=p) for j, (r, p) in enumerate(rows)], "1x1")
    theorem, run = GUARANTEES.get("srpt-one-machine"), simulate(instance, "srtf")
    others = [simulate(instance, text) for text in ("srtf-gpu", "sjf")]
    judgement = judge(theorem, specify("srtf").policy, run, OptimumBounds(instance, [run, *others]))
    assert judgement.holds is True
    assert judgement.bound is not None
    assert Fraction(judgement.bound) <= OptimumBounds(instance).lower(theorem.objective)  # type: ignore[operator]


def test_delayed_spt_waits_for_the_clock_of_the_shortest_job() -> None:
    jobs = [Job("long", duration=4), Job("short", arrival=1, duration=2), Job("late", arrival=9, duration=3)]
    assert simulate(Instance(jobs, "1x1"), "delayed-spt").schedule.completion.tolist() == [8, 4, 12]


def test_elapsed_time_decides_when_a_turn_is_over() -> None:
    jobs = [Job("old", duration=6), Job("new", arrival=3, duration=4)]
    run = simulate(Instance(jobs, "1x1"), "setf:quantum=2")
    # old has had its turn at 2 and makes way at 3; at 5 new has run for 2 s, less than old, and has another turn
    assert run.schedule.completion.tolist() == [10, 7]
    one_more = Instance([*jobs, Job("newer", arrival=4, duration=1)], "1x1")  # waits for the end of the turn, at 5
    assert simulate(one_more, "setf:quantum=2").schedule.completion.tolist() == [11, 8, 6]
    with pytest.raises(InputError, match="quantum"):
        specify("setf:quantum=0")


@pytest.mark.parametrize(("bursts", "m"), [(0, 2), (3, 2), (2, 3), (1, 4)])
def test_bursts_make_first_come_first_served_lag(bursts: int, m: int) -> None:
    member = family_member(f"lagging-bursts:bursts={bursts},m={m}")
    instance, longest = member.instance, m ** (bursts + 1)
    served = {text: simulate(instance, text).value("max_flow_time") for text in ("fifo", "list:by=longest")}
    assert (served["list:by=longest"], bound(instance, "max_flow_time").value) == (longest, longest)
    assert Fraction(served["fifo"]) == member.ratio * longest


def test_the_order_of_srpt_is_kept_however_ties_fall_in_every_order_of_rows() -> None:
    theorem, chosen, rng = GUARANTEES.get("srpt-order"), specify("a-srpt:overtake=0"), np.random.default_rng(3)
    drawn = [list(zip(*rng.integers([[0], [1]], 4, (2, 3)).tolist(), strict=True)) for _ in range(15)]
    for rows in [[(1, 1), (0, 2)], *drawn]:
        for order in permutations(first_at_zero(rows)):
            assert theorem.audit(chosen.policy, simulate(one_gpu_jobs(list(order)), chosen)) == []


# Values of the reference table of this project, to as many digits as it prints.
PRINTED = {
    "sand:m=2,grains=400": "1.183",
    "sand:m=4,grains=73": "1.2055",
    "sand:m=10,grains=30": "1.2069",
    "just-started:n=100": "2.000",
    "greedy-start:n=10": "6.6",
    "greedy-start:n=100": "17.0",
    "greedy-start:n=1000": "20.5",
    "overtaking:n=100": "1.980",
    "lagging-bursts:bursts=6": "1.9922",
    "lagging-bursts:bursts=3,m=3": "2.1358",
    "convoy:n=10": "3.83",
    "convoy:n=100": "33.8",
    "convoy:n=1000": "333.8",
    "wide-and-narrow:m=4": "3.99",
    "wide-and-narrow:m=8": "7.94",
    "wide-and-narrow:m=16": "15.8",
    "wide-and-narrow:m=64": "60.2",
}


@pytest.mark.parametrize("text", PRINTED)
def test_the_printed_ratios(text: str) -> None:
    """By formula: `test_families` holds the formulas against runs."""
    found, printed = family_member(text).ratio, PRINTED[text]
    assert found is not None
    assert f"{float(found):.{len(printed.partition('.')[2])}f}" == printed


@pytest.mark.parametrize(("phases", "printed"), [(3, "2.03"), (5, "2.66"), (7, "3.28")])
def test_srpt_on_machines_loses_more_the_more_phases(phases: int, printed: str) -> None:
    for m in (2, 4):
        member = FAMILIES.get("halving").member(phases=phases, m=m)
        value = schedule_value(member.instance, simulate(member.instance, "srtf").schedule, "total_flow_time")
        assert member.reference is not None
        assert f"{float(value / member.reference):.2f}" == printed


def test_what_halving_is_compared_with_is_a_schedule() -> None:
    """Long jobs on half of the machines, two short ones after each other on the others, the unit jobs at once."""
    instance = FAMILIES.get("halving").member(phases=3, m=4).instance
    starts = [0.0] * instance.n
    begun: dict[tuple[float, float], int] = {}
    for j, (r, p) in enumerate(zip(instance.arrival.tolist(), instance.duration.tolist(), strict=True)):
        longest = max(d for a, d in zip(instance.arrival.tolist(), instance.duration.tolist(), strict=True) if a == r)
        second = p < longest and begun.get((r, p), 0) >= 2
        starts[j] = r + p * second
        begun[r, p] = begun.get((r, p), 0) + 1
    schedule = Schedule.from_starts(instance, starts)
    assert check_schedule(instance, schedule, preemptive=False) == []
    assert (
        schedule_value(instance, schedule, "total_flow_time") == FAMILIES.get("halving").member(phases=3, m=4).reference
    )


@pytest.mark.study
@pytest.mark.parametrize(("name", "text"), [("srpt-parallel-machines", "srtf"), ("preemptive-wspt", "preemptive-wspt")])
def test_on_machines_it_holds_against_certified_bounds(name: str, text: str) -> None:
    rng, open_ones = np.random.default_rng(11), 0
    for _ in range(100):
        n, m = int(rng.integers(3, 30)), int(rng.integers(2, 5))
        rows = list(zip(rng.integers(0, 20, n).tolist(), rng.integers(1, 12, n).tolist(), strict=True))
        instance = one_gpu_jobs(first_at_zero(rows), f"1x{m}")
        theorem, chosen = GUARANTEES.get(name), specify(text)
        run = simulate(instance, chosen)
        assert theorem.audit(chosen.policy, run) == []
        verdict = judge(theorem, chosen.policy, run, OptimumBounds(instance, [run])).holds
        assert verdict is not False
        open_ones += verdict is None
    assert open_ones <= 10
