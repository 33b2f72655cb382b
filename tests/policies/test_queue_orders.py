"""The queue orders by hand, against brute force on tiny instances, and on the families on which they are worst."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from brute_force import optimum, preemptive_optimum
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.errors import InputError
from optsched.policies.queue_orders import list_scheduling
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job

# -- fifo --

gangs = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 5)), min_size=1, max_size=5)


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


@settings(max_examples=examples(40))
@given(gangs)
def test_skipping_is_within_twice_the_best_makespan_when_all_is_there_at_0(rows: list[tuple[int, int]]) -> None:
    instance = Instance([Job(str(j), gpus=g, duration=d) for j, (g, d) in enumerate(rows)], "1x4")
    assert simulate(instance, "fifo:skip=true").value("makespan") <= 2 * optimum(instance, "makespan")


@pytest.mark.parametrize("m", [2, 4, 8])
def test_strict_loses_a_factor_m_on_its_family(m: int) -> None:
    tiny = Fraction(1, 1024)
    rows = [row for _ in range(m) for row in ((m, float(tiny)), (1, 1.0))]
    instance = Instance([Job(str(j), gpus=g, duration=d) for j, (g, d) in enumerate(rows)], f"1x{m}")
    best = 1 + m * tiny  # all wide jobs, then all narrow ones side by side
    assert simulate(instance, "fifo").value("makespan") == m * (1 + tiny)
    assert simulate(instance, "list:by=widest+count").value("makespan") == best


@pytest.mark.parametrize("n", [4, 16, 64])
def test_flow_time_is_n_times_the_best_in_the_limit(n: int) -> None:
    jobs = [Job("long", duration=n * n), *(Job(str(k), arrival=1, duration=1) for k in range(n))]
    instance = Instance(jobs, "1x1")
    assert simulate(instance, "fifo").value() > n / 3 * simulate(instance, "srtf").value()


# -- list --

lengths = st.lists(st.integers(1, 9), min_size=1, max_size=6)
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
    run = simulate(Instance(JOBS, "1x3"), f"list:by={by}")
    serial = simulate(
        Instance([Job(job.id, duration=job.duration, gpus=3) for job in JOBS], "1x3"),
        list_scheduling(jobs=tuple(order)),
    )
    assert sorted("abcd", key=lambda job: serial.schedule.completion[serial.instance.index[job]]) == list(order)
    starts = dict(zip((run.instance.ids[j] for j in run.schedule.job), run.schedule.start.tolist(), strict=True))
    assert starts[order[0]] == 0  # the first of the list always starts first


def test_any_list_and_the_jobs_it_leaves_out_come_last() -> None:
    instance = Instance([Job(name, gpus=3, duration=1) for name in "abcd"], "1x3")
    run = simulate(instance, list_scheduling(jobs=("c", "a")))
    assert run.schedule.completion.tolist() == [2, 3, 1, 4]


def test_what_is_not_an_order_or_a_job_is_one_line() -> None:
    with pytest.raises(InputError, match=r"list: by = 'wide': unknown order; did you mean widest"):
        list_scheduling(by="wide")
    with pytest.raises(InputError, match="list: jobs = 'z': no such job"):
        simulate(Instance(JOBS, "1x3"), list_scheduling(jobs=("a", "z")))


@settings(max_examples=examples(40))
@given(lengths, st.integers(2, 3))
def test_grahams_bounds_on_identical_machines(rows: list[int], m: int) -> None:
    instance = Instance([Job(str(j), duration=d) for j, d in enumerate(rows)], f"{m}x1")
    best = optimum(instance, "makespan")
    assert simulate(instance, "list").value("makespan") <= (2 - Fraction(1, m)) * best
    assert simulate(instance, "list:by=longest").value("makespan") <= (Fraction(4, 3) - Fraction(1, 3 * m)) * best


@pytest.mark.parametrize("m", [2, 3, 5])
def test_grahams_family_is_tight(m: int) -> None:
    jobs = [Job(str(k), duration=1) for k in range(m * (m - 1))]
    instance = Instance([*jobs, Job("long", duration=m)], f"{m}x1")
    assert simulate(instance, "list").value("makespan") == 2 * m - 1
    assert simulate(instance, "list:by=longest").value("makespan") == m


@settings(max_examples=examples(40))
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 5)), min_size=1, max_size=5))
def test_rigid_gangs_are_within_twice_the_best_makespan(rows: list[tuple[int, int]]) -> None:
    instance = Instance([Job(str(j), gpus=g, duration=d) for j, (g, d) in enumerate(rows)], "1x4")
    for by in ("given", "longest", "widest", "largest"):
        assert simulate(instance, f"list:by={by}").value("makespan") <= 2 * optimum(instance, "makespan")


# -- sjf --


@settings(max_examples=examples(40))
@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(1, 3))
def test_spt_is_optimal_on_identical_machines(rows: list[int], m: int) -> None:
    instance = Instance([Job(str(j), duration=d) for j, d in enumerate(rows)], f"{m}x1")
    assert simulate(instance, "sjf").value("total_completion_time") == optimum(instance, "total_completion_time")


@pytest.mark.parametrize("n", [4, 16, 64])
def test_with_release_dates_the_ratio_grows_with_n(n: int) -> None:
    jobs = [Job("long", duration=10 * n), *(Job(str(k), arrival=1, duration=1) for k in range(n))]
    instance = Instance(jobs, "1x1")
    better = 1 + sum(range(2, n + 2)) - 1 + (n + 1 + 10 * n)  # idle until 1, the unit jobs, then the long one
    assert simulate(instance, "sjf").value("total_completion_time") > n / 7 * better


def test_jobs_that_do_not_fit_are_passed_over_and_nobody_is_stopped() -> None:
    jobs = [Job("a", gpus=2, duration=9), Job("b", arrival=1, gpus=2, duration=1), Job("c", arrival=1, duration=5)]
    assert simulate(Instance(jobs, "1x3"), "sjf").schedule.completion.tolist() == [9, 10, 6]


# -- srtf --


@settings(max_examples=examples(40))
@given(st.lists(st.tuples(st.integers(0, 8), st.integers(1, 5)), min_size=1, max_size=5))
def test_it_is_optimal_on_one_machine(rows: list[tuple[int, int]]) -> None:
    instance = Instance([Job(str(j), arrival=r, duration=d) for j, (r, d) in enumerate(rows)], "1x1")
    for objective in ("total_completion_time", "total_flow_time"):
        assert simulate(instance, "srtf").value(objective) == preemptive_optimum(instance, objective)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3)), min_size=1, max_size=4))
def test_on_two_machines_it_is_within_a_quarter_of_the_best(rows: list[tuple[int, int]]) -> None:
    # Sitters' 1.25 for sum C_j; the optimum over whole seconds is no smaller than the optimum.
    instance = Instance([Job(str(j), arrival=r, duration=d) for j, (r, d) in enumerate(rows)], "2x1")
    best = preemptive_optimum(instance, "total_completion_time")
    assert simulate(instance, "srtf").value("total_completion_time") <= 1.25 * float(best)


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


@pytest.mark.parametrize("seed", range(5))
def test_with_one_gpu_a_job_it_is_srtf(seed: int) -> None:
    rng = np.random.default_rng(seed)
    jobs = [Job(str(j), arrival=int(rng.integers(0, 20)), duration=int(rng.integers(1, 9))) for j in range(30)]
    instance = Instance(jobs, "1x4")
    for restart in ("", ":restart=1"):
        one, other = simulate(instance, f"srtf{restart}"), simulate(instance, f"srtf-gpu{restart}")
        assert one.schedule.completion.tolist() == other.schedule.completion.tolist()


# -- wspt --

weighted = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 5)), min_size=1, max_size=6)


@settings(max_examples=examples(40))
@given(weighted)
def test_smiths_rule_is_optimal_on_one_machine(rows: list[tuple[int, int]]) -> None:
    instance = Instance([Job(str(j), duration=d, weight=w) for j, (d, w) in enumerate(rows)], "1x1")
    objective = "total_weighted_completion_time"
    assert simulate(instance, "wspt").value(objective) == optimum(instance, objective)


@settings(max_examples=examples(40))
@given(weighted, st.integers(2, 3))
def test_on_identical_machines_it_is_within_the_bound_of_kawaguchi_and_kyan(
    rows: list[tuple[int, int]], m: int
) -> None:
    instance = Instance([Job(str(j), duration=d, weight=w) for j, (d, w) in enumerate(rows)], f"{m}x1")
    objective = "total_weighted_completion_time"
    assert simulate(instance, "wspt").value(objective) <= (1 + math.sqrt(2)) / 2 * float(optimum(instance, objective))


def test_jobs_of_weight_zero_come_last() -> None:
    jobs = [Job("nothing", duration=1, weight=0), Job("a", duration=9, weight=1), Job("b", duration=9, weight=2)]
    assert simulate(Instance(jobs, "1x1"), "wspt").schedule.completion.tolist() == [19, 18, 9]


def test_by_gpus_the_area_counts() -> None:
    jobs = [Job("wide", gpus=3, duration=2), Job("narrow", duration=5)]
    instance = Instance(jobs, "1x3")
    assert simulate(instance, "wspt").schedule.completion.tolist() == [2, 7]
    assert simulate(instance, "wspt:gpus=true").schedule.completion.tolist() == [7, 5]
