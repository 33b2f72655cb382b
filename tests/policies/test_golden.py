"""The numbers that other public simulators print on the Philly virtual cluster 6c71a0 (8 nodes x 8 GPUs), to the digit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from optsched.io.sources import load
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance
from optsched.simulation.policy import Knowledge, KnownJobs, Order


@dataclass
class Rule:
    """A queue order of another tool that is none of ours."""

    made: Callable[[KnownJobs], Order]
    name: str = "rule"
    knowledge: Knowledge = Knowledge.CLAIRVOYANT

    def order(self, jobs: KnownJobs) -> Order:
        return self.made(jobs)


@pytest.fixture(scope="module")
def philly(data_dir: Path) -> Callable[[int], Instance]:
    return lambda n: load(f"tiresias:{data_dir / 'philly' / f'philly_6c71a0_n{n}.csv'}", cluster="8x8")


def narrowest(jobs: KnownJobs) -> Order:
    """What Tiresias calls sjf: "smallest job first" is by GPUs, and it preempts."""
    return Order(key=jobs.gpus.astype(np.float64), preemptive=True)


def strict_sjf(jobs: KnownJobs) -> Order:
    """Skyburst's sjf: by duration, and the head of the queue blocks."""
    return Order(key=jobs.duration, skip=False)


@pytest.mark.parametrize(
    ("n", "policy", "mean_jct", "makespan"),
    [
        (100, "fifo+consolidated", "66476.62", None),  # Tiresias fifo (yarn), skyburst fifo
        (100, "fifo:skip=true+consolidated", "66476.62", None),
        (500, "fifo+consolidated", "342656.78", 2425789),
        (500, "fifo:skip=true+consolidated", "272973.69", 2333633),  # Tiresias fjf (yarn), skyburst fifo with loop
        (500, "srtf-gpu", "117179.78", None),  # Tiresias shortest-gpu (count)
    ],
)
def test_our_policies_print_their_numbers(
    philly: Callable[[int], Instance], n: int, policy: str, mean_jct: str, makespan: float | None
) -> None:
    run = simulate(philly(n), policy)
    assert f"{run.metrics['mean_jct']:.2f}" == mean_jct
    assert makespan is None or run.metrics["makespan"] == makespan
    assert run.unfinished == []


@pytest.mark.parametrize(
    ("rule", "placement", "mean_jct"),
    [(narrowest, "count", "143795.68"), (strict_sjf, "consolidated", "153386.52")],
    ids=["tiresias-sjf", "skyburst-sjf"],
)
def test_rules_of_other_tools_written_as_an_order_print_their_numbers(
    philly: Callable[[int], Instance], rule: Callable[[KnownJobs], Order], placement: str, mean_jct: str
) -> None:
    assert f"{simulate(philly(500), Rule(rule), placement).metrics['mean_jct']:.2f}" == mean_jct
