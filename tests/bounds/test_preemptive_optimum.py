"""The search for the best preemptive schedule, against formulas, a search over slots and one of the package.

(It is not above bounds by much: `verifier.test_small_instances`.)
"""

from __future__ import annotations

import numpy as np
import pytest
from brute_force import preemptive_optimum
from examples import examples, few
from hypothesis import given, settings, strategies as st
from verifier.certified_cases import Optima

from bounds.cases import OBJECTIVES
from bounds.preemptive_optimum import PreemptiveOptimum, counted_mixes, mixes_of, sharing_mixes, undominated
from optsched.classes.gpu_sharing.solvers.sharing_preemptive import preemptive_sharing_optimum
from optsched.problem.cluster import Cluster
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference

ROUNDING = 1e-9

rows = st.lists(
    st.tuples(st.integers(0, 5), st.integers(1, 3), st.integers(0, 3), st.integers(1, 9)), min_size=1, max_size=3
)


def machines(count: int, jobs: list[tuple[int, int, int, int]]) -> Instance:
    listed = [Job(f"j{k}", float(r), 1, float(p), weight=float(w), due=float(d)) for k, (r, p, w, d) in enumerate(jobs)]
    return Instance(listed, Cluster.machines(count)).relative


@settings(max_examples=examples(20))
@given(rows, st.sampled_from(OBJECTIVES))
def test_on_one_machine_slots_of_a_second_are_enough(jobs: list[tuple[int, int, int, int]], objective: str) -> None:
    instance = machines(1, jobs)
    found = PreemptiveOptimum(instance, counted_mixes(instance)).value(objective)
    assert float(found) == pytest.approx(float(preemptive_optimum(instance, objective)), rel=ROUNDING, abs=ROUNDING)


@settings(max_examples=examples(20))
@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(1, 4))
def test_mc_naughton(lengths: list[int], count: int) -> None:
    instance = machines(count, [(0, p, 1, 1) for p in lengths])
    found = PreemptiveOptimum(instance, counted_mixes(instance)).value("makespan")
    assert float(found) == pytest.approx(max(sum(lengths) / count, *lengths, 0))


def test_copies_of_a_job_add_up() -> None:
    instance = machines(3, [(0, 6, 1, 1), (1, 3, 1, 1)])
    found = PreemptiveOptimum(instance, counted_mixes(instance, copies=True)).value("total_completion_time")
    assert float(found) == pytest.approx(2 + 3)  # 3 GPUs have done 3 of 6 at 1, all of it at 2, the other at 3


def test_two_on_a_gpu_until_the_shorter_is_done() -> None:
    instance = Instance([Job("a", 0, 1, 1.0), Job("b", 0, 1, 4.0)], "1x1", interference=Interference(1.25))
    optimum = PreemptiveOptimum(instance, sharing_mixes(instance))
    # a shared second does 0.8 of each; the other has 3 left, alone
    assert float(optimum.value("makespan")) == pytest.approx(1.25 + 3)
    assert float(optimum.value("total_completion_time")) == pytest.approx(1.25 + 4.25)
    assert float(optimum.value("max_flow_time")) == pytest.approx(4.25)


def test_gangs_wait_for_each_other_less_where_they_may_stop() -> None:
    jobs = [Job("wide", 0, 2, 4.0), Job("short", 1, 1, 1.0), Job("later", 1, 1, 1.0)]
    instance = Instance(jobs, "1x2")
    flow = {each: float(Optima(instance).least("total_flow_time", each)) for each in ("gang", "gang-nonpreemptive")}
    assert flow["gang-nonpreemptive"] == 6 + 1 + 1
    assert flow["gang"] == pytest.approx(5 + 1 + 1)


@pytest.mark.parametrize("seed", few(range(6), 3))
def test_as_the_search_of_the_package_on_one_shared_gpu(seed: int) -> None:
    rng, n = np.random.default_rng(seed), 3
    ratios = tuple(map(tuple, (1 + rng.exponential(0.6, (n, n))).tolist()))
    rows = zip("abc", rng.uniform(0.3, 3, n).tolist(), (rng.random(n) * 3).tolist(), strict=True)
    jobs = [Job(name, late, 1, seconds, model=name) for name, seconds, late in rows]
    instance = Instance(jobs, "1x1", interference=Interference(2, tuple("abc"), ratios)).relative
    found = PreemptiveOptimum(instance, sharing_mixes(instance)).value("total_completion_time")
    assert float(found) == pytest.approx(preemptive_sharing_optimum(instance).value, rel=ROUNDING)


def test_what_no_other_beats() -> None:
    kept = undominated(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5], [0.0, 0.5]]))
    assert sorted(kept.tolist()) == [[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]]
    instance = machines(2, [(0, 2, 1, 1), (0, 4, 1, 1)])
    assert undominated(mixes_of(instance, "gang", lambda j: [])).tolist() == [[0.5, 0.25]]
