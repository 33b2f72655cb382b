"""Certificates that somebody touched: each is refused, under the right rule. The untouched file holds."""

from __future__ import annotations

import contextlib
import json
import time
from fractions import Fraction
from pathlib import Path

import pytest
from simulation.elastic_instances import elastic_instance

from bounds.cases import instance_of
from bounds.tampering import (
    CASES,
    DEADLINES,
    END,
    FLOW,
    KINDS,
    ROWS,
    TIME,
    Document,
    Tampering,
    Touch,
    add,
    add_flow,
    change,
    drop,
    each_case,
    elastic,
    entry,
    first,
    gangs,
    judge,
    marked,
    one_priced_row,
    put,
    put_data,
    refused,
    shared,
    tasks,
    typed,
    untouched,
    without_flow,
)
from optsched.bounds import BOUNDS, Certificate, CertificateError
from optsched.classes.gpu_sharing.bounds.shared_machine import UNIT
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance
from optsched.problem.interference import Interference
from optsched.problem.throughputs import Throughput, Throughputs
from optsched.verifier.judgement import verify
from optsched.verifier.refusal import DUAL, INSTANCE, KIND, VALUE

GANGS, TYPED, SHARED, TASKS, ELASTIC = (
    tuple(name for name, case in CASES.items() if case.instance is instance and case.kind == name)
    for instance in (gangs, typed, shared, tasks, elastic)
)
EVERY, PACKED, TASK_TIME = tuple(CASES), ("priced-gangs",), ("priced-time task-sharing",)
OVER_TIME = (*TIME, *TASK_TIME)
FLOWS = KINDS[FLOW, "gang", gangs]
TASK_SUMS = KINDS[FLOW, "task-sharing", tasks]
OF_SUMS = (*FLOWS, "srpt-due-dates", *TYPED[:2], *SHARED[:2], *TASK_SUMS[:2], *TASK_SUMS[3:], *OVER_TIME)
SRPT = tuple(f"{name}srpt" for name in ("", "typed-", "shared-", "task-", "link-"))
MIXED = tuple(f"{name}-busy-time" for name in ("split", "typed", "shared", "task", "link", "split-task"))
SPLIT = MIXED[:1]
WITHOUT_MULTIPLIERS = ("volume", "srpt", "mean-busy-time", "srpt-due-dates")
MACHINES = (*WITHOUT_MULTIPLIERS, "split-busy-time", "first-come", "fair-share")
PRICED = ("typed-srpt", "typed-busy-time", "shared-srpt", "shared-busy-time")
GRIDS = (*MACHINES, *PRICED)
MAKESPANS = ("typed-makespan", "shared-makespan")
MALFORMED = ("1/0", "a/b", "1.5", "1e3", "inf", "nan", "", "1/2/3", "1/-2", " 7", "٣/1", 7, 7.5, None, True, ["1"])
CHARGES, PRICES = (*SHARED, TIME[1], DEADLINES[1]), (*TYPED, *SHARED)


def raised(multipliers: list[int]) -> list[int]:
    largest = multipliers.index(max(multipliers))
    return [u + 10**9 * (j == largest) for j, u in enumerate(multipliers)]


def put_first_in_a_class_of_its_own(doc: Document) -> None:
    doc["data"]["charges"] = {gpu: [*row, UNIT] for gpu, row in doc["data"]["charges"].items()}
    doc["data"]["classes"][0] = 2


def charge(value: object) -> Touch:
    """Of the first class on a K80."""
    return change("charges", lambda charges: {**charges, "K80": first(value)(charges["K80"])})


