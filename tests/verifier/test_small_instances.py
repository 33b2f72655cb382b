"""The verifier on random small instances of all classes: what it accepts is true, and what it refuses optsched refuses."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from bounds.cases import OBJECTIVES
from bounds.tampering import Document
from examples import explored, few
from problem.documents import Change, put

from optsched.bounds import BOUNDS
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.instance import Instance, Job
from optsched.problem.profile import Profile, Stage
from optsched.verifier.judgement import verify
from optsched.verifier.refusal import UNJUDGED, Refused
from verifier.certified_cases import FAMILIES, Optima, certificates, drawn, exit_code, holds_for_optsched, written
from verifier.test_verifier import touched

CLASSES = {"rigid": "gang", "staged": "gang", "typed": "forking", "shared": "gpu-sharing"}
CLASSES |= {"tasks": "task-sharing", "scaled": "elastic"}


code = exit_code
pytestmark = pytest.mark.usefixtures("prices_for_few_jobs")


# --- what holds, and what somebody touched --------------------------------------------------------------------------------


def check_bounds(family: str, seed: int, count: int) -> Counter[str]:
    """``count`` bounds or some more of a family, and as many files touched somewhere; how many of every class there were.

    Both verifiers accept each bound, and it is not above the best schedule. A larger claim is refused; what is done to
    the file they judge alike.
    """
    rng, seen = np.random.default_rng(seed), Counter[str]()
    while seen.total() < count:
        instance = drawn(family, rng)
        if instance.n > 4 and not explored():
            continue
        known, optima = written(instance.to_json()), Optima(instance)
        # of plain gangs, whose optima are soon known, the bounds on all objectives
        some = OBJECTIVES if family == "rigid" else (str(rng.choice(OBJECTIVES)),)
        for local in certificates(rng, instance, some):
            certificate = local.on_clock(instance)
            doc = written(certificate.to_json())
            seen[local.schedule_class] += 1
            assert code(doc, known) == 0, (doc, known)
            certificate.verify(instance)
            assert optima.reaches(local.value, local.objective, local.schedule_class), (doc, known)
            assert code({**doc, "value": str(certificate.value + Fraction(1, 10**30))}, known) == 1
            check_touched(doc, instance, known, rng)
    return seen


def check_touched(doc: Document, instance: Instance, known: Document, rng: np.random.Generator) -> None:
    """Both verifiers say the same of a file that is touched; what they accept claims no more than was proved."""
    other = written({**doc, "data": touched(doc["data"], rng)} if rng.random() < 0.7 else touched(doc, rng))
    accepted = code(other, known) == 0
    assert accepted == holds_for_optsched(other, instance), (other, known)
    assert not accepted or Fraction(other["value"]) <= Fraction(doc["value"]), (other, known)


@pytest.mark.parametrize("family", FAMILIES)
def test_bounds_of_small_instances_are_accepted_and_below_the_optimum(family: str) -> None:
    seen = check_bounds(family, seed=1, count=100)
    assert CLASSES[family] in seen


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "tasks"])
def test_many_bounds_are_so_tight_that_a_thousandth_more_is_found_out(family: str) -> None:
    rng, found = np.random.default_rng(11), Counter[bool]()
    some = (drawn(family, rng) for _ in few(range(12), 6))
    for instance in (instance for instance in some if instance.n <= 4):
        optima = Optima(instance)
        for each in certificates(rng, instance, ("total_flow_time", "makespan")):
            if each.schedule_class != "gang-nonpreemptive":
                found[optima.reaches(each.value * Fraction(1001, 1000), each.objective, each.schedule_class)] += 1
    assert found[False] >= 5


@pytest.mark.study
@pytest.mark.parametrize("seed", range(2, 6))
@pytest.mark.parametrize("family", FAMILIES)
def test_ten_thousand_bounds(family: str, seed: int) -> None:
    assert check_bounds(family, seed, 420).total() >= 420


# --- other instances ------------------------------------------------------------------------------------------------------


def halved(instance: Instance) -> Instance:
    """The same jobs with half as much to do."""
    if instance.tasks:
        halves = [(name, each, each.forward / 2, each.backward / 2) for name, each in instance.tasks.items()]
        return instance.replace(tasks={name: replace(x, forward=f, backward=b) for name, x, f, b in halves})
    jobs = []
    for job in instance.jobs:
        name = "iterations" if job.duration is None else "duration"
        jobs.append(replace(job, **{name: getattr(job, name) / 2}))
    return instance.replace(jobs=jobs)


@pytest.mark.parametrize("family", FAMILIES)
def test_another_instance_and_an_easier_one_under_a_forged_digest(family: str) -> None:
    rng, refused = np.random.default_rng(3), 0
    for _ in range(2):
        instance = drawn(family, rng)
        easier, rng_of_both = halved(instance), np.random.default_rng(4)
        optima, known = Optima(easier), written(easier.to_json())
        for local in certificates(rng_of_both, instance, ("total_weighted_flow_time", "makespan")):
            doc = written(local.on_clock(instance).to_json())
            assert code(doc, known) == 1
            forged = {**doc, "instance": easier.digest}
            verdict = code(forged, known)
            refused += verdict
            assert (verdict == 0) == holds_for_optsched(forged, easier)
            assert verdict != 0 or optima.reaches(local.value, local.objective, local.schedule_class)
    assert refused >= 10


def staged() -> tuple[Document, Document]:
    """A certificate and its instance: two stages on three nodes."""
    profile = Profile.of_stages([Stage(2, 0.5, 1.0, 7.0, 3.0), Stage(1, 1.0, 0.25)])
    jobs = [Job(f"j{k}", k, 3, iterations=4, profile="p") for k in range(3)]
    cluster = Cluster((NodeGroup(2, 3, "V100", None, 4.0, 8.0),))
    instance = Instance(jobs, cluster, profiles={"p": profile})
    certificate = BOUNDS.get("srpt").build(instance, "total_flow_time", "gang")
    return written(certificate.to_json()), written(instance.to_json())


@pytest.mark.parametrize(
    "touch",
    [
        put("profiles", "p", "edges", to=[[0, 1], [1, 0]]),
        put("profiles", "p", "edges", to=[[0, 7]]),
        put("profiles", "p", "edges", to=[[0, 1, -3]]),
        put("profiles", "p", "stages", to=[]),
        put("profiles", "p", "stages", 0, "replicas", to=2.0),
        put("profiles", "p", "stages", 0, "forward", to="1"),
        put("profiles", "p", "stages", 0, "replicas", to=3),
        put("profiles", "p", "stages", to=[{"replicas": 1, "forward": 1, "backward": 1}] * 1000),
        put("profiles", to=[]),
        put("profiles", to={"p": None}),
        put("cluster", "nodes", 0, "intra_bandwidth", to=None),
        put("cluster", "nodes", 0, "nic_bandwidth", to=1000.0),
        put("jobs", 1, "id", to="j0"),
        put("jobs", 1, "id", to=["j0"]),
        put("jobs", 1, "profile", to="q"),
        put("jobs", 1, "gpu_types", to=7),
        put("throughputs", to={"p": [{"gpu": 3, "gpus": 1, "together": 1}]}),
        put("throughputs", to=7),
        put("interference", to={"ratio": "2"}),
        put("interference", to={"kinds": ["a"], "ratios": []}),
        put("contention", to={"seconds_per_byte": -1}),
        put("tasks", to={"p": {}}),
        put("scalings", to={"p": {}}),
        put("scalings", to={"p": {"compute": 1, "per_sample": 1, "measured": {}}}),
        put("scalings", to=7),
    ],
)
def test_an_instance_that_is_not_legal_or_not_known_is_refused_in_one_line(touch: Change) -> None:
    doc, instance = staged()
    assert code(doc, instance) == 0
    with pytest.raises(Refused) as refused:
        verify(doc, written(touch(instance)))
    assert "\n" not in str(refused.value)


def test_nesting_as_deep_as_the_stack_is_refused() -> None:
    """What JSON just reads was too deep to be shown: a traceback."""
    instance = drawn("staged", np.random.default_rng(5))
    certificate = next(certificates(np.random.default_rng(5), instance, ("makespan",))).on_clock(instance)
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(Refused) as refused:
        verify(certificate.to_json(), {**instance.to_json(), "jobs": {"x": deep}})
    assert refused.value.rule == UNJUDGED
