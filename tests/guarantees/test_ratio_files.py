"""Ratios over the seeds of a recipe, their percentiles, and the instances that are kept to be run again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from optsched.errors import InputError
from optsched.guarantees.evaluate import MeasuredRatio, PolicyRatios, ratios
from optsched.guarantees.optimum_bounds import BoundShown
from optsched.guarantees.suites import drawn
from optsched.io.sources import load
from optsched.io.traces.generate import generate


def test_a_suite_is_drawn_from_a_recipe() -> None:
    suite = drawn("rigid", 3, jobs=4)
    assert [instance.digest for _, instance in suite.instances()] == [
        generate("rigid", seed, jobs=4).digest for seed in (1, 2, 3)
    ]
    with pytest.raises(InputError, match="seeds = 0"):
        drawn("rigid", 0)
    with pytest.raises(InputError, match="jobs"):
        drawn("rigid", 1, jobs=-1)


def test_percentiles_are_ratios_that_were_measured() -> None:
    def measured(value: float) -> MeasuredRatio:
        return MeasuredRatio("i", "makespan", "p", value, BoundShown(1.0, "volume", "gang", exact=True))

    row = PolicyRatios("p", tuple(measured(value) for value in (4.0, 1.0, 3.0, 2.0)))
    assert [row.percentile(share) for share in (0, 25, 50, 51, 75, 90, 100)] == [1, 1, 2, 3, 3, 4, 4]
    assert PolicyRatios("p", ()).percentile(50) is None


def test_the_worst_instance_of_every_policy_is_kept(
    command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = command(
        "ratio", "rigid", "--set", "jobs=5", "--seeds", "6", "-p", "fifo", "-p", "srtf", "-o", "kept", "--json"
    )
    rows = done.json["policies"]
    assert json.loads(Path("kept/ratios.json").read_text()) == done.json
    for row in rows:
        kept = Path(f"kept/worst-{row['policy']}.json")
        assert f"again: optsched ratio {kept} -p {row['policy']}" in done.err
        assert row["percentiles"]["p50"] <= row["percentiles"]["p90"] <= row["percentiles"]["p99"] == row["worst"]
        (again,) = ratios(str(kept), row["policy"]).policies
        assert again.worst == row["worst"]
        assert load(str(kept)).digest == generate("rigid", int(row["worst_instance"][-1]), jobs=5).digest


def test_settings_need_seeds(command: Any) -> None:
    done = command("ratio", "rigid", "--set", "jobs=5", "-p", "fifo").mistake
    assert "--set: goes with a recipe and --seeds N" in done
