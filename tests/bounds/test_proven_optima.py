"""Bounds on instances whose optima others have proved; how close they come is pinned against getting worse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from examples import few

from optsched.bounds import BOUNDS, bound
from optsched.io.sources import load


def test_rigid_and_single_machine_instances(data_dir: Path) -> None:
    source = data_dir / "classic" / "rigid_and_single_optima.json"
    closeness: dict[str, list[float]] = {}
    for entry in json.loads(source.read_text()):
        instance = load(f"classic:{source}#{entry['id']}")
        certificate = bound(instance)
        certificate.verify(instance)
        assert certificate.value <= entry["optimum"]
        closeness.setdefault(entry["id"][0], []).append(float(certificate.value / entry["optimum"]))
    worst = {letter: min(values) for letter, values in closeness.items()}
    # A 1|r|sum C, B and L 1|r|sum wC, C rigid on 8 GPUs, D P3|r|sum wC
    for letter, least in {"A": 0.98, "B": 0.96, "L": 0.96, "C": 0.86, "D": 0.92}.items():
        assert worst[letter] >= least


def test_weighted_tardiness_of_the_or_library(data_dir: Path) -> None:
    optima = [int(x) for x in (data_dir / "classic" / "wt40_first25_optima.txt").read_text().split()]
    closeness = {}
    for number, optimum in few(list(enumerate(optima, start=1)), 9):
        instance = load(f"orlib-wt:{data_dir / 'classic' / 'wt40_first25.txt'}#{number}")
        certificate = bound(instance)
        certificate.verify(instance)
        assert certificate.value <= optimum
        closeness[number] = float(certificate.value / optimum)
    # most are late in 16-25, where mixtures of busy times are close; 1-15 have loose due dates
    assert min(closeness[number] for number in closeness if number > 20) >= 0.99
    assert min(closeness[number] for number in closeness if 15 < number <= 20) >= 0.9
    assert min(closeness.values()) >= 0.3


@pytest.mark.parametrize("objective", ["total_flow_time", "total_completion_time", "makespan"])
def test_the_philly_trace(data_dir: Path, objective: str) -> None:
    instance = load(f"philly:{data_dir / 'philly' / 'philly.csv'}", cluster="16x8", limit=4_000)
    for name in BOUNDS.names():
        known = BOUNDS.get(name)
        if objective in known.objectives and "gang" in known.classes and not known.strong:
            certificate = BOUNDS.get(name).build(instance, objective, "gang")
            if certificate is None:
                # prices say nothing where all GPUs are alike, and are not looked for over time for so many jobs
                assert name.startswith("typed") or name == "priced-time"
                continue
            certificate.verify(instance)
            assert certificate.value > 0
