"""Runs of requests: golden values, the referee's second opinion, both forms of the loop, and the Azure trace."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optsched as osd
from kv_cache.every_start import random_requests
from optsched.classes.kv_cache.problem.request_schedule import request_schedule
from optsched.classes.kv_cache.problem.requests import request_instance
from optsched.classes.kv_cache.simulation import request_run, rounds
from optsched.compiled.function import without_interpreting
from optsched.io.traces.generate import generate
from optsched.policies.simulate import policies_of
from optsched.problem.schedule import Schedule

PLAIN = ("mc-sf:skip=true", "mc-sf:predictor=noisy", "mc-sf:predictor=global-mean,skip=true", "a-min:share=0.1")
POLICIES = (*policies_of("kv-cache"), *PLAIN)
TEN = request_instance([1] * 10, [12, 8, 9, 10, 11, 1, 8, 3, 7, 14], 16)


def test_golden_values() -> None:
    """MC-SF has 203 where the optimum is 196; four requests have the optimum 22."""
    assert osd.simulate(TEN, "mc-sf").value() == 203
    four = request_instance([2, 1, 3, 1], [4, 7, 2, 5], 12, arrival=[0, 1, 2, 3])
    best = request_schedule(four, [0, 4, 2, 4])
    assert osd.check_schedule(four, best, value=22.0) == []
    assert osd.simulate(four, "mc-sf").value() == 23


@pytest.mark.parametrize("affine", [False, True])
def test_the_referee_accepts_every_run(affine: bool) -> None:
    """It reads the executions again, round by round."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        n, cells = int(rng.integers(1, 12)), int(rng.integers(8, 40))
        prompt = rng.integers(0, 7, n)
        output = np.array([rng.integers(1, cells - s + 1) for s in prompt])
        arrival = rng.integers(0, 30, n) * (0.13 if affine else 1)
        instance = request_instance(prompt, output, cells, arrival=arrival, affine=affine)
        for policy in POLICIES:
            run = osd.simulate(instance, policy)
            broken = [v.rule for v in osd.check_schedule(instance, run) if not run.unfinished]
            assert (policy, broken) == (policy, [])
            assert not run.unfinished


def test_a_request_that_is_thrown_out_starts_anew() -> None:
    """Two answers that do not fit together: the newest is thrown out, and its tokens do not count."""
    instance = request_instance([1, 1], [8, 8], 12)
    run = osd.simulate(instance, "vllm-fcfs")
    assert run.preemptions == 2
    assert run.schedule.work.tolist() == [0, 0, 8, 8]
    assert run.metrics["mean_ttft"] == (1 + run.schedule.start.max() + 1) / 2
    both = osd.simulate(instance, "alpha-greedy:alpha=0")  # they overflow until one is admitted alone
    assert (len(both.unfinished), both.preemptions % 2) == (0, 0)


def test_affine_rounds_take_what_was_measured() -> None:
    """Two requests: 44.6 ms a round, .52 a request, .0027 a cell, .378 a token of a new prompt."""
    instance = request_instance([10, 20], [1, 2], 100, affine=True)
    ends = osd.simulate(instance, "mc-sf").schedule.completion
    first = 44.6 + 2 * 0.52 + 0.0027 * (11 + 21) + 0.378 * 30
    assert ends.tolist() == pytest.approx([first / 1e3, (first + 44.6 + 0.52 + 0.0027 * 22) / 1e3], abs=1e-9)


def executions(run: Any) -> list[list[float]]:
    schedule: Schedule = run.schedule
    return [x.tolist() for x in (schedule.job, schedule.start, schedule.end, schedule.work)]


