"""Certificates that somebody touched: each is refused, under the right rule. The untouched file holds."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from bounds.cases import instance_of
from optsched.bounds import BOUNDS, Certificate, CertificateError
from optsched.problem.instance import Instance

Document = dict[str, Any]

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
}
WITHOUT_MULTIPLIERS = ("volume", "srpt", "mean-busy-time", "srpt-due-dates")
MACHINES = ("volume", "srpt", "mean-busy-time", "split-busy-time", "srpt-due-dates")


@pytest.fixture(scope="module")
def instance() -> Instance:
    return instance_of(ROWS, 8)


@dataclass(frozen=True)
class Tampering:
    """What is done to the document of a certificate, to which kinds, and the rule that it breaks."""

    name: str
    rule: str
    touch: Callable[[Document], None]
    kinds: tuple[str, ...] = tuple(CASES)


def put(field: str, value: Any) -> Callable[[Document], None]:
    return lambda doc: doc.update({field: value})


def put_data(field: str, value: Any) -> Callable[[Document], None]:
    return lambda doc: doc["data"].update({field: value})


def change_data(field: str, change: Callable[[Any], Any]) -> Callable[[Document], None]:
    return lambda doc: doc["data"].update({field: change(doc["data"][field])})


def drop_data(field: str) -> Callable[[Document], None]:
    return lambda doc: doc["data"].pop(field) and None


def add(delta: Fraction) -> Callable[[Document], None]:
    def touch(doc: Document) -> None:
        value = Fraction(doc["value"]) + delta
        doc["value"] = f"{value.numerator}/{value.denominator}"

    return touch


def add_flow_constant(doc: Document) -> None:
    """The bound on completion times, sold as one on flow times."""
    add(Fraction(doc["data"]["flow_constant"]))(doc)


def without_the_constant(doc: Document) -> None:
    add_flow_constant(doc)
    doc["data"]["flow_constant"] = "0/1"


def change_a_multiplier(delta: int) -> Callable[[Document], None]:
    def touch(doc: Document) -> None:
        used = doc["data"]["multipliers"]
        position = max(range(len(used)), key=used.__getitem__)
        used[position] = max(used[position] + delta, -1 if delta < -1000 else 0)

    return touch


FLOWS = ("release-plus-duration", "srpt", "mean-busy-time", "split-busy-time")
TAMPERINGS = [
    Tampering("another instance's digest", "instance", put("instance", "0" * 64)),
    Tampering("no digest", "instance", put("instance", "")),
    Tampering("value raised by one", "value", add(Fraction(1))),
    Tampering("value raised by a trifle", "value", add(Fraction(1, 10**30))),
    Tampering("value not the one proved", "value", add(Fraction(-1))),
    *(
        Tampering(f"value malformed: {text!r}", "value", put("value", text))
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
    Tampering("value with more digits than Python reads", "value", put("value", "9" * 5000 + "/1")),
    Tampering("unknown kind", "kind", put("kind", "oracle")),
    Tampering("kind misspelt", "kind", put("kind", "SRPT")),
    Tampering("kind of another objective", "kind", put("kind", "critical-job"), (*FLOWS, "srpt-due-dates")),
    Tampering("kind of flow times", "kind", put("kind", "srpt"), ("critical-job", "volume", "srpt-due-dates")),
    Tampering("kind without such data", "dual-feasibility", put("kind", "volume"), ("critical-job",)),
    Tampering("kind renamed", "value", put("kind", "srpt"), ("mean-busy-time", "split-busy-time")),
    Tampering("kind renamed", "value", put("kind", "release-plus-duration"), FLOWS[1:]),
    Tampering("kind renamed", "value", put("kind", "mean-busy-time"), ("srpt", "split-busy-time")),
    Tampering("kind renamed", "dual-feasibility", put("kind", "mean-busy-time"), ("release-plus-duration",)),
    Tampering("kind renamed", "value", put("kind", "split-busy-time"), ("mean-busy-time", "srpt-due-dates")),
    Tampering("objective swapped for one of another kind", "kind", put("objective", "makespan"), tuple(CASES)[2:]),
    Tampering("objective swapped for one of another kind", "kind", put("objective", FLOW), tuple(CASES)[:2]),
    Tampering("objective swapped for completion times", "value", put("objective", COMPLETION), FLOWS),
    Tampering("objective swapped for the unweighted one", "value", put("objective", "total_flow_time"), FLOWS[:3]),
    Tampering("unknown objective", "kind", put("objective", "total_energy")),
    Tampering("class enlarged", "kind", put("class", "gpu-sharing")),
    Tampering("unknown class", "kind", put("class", "anything")),
    Tampering("flow constant not subtracted", "value", add_flow_constant, FLOWS),
    Tampering("flow constant not subtracted, nor stated", "value", without_the_constant, FLOWS),
    Tampering("flow constant left out", "value", drop_data("flow_constant"), FLOWS),
    Tampering("flow constant changed", "value", put_data("flow_constant", "1/1"), FLOWS),
    Tampering("finer grid", "value", change_data("grid_exponent", lambda k: k + 1), MACHINES),
    Tampering("coarser grid", "value", change_data("grid_exponent", lambda k: k - 1), WITHOUT_MULTIPLIERS),
    Tampering("absurdly fine grid", "value", put_data("grid_exponent", 10**9), MACHINES),
    Tampering("grid that is no integer", "value", put_data("grid_exponent", 2.0), MACHINES),
    Tampering("grid that is a truth value", "value", put_data("grid_exponent", True), MACHINES),
    Tampering("no grid", "value", drop_data("grid_exponent"), MACHINES),
    Tampering("larger tick", "value", put_data("tick", "1/1"), MACHINES),
    Tampering("slower machine", "value", change_data("capacity", lambda u: u - 1), MACHINES),
    Tampering("capacity as a float", "value", change_data("capacity", float), MACHINES),
    Tampering("widths of no machine", "dual-feasibility", put_data("threshold", 5), MACHINES),
    Tampering("widths of no machine", "dual-feasibility", put_data("threshold", 0), MACHINES),
    Tampering("no threshold", "dual-feasibility", drop_data("threshold"), MACHINES),
    Tampering("another threshold", "value", change_data("threshold", lambda e: 5 - e), MACHINES),
    Tampering("levels not ascending", "dual-feasibility", change_data("levels", lambda x: x[::-1]), MACHINES[1:5:3]),
    Tampering("negative level", "dual-feasibility", put_data("levels", ["-1/1"]), ("srpt", "srpt-due-dates")),
    Tampering("other levels", "value", put_data("levels", ["7/2"]), ("srpt", "srpt-due-dates")),
    Tampering("levels as numbers", "value", put_data("levels", [1, 2]), ("srpt", "srpt-due-dates")),
    Tampering("finer weights", "value", change_data("multiplier_exponent", lambda k: k + 1), ("split-busy-time",)),
    Tampering(
        "coarser weights",
        "dual-feasibility",
        change_data("multiplier_exponent", lambda k: k - 1),
        ("split-busy-time",),
    ),
    Tampering("no weights", "value", put_data("multiplier_exponent", "0"), ("mean-busy-time", "split-busy-time")),
    Tampering("mean busy times rounded", "value", put_data("held_up_bits", 32), ("mean-busy-time", "split-busy-time")),
    Tampering("multiplier above the weight", "dual-feasibility", change_a_multiplier(10**6), ("split-busy-time",)),
    Tampering("multiplier negative", "dual-feasibility", change_a_multiplier(-(10**6)), ("split-busy-time",)),
    Tampering("multipliers all 0", "value", change_data("multipliers", lambda u: [0] * len(u)), ("split-busy-time",)),
    Tampering(
        "multipliers halved", "value", change_data("multipliers", lambda u: [k // 2 for k in u]), ("split-busy-time",)
    ),
    # heavier than its weight, and a grid on which a job has no work but keeps its multiplier
    Tampering("objective unweighted", "dual-feasibility", put("objective", "total_flow_time"), ("split-busy-time",)),
    Tampering("coarser grid", "dual-feasibility", change_data("grid_exponent", lambda k: k - 1), ("split-busy-time",)),
    Tampering("multiplier missing", "value", change_data("multipliers", lambda u: u[1:]), ("split-busy-time",)),
    Tampering("multiplier a float", "value", change_data("multipliers", lambda u: [0.5, *u[1:]]), ("split-busy-time",)),
    Tampering("another job", "value", put_data("job", "j1"), ("critical-job",)),
    Tampering("unknown job", "value", put_data("job", "nobody"), ("critical-job",)),
    Tampering("no job", "value", put_data("job", None), ("critical-job",)),
    Tampering("data emptied", "value", put("data", {}), ("critical-job", "release-plus-duration")),
    Tampering("a claim added to the data", "value", put_data("optimal", True)),
]
PAIRS = [(tampering, kind) for tampering in TAMPERINGS for kind in tampering.kinds]


def untouched(kind: str, instance: Instance) -> Document:
    certificate = BOUNDS.get(kind).build(instance, CASES[kind], "gang")
    assert certificate is not None
    return certificate.to_json()


def judge(doc: Document, instance: Instance, folder: Path) -> None:
    path = folder / "certificate.json"
    path.write_text(json.dumps(doc))
    Certificate.load(path).verify(instance)


@pytest.mark.parametrize("kind", CASES)
def test_untouched(kind: str, instance: Instance, tmp_path: Path) -> None:
    judge(untouched(kind, instance), instance, tmp_path)


@pytest.mark.parametrize(("tampering", "kind"), PAIRS, ids=[f"{kind}: {t.name}" for t, kind in PAIRS])
def test_tampered(tampering: Tampering, kind: str, instance: Instance, tmp_path: Path) -> None:
    doc = untouched(kind, instance)
    tampering.touch(doc)
    with pytest.raises(CertificateError) as error:
        judge(doc, instance, tmp_path)
    assert error.value.rule == tampering.rule
    assert error.value.message
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("field", ["arrival", "gpus", "duration", "weight", "due"])
def test_a_changed_job_is_another_instance(kind: str, field: str, instance: Instance, tmp_path: Path) -> None:
    jobs = [
        {name: getattr(job, name) for name in ("id", "arrival", "gpus", "duration", "weight", "due")}
        for job in instance.jobs
    ]
    jobs[3][field] += 1
    other = instance_of([tuple(list(job.values())[1:]) for job in jobs], 8)
    with pytest.raises(CertificateError) as error:
        judge(untouched(kind, instance), other, tmp_path)
    assert error.value.rule == "instance"


@pytest.mark.parametrize("kind", CASES)
def test_another_cluster_is_another_instance(kind: str, instance: Instance, tmp_path: Path) -> None:
    with pytest.raises(CertificateError) as error:
        judge(untouched(kind, instance), instance.with_cluster("1x9"), tmp_path)
    assert error.value.rule == "instance"


@pytest.mark.parametrize("kind", CASES)
def test_an_easier_instance_under_a_forged_digest_does_not_reach_the_value(
    kind: str, instance: Instance, tmp_path: Path
) -> None:
    easier = instance_of([(r, g, d / 2, w, due) for r, g, d, w, due in ROWS], 8)
    doc = untouched(kind, instance)
    doc["instance"] = easier.digest
    with pytest.raises(CertificateError) as error:
        judge(doc, easier, tmp_path)
    assert error.value.rule in ("value", "dual-feasibility")


@pytest.mark.parametrize("kind", CASES)
def test_the_smaller_class_may_be_claimed(kind: str, instance: Instance, tmp_path: Path) -> None:
    # gang-nonpreemptive is a part of gang: that claim is weaker, and true
    judge({**untouched(kind, instance), "class": "gang-nonpreemptive"}, instance, tmp_path)


def prices(instance: Instance, **changes: Any) -> Document:
    """A certificate of one priced row that claims nothing, changed."""
    data = {
        "formulation": "any",
        "origin": "0",
        "unit": "1",
        "denominator": 1,
        "rows": [{"width": "gpus", "price": [1, 1]}],
        "jobs": ["0"] * instance.n,
        "rounded": False,
    }
    doc = {"format": "optsched-certificate/1", "instance": instance.digest, "objective": "total_completion_time"}
    return {**doc, "class": "gang", "kind": "lp-dual", "value": "-1000/1", "data": {**data, **changes}}


def test_widths_whose_sum_no_64_bits_hold_do_not_wrap(tmp_path: Path) -> None:
    # 16 jobs of 4 s on 16 GPUs: the optimum is 64. A capacity that wrapped around would "prove" 112.
    jobs, widest = instance_of([(0.0, 1, 4.0, 1.0, 0.0)] * 16, 16), 2**61 - 1
    rows = [{"width": [widest] * 16, "price": [1] * 4}]
    doc = prices(jobs, rows=rows, denominator=widest, jobs=["8"] * 16) | {"class": "gang-nonpreemptive"}
    judge(doc | {"value": "64/1"}, jobs, tmp_path)
    with pytest.raises(CertificateError) as error:
        judge(doc | {"value": "112/1"}, jobs, tmp_path)
    assert error.value.rule == "value"


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
        {"jobs": [str(10**400)] * len(ROWS)},
    ],
    ids=lambda changes: str(changes)[:40],
)
def test_absurd_numbers_are_judged_or_refused_in_one_line(
    changes: Document, schedule_class: str, instance: Instance, tmp_path: Path
) -> None:
    doc = prices(instance, **changes) | {"class": schedule_class}
    with contextlib.suppress(CertificateError):  # a bound so low may hold; anything else is a traceback
        judge(doc | {"value": f"{-(10**300)}/1"}, instance, tmp_path)
    with pytest.raises(CertificateError) as error:
        judge(doc | {"value": f"{10**300}/1"}, instance, tmp_path)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500
