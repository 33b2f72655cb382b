"""Schedules and bounds are what they were when they were frozen: a sample of the digests, and all of them as a study."""

from __future__ import annotations

import hashlib
import json

import pytest

from frozen.freeze import ABOUT, FILE, changes
from frozen.runs import (
    HEAVY,
    SIZE,
    bounds_of,
    description,
    digests_of_runs,
    figures_of_run,
    names,
    parts,
    placements,
    policies,
)

FROZEN = json.loads(FILE.read_text())
# numerical solvers decide: bit for bit the same on machines of one kind only
SOLVED = ("gavel", "goodput", "lenstra-shmoys-tardos")
SHARE = 48  # one of so many (instance, policy) in the sample


def drawn(*key: str) -> bool:
    return int(hashlib.sha256(" ".join(key).encode()).hexdigest(), 16) % SHARE == 0


def light(name: str) -> bool:
    return name not in HEAVY and not name.startswith(("all-four", "hadar-60", "gavel-", "ddl-cluster", "ada-srsf"))


SAMPLE = [
    (name, policy)
    for name, runs in FROZEN["runs"].items()
    for policy in runs
    if light(name) and not policy.startswith(SOLVED) and drawn(name, policy)
]


def test_all_that_runs_today_was_frozen_or_is_new() -> None:
    assert FROZEN["placements"] == placements()
    assert set(FROZEN["runs"]) == set(FROZEN["bounds"]) == set(names())
    assert {policy for runs in FROZEN["runs"].values() for policy in runs} <= set(policies("rigid-06-1"))
    digests = [word for runs in FROZEN["runs"].values() for line in runs.values() for word in parts(line)[1].split()]
    assert len(digests) > 20_000
    assert {len(word) for word in digests} == {SIZE}


def test_the_file_says_what_each_digest_stands_for() -> None:
    assert FROZEN["about"] == list(ABOUT)
    assert set(FROZEN["instances"]) == set(FROZEN["runs"])
    assert FROZEN["instances"]["hadar-60#1"] == description("hadar-60#1")
    assert description("hadar-60#1") == "recipe hadar-60, seed 1, jobs=40: 40 jobs on 5x4:V100+5x4:P100+5x4:K80"
    figures, digests = parts(FROZEN["runs"]["rigid-06-1"]["fifo"])
    assert figures.startswith("makespan ")
    assert len(digests.split()) == len(placements())


def test_what_refreezing_changes_is_said_in_words() -> None:
    def document(runs: dict[str, str], bound: str) -> dict[str, object]:
        return {"placements": ["", "+lwf"], "runs": {"rigid": runs}, "bounds": {"rigid": {"makespan gang": bound}}}

    old = {"fifo": "makespan 7, total_flow_time 9: aa bb", "sjf": "makespan 7, total_flow_time 9: cc", "srtf": "dd"}
    new = {
        "fifo": "makespan 8, total_flow_time 9: aa ee",
        "sjf": "makespan 7, total_flow_time 9: ff",
        "setf": old["sjf"],
    }
    assert list(changes(document(old, "volume 6.0"), document(new, "volume 6.5"))) == [
        "added rigid, setf: makespan 7, total_flow_time 9",
        "removed rigid, srtf: no figures",
        "changed rigid, fifo: makespan 7, total_flow_time 9 -> makespan 8, total_flow_time 9; "
        "another schedule with 1 of 2 placements: lwf",
        "changed rigid, sjf: makespan 7, total_flow_time 9 as before; "
        "another schedule with 1 of 2 placements: its own placement",
        "changed rigid, makespan gang: bound volume 6.0 -> volume 6.5",
        "1 added, 1 removed, 3 changed",
    ]
    assert list(changes(document(old, "volume 6.0"), document(old, "volume 6.0"))) == ["0 added, 0 removed, 0 changed"]
    many = {f"policy-{k}": "aa" for k in range(50)}
    assert "removed: 10 more" in list(changes(document(many, ""), document({}, "")))


@pytest.mark.parametrize("name", sorted({name for name, _ in SAMPLE}))
def test_schedules_are_what_they_were(name: str) -> None:
    for policy in (policy for each, policy in SAMPLE if each == name):
        figures, digests = parts(FROZEN["runs"][name][policy])
        assert digests_of_runs(name, policy) == digests, policy
        assert figures_of_run(name, policy) == figures, policy


@pytest.mark.parametrize("name", [name for name in names() if light(name) and drawn(name)])
def test_bounds_are_what_they_were(name: str) -> None:
    assert dict(bounds_of(name)) == FROZEN["bounds"][name]


@pytest.mark.study
@pytest.mark.parametrize("name", names())
def test_every_schedule_and_bound_is_what_it_was(name: str) -> None:
    now = {policy: found for policy in policies(name) if (found := digests_of_runs(name, policy))}
    was = {policy: parts(line)[1] for policy, line in FROZEN["runs"][name].items()}
    changed = {policy: (words, now.get(policy)) for policy, words in was.items() if now.get(policy) != words}
    assert changed == {}
    assert dict(bounds_of(name)) == FROZEN["bounds"][name]
