"""List scheduling: every order, and Graham's bounds against brute force."""

from __future__ import annotations

import pytest
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
