"""Certificates that somebody touched: each is refused, under the right rule. The untouched file holds."""

from __future__ import annotations

import contextlib
from fractions import Fraction
from pathlib import Path

import pytest

from bounds.cases import instance_of
from bounds.tampering import (
    Document,
    Tampering,
    Touch,
    add,
    add_flow,
    change,
    drop,
    each_kind,
    judge,
    one_priced_row,
    put,
    put_data,
    refused,
    untouched,
    without_flow,
)
from optsched.bounds import CertificateError
from optsched.problem.instance import Instance

# wide gangs, interruptions, weights, late jobs: on this instance every part of every certificate matters
ROWS = [
    (0.0, 2, 6.0, 2.0, 7.0),
    (0.5, 1, 1.0, 1.0, 1.0),
    (1.0, 5, 2.0, 3.0, 2.0),
    (2.0, 6, 3.0, 1.0, 6.0),
    (2.0, 1, 4.0, 2.0, 5.0),
    (3.0, 4, 0.25, 5.0, 3.0),
]
COMPLETION, FLOW = "total_weighted_completion_time", "total_weighted_flow_time"
TARDINESS = "total_weighted_tardiness"
CASES = {
    "critical-job": "makespan",
    "volume": "makespan",
    "release-plus-duration": FLOW,
    "srpt": FLOW,
    "mean-busy-time": FLOW,
    "split-busy-time": FLOW,
    "srpt-due-dates": TARDINESS,
    "first-come": "max_flow_time",
    "fair-share": "max_fair_slowdown",
    "fair-alone": "max_fair_slowdown",
}
EVERY = tuple(CASES)
WITHOUT_MULTIPLIERS = ("volume", "srpt", "mean-busy-time", "srpt-due-dates")
MACHINES = ("volume", "srpt", "mean-busy-time", "split-busy-time", "srpt-due-dates", "first-come")


@pytest.fixture(scope="module")
def instance() -> Instance:
    return instance_of(ROWS, 8)


def change_a_multiplier(delta: int) -> Touch:
    def touch(doc: Document) -> None:
        used = doc["data"]["multipliers"]
        position = max(range(len(used)), key=used.__getitem__)
        used[position] = max(used[position] + delta, -1 if delta < -1000 else 0)

    return touch


