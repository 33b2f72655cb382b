"""Certificates of every kind, what is done to their files, and how that is refused: one harness for all classes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from simulation.elastic_instances import elastic_instance

from bounds.cases import instance_of
from optsched.bounds import BOUNDS, Certificate, CertificateError, priced_gangs
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.contention import Contention, IterationTasks
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference
from optsched.problem.throughputs import Throughput, Throughputs
from optsched.verifier.judgement import verify
from optsched.verifier.refusal import Refused

Document = dict[str, Any]
Touch = Callable[[Document], None]
Tampering = tuple[str, str, Touch, Iterable[str]]  # what is done, the rule that it breaks, how, to which of `CASES`

# --- what is touched --------------------------------------------------------------------------------------------------

# wide gangs, interruptions, weights, late jobs: on this instance every part of every certificate matters
ROWS = [
    (0.0, 2, 6.0, 2.0, 7.0),
    (0.5, 1, 1.0, 1.0, 1.0),
    (1.0, 5, 2.0, 3.0, 2.0),
    (2.0, 6, 3.0, 1.0, 6.0),
    (2.0, 1, 4.0, 2.0, 5.0),
    (3.0, 4, 0.25, 5.0, 3.0),
]


@cache
def gangs() -> Instance:
    return instance_of(ROWS, 8)


@cache
def queue() -> Instance:
    """12 gangs on 4 GPUs."""
    return instance_of([(float(j % 4), 1 + j % 3, 1.0 + j % 5, 1.0 + j % 2) for j in range(12)], 4)


@cache
def typed() -> Instance:
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


@cache
def shared() -> Instance:
    """21 jobs of the kinds a and b on two GPU types; no two fit on a K80."""
    cluster = Cluster((NodeGroup(2, 1, "V100", 16.0), NodeGroup(1, 2, "K80", 8.0)))
    physics = Interference(2.0, ("a", "b"), ((1.25, 1.3), (1.75, 2.0)))
    jobs = [
        Job(f"j{k}", k / 4, 1 + k % 2, 1.0 + k % 5, model="ab"[k % 2], weight=k % 3 + 1, due=9, gpu_memory=5.0)
        for k in range(20)
    ]
    return Instance([*jobs, Job("long", 0.5, 1, 15.0, model="a", gpu_memory=5.0)], cluster, interference=physics)


@cache
def crowd() -> Instance:
    """20 jobs that all would like to have the same two GPUs."""
    table = Throughputs({("m", "V100", g): Throughput(8.0) for g in (1, 2)} | {("m", "K80", 1): Throughput(1.0)})
    jobs = [Job(f"j{k}", k / 4, 1 + k % 2, iterations=8.0 + k, profile="m", model="ab"[k % 2]) for k in range(20)]
    physics = Interference(2.0, ("a", "b"), ((1.9, 1.8), (1.75, 2.0)))
    return Instance(jobs, "1x2:V100+8x1:K80", throughputs=table, interference=physics)


@cache
def tasks() -> Instance:
    models = {"m": IterationTasks(0.5, 1, 2), "x": IterationTasks(0.25, 0.25, 5), "s": IterationTasks(2, 1)}
    rows = [(j / 2, 1 + j % 4, 1 + j % 3, "mxs"[j % 3], j % 3 + 1) for j in range(18)]
    jobs = [
        Job(f"j{k}", r, gang, iterations=i, profile=p, weight=w, due=5) for k, (r, gang, i, p, w) in enumerate(rows)
    ]
    return Instance(jobs, "3x2", tasks=models, contention=Contention(0.5, 0.25, 0.125))


@cache
def elastic() -> Instance:
    return elastic_instance(3)


class Case(NamedTuple):
    """A certificate by what makes it."""

    kind: str
    objective: str
    schedule_class: str
    instance: Callable[[], Instance]


FLOW, LATE, END = "total_weighted_flow_time", "total_weighted_tardiness", "makespan"
LARGEST, FAIR = "max_flow_time", "max_fair_slowdown"
KINDS: dict[tuple[str, str, Callable[[], Instance]], tuple[str, ...]] = {
    (END, "gang", gangs): ("critical-job", "volume"),
    (FLOW, "gang", gangs): ("release-plus-duration", "srpt", "mean-busy-time", "split-busy-time"),
    (LATE, "gang", gangs): ("srpt-due-dates",),
    (LARGEST, "gang", gangs): ("first-come",),
    (FAIR, "gang", gangs): ("fair-share", "fair-alone"),
    (FLOW, "gang", typed): ("typed-srpt", "typed-busy-time"),
    (END, "gang", typed): ("typed-makespan",),
    (FLOW, "gpu-sharing", shared): ("shared-srpt", "shared-busy-time"),
    (END, "gpu-sharing", shared): ("shared-makespan",),
    (FLOW, "task-sharing", tasks): (
        *("task-srpt", "link-srpt", "task-path", "task-busy-time", "link-busy-time", "split-task-busy-time"),
    ),
    (END, "task-sharing", tasks): ("task-volume",),
    (LATE, "task-sharing", tasks): ("task-due-dates", "link-due-dates"),
    (LARGEST, "task-sharing", tasks): ("task-first-come", "link-first-come"),
    (FAIR, "task-sharing", tasks): ("task-fair-share", "link-fair-share"),
    (FLOW, "elastic", elastic): ("elastic-alone", "elastic-srpt", "elastic-busy-time"),
    (END, "elastic", elastic): ("elastic-volume", "elastic-makespan"),
    (LATE, "elastic", elastic): ("elastic-due-dates",),
    (LARGEST, "elastic", elastic): ("elastic-first-come",),
    (FAIR, "elastic", elastic): ("elastic-fair-share",),
    (FLOW, "gang", queue): ("priced-gangs",),
}
CASES = {kind: Case(kind, *of) for of, kinds in KINDS.items() for kind in kinds}
TIME, DEADLINES = (
    tuple(f"{kind} {schedule_class}" for schedule_class in ("gang", "gpu-sharing", "forking"))
    for kind in ("priced-time", "priced-deadlines")
)
CASES |= {name: Case("priced-time", FLOW, name.split()[1], shared) for name in TIME}
CASES |= {name: Case("priced-deadlines", FAIR, name.split()[1], crowd) for name in DEADLINES}
CASES["priced-time task-sharing"] = Case("priced-time", FLOW, "task-sharing", tasks)


@cache
def built(case: str, schedule_class: str) -> str:
    kind, objective, _, instance = CASES[case]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("MOST_CELLS", 150), ("STEPS", 20), ("LAST_STEPS", 100), ("FIRST_STEPS", 30)):
            patch.setattr(priced_gangs, name, value)  # a short search
        certificate = BOUNDS.get(kind).build(instance(), objective, schedule_class)
    return json.dumps(certificate.to_json())


def untouched(case: str, schedule_class: str = "") -> Document:
    """The document of the certificate as it was made, of the case's class or another one; made once."""
    return dict(json.loads(built(case, schedule_class or CASES[case].schedule_class)))


