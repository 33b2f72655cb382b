"""List scheduling: every order, and Graham's bounds against brute force."""

from __future__ import annotations

from fractions import Fraction

import pytest
from brute_force import optimum
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.errors import InputError
from optsched.policies.list import ListScheduling
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job

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
        Instance([Job(job.id, duration=job.duration, gpus=3) for job in JOBS], "1x3"), ListScheduling(jobs=tuple(order))
    )
    assert sorted("abcd", key=lambda job: serial.schedule.completion[serial.instance.index[job]]) == list(order)
    starts = dict(zip((run.instance.ids[j] for j in run.schedule.job), run.schedule.start.tolist(), strict=True))
    assert starts[order[0]] == 0  # the first of the list always starts first


def test_any_list_and_the_jobs_it_leaves_out_come_last() -> None:
    instance = Instance([Job(name, gpus=3, duration=1) for name in "abcd"], "1x3")
    run = simulate(instance, ListScheduling(jobs=("c", "a")))
    assert run.schedule.completion.tolist() == [2, 3, 1, 4]


def test_what_is_not_an_order_or_a_job_is_one_line() -> None:
    with pytest.raises(InputError, match=r"list: by = 'wide': unknown order; did you mean widest"):
        ListScheduling(by="wide")
    with pytest.raises(InputError, match="list: jobs = 'z': no such job"):
        simulate(Instance(JOBS, "1x3"), ListScheduling(jobs=("a", "z")))


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