FLOWS = ("release-plus-duration", "srpt", "mean-busy-time", "split-busy-time")
TAMPERINGS: list[Tampering] = [
    ("another instance's digest", "instance", put("instance", "0" * 64), EVERY),
    ("no digest", "instance", put("instance", ""), EVERY),
    ("value raised by one", "value", add(Fraction(1)), EVERY),
    ("value raised by a trifle", "value", add(Fraction(1, 10**30)), EVERY),
    ("value not the one proved", "value", add(Fraction(-1)), EVERY),
    *(
        (f"value malformed: {text!r}", "value", put("value", text), EVERY)
        for text in (
            "1/0",
            "a/b",
            "1.5",
            "1e3",
            "inf",
            "nan",
            "",
            "1/2/3",
            "1/-2",
            " 7",
            "٣/1",
            7,
            7.5,
            None,
            True,
            ["1"],
        )
    ),
    ("value with more digits than Python reads", "value", put("value", "9" * 5000 + "/1"), EVERY),
    ("unknown kind", "kind", put("kind", "oracle"), EVERY),
    ("kind misspelt", "kind", put("kind", "SRPT"), EVERY),
    ("kind of another objective", "kind", put("kind", "critical-job"), (*FLOWS, "srpt-due-dates")),
    ("kind of flow times", "kind", put("kind", "srpt"), ("critical-job", "volume", "srpt-due-dates")),
    ("kind without such data", "dual-feasibility", put("kind", "volume"), ("critical-job",)),
    ("kind renamed", "value", put("kind", "srpt"), ("mean-busy-time", "split-busy-time")),
    ("kind renamed", "value", put("kind", "release-plus-duration"), FLOWS[1:]),
    ("kind renamed", "value", put("kind", "mean-busy-time"), ("srpt", "split-busy-time")),
    ("kind renamed", "dual-feasibility", put("kind", "mean-busy-time"), ("release-plus-duration",)),
    ("kind renamed", "value", put("kind", "split-busy-time"), ("mean-busy-time", "srpt-due-dates")),
    ("objective swapped for one of another kind", "kind", put("objective", "makespan"), EVERY[2:]),
    ("objective swapped for one of another kind", "kind", put("objective", FLOW), EVERY[:2]),
    ("objective swapped for completion times", "value", put("objective", COMPLETION), FLOWS),
    ("objective swapped for the unweighted one", "value", put("objective", "total_flow_time"), FLOWS[:3]),
    ("unknown objective", "kind", put("objective", "total_energy"), EVERY),
    ("class enlarged", "kind", put("class", "gpu-sharing"), EVERY),
    ("unknown class", "kind", put("class", "anything"), EVERY),
    ("flow constant not subtracted", "value", add_flow, FLOWS),
    ("flow constant not subtracted, nor stated", "value", without_flow, FLOWS),
    ("flow constant left out", "value", drop("flow_constant"), FLOWS),
    ("flow constant changed", "value", put_data("flow_constant", "1/1"), FLOWS),
    ("finer grid", "value", change("grid_exponent", lambda k: k + 1), MACHINES),
    ("coarser grid", "value", change("grid_exponent", lambda k: k - 1), WITHOUT_MULTIPLIERS),
    ("absurdly fine grid", "value", put_data("grid_exponent", 10**9), MACHINES),
    ("grid that is no integer", "value", put_data("grid_exponent", 2.0), MACHINES),
    ("grid that is a truth value", "value", put_data("grid_exponent", True), MACHINES),
    ("no grid", "value", drop("grid_exponent"), MACHINES),
    ("larger tick", "value", put_data("tick", "1/1"), MACHINES),
    ("slower machine", "value", change("capacity", lambda u: u - 1), MACHINES),
    ("capacity as a float", "value", change("capacity", float), MACHINES),
    ("widths of no machine", "dual-feasibility", put_data("threshold", 5), MACHINES),
    ("widths of no machine", "dual-feasibility", put_data("threshold", 0), MACHINES),
    ("no threshold", "dual-feasibility", drop("threshold"), MACHINES),
    ("another threshold", "value", change("threshold", lambda e: 5 - e), MACHINES),
    ("levels not ascending", "dual-feasibility", change("levels", lambda x: x[::-1]), MACHINES[1:5:3]),
    ("negative level", "dual-feasibility", put_data("levels", ["-1/1"]), ("srpt", "srpt-due-dates")),
    ("other levels", "value", put_data("levels", ["7/2"]), ("srpt", "srpt-due-dates")),
    ("levels as numbers", "value", put_data("levels", [1, 2]), ("srpt", "srpt-due-dates")),
    ("finer weights", "value", change("multiplier_exponent", lambda k: k + 1), ("split-busy-time",)),
    ("coarser weights", "dual-feasibility", change("multiplier_exponent", lambda k: k - 1), ("split-busy-time",)),
    ("no weights", "value", put_data("multiplier_exponent", "0"), ("mean-busy-time", "split-busy-time")),
    ("mean busy times rounded", "value", put_data("held_up_bits", 32), ("mean-busy-time", "split-busy-time")),
    ("multiplier above the weight", "dual-feasibility", change_a_multiplier(10**6), ("split-busy-time",)),
    ("multiplier negative", "dual-feasibility", change_a_multiplier(-(10**6)), ("split-busy-time",)),
    ("multipliers all 0", "value", change("multipliers", lambda u: [0] * len(u)), ("split-busy-time",)),
    ("multipliers halved", "value", change("multipliers", lambda u: [k // 2 for k in u]), ("split-busy-time",)),
    # heavier than its weight, and a grid on which a job has no work but keeps its multiplier
    ("objective unweighted", "dual-feasibility", put("objective", "total_flow_time"), ("split-busy-time",)),
    ("coarser grid", "dual-feasibility", change("grid_exponent", lambda k: k - 1), ("split-busy-time",)),
    ("multiplier missing", "value", change("multipliers", lambda u: u[1:]), ("split-busy-time",)),
    ("multiplier a float", "value", change("multipliers", lambda u: [0.5, *u[1:]]), ("split-busy-time",)),
    *(
        (f"jobs {what}", rule, change("jobs", how), ("fair-share",))
        for what, rule, how in (
            ("without one", "value", lambda jobs: jobs[1:]),
            ("with one twice", "value", lambda jobs: [*jobs, jobs[0]]),
            ("with a stranger", "value", lambda jobs: [*jobs, "nobody"]),
            ("that are no list", "value", lambda jobs: jobs[0]),
        )
    ),
    ("another job", "value", put_data("job", "j1"), ("critical-job",)),
    ("unknown job", "value", put_data("job", "nobody"), ("critical-job",)),
    ("no job", "value", put_data("job", None), ("critical-job",)),
    ("data emptied", "value", put("data", {}), ("critical-job", "release-plus-duration")),
    ("a claim added to the data", "value", put_data("optimal", True), EVERY),
]


def certified(kind: str, instance: Instance) -> Document:
    return untouched(kind, CASES[kind], "gang", instance)


@pytest.mark.parametrize("kind", CASES)
def test_untouched(kind: str, instance: Instance, tmp_path: Path) -> None:
    judge(certified(kind, instance), instance, tmp_path)


@each_kind(TAMPERINGS)
def test_tampered(rule: str, touch: Touch, kind: str, instance: Instance, tmp_path: Path) -> None:
    doc = certified(kind, instance)
    touch(doc)
    refused(doc, instance, tmp_path, rule)


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("field", ["arrival", "gpus", "duration", "weight", "due"])
def test_a_changed_job_is_another_instance(kind: str, field: str, instance: Instance, tmp_path: Path) -> None:
    jobs = [
        {name: getattr(job, name) for name in ("id", "arrival", "gpus", "duration", "weight", "due")}
        for job in instance.jobs
    ]
    jobs[3][field] += 1
    other = instance_of([tuple(list(job.values())[1:]) for job in jobs], 8)
    refused(certified(kind, instance), other, tmp_path, "instance")


@pytest.mark.parametrize("kind", CASES)
def test_another_cluster_is_another_instance(kind: str, instance: Instance, tmp_path: Path) -> None:
    refused(certified(kind, instance), instance.with_cluster("1x9"), tmp_path, "instance")


@pytest.mark.parametrize("kind", EVERY[:-1])  # who is not slowed down at all is not with less to do
def test_an_easier_instance_under_a_forged_digest_does_not_reach_the_value(
    kind: str, instance: Instance, tmp_path: Path
) -> None:
    easier = instance_of([(r, g, d / 2, w, due) for r, g, d, w, due in ROWS], 8)
    doc = certified(kind, instance)
    doc["instance"] = easier.digest
    refused(doc, easier, tmp_path, "value", "dual-feasibility")


@pytest.mark.parametrize("kind", CASES)
def test_the_smaller_class_may_be_claimed(kind: str, instance: Instance, tmp_path: Path) -> None:
    # gang-nonpreemptive is a part of gang: that claim is weaker, and true
    judge({**certified(kind, instance), "class": "gang-nonpreemptive"}, instance, tmp_path)


def test_widths_whose_sum_no_64_bits_hold_do_not_wrap(tmp_path: Path) -> None:
    # 16 jobs of 4 s on 16 GPUs: the optimum is 64. A capacity that wrapped around would "prove" 112.
    jobs, widest = instance_of([(0.0, 1, 4.0, 1.0, 0.0)] * 16, 16), 2**61 - 1
    rows = [{"width": [widest] * 16, "price": [1] * 4}]
    doc = one_priced_row(jobs, "gang-nonpreemptive", rows=rows, denominator=widest, jobs=["8"] * 16)
    judge(doc | {"value": "64/1"}, jobs, tmp_path)
    refused(doc | {"value": "112/1"}, jobs, tmp_path, "value")


@pytest.mark.parametrize("schedule_class", ["gang", "gang-nonpreemptive"])
@pytest.mark.parametrize(
    "changes",
    [
        {"unit": f"1/{10**30}"},
        {"unit": f"1/{10**12}"},
        {"unit": f"1/{10**9}"},
        {"unit": f"{10**400}"},
        {"origin": f"-{10**21}"},
        {"origin": f"-{10**400}"},
        {"rows": [{"width": "gpus", "price": [10**150, 1]}]},
        {"rows": [{"width": "gpus", "price": [10**400]}]},
        {"rows": [{"width": "gpus", "price": [-(10**400)]}]},
        {"rows": [{"width": [1] * len(ROWS), "price": []}] * 1_500},
        {"rows": 7},
        {"rows": [7]},
        {"denominator": "1"},
        {"denominator": 10**400},
        {"jobs": [f"1/{10**3000 + j}" for j in range(len(ROWS))]},
        {"jobs": [str(10**400)] * len(ROWS)},
    ],
    ids=lambda changes: str(changes)[:40],
)
def test_absurd_numbers_are_judged_or_refused_in_one_line(
    changes: Document, schedule_class: str, instance: Instance, tmp_path: Path
) -> None:
    doc = one_priced_row(instance, schedule_class, **changes)
    with contextlib.suppress(CertificateError):  # a bound so low may hold; anything else is a traceback
        judge(doc | {"value": f"{-(10**300)}/1"}, instance, tmp_path)
    refused(doc | {"value": f"{10**300}/1"}, instance, tmp_path)
