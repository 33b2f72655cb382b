"""Certificates with charges that somebody touched: each is refused, under the right rule."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from bounds.tampering import (
    Document,
    Tampering,
    Touch,
    add,
    change,
    drop,
    each_kind,
    entry,
    judge,
    put,
    put_data,
    refused,
    untouched,
    without_flow,
)
from optsched.bounds.shared_machine import UNIT
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference

FLOW = "total_weighted_flow_time"
CASES = {"shared-srpt": FLOW, "shared-busy-time": FLOW, "shared-makespan": "makespan"}
EVERY = tuple(CASES)
SUMS, BUSY, MAKESPAN = EVERY[:2], EVERY[1:2], EVERY[2:]
SRPT = EVERY[:1]


@pytest.fixture(scope="module")
def instance() -> Instance:
    """20 jobs of the kinds a and b on two GPU types; no two fit on a K80."""
    cluster = Cluster((NodeGroup(2, 1, "V100", 16.0), NodeGroup(1, 2, "K80", 8.0)))
    physics = Interference(2.0, ("a", "b"), ((1.25, 1.3), (1.75, 2.0)))
    jobs = [
        Job(f"j{k}", k / 4, 1 + k % 2, 1.0 + k % 5, model="ab"[k % 2], weight=k % 3 + 1, due=9, gpu_memory=5.0)
        for k in range(20)
    ]
    return Instance([*jobs, Job("long", 0.5, 1, 15.0, model="a", gpu_memory=5.0)], cluster, interference=physics)


def charge(gpu: str, position: int, value: Callable[[int], Any]) -> Touch:
    def touched(charges: dict[str, list[int]]) -> dict[str, Any]:
        row: list[Any] = list(charges[gpu])
        row[position] = value(row[position])
        return {**charges, gpu: row}

    return change("charges", touched)


def more_charges(doc: Document) -> None:
    doc["data"]["charges"] = {gpu: [*row, UNIT] for gpu, row in doc["data"]["charges"].items()}


def put_first_in_a_class_of_its_own(doc: Document) -> None:
    more_charges(doc)
    doc["data"]["classes"][0] = 2


TAMPERINGS: list[Tampering] = [
    ("another instance", "instance", put("instance", "0" * 64), EVERY),
    ("value raised by a trifle", "value", add(Fraction(1, 10**30)), EVERY),
    ("value lowered", "value", add(Fraction(-1)), EVERY),
    ("a charge above what a pair leaves", "dual-feasibility", charge("V100", 0, lambda c: c + 64), EVERY),
    ("all charges full", "dual-feasibility", charge("V100", 0, lambda _: UNIT), EVERY),
    ("a charge above one", "dual-feasibility", charge("K80", 0, lambda _: UNIT + 1), EVERY),
    ("a negative charge", "dual-feasibility", charge("K80", 0, lambda _: -1), EVERY),
    ("a charge as a float", "dual-feasibility", charge("K80", 0, float), EVERY),
    ("a charge as a truth value", "dual-feasibility", charge("K80", 0, lambda _: True), EVERY),
    ("an absurd charge", "dual-feasibility", charge("K80", 0, lambda _: 10**400), EVERY),
    ("charges halved", "value", change("charges", lambda c: {g: [x // 2 for x in row] for g, row in c.items()}), EVERY),
    ("charges of one type only", "dual-feasibility", change("charges", lambda c: {"V100": c["V100"]}), EVERY),
    ("charges of a type that is not there", "dual-feasibility", change("charges", entry("P100", [1, 1])), EVERY),
    ("charges of unequal length", "dual-feasibility", change("charges", entry("K80", [UNIT])), EVERY),
    ("charges as a number", "dual-feasibility", change("charges", entry("K80", UNIT)), EVERY),
    ("charges as a list", "dual-feasibility", put_data("charges", [[1, 1]]), EVERY),
    ("no charges", "dual-feasibility", drop("charges"), EVERY),
    ("a job in a class of its own", "dual-feasibility", put_first_in_a_class_of_its_own, EVERY),
    ("a job in the other class", "dual-feasibility", change("classes", lambda c: [1 - c[0], *c[1:]]), EVERY),
    ("a class that is not there", "dual-feasibility", change("classes", lambda c: [9, *c[1:]]), EVERY),
    ("a negative class", "dual-feasibility", change("classes", lambda c: [-1, *c[1:]]), EVERY),
    ("a job without a class", "dual-feasibility", change("classes", lambda c: c[1:]), EVERY),
    ("a class as a text", "dual-feasibility", change("classes", lambda c: ["0", *c[1:]]), EVERY),
    ("no classes", "dual-feasibility", drop("classes"), EVERY),
    ("a dearer V100", "value", change("prices", lambda p: {**p, "V100": 3 * p["V100"] + 1}), EVERY),
    ("a negative price", "dual-feasibility", change("prices", entry("K80", -1)), EVERY),
    ("a type without a price", "dual-feasibility", change("prices", lambda p: {"V100": 1}), EVERY),
    ("all prices 0", "dual-feasibility", change("prices", lambda p: dict.fromkeys(p, 0)), SUMS),
    ("capacity raised", "value", change("capacity", lambda u: u + 1), SUMS),
    ("finer grid", "value", change("grid_exponent", lambda k: k + 3), SUMS),
    ("absurd grid", "value", put_data("grid_exponent", 10**9), SUMS),
    ("flow constant dropped", "value", without_flow, SUMS),
    ("objective unweighted", "value", put("objective", "total_flow_time"), SRPT),
    ("objective unweighted", "dual-feasibility", put("objective", "total_flow_time"), BUSY),
    ("objective of another kind", "kind", put("objective", "makespan"), SUMS),
    ("objective of another kind", "kind", put("objective", FLOW), MAKESPAN),
    ("the smaller class", "kind", put("class", "gang"), EVERY),
    ("another larger class", "kind", put("class", "forking"), EVERY),
    ("another kind", "kind", put("kind", "task-srpt"), SUMS),
    ("other levels", "value", put_data("levels", ["3/2"]), SRPT),
    ("multiplier above the weight", "dual-feasibility", change("multipliers", lambda u: [10**9, *u[1:]]), BUSY),
    ("multipliers 0", "value", change("multipliers", lambda u: [0] * len(u)), BUSY),
    ("an earlier moment", "value", put_data("moment", "-1/1"), MAKESPAN),
    ("a moment when all may be done", "dual-feasibility", put_data("moment", "1000/1"), MAKESPAN),
    ("own price of nobody", "value", change("own_prices", entry("nobody", 1)), MAKESPAN),
    ("own price negative", "dual-feasibility", change("own_prices", entry("long", -1)), MAKESPAN),
    ("a claim added", "value", put_data("optimal", True), EVERY),
]


def certified(kind: str, instance: Instance) -> Document:
    return untouched(kind, CASES[kind], "gpu-sharing", instance)


@pytest.mark.parametrize("kind", EVERY)
def test_the_untouched_file_holds(kind: str, instance: Instance, tmp_path: Path) -> None:
    doc = certified(kind, instance)
    judge(doc, instance, tmp_path)
    assert set(doc["data"]["charges"]["V100"]) != {UNIT}  # else nothing that is touched below would matter


@each_kind(TAMPERINGS)
def test_refused(rule: str, touch: Touch, kind: str, instance: Instance, tmp_path: Path) -> None:
    doc = certified(kind, instance)
    touch(doc)
    refused(doc, instance, tmp_path, rule)


@pytest.mark.parametrize("kind", EVERY)
def test_a_proof_for_slower_partners_is_none_for_faster_ones(kind: str, instance: Instance, tmp_path: Path) -> None:
    # the digest apart: the charges themselves are refused
    doc = certified(kind, instance)
    doc["data"]["charges"] = full(doc["data"]["charges"])
    faster = instance.replace(interference=Interference(2.0, ("a", "b"), ((1.25, 1.3), (1.7, 2.0))))
    roomier = instance.replace(cluster=Cluster((NodeGroup(2, 1, "V100", 16.0), NodeGroup(1, 2, "K80", 12.0))))
    for other in (faster, roomier):
        for message in refused({**doc, "instance": other.digest}, other, tmp_path, "dual-feasibility"):
            assert "shared GPU" in message


def full(charges: dict[str, list[int]]) -> dict[str, list[int]]:
    """The charges raised to where they just keep the inequalities of the certificate's own instance."""
    first = charges["V100"][0]
    second = min(UNIT, int((1 - Fraction(first, UNIT) / Fraction(1.3)) * Fraction(1.75) * UNIT))
    return {"V100": [first, second], "K80": [UNIT, UNIT]}
