"""LP bounds at any scale: below the optimum, verified, and worth their while."""

from __future__ import annotations

import numpy as np
from brute_force import optimum
from examples import examples
from hypothesis import given, settings, strategies as st

from optsched.bounds import BOUNDS
from optsched.problem.instance import Cluster, Instance, Job
from optsched.problem.objectives import get_objective
from optsched.solvers.list_schedule import best_list_schedule
from optsched.solvers.lp_bound import lp_bound
from solvers.rigid_instances import SUMS, rigid_instances


@given(rigid_instances(most=4, scales=(1, 2, 3)), st.sampled_from(SUMS), st.sampled_from((30, 100, 100_000)))
@settings(max_examples=examples(40))
def test_lp_bounds_hold_on_exact_and_on_coarse_grids(instance: Instance, objective: str, nonzeros: int) -> None:
    certificate = lp_bound(instance, objective, nonzeros=nonzeros)
    if certificate is None:
        assert nonzeros < 100_000
        return
    certificate.verify(instance)
    assert certificate.value <= optimum(instance, objective)


def busy(seed: int, n: int, span: int, longest: int) -> Instance:
    rng = np.random.default_rng(seed)
    jobs = [
        Job(
            f"j{j}",
            arrival=float(rng.random() * span),
            gpus=int(rng.choice([1, 1, 2, 4, 8])),
            duration=float(rng.random() * longest) + 1,
        )
        for j in range(n)
    ]
    return Instance(jobs, Cluster.parse("2x8"))


def test_real_valued_times_are_bounded_on_a_coarse_grid() -> None:
    instance = busy(1, 60, 2000, 500)
    schedule = best_list_schedule(instance, "total_flow_time", budget=500_000)
    certificate = lp_bound(instance, "total_flow_time", schedule=schedule, nonzeros=60_000)
    assert certificate is not None
    certificate.verify(instance)
    value = get_objective("total_flow_time").of(instance, schedule.completion)
    assert certificate.value <= value
    # the point of it: better than every bound without prices of GPUs over time, which are a finer grid's
    kinds = [BOUNDS.get(name) for name in BOUNDS.names() if name not in ("priced-time", "priced-gangs")]
    kinds = [kind for kind in kinds if "gang-nonpreemptive" in kind.classes and "total_flow_time" in kind.objectives]
    made = [kind.build(instance, "total_flow_time", "gang-nonpreemptive") for kind in kinds]
    assert certificate.value > max(each.value for each in made if each is not None)


def test_more_nonzeros_make_a_better_bound() -> None:
    instance = busy(2, 30, 500, 300)
    rough, fine = (lp_bound(instance, "total_flow_time", nonzeros=k) for k in (3_000, 60_000))
    assert rough is not None
    assert fine is not None
    assert rough.value < fine.value


def test_there_is_none_for_the_makespan_or_for_no_jobs() -> None:
    assert lp_bound(busy(1, 3, 5, 5), "makespan") is None
    assert lp_bound(Instance([], Cluster.machines(1))) is None