# --- how it is judged -------------------------------------------------------------------------------------------------


def judge(doc: Document, instance: Instance, folder: Path) -> None:
    """Write, load, verify."""
    path = folder / "certificate.json"
    path.write_text(json.dumps(doc))
    Certificate.load(path).verify(instance)


def refused(doc: Document, instance: Instance, folder: Path, *rules: str) -> tuple[str, str]:
    """Refused by one of the rules (any, where none is named) in one line, not too long: what both verifiers say."""
    with pytest.raises(CertificateError) as error:
        judge(doc, instance, folder)
    with pytest.raises(Refused) as other:  # by the files that need nothing of optsched, too
        verify(*(json.loads(json.dumps(each)) for each in (doc, instance.to_json())))
    assert not rules or error.value.rule in rules, str(error.value)
    assert error.value.message
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500
    return str(error.value), str(other.value)


def marked(case: str, *values: Any, name: str = "") -> Any:
    """A parameter of a test of one case; what takes the compiler long is marked."""
    marks = [pytest.mark.compiled] if case == "priced-gangs" else []
    return pytest.param(*values, case, id=f"{case}: {name}" if name else case, marks=marks)


def each_case(tamperings: Iterable[Tampering]) -> pytest.MarkDecorator:
    """Parametrize by ``rule``, ``touch`` and ``case``: every tampering of every certificate that it is for."""
    rows = [marked(case, rule, touch, name=name) for name, rule, touch, cases in tamperings for case in cases]
    return pytest.mark.parametrize(("rule", "touch", "case"), rows)


def one_priced_row(instance: Instance, schedule_class: str = "gang", **changes: Any) -> Document:
    """A certificate of one row of prices that claims nothing, its data changed."""
    data = {"formulation": "any", "origin": "0", "unit": "1", "denominator": 1, "rounded": False}
    data |= {"rows": [{"width": "gpus", "price": [1, 1]}], "jobs": ["0"] * instance.n, **changes}
    head = {"format": "optsched-certificate/1", "instance": instance.digest, "objective": "total_completion_time"}
    return {**head, "class": schedule_class, "kind": "lp-dual", "value": "-1000/1", "data": data}


# --- touches ----------------------------------------------------------------------------------------------------------


def put(field: str, value: Any) -> Touch:
    return lambda doc: doc.update({field: value})


def put_data(field: str, value: Any) -> Touch:
    return lambda doc: doc["data"].update({field: value})


def change(field: str, how: Callable[[Any], Any]) -> Touch:
    """Of the data; of certificates with several resources, where they say it of each, of the first."""

    def touch(doc: Document) -> None:
        data = doc["data"]
        data = data if field in data else data["resources"][0]
        data[field] = how(data[field])

    return touch


def drop(field: str) -> Touch:
    return lambda doc: doc["data"].pop(field) and None


def add(delta: Fraction) -> Touch:
    def touch(doc: Document) -> None:
        value = Fraction(doc["value"]) + delta
        doc["value"] = f"{value.numerator}/{value.denominator}"

    return touch


def add_flow(doc: Document) -> None:
    """The bound on completion times, sold as one on flow times."""
    add(Fraction(doc["data"]["flow_constant"]))(doc)


def without_flow(doc: Document) -> None:
    """The same, and the constant is not stated either."""
    add_flow(doc)
    doc["data"]["flow_constant"] = "0/1"


def entry(key: str, value: Any) -> Callable[[Any], Any]:
    """An object with another entry, for `change`."""
    return lambda entries: {**entries, key: value}


def first(value: Any) -> Callable[[Any], Any]:
    """A list with another first entry, for `change`; of an object of lists, its last list in order."""

    def changed(entries: Any) -> Any:
        if isinstance(entries, dict):
            return {**entries, max(entries): changed(entries[max(entries)])}
        return [value(entries[0]) if callable(value) else value, *entries[1:]]

    return changed