OF_ALL: list[Tampering] = [
    ("another instance's digest", INSTANCE, put("instance", "0" * 64), EVERY),
    ("no digest", INSTANCE, put("instance", ""), GANGS),
    ("value raised by one", VALUE, add(Fraction(1)), GANGS),
    ("value raised by a trifle", VALUE, add(Fraction(1, 10**30)), EVERY),
    ("value lowered", VALUE, add(Fraction(-1, 100)), EVERY),
    *((f"value malformed: {text!r}", VALUE, put("value", text), GANGS) for text in MALFORMED),
    ("value with more digits than Python reads", VALUE, put("value", "9" * 5000 + "/1"), GANGS),
    ("a claim added to the data", VALUE, put_data("optimal", True), EVERY),
    ("unknown kind", KIND, put("kind", "oracle"), GANGS),
    ("kind misspelt", KIND, put("kind", "SRPT"), GANGS),
    ("kind of another objective", KIND, put("kind", "critical-job"), (*FLOWS, "srpt-due-dates")),
    ("kind of flow times", KIND, put("kind", "srpt"), ("critical-job", "volume", "srpt-due-dates")),
    ("kind without such data", DUAL, put("kind", "volume"), ("critical-job",)),
    ("kind renamed", VALUE, put("kind", "srpt"), ("mean-busy-time", "split-busy-time")),
    ("kind renamed", VALUE, put("kind", "release-plus-duration"), (*FLOWS[1:], TIME[0])),
    ("kind renamed", VALUE, put("kind", "mean-busy-time"), ("srpt", "split-busy-time")),
    ("kind renamed", DUAL, put("kind", "mean-busy-time"), ("release-plus-duration",)),
    ("kind renamed", VALUE, put("kind", "split-busy-time"), ("mean-busy-time", "srpt-due-dates")),
    ("kind renamed", VALUE, put("kind", "fair-alone"), DEADLINES[:1]),
    ("kind renamed", VALUE, put("kind", "task-busy-time"), TASK_TIME),
    ("kind renamed", DUAL, put("kind", "priced-time"), PACKED),
    ("kind of another class", KIND, put("kind", "task-srpt"), (*SHARED[:2], *TIME)),
    ("objective of another kind", KIND, put("objective", END), (*OF_SUMS, *GANGS[7:], *DEADLINES)),
    ("objective of another kind", KIND, put("objective", FLOW), (*GANGS[:2], *MAKESPANS, "task-volume")),
    (
        "objective of completion",
        VALUE,
        put("objective", "total_weighted_completion_time"),
        (*FLOWS, *TYPED[:2], *TASK_SUMS),
    ),
    ("objective unweighted", VALUE, put("objective", "total_flow_time"), (*FLOWS[:3], *SRPT[1:], "task-path")),
    # heavier than its weight
    ("objective unweighted", DUAL, put("objective", "total_flow_time"), MIXED),
    ("unknown objective", KIND, put("objective", "total_energy"), GANGS),
    ("objective without such a bound", KIND, put("objective", "total_utility"), PACKED),
    ("class enlarged", KIND, put("class", "gpu-sharing"), (*GANGS, *TYPED)),
    ("class enlarged", KIND, put("class", "forking"), GANGS),
    ("class enlarged", VALUE, put("class", "forking"), ("typed-busy-time",)),
    ("class enlarged", DUAL, put("class", "forking"), ("typed-makespan",)),
    ("another class", KIND, put("class", "forking"), (*SHARED, *PACKED)),
    ("another class", KIND, put("class", "gang"), (*SHARED, *TASKS, *TASK_TIME, *ELASTIC)),
    ("another class", KIND, put("class", "elastic"), TIME),
    ("unknown class", KIND, put("class", "anything"), GANGS),
    ("flow constant not subtracted", VALUE, add_flow, FLOWS),
    ("flow constant not subtracted, nor stated", VALUE, without_flow, (*FLOWS, *PRICED)),
    ("flow constant left out", VALUE, drop("flow_constant"), FLOWS),
    ("flow constant changed", VALUE, put_data("flow_constant", "1/1"), FLOWS),
    ("flow constant dropped", VALUE, put_data("flow_constant", "0/1"), (*TASK_SUMS, *ELASTIC)),
    *(
        (f"jobs {what}", VALUE, change("jobs", how), ("fair-share",))
        for what, how in (
            ("without one", lambda jobs: jobs[1:]),
            ("with one twice", lambda jobs: [*jobs, jobs[0]]),
            ("with a stranger", lambda jobs: [*jobs, "nobody"]),
            ("that are no list", lambda jobs: jobs[0]),
        )
    ),
    ("another job", VALUE, put_data("job", "j1"), ("critical-job",)),
    ("unknown job", VALUE, put_data("job", "nobody"), ("critical-job",)),
    ("no job", VALUE, put_data("job", None), ("critical-job",)),
    ("data emptied", VALUE, put("data", {}), ("critical-job", "release-plus-duration")),
]
ON_MACHINES: list[Tampering] = [
    ("finer grid", VALUE, change("grid_exponent", lambda k: k + 1), MACHINES),
    ("finer grid", VALUE, change("grid_exponent", lambda k: k + 3), PRICED),
    ("coarser grid", VALUE, change("grid_exponent", lambda k: k - 1), WITHOUT_MULTIPLIERS),
    # a job has no work but keeps its multiplier
    ("coarser grid", DUAL, change("grid_exponent", lambda k: k - 1), SPLIT),
    ("coarser grid", VALUE, change("grid_exponent", lambda k: k - 3), SRPT[3:]),
    ("coarser grid", VALUE, change("grid_exponent", lambda k: k - 20), PRICED[:2]),
    ("absurdly fine grid", VALUE, put_data("grid_exponent", 10**9), (*GRIDS, *SRPT[3:])),
    ("grid that is no integer", VALUE, put_data("grid_exponent", 2.0), MACHINES),
    ("grid that is a truth value", VALUE, put_data("grid_exponent", True), MACHINES),
    ("another grid", VALUE, put_data("grid_exponent", 70), ELASTIC),
    ("no grid", VALUE, drop("grid_exponent"), MACHINES),
    ("larger tick", VALUE, put_data("tick", "1/1"), (*MACHINES, *PRICED[:2])),
    ("slower machine", VALUE, change("capacity", lambda u: u - 1), MACHINES),
    ("slower machine", VALUE, put_data("capacity", 0), ELASTIC),
    ("faster machine", VALUE, change("capacity", lambda u: u + 1), (*PRICED, *SRPT[3:], *MIXED[3:])),
    ("capacity as a float", VALUE, change("capacity", float), MACHINES),
    ("widths of no machine", DUAL, put_data("threshold", 5), MACHINES),
    ("widths of no machine", DUAL, put_data("threshold", 0), MACHINES),
    ("no threshold", DUAL, drop("threshold"), MACHINES),
    ("another threshold", VALUE, change("threshold", lambda e: 5 - e), MACHINES),
    ("levels not ascending", DUAL, change("levels", lambda x: x[::-1]), ("srpt-due-dates", *SRPT[:2], *SRPT[3:])),
    *(
        (f"levels {x}", DUAL, put_data("levels", x), ("srpt", "srpt-due-dates"))
        for x in (["2/1", "1/1"], ["1/1", "1/1"], ["0/1"], ["-1/1"], ["-1/1", "1/1"])
    ),
    ("too many levels", VALUE, put_data("levels", [f"{k}/1" for k in range(1, 18)]), ("srpt", "srpt-due-dates")),
    ("other levels", VALUE, put_data("levels", ["7/2"]), ("srpt", "srpt-due-dates")),
    ("other levels", VALUE, put_data("levels", ["3/2"]), SRPT[1:]),
    *((f"levels {x}", VALUE, put_data("levels", x), ("srpt", "srpt-due-dates")) for x in ([1, 2], [1.0], "1/1", None)),
    ("finer weights", VALUE, change("multiplier_exponent", lambda k: k + 1), SPLIT),
    ("coarser weights", DUAL, change("multiplier_exponent", lambda k: k - 1), SPLIT),
    ("weights as a text", VALUE, put_data("multiplier_exponent", "0"), ("mean-busy-time", *SPLIT, *MIXED[3:])),
    ("mean busy times rounded", VALUE, put_data("held_up_bits", 32), ("mean-busy-time", *SPLIT)),
    ("multiplier above the weight", DUAL, change("multipliers", raised), MIXED),
    ("multiplier negative", DUAL, change("multipliers", first(-1)), MIXED),
    ("multipliers all 0", VALUE, change("multipliers", lambda u: [0] * len(u)), MIXED),
    ("multipliers halved", VALUE, change("multipliers", lambda u: [k // 2 for k in u]), SPLIT),
    ("multiplier missing", VALUE, change("multipliers", lambda u: u[1:]), MIXED),
    ("multiplier a float", VALUE, change("multipliers", first(0.5)), SPLIT),
    ("multiplier a truth value", VALUE, change("multipliers", first(True)), MIXED[3:]),
    ("no such resource", VALUE, put_data("resource", "disks"), (*SRPT[3:], "task-volume")),
    ("a resource that is a list", VALUE, put_data("resource", ["gpus"]), (*SRPT[3:], "task-volume")),
    ("a resource twice", DUAL, change("resources", lambda x: [x[0], x[0]]), MIXED[3:]),
    ("no resource", VALUE, put_data("resources", []), MIXED[3:]),
    ("resources as an object", VALUE, put_data("resources", {}), MIXED[3:]),
    ("a later release", VALUE, change("release", lambda r: f"{Fraction(r) + Fraction(1, 8)}"), ("task-volume",)),
    ("a release after all", VALUE, put_data("release", "1000/1"), ("task-volume",)),
    ("no fraction", VALUE, put_data("tail", 0.5), ("task-volume",)),
    ("another resource", VALUE, change("resource", lambda x: "links" if x == "gpus" else "gpus"), ("task-volume",)),
]
AT_PRICES: list[Tampering] = [
    ("a dearer V100", VALUE, change("prices", lambda p: {**p, "V100": 3 * p["V100"] + 1}), PRICES),
    ("a free K80", VALUE, change("prices", entry("K80", 0)), ("typed-srpt", "typed-makespan")),
    ("a free K80, and multipliers without work", DUAL, change("prices", entry("K80", 0)), ("typed-busy-time",)),
    ("a negative price", DUAL, change("prices", entry("K80", -1)), PRICES),
    ("a price as a float", DUAL, change("prices", entry("K80", 2.0)), TYPED),
    ("a price as a truth value", DUAL, change("prices", entry("K80", True)), TYPED),
    ("an absurd price", DUAL, change("prices", entry("K80", 10**400)), TYPED),
    ("a price of a type that is not there", DUAL, change("prices", entry("P100", 1)), TYPED),
    ("a type without a price", DUAL, change("prices", lambda p: {"V100": p["V100"]}), (*PRICES, *TIME, *DEADLINES)),
    ("prices as a list", DUAL, put_data("prices", [1, 1]), TYPED),
    ("no prices", DUAL, drop("prices"), (*TYPED, *OVER_TIME)),
    ("all prices 0", DUAL, change("prices", lambda p: dict.fromkeys(p, 0)), PRICED),
    ("an earlier moment", VALUE, put_data("moment", "-1/1"), MAKESPANS),
    ("a later moment", VALUE, change("moment", lambda t: f"{Fraction(t) + 1}"), MAKESPANS[:1]),
    ("a moment when all may be done", DUAL, put_data("moment", "1000/1"), MAKESPANS),
    ("a moment that is no fraction", VALUE, put_data("moment", 0.5), MAKESPANS[:1]),
    ("no moment", VALUE, drop("moment"), MAKESPANS[:1]),
    ("own price of nobody", VALUE, change("own_prices", entry("nobody", 1)), MAKESPANS),
    ("own price negative", DUAL, change("own_prices", entry("long", -1)), MAKESPANS),
    ("own price 0", DUAL, change("own_prices", entry("long", 0)), MAKESPANS[:1]),
    ("own price changed", VALUE, change("own_prices", lambda p: {**p, "long": p["long"] * 2}), MAKESPANS[:1]),
    ("own prices dropped", VALUE, put_data("own_prices", {}), MAKESPANS[:1]),
    ("own prices as a list", VALUE, put_data("own_prices", []), MAKESPANS[:1]),
    ("a charge above what a pair leaves", DUAL, change("charges", first(lambda c: c + 64)), SHARED),
    ("all charges full", DUAL, change("charges", entry("V100", [UNIT, UNIT])), CHARGES),
    ("a charge above one", DUAL, charge(UNIT + 1), SHARED),
    ("a negative charge", DUAL, charge(-1), SHARED),
    ("a charge as a float", DUAL, charge(float), SHARED),
    ("a charge as a truth value", DUAL, charge(True), SHARED),
    ("an absurd charge", DUAL, charge(10**400), SHARED),
    ("charges halved", VALUE, change("charges", lambda c: {g: [x // 2 for x in row] for g, row in c.items()}), SHARED),
    ("charges of one type only", DUAL, change("charges", lambda c: {"V100": c["V100"]}), SHARED),
    ("charges of a type that is not there", DUAL, change("charges", entry("P100", [1, 1])), SHARED),
    ("charges of unequal length", DUAL, change("charges", entry("K80", [UNIT])), SHARED),
    ("charges as a number", DUAL, change("charges", entry("K80", UNIT)), SHARED),
    ("charges as a list", DUAL, put_data("charges", [[1, 1]]), SHARED),
    ("no charges", DUAL, drop("charges"), SHARED),
    ("charges where nobody shares", VALUE, put_data("charges", {}), (*TIME[::2], *TASK_TIME, *PACKED)),
    ("a job in a class of its own", DUAL, put_first_in_a_class_of_its_own, SHARED),
    ("a job in the other class", DUAL, change("classes", first(lambda c: 1 - c)), SHARED),
    ("a class that is not there", DUAL, change("classes", first(9)), SHARED),
    ("a negative class", DUAL, change("classes", first(-1)), SHARED),
    ("a job without a class", DUAL, change("classes", lambda c: c[1:]), SHARED),
    ("a class as a text", DUAL, change("classes", first("0")), SHARED),
    ("no classes", DUAL, drop("classes"), (*SHARED, TIME[1])),
]
AT_PRICES_OVER_TIME: list[Tampering] = [
    ("a job says more", DUAL, change("minima", first(lambda m: m + (m >> 20))), (*OVER_TIME, *PACKED)),
    ("the last job says more", DUAL, change("minima", lambda m: [*m[:-1], m[-1] + (m[-1] >> 20)]), TASK_TIME),
    ("a job says less", VALUE, change("minima", first(lambda m: m - 1)), (*OVER_TIME, *PACKED)),
    ("a job says nothing", VALUE, change("minima", lambda m: m[1:]), OVER_TIME),
    ("a claim as a float", VALUE, change("minima", first(float)), TIME),
    ("an endless claim", VALUE, change("minima", first(1 << 3000)), TIME),
    ("claims in another unit", DUAL, change("minimum_exponent", lambda e: e - 1), OVER_TIME),
    ("an absurd unit", VALUE, put_data("minimum_exponent", 10**9), TIME),
    ("all prices 0", DUAL, change("prices", lambda p: {g: [0] * len(r) for g, r in p.items()}), (*TIME, *DEADLINES)),
    ("GPUs for nothing", DUAL, change("prices", lambda p: {**p, "gpus": [0] * len(p["gpus"])}), TASK_TIME),
    ("links for nothing", DUAL, change("prices", lambda p: {**p, "links": [0] * len(p["links"])}), TASK_TIME),
    ("sold as each other", DUAL, change("prices", lambda p: {"gpus": p["links"], "links": p["gpus"]}), TASK_TIME),
    ("prices by GPU type", DUAL, change("prices", lambda p: {"GPU": p["gpus"]}), TASK_TIME),
    ("a negative price", DUAL, change("prices", first(-1)), (*OVER_TIME, *DEADLINES)),
    ("an absurd price", DUAL, change("prices", first(1 << 64)), OVER_TIME),
    ("a price as a truth value", DUAL, change("prices", first(True)), TIME),
    ("prices of another type", DUAL, change("prices", entry("P100", [1])), (*TIME, *DEADLINES)),
    ("a price too few", DUAL, change("prices", lambda p: {**p, "K80": p["K80"][1:]}), (*TIME, *DEADLINES)),
    ("prices as a number", DUAL, change("prices", entry("K80", 1)), TIME),
    ("prices in another unit", VALUE, change("price_exponent", lambda e: e - 1), (*OVER_TIME, *PACKED)),
    ("GPUs cost something, too", VALUE, change("prices", lambda p: {g: [1] * len(r) for g, r in p.items()}), PACKED),
    ("moments that fall", VALUE, change("moments", lambda m: [m[0], m[2], m[1], *m[3:]]), (*TIME, *DEADLINES, *PACKED)),
    ("too late to be the first", VALUE, change("moments", first(lambda m: m + 1)), (*OVER_TIME, *DEADLINES)),
    ("one moment", VALUE, change("moments", lambda m: m[:1]), TIME),
    ("longer cells", VALUE, change("moments", lambda m: [*m[:-1], m[-1] + 1]), TASK_TIME),
    ("more than are tried", VALUE, change("moments", lambda m: [*m, *range(m[-1] + 1, m[-1] + 5000)]), TIME),
    ("no moments", VALUE, drop("moments"), TIME),
    ("a larger limit", DUAL, change("limit", lambda x: str(Fraction(x) * 2)), DEADLINES),
    ("no limit", VALUE, drop("limit"), DEADLINES),
    ("a limit as a number", VALUE, put_data("limit", 1), DEADLINES),
    ("no own prices", DUAL, drop("own_prices"), PACKED),
    ("own prices of all but one", DUAL, change("own_prices", lambda o: o[1:]), PACKED),
    ("own prices of 0", DUAL, change("own_prices", lambda o: [[k, [0] * len(row)] for k, row in o]), PACKED),
    ("own prices doubled", VALUE, change("own_prices", lambda o: [[k, [2 * p for p in row]] for k, row in o]), PACKED),
    ("a negative own price", DUAL, change("own_prices", first(lambda o: [o[0], [-1]])), PACKED),
    ("a truth value", DUAL, change("own_prices", first(lambda o: [o[0], [True]])), PACKED),
    ("an absurd own price", DUAL, change("own_prices", first([0, [1 << 64]])), PACKED),
    ("own prices from too late on", DUAL, change("own_prices", first(lambda o: [9, o[1]])), PACKED),
    ("cells before time", DUAL, change("own_prices", first(lambda o: [-1, o[1]])), PACKED),
    ("cells that are not", DUAL, change("own_prices", first([0, [1] * 5000])), PACKED),
    ("an empty row", DUAL, change("own_prices", first([0, []])), PACKED),
]


@pytest.mark.parametrize("case", [marked(case) for case in CASES])
def test_untouched(case: str, tmp_path: Path) -> None:
    doc, instance = untouched(case), CASES[case].instance()
    judge(doc, instance, tmp_path)
    assert f"by {doc['kind']}" in verify(doc, json.loads(json.dumps(instance.to_json())))


@each_case([*OF_ALL, *ON_MACHINES, *AT_PRICES, *AT_PRICES_OVER_TIME])
def test_tampered(rule: str, touch: Touch, case: str, tmp_path: Path) -> None:
    doc = untouched(case)
    touch(doc)
    refused(doc, CASES[case].instance(), tmp_path, rule)


# --- another instance, another class --------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", TYPED)
@pytest.mark.parametrize("schedule_class", ["gang-nonpreemptive", "forking"])
def test_untouched_in_other_classes(case: str, schedule_class: str, tmp_path: Path) -> None:
    judge(untouched(case, schedule_class), typed(), tmp_path)


@pytest.mark.parametrize("case", GANGS)
def test_the_smaller_class_may_be_claimed(case: str, tmp_path: Path) -> None:
    # gang-nonpreemptive is a part of gang: that claim is weaker, and true
    judge({**untouched(case), "class": "gang-nonpreemptive"}, gangs(), tmp_path)


def test_a_bound_of_forked_jobs_holds_for_gangs_and_says_less(tmp_path: Path) -> None:
    doc = untouched("typed-makespan", "forking")
    assert Fraction(doc["value"]) < Fraction(untouched("typed-makespan")["value"])
    # no price of anybody's own time, and nobody was there before the moment: the same proof in the smaller class
    assert (doc["data"]["own_prices"], doc["data"]["moment"]) == ({}, "0/1")
    judge({**doc, "class": "gang"}, typed(), tmp_path)


@pytest.mark.parametrize("field", range(5))
def test_a_changed_job_and_another_cluster_are_another_instance(field: int, tmp_path: Path) -> None:
    rows = [list(row) for row in ROWS]
    rows[3][field] += 1
    for case in GANGS:
        refused(untouched(case), instance_of(map(tuple, rows), 8), tmp_path, "instance")
        refused(untouched(case), gangs().with_cluster("1x9"), tmp_path, "instance")


def faster() -> Instance:
    """GPUs twice as fast."""
    assert typed().throughputs is not None
    rows = {key: Throughput(row.together * 2, row.spread) for key, row in typed().throughputs.entries.items()}
    return typed().replace(throughputs=Throughputs(rows))


EASIER = {gangs: instance_of([(r, g, d / 2, w, due) for r, g, d, w, due in ROWS], 8), typed: faster()}
EASIER[elastic] = elastic_instance(4)


@pytest.mark.parametrize("case", [*GANGS[:-1], *TYPED, *ELASTIC])  # fair-alone: who is not slowed down at all
def test_an_easier_instance_under_a_forged_digest_does_not_reach_the_value(case: str, tmp_path: Path) -> None:
    doc, easier = untouched(case), EASIER[CASES[case].instance]
    refused(doc, easier, tmp_path, "instance")
    refused({**doc, "instance": easier.digest}, easier, tmp_path)


@pytest.mark.parametrize("case", [*SHARED, TIME[1]])
def test_a_proof_for_slower_partners_is_none_for_faster_ones(case: str, tmp_path: Path) -> None:
    doc = untouched(case)
    charges = doc["data"]["charges"]
    assert set(charges["V100"]) != {UNIT}  # else nothing of what is done to them would matter
    # raised to where they just keep the inequalities of the certificate's own instance
    second = min(UNIT, int((1 - Fraction(charges["V100"][0], UNIT) / Fraction(1.3)) * Fraction(1.75) * UNIT))
    doc["data"]["charges"] = {"V100": [charges["V100"][0], second], "K80": [UNIT, UNIT]}
    quicker = shared().replace(interference=Interference(2.0, ("a", "b"), ((1.25, 1.3), (1.7, 2.0))))
    roomier = shared().replace(cluster=Cluster((NodeGroup(2, 1, "V100", 16.0), NodeGroup(1, 2, "K80", 12.0))))
    for other in (quicker, roomier):  # the digest apart: the charges themselves are refused
        for message in refused({**doc, "instance": other.digest}, other, tmp_path, DUAL):
            assert "shared GPU" in message


def test_multipliers_of_both_resources_share_the_weight(tmp_path: Path) -> None:
    doc, plain = untouched("split-task-busy-time"), untouched("task-busy-time")
    assert [part["resource"] for part in doc["data"]["resources"]] == ["gpus", "links"]
    scale = doc["data"]["multiplier_exponent"] - plain["data"]["multiplier_exponent"]
    whole = [u << scale for u in plain["data"]["resources"][0]["multipliers"]]
    doc["data"]["resources"][0]["multipliers"] = whole  # each of the two is legal, together not
    for message in refused(doc, tasks(), tmp_path, DUAL):
        assert "together more than the weight" in message


def test_the_last_job_is_named() -> None:
    certificate = BOUNDS.get("task-path").build(tasks(), END, "task-sharing")
    certificate.verify(tasks())
    last = certificate.data["job"]
    for job in ("j0", "nobody", None, 3):
        assert job != last
        other = Certificate(tasks().digest, END, "task-sharing", "task-path", certificate.value, {"job": job})
        with pytest.raises(CertificateError) as error:
            other.verify(tasks())
        assert error.value.rule == VALUE


# --- numbers that are absurd ----------------------------------------------------------------------------------------------


def test_widths_whose_sum_no_64_bits_hold_do_not_wrap(tmp_path: Path) -> None:
    # 16 jobs of 4 s on 16 GPUs: the optimum is 64. A capacity that wrapped around would "prove" 112.
    jobs, widest = instance_of([(0.0, 1, 4.0, 1.0, 0.0)] * 16, 16), 2**61 - 1
    rows = [{"width": [widest] * 16, "price": [1] * 4}]
    doc = one_priced_row(jobs, "gang-nonpreemptive", rows=rows, denominator=widest, jobs=["8"] * 16)
    judge(doc | {"value": "64/1"}, jobs, tmp_path)
    refused(doc | {"value": "112/1"}, jobs, tmp_path, VALUE)


IMMENSE: list[Document] = [  # and legal
    {"unit": f"1/{10**30}"},
    {"unit": f"{10**400}"},
    {"origin": f"-{10**400}"},
    {"rows": [{"width": "gpus", "price": [10**150, 1]}]},
    {"rows": [{"width": "gpus", "price": [1] * 300_000}]},
    {"rows": [{"width": "gpus", "price": [2**500] * 100_000}]},
]
ABSURD: list[Document] = [
    {"unit": f"1/{'7' * 4000}"},
    {"origin": f"-{'7' * 4000}/1"},
    {"rows": [{"width": "gpus", "price": [10**400]}]},
    {"rows": [{"width": "gpus", "price": [-(10**400)]}]},
    {"rows": [{"width": [1] * len(ROWS), "price": []}] * 1_500},
    {"rows": 7},
    {"rows": [7]},
    {"denominator": "1"},
    {"denominator": 10**400},
    {"jobs": [f"1/{10**3000 + j}" for j in range(len(ROWS))]},
    {"jobs": [f"1/{prime**1200}" for prime in (3, 5, 7, 11, 13, 17)]},
    {"jobs": [str(10**400)] * len(ROWS)},
]


CLASSES = ("gang", "gang-nonpreemptive")


@pytest.mark.parametrize(
    ("schedule_class", "changes"),
    [
        *((CLASSES[i % 2], changes) for i, changes in enumerate(IMMENSE)),  # seconds each: one class for each
        *((name, changes) for name in CLASSES for changes in ABSURD),
    ],
    ids=lambda value: str(value)[:40],
)
def test_absurd_numbers_are_judged_or_refused_at_once_in_one_line(
    changes: Document, schedule_class: str, tmp_path: Path
) -> None:
    doc, begin = one_priced_row(gangs(), schedule_class, **changes), time.process_time()
    with contextlib.nullcontext() if changes in IMMENSE else pytest.raises(CertificateError):  # no claim is so low
        judge(doc | {"value": f"{-(10**300)}/1"}, gangs(), tmp_path)
    refused(doc | {"value": f"{10**300}/1"}, gangs(), tmp_path, DUAL, VALUE)
    assert time.process_time() - begin < 10  # a minute, where it is not refused; what a process imports first is in it
