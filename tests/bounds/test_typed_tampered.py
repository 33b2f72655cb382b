"""Certificates with prices that somebody touched: each is refused, under the right rule."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

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
from optsched.problem.instance import Instance, Job
from optsched.problem.throughputs import Throughput, Throughputs

CASES = {"typed-srpt": "total_weighted_flow_time", "typed-busy-time": "total_weighted_flow_time"}
CASES["typed-makespan"] = "makespan"
SUMS = ("typed-srpt", "typed-busy-time")
EVERY = tuple(CASES)
BUSY, MAKESPAN = ("typed-busy-time",), ("typed-makespan",)


@pytest.fixture(scope="module")
def instance() -> Instance:
    table = {
        ("a", "V100", 1): Throughput(7.0),
        ("a", "K80", 1): Throughput(3.0),
        ("b", "V100", 2): Throughput(5.0, 4.0),
        ("b", "K80", 2): Throughput(0.5),
    }
    # "long" ends last on its own: it gets a price of its own in the bound on the makespan
    rows = [(0.0, "a", 1, 70), (0.0, "b", 2, 50), (1.0, "a", 1, 21), (2.0, "b", 2, 20), (4.0, "a", 1, 35)]
    jobs = [
        Job(f"j{k}", r, gang, iterations=work, profile=model, weight=k % 3 + 1, due=9)
        for k, (r, model, gang, work) in enumerate(rows)
    ]
    jobs.append(Job("long", 0.5, 1, iterations=130, profile="a"))
    return Instance(jobs, "1x2:V100+3x1:K80", throughputs=Throughputs(table))


TAMPERINGS: list[Tampering] = [
    ("another instance", "instance", put("instance", "0" * 64), EVERY),
    ("value raised by a trifle", "value", add(Fraction(1, 10**30)), EVERY),
    ("value lowered", "value", add(Fraction(-1)), EVERY),
    ("a dearer V100", "value", change("prices", lambda p: {**p, "V100": 3 * p["V100"] + 1}), EVERY),
    ("a free K80", "value", change("prices", entry("K80", 0)), ("typed-srpt", "typed-makespan")),
    ("a free K80, and multipliers without work", "dual-feasibility", change("prices", entry("K80", 0)), BUSY),
    ("a negative price", "dual-feasibility", change("prices", entry("K80", -1)), EVERY),
    ("a price as a float", "dual-feasibility", change("prices", entry("K80", 2.0)), EVERY),
    ("a price as a truth value", "dual-feasibility", change("prices", entry("K80", True)), EVERY),
    ("an absurd price", "dual-feasibility", change("prices", entry("K80", 10**400)), EVERY),
    ("a price of a type that is not there", "dual-feasibility", change("prices", entry("P100", 1)), EVERY),
    ("a type without a price", "dual-feasibility", change("prices", lambda p: {"V100": 1}), EVERY),
    ("prices as a list", "dual-feasibility", put_data("prices", [1, 1]), EVERY),
    ("no prices", "dual-feasibility", drop("prices"), EVERY),
    ("all prices 0", "dual-feasibility", change("prices", lambda p: dict.fromkeys(p, 0)), SUMS),
    ("capacity raised", "value", change("capacity", lambda u: u + 1), SUMS),
    ("coarser grid", "value", change("grid_exponent", lambda k: k - 20), SUMS),
    ("finer grid", "value", change("grid_exponent", lambda k: k + 3), SUMS),
    ("absurd grid", "value", put_data("grid_exponent", 10**9), SUMS),
    ("larger tick", "value", put_data("tick", "1/1"), SUMS),
    ("flow constant dropped", "value", without_flow, SUMS),
    ("objective unweighted", "value", put("objective", "total_flow_time"), SUMS[:1]),
    ("objective unweighted", "dual-feasibility", put("objective", "total_flow_time"), BUSY),
    ("objective of completion", "value", put("objective", "total_weighted_completion_time"), SUMS),
    ("objective of another kind", "kind", put("objective", "makespan"), SUMS),
    ("objective of another kind", "kind", put("objective", "total_flow_time"), MAKESPAN),
    ("the larger class", "value", put("class", "forking"), BUSY),
    ("the larger class", "dual-feasibility", put("class", "forking"), MAKESPAN),
    ("no such class", "kind", put("class", "gpu-sharing"), EVERY),
    ("levels descending", "dual-feasibility", change("levels", lambda x: x[::-1]), SUMS[:1]),
    ("other levels", "value", put_data("levels", ["3/2"]), SUMS[:1]),
    ("multiplier above the weight", "dual-feasibility", change("multipliers", lambda u: [10**9, *u[1:]]), BUSY),
    ("multiplier negative", "dual-feasibility", change("multipliers", lambda u: [-1, *u[1:]]), BUSY),
    ("multipliers 0", "value", change("multipliers", lambda u: [0] * len(u)), BUSY),
    ("multiplier missing", "value", change("multipliers", lambda u: u[1:]), BUSY),
    ("an earlier moment", "value", put_data("moment", "-1/1"), MAKESPAN),
    ("a later moment", "value", change("moment", lambda t: f"{Fraction(t) + 1}"), MAKESPAN),
    ("a moment when all may be done", "dual-feasibility", put_data("moment", "1000/1"), MAKESPAN),
    ("a moment that is no fraction", "value", put_data("moment", 0.5), MAKESPAN),
    ("no moment", "value", drop("moment"), MAKESPAN),
    ("own price of nobody", "value", change("own_prices", entry("nobody", 1)), MAKESPAN),
    ("own price negative", "dual-feasibility", change("own_prices", entry("long", -1)), MAKESPAN),
    ("own price 0", "dual-feasibility", change("own_prices", entry("long", 0)), MAKESPAN),
    ("own price changed", "value", change("own_prices", lambda p: {**p, "long": p["long"] * 2}), MAKESPAN),
    ("own prices dropped", "value", put_data("own_prices", {}), MAKESPAN),
    ("own prices as a list", "value", put_data("own_prices", []), MAKESPAN),
    ("a claim added", "value", put_data("optimal", True), EVERY),
]


def certified(kind: str, instance: Instance, schedule_class: str = "gang") -> Document:
    return untouched(kind, CASES[kind], schedule_class, instance)


@pytest.mark.parametrize("schedule_class", ["gang", "gang-nonpreemptive", "forking"])
@pytest.mark.parametrize("kind", CASES)
def test_untouched(kind: str, schedule_class: str, instance: Instance, tmp_path: Path) -> None:
    judge(certified(kind, instance, schedule_class), instance, tmp_path)


@each_kind(TAMPERINGS)
def test_tampered(rule: str, touch: Touch, kind: str, instance: Instance, tmp_path: Path) -> None:
    doc = certified(kind, instance)
    touch(doc)
    refused(doc, instance, tmp_path, rule)


def test_a_bound_of_forked_jobs_holds_for_gangs_and_says_less(instance: Instance, tmp_path: Path) -> None:
    doc = certified("typed-makespan", instance, "forking")
    gang = certified("typed-makespan", instance)
    assert Fraction(doc["value"]) < Fraction(gang["value"])
    # no price of anybody's own time, and nobody was there before the moment: the same proof in the smaller class
    assert (doc["data"]["own_prices"], doc["data"]["moment"]) == ({}, "0/1")
    judge({**doc, "class": "gang"}, instance, tmp_path)


@pytest.mark.parametrize("kind", CASES)
def test_faster_gpus_are_another_instance(kind: str, instance: Instance, tmp_path: Path) -> None:
    assert instance.throughputs is not None
    rows = {key: Throughput(row.together * 2, row.spread) for key, row in instance.throughputs.entries.items()}
    faster = instance.replace(throughputs=Throughputs(rows))
    doc = certified(kind, instance)
    refused(doc, faster, tmp_path, "instance")
    doc["instance"] = faster.digest
    refused(doc, faster, tmp_path, "value", "dual-feasibility")
