"""A-SRPT compiled against its plain form: the same schedules, questions and notes, bit for bit."""

from __future__ import annotations

import random
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
import pytest

from optsched.compiled import Function
from optsched.errors import SimulationError
from optsched.io.traces.generate import generate
from optsched.policies import POLICIES, a_srpt_rule
from optsched.policies.a_srpt import BACKFILL, VIRTUAL_ALPHA, ASrpt
from optsched.policies.placements import PLACEMENTS, heavy_edge
from optsched.policies.predictors.perfect import Perfect
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance
from optsched.simulation.policy import Decision, KnownJobs, View
from optsched.simulation.run import Run


def _called(function: Function) -> set[Function]:
    """The function and those that it calls by their names in its module, in another, or around it, directly or not."""
    seen, todo = {function}, [function]
    while todo:
        plain = todo.pop().py_func
        code = plain.__code__
        around = zip(code.co_freevars, (c.cell_contents for c in plain.__closure__ or ()), strict=True)
        known = plain.__globals__ | dict(around)
        names = code.co_names + code.co_freevars
        modules = [known[name] for name in names if isinstance(known.get(name), ModuleType)]
        for callee in [known.get(name) for name in names] + [getattr(m, name, None) for m in modules for name in names]:
            if isinstance(callee, Function) and callee not in seen:
                seen.add(callee)
                todo.append(callee)
    return seen


class Plain(ASrpt):
    """A policy of its own: nobody knows that its decisions are those of the compiled form."""


def said(run: Run) -> str:
    """Everything that a run says, as text that tells floats apart."""
    segments = [(s.start, s.job, s.end, s.work, s.gpus) for s in run.schedule.segments()]
    assert run.predicted is not None
    notes = {name: each.tolist() for name, each in run.notes.items()}
    return repr((segments, run.events, run.preemptions, run.predicted.tolist(), notes, run.noted_times))


def whole_numbers(rng: random.Random, seed: int, jobs: int) -> Instance:
    """Many ties, gangs that do not divide the nodes, overload."""
    draw = np.random.default_rng(seed)
    table = {
        "arrival": np.floor(draw.random(jobs) * jobs * rng.choice([0, 3, 10])),
        "gpus": draw.integers(1, 7, jobs),
        "duration": draw.integers(1, 30, jobs).astype(float),
    }
    return Instance(pl.DataFrame(table), "3x2")


def instances(rng: random.Random, count: int) -> Iterator[Instance]:
    """Durations, stage graphs, types of GPUs; crowded and not."""
    for seed in range(count):
        jobs, gpus = rng.choice([3, 8, 30]), rng.choice([2, 4])
        yield whole_numbers(rng, seed, jobs)
        yield generate("a-srpt-small", seed, jobs=jobs, gpus=gpus, latest=rng.choice([0, 8, 20]))
        yield generate("ddl-small", seed, jobs=jobs, nodes=2, gpus=gpus, heavy=0.8, span=0.3)
        yield generate("hetero-small", seed, jobs=jobs)


def parameters(rng: random.Random) -> dict[str, Any]:
    return {
        "virtual_alpha": rng.choice(VIRTUAL_ALPHA),
        "beta": rng.choice([0.25, 0.5, 1.0]),
        "tau": rng.choice([0.0, 0.5, 2.0]),
        "heavy_threshold": rng.choice([1.0, 1.5]),
        "eps": rng.choice([0.0, 0.05]),
        "backfill": rng.choice(["shadow", *BACKFILL]),
        "predictor": rng.choice(["perfect", "noisy/error=3/seed=2"]),
    }


def test_the_compiled_form_decides_as_the_plain_one() -> None:
    rng, placements, waited = random.Random(1), PLACEMENTS.names(), 0
    for instance in instances(rng, 25):
        chosen, place = parameters(rng), rng.choice(placements)
        runs = [simulate(instance, policy(**chosen), place) for policy in (ASrpt, Plain)]
        assert said(runs[0]) == said(runs[1]), (instance.name, chosen, place)
        waited += bool((runs[0].schedule.start > runs[0].instance.arrival[runs[0].schedule.job]).any())
    assert waited > 50


