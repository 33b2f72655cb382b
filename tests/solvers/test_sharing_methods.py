"""solve() over schedules in which jobs share GPUs, the search with preemption, and how far policies are from the optimum."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from optsched.check.referee import check_schedule
from optsched.classes.gpu_sharing.solvers.sharing_orders import best_shared_order
from optsched.classes.gpu_sharing.solvers.sharing_preemptive import preemptive_sharing_optimum
from optsched.classes.gpu_sharing.solvers.sharing_search import sharing_optimum
from optsched.errors import InputError
from optsched.io.traces.generate import generate
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference
from optsched.problem.schedule import SharedSchedule
from optsched.solvers.solve import model_names, solve
from optsched.speeds.sharing_pair import sharing_pair

# --- solve() over schedules in which jobs share GPUs: what is called optimal is proved, and the referee agrees -----------


METHODS = ("gpu-sharing", "sharing-orders", "sharing-branching")


def test_they_are_models() -> None:
    assert set(METHODS) <= set(model_names())


@pytest.mark.parametrize("objective", ["total_flow_time", "total_completion_time"])
@pytest.mark.parametrize("xi", ["1.3", "exp"])
def test_the_roads_agree(objective: str, xi: str) -> None:
    instance = generate("sharing-small", 21, jobs=3, xi=xi)
    found = sharing_optimum(instance)
    value = found.value if objective == "total_completion_time" else found.flow_time
    for model in METHODS:
        solution = solve(instance, objective, model=model)
        assert solution.value == pytest.approx(value, rel=1e-12)
        assert solution.model == model
        assert solution.status == ("feasible" if model == "sharing-branching" and not found.optimal else "optimal")
        assert isinstance(solution.schedule, SharedSchedule)
        assert (
            check_schedule(instance, solution.schedule, preemptive=False, objective=objective, value=solution.value)
            == []
        )
        assert solution.bound is not None
        assert solution.bound <= value * (1 + 1e-9)
        if solution.certificate is not None:
            assert solution.certificate.schedule_class in ("gpu-sharing", "forking", "elastic")


def test_several_gpus_are_proved_by_orders() -> None:
    instance = generate("sharing-small", 4, jobs=3, gpus=2, xi="exp")
    solution = solve(instance, model="sharing-orders")
    assert solution.status == "optimal"
    assert solution.value == pytest.approx(sharing_optimum(instance).flow_time, rel=1e-12)


def test_sharing_is_never_worse_than_exclusive_gpus_and_not_the_default() -> None:
    # whole seconds: two jobs at xi = 1.25 gain
    jobs = [Job("a", 0, 1, 4), Job("b", 0, 1, 4)]
    instance = Instance(jobs, "1x1", interference=Interference(1.25))
    assert solve(instance).value == 4 + 8
    assert solve(instance, model="gpu-sharing").value_exact == Fraction(10)
    assert solve(instance, model="sharing-branching").status == "optimal"


def test_a_stopped_search_says_so() -> None:
    instance = generate("sharing-small", 3, jobs=9, xi="exp")
    solution = solve(instance, model="sharing-branching", time_limit=1e-6)
    assert solution.status == "limit"
    assert "stopped" in solution.note


def test_what_does_not_apply_is_said_in_one_line() -> None:
    shared = Interference(1.5)
    plain = Instance([Job("a", duration=1), Job("b", duration=1)], "1x2")
    apart = Instance([Job("a", duration=1), Job("b", duration=1)], "1x2", interference=shared)
    many = Instance([Job(f"j{k}", duration=1) for k in range(13)], "1x1", interference=shared)
    for model in METHODS:
        with pytest.raises(InputError, match="interference"):
            solve(plain, model=model)
        with pytest.raises(InputError, match="makespan"):
            solve(apart, "makespan", model=model)
        with pytest.raises(InputError, match=r"at most \d+ jobs, there are 13"):
            solve(many, model=model)
        with pytest.raises(InputError, match="horizon"):
            solve(apart, model=model, horizon=9.0)
    with pytest.raises(InputError, match="side by side"):
        solve(apart, model="gpu-sharing")
    wide = Instance([Job(x, 0, 4, 1) for x in "abcde"], "1x8", interference=shared)
    with pytest.raises(InputError, match="too many choices"):
        solve(wide, model="sharing-orders")


# --- sharing with preemption: against closed forms, SRPT, two machines, and schedules played again -----------------------


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
        ([(1, 1), (1, 1)], "1x2", "at once without sharing"),
        ([(2, 1)] * 3, "1x3", "three jobs may run at once"),
    ],
)
def test_what_is_not_legal(jobs: list[tuple[int, float]], nodes: str, told: str) -> None:
    made = [Job(f"{k}", gpus=g, duration=e) for k, (g, e) in enumerate(jobs)]
    with pytest.raises(InputError, match=told):
        preemptive_sharing_optimum(Instance(made, nodes, interference=Interference()))
    if len(jobs) < 6:
        with pytest.raises(InputError, match="the cost of sharing is unknown"):
            preemptive_sharing_optimum(Instance(made, nodes))


# --- SJF, SJF-FFS and SJF-BSBF against the best schedule that starts jobs at events, on random instances of a few jobs ---


POLICIES = ("sjf", "sjf-ffs", "sjf-bsbf")
# an independent model, sum of flow times: (xi, jobs): instances there, mean ratios of the policies on one GPU
MODEL = {
    ("1.1", 3): (200, 1.370, 1.003, 1.003),
    ("1.1", 4): (100, 1.525, 1.014, 1.014),
    ("1.1", 5): (40, 1.517, 1.007, 1.007),
    ("1.3", 3): (200, 1.267, 1.005, 1.005),
    ("1.3", 4): (100, 1.381, 1.029, 1.029),
    ("1.3", 5): (40, 1.373, 1.023, 1.023),
    ("1.5", 3): (200, 1.181, 1.020, 1.014),
    ("1.5", 4): (100, 1.247, 1.040, 1.026),
    ("1.5", 5): (40, 1.265, 1.056, 1.044),
    ("1.8", 3): (200, 1.131, 1.080, 1.009),
    ("1.8", 4): (100, 1.205, 1.113, 1.014),
    ("1.8", 5): (40, 1.191, 1.144, 1.006),
    ("exp", 3): (200, 1.255, 1.046, 1.010),
    ("exp", 4): (100, 1.308, 1.057, 1.031),
    ("exp", 5): (40, 1.323, 1.069, 1.025),
}
SAMPLING = 4.0  # standard errors


def ratios(xi: str, jobs: int, count: int) -> np.ndarray:
    """f64[count, policies]."""
    rows = []
    for seed in range(count):
        instance = generate("sharing-small", seed, jobs=jobs, xi=xi)
        best = sharing_optimum(instance)
        assert best.complete
        values = [simulate(instance, policy).value("total_flow_time") for policy in POLICIES]
        assert min(values) >= best.flow_time * (1 - 1e-9)  # they start jobs at events, too
        rows.append([value / best.flow_time for value in values])
    return np.array(rows)


def test_sharing_helps_where_it_costs_little_and_the_test_helps_where_it_costs_much() -> None:
    little, much = (ratios(xi, 4, 15).mean(axis=0) for xi in ("1.1", "1.8"))
    assert little[0] > much[0] > 1.02
    assert little[1:] == pytest.approx(1.01, abs=0.02)
    assert much[1] > 1.05 > much[2]


@pytest.mark.study
@pytest.mark.parametrize(("xi", "jobs"), MODEL)
def test_the_sheets_table_within_sampling_error(xi: str, jobs: int) -> None:
    count, *means = MODEL[xi, jobs]
    found = ratios(xi, jobs, 300)
    error = found.std(axis=0) * np.sqrt(1 / count + 1 / 300)
    assert (np.abs(found.mean(axis=0) - means) <= SAMPLING * error).all()
