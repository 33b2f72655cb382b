"""WSPT: Smith's rule, and the bound of Kawaguchi and Kyan, against brute force."""

from __future__ import annotations

from brute_force import optimum
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job

weighted = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 5)), min_size=1, max_size=6)


@settings(max_examples=examples(40))
@given(weighted)
def test_smiths_rule_is_optimal_on_one_machine(rows: list[tuple[int, int]]) -> None:
    instance = Instance([Job(str(j), duration=d, weight=w) for j, (d, w) in enumerate(rows)], "1x1")
    objective = "total_weighted_completion_time"
    assert simulate(instance, "wspt").value(objective) == optimum(instance, objective)


def test_jobs_of_weight_zero_come_last() -> None:
    jobs = [Job("nothing", duration=1, weight=0), Job("a", duration=9, weight=1), Job("b", duration=9, weight=2)]
    assert simulate(Instance(jobs, "1x1"), "wspt").schedule.completion.tolist() == [19, 18, 9]


def test_by_gpus_the_area_counts() -> None:
    jobs = [Job("wide", gpus=3, duration=2), Job("narrow", duration=5)]
    instance = Instance(jobs, "1x3")
    assert simulate(instance, "wspt").schedule.completion.tolist() == [2, 7]
    assert simulate(instance, "wspt:gpus=true").schedule.completion.tolist() == [7, 5]