@pytest.mark.parametrize("load", [0.9, 1.3])
@pytest.mark.parametrize("backfill", BACKFILL)
def test_a_long_queue(backfill: str, load: float) -> None:
    instance = generate("poisson", 3, jobs=400, cluster="4x4", gpus="weights:1=4,2=2,4=1,16=0.2", load=load)
    runs = [simulate(instance, policy(backfill=backfill), "count") for policy in (ASrpt, Plain)]
    assert said(runs[0]) == said(runs[1])


def test_late_starts_where_a_free_gang_has_no_place() -> None:
    # consolidated placements let jobs start later than they are reserved: then more is promised than there is
    rng = random.Random(5)
    for seed in range(30):
        instance = whole_numbers(rng, seed, 40)
        runs = [simulate(instance, policy(backfill="shadow", beta=0.5), "consolidated") for policy in (ASrpt, Plain)]
        assert said(runs[0]) == said(runs[1]), seed


def never(self: ASrpt, view: View) -> Iterator[Decision]:
    """A-SRPT in plain Python, where it is not to be asked."""
    raise AssertionError


def test_where_jobs_contend_for_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, slowed = random.Random(6), 0
    for seed in range(12):
        instance, chosen = generate("all-four", seed, jobs=30), parameters(rng)
        place = ("count", "first-fit", "random", "heavy-edge")[seed % 4]
        plain = simulate(instance, Plain(**chosen), place)
        with monkeypatch.context() as patched:
            patched.setattr(ASrpt, "decide", never)
            compiled = simulate(instance, ASrpt(**chosen), place)
        assert said(compiled) == said(plain), (seed, chosen, place)
        quiet = simulate(instance.replace(contention=None), ASrpt(**chosen), place)
        slowed += quiet.value("total_completion_time") != compiled.value("total_completion_time")
    assert slowed >= 6


@pytest.mark.parametrize(("predictor", "asked"), [("perfect", 0), ("global-mean", 1)])
def test_a_predictor_that_learns_is_asked_in_the_run(
    predictor: str, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = 0

    def decide(self: ASrpt, view: View) -> Iterator[Decision]:
        nonlocal questions
        questions += 1
        return plain(self, view)

    plain = ASrpt.decide
    monkeypatch.setattr(ASrpt, "decide", decide)
    run = simulate(generate("ddl-small", 1, jobs=8), f"a-srpt:predictor={predictor}")
    assert run.unfinished == []
    assert (questions > 0) == asked


def test_a_wrong_prediction_is_an_error_in_both_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Perfect, "predict", lambda self, job, now: float("nan") if job == 2 else 1.0)
    instance = generate("a-srpt-small", 1, jobs=4)
    found = []
    for policy in (ASrpt, Plain):
        with pytest.raises(SimulationError, match="is predicted to have the length nan") as error:
            simulate(instance, policy())
        found.append(str(error.value))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["spjf", "spwf", "wcs-duration", "wcs-subtime", "wcs-workload"])
def test_a_predicted_queue_in_compiled_order(name: str) -> None:
    policy = POLICIES.get(name)
    plain = type("Plain", (policy,), {"accelerator": lambda self, jobs: None})
    rng = random.Random(name)
    for instance in instances(rng, 12):
        given, place = {"predictor": rng.choice(["perfect", "noisy/error=3"])}, rng.choice(PLACEMENTS.names())
        runs = [simulate(instance, each(**given), place) for each in (policy, plain)]
        assert said(runs[0]) == said(runs[1]), (instance.name, given, place)
        known = KnownJobs(instance, "predicted")
        known.predicted = runs[0].predicted
        order = policy().accelerator(known)
        assert order is not None
        assert np.isfinite(order.key).all()


def test_a_first_run_compiles_only_what_it_may_need() -> None:
    """What reaches what: the strict queue no backfilling, its placement neither chance nor enumeration."""

    def modules(function: Any) -> set[str]:
        assert isinstance(function, Function)
        return {each.py_func.__module__.rsplit(".", 1)[1] for each in _called(function)}

    for compiled, more in ((a_srpt_rule._STRICT, False), (a_srpt_rule._BACKFILLING, True)):
        for _, decide in compiled.values():
            reached = modules(decide)
            assert "compiled_virtual_machine" in reached
            assert ({"usage_profile", "compiled_shadow_queue"} <= reached) is more
    for variant, more in (("auto", set()), ("exact", {"exact_mapping"}), ("random", {"random_mapping"})):
        special = modules(heavy_edge.heavy_edge(variant).place) & {"exact_mapping", "random_mapping"}
        assert special == more
