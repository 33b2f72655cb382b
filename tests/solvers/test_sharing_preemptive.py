"""Sharing with preemption: against closed forms, SRPT, two machines, and schedules played again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from optsched.errors import InputError
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference
from optsched.solvers.sharing_orders import best_shared_order
from optsched.solvers.sharing_preemptive import preemptive_sharing_optimum
from optsched.speeds.sharing_pair import sharing_pair


def random_jobs(rng: np.random.Generator, n: int, xi: Any = None, late: float = 3.0) -> Instance:
    names = [f"kind-{j}" for j in range(n)]
    ratios = tuple(map(tuple, (1 + rng.exponential(0.6, (n, n))).tolist()))
    interference = Interference(2, tuple(names), ratios) if xi is None else Interference(xi)
    rows = zip(names, np.exp(rng.uniform(-1, 1, n)).tolist(), (rng.random(n) * late).tolist(), strict=True)
    return Instance([Job(m, duration=e, arrival=r, model=m) for m, e, r in rows], "1x1", interference=interference)


def test_two_jobs_are_the_closed_form() -> None:
    rng = np.random.default_rng(1)
    for late in [0.0] * 5 + [1.0] * 15:
        instance = random_jobs(rng, 2, late=late)
        xi = instance.interference.table(instance.kinds)  # type: ignore[union-attr]
        (a, b), r, e = np.argsort(instance.arrival, kind="stable"), instance.arrival, instance.duration
        left = e[a] - (r[b] - r[a])
        best = r[a] + e[a] + r[b] + e[b]  # they do not meet
        if left > 0:
            best = 2 * r[b] + sharing_pair(left, e[b], xi[a, b], xi[b, a]).preemptive_sum
        assert preemptive_sharing_optimum(instance).value == pytest.approx(best, rel=1e-9)


def test_where_sharing_gains_nothing_it_is_shortest_remaining_time_first() -> None:
    rng = np.random.default_rng(2)
    for xi in (2.0, 2.5, 4.0):
        instance = random_jobs(rng, 3, xi)
        srpt = simulate(instance, "srtf").value("total_completion_time")
        assert preemptive_sharing_optimum(instance).value == pytest.approx(srpt, rel=1e-9)
        less = instance.replace(interference=Interference(1.3))
        assert preemptive_sharing_optimum(less).value < srpt


def test_without_interference_one_gpu_is_two_machines() -> None:
    rng = np.random.default_rng(3)
    for n in (3, 4):
        instance = random_jobs(rng, n, 1.0, late=0.0)
        e = sorted(instance.duration.tolist())
        shortest_first = sum(value * ((n - i + 1) // 2) for i, value in enumerate(e))
        found = preemptive_sharing_optimum(instance)
        assert found.value == pytest.approx(shortest_first, rel=1e-9)
        assert found.programs == (105 if n == 4 else 15)


def test_the_schedule_found_has_that_value() -> None:
    """Every piece played: released jobs only, each gets its work, completions add up; preemption never hurts."""
    rng = np.random.default_rng(4)
    gains = 0
    for _ in range(6):
        instance = random_jobs(rng, 3)
        xi = instance.interference.table(instance.kinds)  # type: ignore[union-attr]
        found = preemptive_sharing_optimum(instance)
        now, done, end = 0.0, np.zeros(3), np.zeros(3)
        for seconds, state in found.pieces:
            assert seconds > -1e-9
            assert len(state) <= 2
            for j in state:
                assert now >= instance.arrival[j] - 1e-9
                if seconds > 1e-12:
                    done[j] += seconds / max([1.0, *(xi[j, k] for k in state if k != j)])
                    end[j] = now + seconds
            now += seconds
        assert done == pytest.approx(instance.duration, rel=1e-7)
        assert end.sum() == pytest.approx(found.value, rel=1e-7)
        kept = best_shared_order(instance).value
        assert found.value <= kept * (1 + 1e-9)
        gains += found.value < kept * (1 - 1e-6)
    assert gains > 0


@pytest.mark.parametrize(
    ("jobs", "nodes", "told"),
    [
        ([(1, 1)] * 6, "1x1", "n = 6"),
        ([(1, 1), (1, 1)], "1x2", "side by side"),
        ([(2, 1)] * 3, "1x3", "three jobs may run at once"),
    ],
)
def test_what_is_not_legal(jobs: list[tuple[int, float]], nodes: str, told: str) -> None:
    made = [Job(f"{k}", gpus=g, duration=e) for k, (g, e) in enumerate(jobs)]
    with pytest.raises(InputError, match=told):
        preemptive_sharing_optimum(Instance(made, nodes, interference=Interference()))
    if len(jobs) < 6:
        with pytest.raises(InputError, match="what sharing costs"):
            preemptive_sharing_optimum(Instance(made, nodes))