@pytest.mark.compiled
def test_both_forms_of_the_loop_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled or as the Python that it is: the same executions, bit for bit."""
    instances = [random_requests(seed, 8) for seed in range(3)] + [generate("kv-paper", 1, online=True)]
    instances.append(generate("kv-lognormal", 2, jobs=60, cells=2000, affine=True, rate=40))
    with without_interpreting():
        compiled = [executions(osd.simulate(instance, policy)) for instance in instances for policy in POLICIES]
    for name in [name for name, thing in vars(rounds).items() if hasattr(thing, "py_func")]:
        monkeypatch.setattr(rounds, name, getattr(rounds, name).py_func)
    monkeypatch.setattr(request_run, "slice_of", lambda *_: 50)
    monkeypatch.setattr(request_run, "worked", lambda *_: None)
    plain = [executions(osd.simulate(instance, policy)) for instance in instances for policy in POLICIES]
    assert plain == compiled


def azure() -> str:
    folder = Path(os.environ.get("OPTSCHED_DATA", "none"), "azure-llm")
    if not folder.is_dir():
        pytest.skip("OPTSCHED_DATA names no folder with azure-llm")
    return f"azure-llm:{folder}/AzureLLMInferenceTrace_conv.csv"


# First request, number, cells: the bound by mean busy times; values of mc-sf and least-volume, ratios of all.
BATCHES = [
    (0, 1000, 16_492, 4_734_288, {"mc-fcfs": 1.995, "mc-sf": 1.263, "least-volume": 1.103, "mc-sf:skip=true": 1.197}),
    (0, 1000, 65_536, 1_278_312, {"mc-fcfs": 1.809, "mc-sf": 1.144, "least-volume": 1.045}),
    (2000, 1000, 16_492, None, {"mc-sf": 1.223, "least-volume": 1.084}),
    (2000, 1000, 65_536, None, {"mc-sf": 1.127, "least-volume": 1.055}),
    (5000, 1000, 16_492, None, {"mc-sf": 1.313, "least-volume": 1.098}),
    (5000, 1000, 65_536, None, {"mc-sf": 1.180, "least-volume": 1.041}),
    (9000, 1000, 16_492, None, {"mc-sf": 1.741, "least-volume": 1.080}),
    (9000, 1000, 65_536, None, {"mc-sf": 1.576, "least-volume": 1.028}),
    (0, 4000, 16_492, 89_320_538, {"mc-fcfs": 1.879, "mc-sf": 1.243, "least-volume": 1.105}),  # 1.10546
]


def mean_busy_time(instance: osd.Instance) -> float:
    from optsched.bounds.best_bound import BOUNDS

    certificate = BOUNDS.get("kv-mean-busy-time").build(instance, "total_flow_time", "kv-cache")
    assert certificate is not None
    certificate.verify(instance)
    return certificate.exact_float


@pytest.mark.release
def test_batches_of_the_azure_trace() -> None:
    """The table of measured ratios, to the digit."""
    source = azure()
    for first, count, cells, bound, ratios in BATCHES:
        text = f"{source}#first={first},cells={cells},at-once=true"
        instance = osd.load(text, limit=count)
        low = mean_busy_time(instance)
        assert bound is None or abs(low - bound) <= 0.5
        for policy, ratio in ratios.items():
            assert (policy, round(osd.simulate(instance, policy).value() / low - ratio, 3)) == (policy, 0)
    first = osd.load(f"{source}#at-once=true", limit=1000)
    assert [osd.simulate(first, name).value() for name in ("mc-sf", "least-volume")] == [5_978_181, 5_223_398]


@pytest.mark.release
@pytest.mark.parametrize(("length", "ratios"), [(0.2, (1.729, 1.148, 1.093)), (0.05, (2.089, 1.374, 1.322))])
def test_the_azure_trace_online(length: float, ratios: tuple[float, ...]) -> None:
    """2,000 requests as they arrived, in rounds of two lengths."""
    instance = osd.load(f"{azure()}#cells=65536,round={length}", limit=2000)
    low = mean_busy_time(instance)
    assert abs(low - {0.2: 4_426_490, 0.05: 1_090_534}[length]) <= 0.5
    found = [osd.simulate(instance, name).value() / low for name in ("mc-fcfs", "mc-sf", "least-volume")]
    assert [round(x - y, 3) for x, y in zip(found, ratios, strict=True)] == [0, 0, 0]


@pytest.mark.study
@pytest.mark.compiled
def test_the_whole_trace_online() -> None:
    """Every policy serves 19,366 requests in 20 CPU seconds."""
    instance = osd.load(f"{azure()}#round=0.2,most=16492")
    assert instance.n == 19_366
    with without_interpreting():
        for policy in ("mc-sf", *policies_of("kv-cache"), "mc-sf:skip=true"):  # the first one is compiled
            begun = time.process_time()
            run = osd.simulate(instance, policy)
            print(
                policy, run.value(), f"{time.process_time() - begun:.2f} s", f"{run.events / run.seconds:.0f} events/s"
            )
            assert run.seconds < 20
