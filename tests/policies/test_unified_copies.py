"""`unified` with ``fork``: copies by hand, SRPT where that is optimal, and runs beside the referee and HadarE."""

from __future__ import annotations

import numpy as np
import pytest
from examples import few
from simulation.forked_instances import gang_instance, table_instance

from optsched.bounds import bound
from optsched.check.referee import check_schedule
from optsched.errors import InputError
from optsched.io.traces.generate import generate
from optsched.policies.simulate import simulate
from optsched.policies.unified_copies import split
from optsched.problem.instance import Instance, Job
from optsched.simulation.run import ForkedRun

SPEC = "unified:fork=true"


def forked(instance: Instance, spec: str = SPEC) -> ForkedRun:
    run = simulate(instance, spec)
    assert isinstance(run, ForkedRun)
    assert run.schedule_class == "forking"
    return run


def test_one_job_takes_every_node_and_its_copies_end_together() -> None:
    # By hand: 10, 6 and 4 steps a second, 30 s to load every copy but the first: 10 T + 6 (T - 30) + 4 (T - 30) = 1700.
    run = forked(table_instance([[10, 6, 4]], [1700]))
    assert run.schedule.end.tolist() == pytest.approx([100, 100, 100])
    assert sorted(run.schedule.work.tolist()) == pytest.approx([280, 420, 1000])


def test_a_copy_that_would_load_until_the_end_is_not_started() -> None:
    # 2 T = 50 without the second node, which would be ready at 30 s.
    run = forked(table_instance([[2, 2]], [50]))
    assert (run.schedule.end.tolist(), len(run.schedule)) == ([25], 1)


def test_where_not_every_number_of_copies_is_tried_all_nodes_are_still_taken() -> None:
    # Numbers above 16 in steps of a quarter, and 40, all of them: T + 39 (T - 30) = 4000.
    run = forked(table_instance([[1] * 40], [4000]))
    assert run.schedule.end.tolist() == pytest.approx([129.25] * 40)


@pytest.mark.parametrize("seed", range(20))
def test_work_is_split_as_by_bisection(seed: int) -> None:
    rng = np.random.default_rng([seed, 3])
    rate, load = rng.uniform(0.1, 5, 6), rng.uniform(0, 50, 6) * (rng.random(6) < 0.8)
    left = float(rng.uniform(1, 500))
    low, high = 0.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if float((rate * np.maximum(middle - load, 0)).sum()) < left else (low, middle)
    assert split(left, rate, load) == pytest.approx(rate * np.maximum(low - load, 0), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_on_alike_nodes_of_one_gpu_it_is_srpt_which_is_optimal(seed: int) -> None:
    rng = np.random.default_rng([seed, 8])
    jobs = [
        Job(f"j{k}", int(a), 1, duration=int(p))
        for k, (a, p) in enumerate(zip(rng.integers(0, 60, 15), rng.integers(8, 90, 15), strict=True))
    ]
    run = forked(Instance(jobs, "4x1", objective="total_flow_time"), f"{SPEC},restart=0")
    best = bound(run.instance, "total_flow_time", schedule_class="forking")
    assert run.value("total_flow_time") == pytest.approx(float(best.value), rel=1e-9)


@pytest.mark.parametrize("seed", few(range(12), 3))
@pytest.mark.parametrize("restart", [0, 30, 4000])
def test_the_referee_accepts_copies_of_all_gangs_and_types(seed: int, restart: float) -> None:
    run = forked(gang_instance(seed), f"{SPEC},restart={restart}")
    assert run.unfinished == []
    assert check_schedule(run.instance, run.schedule, forking=True, value=run.value()) == []
    assert run.value("total_flow_time") >= float(bound(run.instance, "total_flow_time", schedule_class="forking").value)


def test_copies_of_two_jobs_divide_the_nodes_where_each_is_faster() -> None:
    # Each job is four times as fast on its own two nodes; nobody takes the other's, and nobody moves.
    run = forked(table_instance([[4, 4, 1, 1], [1, 1, 4, 4]], [8000, 8100]))
    on = {(int(j), int(node)) for j, node in zip(run.schedule.job, run.schedule.gpu_node, strict=True)}
    assert {(0, 0), (0, 1), (1, 2), (1, 3)} <= on
    assert run.schedule.completion[0] == pytest.approx((8000 + 4 * 30) / 8)
    assert run.preemptions == 0


@pytest.mark.parametrize("seed", range(4))
def test_nothing_follows_from_the_future(seed: int) -> None:
    instance = gang_instance(seed)
    cut = float(np.median(instance.arrival))
    early = Instance(
        [job for job in instance.jobs if job.arrival <= cut], instance.cluster, throughputs=instance.throughputs
    )
    limit = min(job.arrival for job in instance.jobs if job.arrival > cut)

    def until_then(made: Instance) -> set[tuple[str, float, tuple[int, ...]]]:
        rows = forked(made).schedule.segments()
        return {(made.ids[s.job], s.start, tuple(node for node, _ in s.gpus)) for s in rows if s.start < limit}

    assert until_then(instance) == until_then(early)


@pytest.mark.release
def test_better_than_who_forks_and_who_resizes_on_the_instance_of_all_four() -> None:
    """Seeds 41 and 42, not used for its rules; `docs/unified.md` has twenty seeds and every registered policy."""
    for seed, load in few(((41, 0.6), (42, 1.2)), 1):
        made = generate("all-four", seed, load=load)
        mine = forked(made).value("total_flow_time")
        assert mine < 0.9 * min(simulate(made, rival).value("total_flow_time") for rival in ("unified", "hadar-e"))


def test_copies_need_to_know_what_is_left() -> None:
    with pytest.raises(
        InputError, match=r"unified: predictor = 'shrinkage': invalid \(expected: perfect, where fork=true"
    ):
        simulate(gang_instance(0), f"{SPEC},predictor=shrinkage")
