"""Row counts and figures of the public traces, as their README states them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from optsched.errors import RowErrors
from optsched.io.traces.dialect import DIALECTS, TraceRead
from optsched.io.traces.laws import ADADUAL_GPUS, PHILLY_GPUS
from optsched.io.traces.recipes.open_cluster import GAPS, LEVELS, QUANTILES
from optsched.problem.cluster import Cluster

LARGE = Cluster.parse("64x8")
TRACES = [
    ("philly", "philly/philly.csv", 82247),
    ("tiresias", "philly/philly_6c71a0_n100.csv", 100),
    ("tiresias", "philly/philly_6c71a0_n500.csv", 500),
    ("tiresias", "tiresias/60_job.csv", 60),
    ("gavel", "gavel/103959.trace", 986),
    ("gavel", "gavel/max_min_fairness.trace", 96),
    ("gavel", "gavel/gen_n100_l300_seed0_m.trace", 100),
    ("gavel", "gavel/gen_n500_static_seed0_m.trace", 500),
    ("gavel", "gavel/small_test.trace", 20),
    ("gavel", "gavel/medium_test.trace", 20),
    ("gavel", "shockwave/shockwave_120.trace", 120),
    *(("pollux", f"pollux/workloads__workload-{k}.csv", 160) for k in (1, 2, 3, 4)),
    ("muri", "muri/cluster_trace.csv", 400),
    ("muri", "muri/trace1.csv", 1494),
]


@pytest.mark.parametrize(("dialect", "path", "jobs"), TRACES)
def test_row_counts(data_dir: Path, dialect: str, path: str, jobs: int) -> None:
    found = DIALECTS.get(dialect).read(data_dir / path, cluster=LARGE)
    assert (found.table.height, found.skipped_rows) == (jobs, 0)
    assert found.instance().n == jobs


@pytest.fixture(scope="module")
def philly(data_dir: Path) -> TraceRead:
    return DIALECTS.get("philly").read(data_dir / "philly/philly.csv", cluster=LARGE)


def test_philly_in_total(philly: TraceRead) -> None:
    instance = philly.instance()
    assert (instance.arrival.min(), instance.arrival.max()) == (0.0, 9408690.0)  # 109 days
    assert instance.duration @ instance.gpus == 3521082502.0
    assert round(3521082502.0 / 9408690.0) == 374  # GPUs busy on average
    assert instance.table["group"].n_unique() == 15


def test_philly_s_tenant_6c71a0_gives_the_derived_file(data_dir: Path, philly: TraceRead) -> None:
    # The recipe of the README: 1..32 GPUs, at least 60 s, by (timestamp, -duration), truncated durations.
    derived = DIALECTS.get("tiresias").read(data_dir / "philly/philly_6c71a0_n500.csv", cluster=LARGE).table
    tenant = philly.table.filter(
        (pl.col("group") == "6c71a0") & pl.col("gpus").is_between(1, 32) & (pl.col("duration") >= 60)
    )
    tenant = tenant.sort(["arrival", "duration"], descending=[False, True], maintain_order=True).head(500)
    assert (tenant["arrival"] - tenant["arrival"][0]).to_list() == derived["arrival"].to_list()
    assert tenant["duration"].floor().to_list() == derived["duration"].to_list()
    assert tenant["gpus"].to_list() == derived["gpus"].to_list()


def test_a_small_cluster_and_a_limit(data_dir: Path) -> None:
    dialect, path, small = DIALECTS.get("philly"), data_dir / "philly/philly.csv", Cluster.parse("8x8")
    assert dialect.read(path, cluster=small, limit=500).table.height == 500
    with pytest.raises(RowErrors, match="3 of 82247 rows"):  # the three jobs of 128 GPUs
        dialect.read(path, cluster=small)
    found = dialect.read(path, cluster=small, skip_bad=True)
    assert (found.table.height, found.skipped_rows) == (82244, 3)


def test_the_figures_of_philly_like_are_those_of_the_file(philly: TraceRead) -> None:
    instance = philly.instance()
    counts = {int(g): int(c) for g, c in zip(*np.unique(instance.gpus, return_counts=True), strict=True)}
    assert counts == PHILLY_GPUS
    lowest = [*QUANTILES, 10**9]
    for low, high, table in zip(lowest[:-1], lowest[1:], QUANTILES.values(), strict=True):
        durations = instance.duration[(instance.gpus >= low) & (instance.gpus < high)]
        assert np.round(np.quantile(durations, LEVELS)).tolist() == table
    gaps = np.diff(np.sort(instance.arrival))
    assert np.quantile(gaps, LEVELS) == pytest.approx(GAPS, abs=0.06)
    assert gaps.mean() == pytest.approx(114.397, abs=1e-3)


def test_gavel_keeps_what_its_tables_are_keyed_by(data_dir: Path) -> None:
    keys = json.loads((data_dir / "gavel/simulation_throughputs.json").read_text())["v100"].keys()
    table = DIALECTS.get("gavel").read(data_dir / "gavel/max_min_fairness.trace", cluster=LARGE).table
    wanted = {f"('{profile}', {gpus})" for profile, gpus in table.select("profile", "gpus").iter_rows()}
    assert wanted <= set(keys)


def test_pollux_iterations_lie_on_the_table(data_dir: Path) -> None:
    table = DIALECTS.get("pollux").read(data_dir / "pollux/workloads__workload-1.csv", cluster=LARGE).table
    known = pl.read_csv(data_dir / "pollux/iterations.csv")
    for application, batch, iterations in known.iter_rows():
        found = table.filter(pl.col("profile") == f"{application} (batch size {batch})")["iterations"].unique()
        assert found.to_list() in ([], [float(iterations)])
    assert table["iterations"].null_count() == 0


def test_classic_has_26_instances_with_proven_optima(data_dir: Path) -> None:
    path = data_dir / "classic/rigid_and_single_optima.json"
    entries = json.loads(path.read_text())
    assert len(entries) == 26
    specs = {"A": "1x1", "B": "1x1", "L": "1x1", "C": "1x8", "D": "3x1"}
    for entry in entries:
        instance = DIALECTS.get("classic").read(path, fragment=entry["id"]).instance()
        assert instance.cluster.spec == specs[entry["id"][0]]
        for key, column in {"p": "duration", "r": "arrival", "w": "weight", "size": "gpus"}.items():
            assert getattr(instance, column).tolist() == entry[key]
        assert (instance.optimum["value"], instance.optimum["proved_by"]) == (entry["optimum"], entry["proved_by"])
        weighted = "total_weighted_completion_time" if "sumwC" in entry["problem"] else "total_completion_time"
        assert instance.objective == instance.optimum["objective"] == weighted


def test_orlib_has_25_instances_with_optima(data_dir: Path) -> None:
    path = data_dir / "classic/wt40_first25.txt"
    optima = [int(line) for line in (data_dir / "classic/wt40_first25_optima.txt").read_text().split()]
    for k in range(1, 26):
        instance = DIALECTS.get("orlib-wt").read(path, fragment=str(k)).instance()
        assert (instance.n, instance.optimum["value"]) == (40, optima[k - 1])


def test_adadual_counts_are_160_jobs() -> None:
    assert sum(ADADUAL_GPUS.values()) == 160
    assert np.cumsum(list(ADADUAL_GPUS.values())).tolist() == [80, 94, 120, 150, 158, 160]
