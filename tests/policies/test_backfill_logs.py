"""Backfilling on whole archive logs: the golden values, and two properties at every instant."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import optsched
from optsched.compiled import without_interpreting
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance
from optsched.simulation.promised_starts import promised_starts

from .backfill_reference import delayed_heads, starts_of

# total flow time, mean wait, mean and 95th percentile of the bounded slowdown (threshold 10 s)
KTH = {
    "fifo": (10_334_679_527, 354_002.316, 6_818.585, 44_964.5),
    "easy": (448_506_807, 6_887.653, 92.788, 436.2),
    "easy:walltime=exact": (431_913_659, 6_305.049, 70.635, 341.2),
    "easy-sjbf": (421_281_702, 5_931.749, 67.957, 233.8),
    "easy-sjbf:walltime=exact": (406_123_465, 5_399.526, 48.709, 172.8),
    "fifo:skip=true": (415_243_928, 5_719.756, 71.151, 186.7),
    "conservative": (461_570_023, 7_346.317, 88.864, 382.3),
    "conservative:walltime=exact": (453_490_867, 7_062.649, 67.282, 320.0),
}
LUBLIN = {  # total flow time, mean bounded slowdown; the log has no limits
    "fifo": (23_933_065_268, None),
    "easy:walltime=exact": (1_020_187_612, 590.054),
    "easy-sjbf:walltime=exact": (782_571_422, 219.558),
    "fifo:skip=true": (686_354_070, 764.413),
    "conservative:walltime=exact": (1_364_302_756, 489.201),
}

pytestmark = pytest.mark.compiled


@cache
def log(folder: Path, name: str, m: int) -> Instance:
    return optsched.load(f"swf:{folder / 'swf' / name}", cluster=f"1x{m}", skip_bad=True, walltimes="cut")


@pytest.mark.parametrize("spec", KTH)
def test_kth_sp2(data_dir: Path, spec: str) -> None:
    instance = log(data_dir, "KTH-SP2.swf", 100)
    assert instance.n == 28_481
    with without_interpreting():
        run = simulate(instance, spec)
    length = instance.duration
    wait = run.schedule.completion - length - instance.arrival
    slow = np.maximum(1, (wait + length) / np.maximum(length, 10))
    flow = round(float((wait + length).sum()))
    assert (flow, round(wait.mean(), 3), round(slow.mean(), 3), round(np.percentile(slow, 95), 1)) == KTH[spec]
    kept = promised_starts(run)
    if kept is not None:
        assert kept.share_kept == 1
        assert (kept.late_at(0.0) == 0) == spec.endswith("exact")


@pytest.mark.parametrize("spec", LUBLIN)
def test_lublin_256(data_dir: Path, spec: str) -> None:
    instance = log(data_dir, "lublin_256.swf", 256)
    flow, slowdown = LUBLIN[spec]
    with without_interpreting():
        run = simulate(instance, spec)
    stay = run.schedule.completion - instance.arrival
    assert round(float(stay.sum())) == flow
    if slowdown is not None:
        assert round(float(np.maximum(1, stay / np.maximum(instance.duration, 10)).mean()), 3) == slowdown


def test_no_backfilled_job_delays_the_head(data_dir: Path) -> None:
    instance = log(data_dir, "KTH-SP2.swf", 100)
    with without_interpreting():
        run = simulate(instance, "easy")
    columns = (instance.arrival, instance.duration, instance.walltime, instance.gpus)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    assert (np.diff(instance.arrival) >= 0).all()
    assert delayed_heads(rows, starts_of(run), 100) == (0, 15_175)
