"""No theorem is violated because a clock rounds: two sharers on late clocks, in memory and read from files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from optsched.guarantees.judge import judgements
from optsched.guarantees.optimum_bounds import OptimumBounds
from optsched.policies.simulate import simulate, specify
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference
from optsched.problem.schedule import Schedule
from optsched.simulation.run import SharedRun

POLICIES = ("sjf-bsbf", "sjf-ffs", "sjf", "fifo")
CLOCKS = (1.6e9, 1.6e12)


def pair(seed: int, clock: float) -> Instance:
    """Two jobs of a few seconds with decimals on one GPU that they may share."""
    rng = np.random.default_rng([seed, 13])
    first, second = (round(float(x), 2) for x in rng.uniform(0.1, 9, 2))
    gap = float(rng.integers(0, 4)) if rng.random() < 0.8 else 0.5
    jobs = [Job("a", arrival=clock, duration=first), Job("b", arrival=clock + gap, duration=second)]
    xi = round(float(rng.uniform(1, 4)), 2)
    return Instance(jobs, "1x1", objective="total_flow_time", interference=Interference(xi))


def verdicts(instance: Instance, spec: str, folder: Path | None) -> list[tuple[str, float, bool | None]]:
    """What the theorems say of the run; with a folder, of the instance and the schedule as files hold them."""
    chosen = specify(spec)
    made = simulate(instance, chosen)
    if folder is not None:
        instance.save(folder / "i.json")
        made.schedule.save(folder / "s.json")
        read = Instance.load(folder / "i.json")
        kept = Schedule.load(folder / "s.json", read)
        kind = type(made)
        assert issubclass(kind, SharedRun) or made.schedule_class.startswith("gang")
        made = kind(kept, made.policy, made.knowledge, made.preemptive, made.events, made.preemptions, made.seconds)
        instance = read
    return [(each.id, each.ratio, each.holds) for each in judgements(chosen, made, OptimumBounds(instance, [made]))]


def assert_kept(seeds: range, clock: float, folder: Path | None) -> int:
    judged = 0
    for seed in seeds:
        for spec in POLICIES:
            early = verdicts(pair(seed, 0.0), spec, None)
            late = verdicts(pair(seed, clock), spec, folder)
            if folder is None:
                assert late == early
            assert all(holds is not False for _, _, holds in late), (seed, spec, late)
            judged += len(late)
    return judged


@pytest.mark.parametrize("clock", CLOCKS)
def test_two_sharers_on_a_late_clock(clock: float) -> None:
    assert assert_kept(range(2), clock, None) >= 6


def test_two_sharers_read_from_files(tmp_path: Path) -> None:
    assert assert_kept(range(1), CLOCKS[0], tmp_path) >= 3


@pytest.mark.study
@pytest.mark.parametrize("clock", CLOCKS)
def test_fifteen_hundred_pairs(clock: float, tmp_path: Path) -> None:
    assert_kept(range(1500), clock, None)
    assert_kept(range(200), clock, tmp_path)
