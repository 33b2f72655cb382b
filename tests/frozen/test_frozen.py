"""Schedules and bounds are what they were when they were frozen: a sample of the digests, and all of them as a study."""

from __future__ import annotations

import hashlib
import json

import pytest

from frozen.freeze import FILE
from frozen.runs import HEAVY, SIZE, bounds_of, digests_of_runs, names, placements, policies

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
    digests = [word for runs in FROZEN["runs"].values() for line in runs.values() for word in line.split()]
    assert len(digests) > 20_000
    assert {len(word) for word in digests} == {SIZE}


@pytest.mark.parametrize("name", sorted({name for name, _ in SAMPLE}))
def test_schedules_are_what_they_were(name: str) -> None:
    for policy in (policy for each, policy in SAMPLE if each == name):
        assert digests_of_runs(name, policy) == FROZEN["runs"][name][policy], policy


@pytest.mark.parametrize("name", [name for name in names() if light(name) and drawn(name)])
def test_bounds_are_what_they_were(name: str) -> None:
    assert dict(bounds_of(name)) == FROZEN["bounds"][name]


@pytest.mark.study
@pytest.mark.parametrize("name", names())
def test_every_schedule_and_bound_is_what_it_was(name: str) -> None:
    now = {policy: found for policy in policies(name) if (found := digests_of_runs(name, policy))}
    changed = {policy: (was, now.get(policy)) for policy, was in FROZEN["runs"][name].items() if now.get(policy) != was}
    assert changed == {}
    assert dict(bounds_of(name)) == FROZEN["bounds"][name]
