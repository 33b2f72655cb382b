"""The canonical job table (polars) and the vectorised checks that every instance passes."""

from __future__ import annotations

import os
from collections.abc import Mapping

import polars as pl

from optsched.cluster import Cluster
from optsched.errors import InputError, RowProblem

COLUMNS: dict[str, pl.DataType] = {
    "id": pl.String(),
    "arrival": pl.Float64(),
    "gpus": pl.Int64(),
    "duration": pl.Float64(),
    "iterations": pl.Float64(),
    "profile": pl.String(),
    "weight": pl.Float64(),
    "due": pl.Float64(),
    "user": pl.String(),
    "group": pl.String(),
    "model": pl.String(),
    "gpu_memory": pl.Float64(),
    "gpu_types": pl.List(pl.String),
}
_DEFAULTS = {"arrival": 0.0, "gpus": 1, "weight": 1.0}
# Seconds, and weights in the same range: beyond it sums of weighted times overflow, or a duration is lost beside an
# arrival. A picosecond and thirty billion years are enough for any cluster.
SHORTEST, LONGEST = 1e-12, 1e18
_REPORTED = 1000  # problems collected a rule; counting on is no use to a reader


def normal_table(table: pl.DataFrame, file: str | os.PathLike[str] | None = None) -> pl.DataFrame:
    """``table`` with exactly the canonical columns and types, defaults filled in.

    Without an ``id`` column jobs are named by position. Raises `InputError` for an unknown column or a wrong type.
    """
    unknown = [name for name in table.columns if name not in COLUMNS]
    if unknown:
        raise InputError("unknown job column", file=file, field=unknown[0], legal=", ".join(COLUMNS))
    columns = []
    for name, dtype in COLUMNS.items():
        if name in table.columns:
            column = table[name]
        elif name == "id":
            column = pl.int_range(table.height, eager=True).alias("id")
        else:
            column = pl.Series(name, [None], dtype=dtype).new_from_index(0, table.height)
        if dtype == pl.Int64 and column.dtype.is_float():
            _require_whole(column, file)
        try:
            column = column.cast(dtype, strict=True)
        except pl.exceptions.PolarsError:
            raise InputError("wrong type of column", file=file, field=name, legal=str(dtype)) from None
        if dtype == pl.Float64:
            column = column.set(column == 0, 0.0)  # one zero only: -0.0 and 0 are the same time
        columns.append(column.fill_null(_DEFAULTS[name]) if name in _DEFAULTS else column)
    return pl.DataFrame(columns)


def _require_whole(column: pl.Series, file: str | os.PathLike[str] | None) -> None:
    # A cast would cut 2.5 to 2 without a word.
    broken = (column != column.floor()).fill_null(False).arg_true()
    if len(broken):
        row = int(broken[0])
        raise InputError("not legal", file=file, row=row + 1, field=column.name, value=column[row], legal="an integer")


def job_problems(table: pl.DataFrame, cluster: Cluster, replicas: Mapping[str, int]) -> list[RowProblem]:
    """Every value of a normal table that is not legal on this cluster, by row (1-based position).

    ``replicas``: the gang that each known profile needs. Legal seconds: arrivals 0..1e18, durations 1e-12..1e18, due dates
    -1e18..1e18; weights 0 or 1e-18..1e18; iterations at most 1e18.
    """
    problems: list[RowProblem] = []

    def report(field: str, wrong: pl.Expr, legal: str, message: str = "not legal") -> None:
        rows = table.with_row_index("__row").filter(wrong).head(_REPORTED)
        problems.extend(
            RowProblem(row + 1, field, value, legal, message) for row, value in rows.select("__row", field).iter_rows()
        )

    def not_finite(field: str) -> pl.Expr:
        return pl.col(field).is_not_null() & ~pl.col(field).is_finite()

    report("id", pl.col("id").is_null() | (pl.col("id") == ""), "a name")
    report("id", pl.col("id").is_duplicated() & ~pl.col("id").is_first_distinct(), "unique ids", "duplicate id")

    def beyond(field: str, limit: float = LONGEST) -> pl.Expr:
        return pl.col(field).is_finite() & (pl.col(field).abs() > limit)

    at_most = f"at most {LONGEST:g}"
    report("arrival", not_finite("arrival") | (pl.col("arrival") < 0), "a finite number of seconds >= 0")
    report("arrival", beyond("arrival"), f"{at_most} seconds", "too late")
    report("gpus", pl.col("gpus") < 1, "an integer >= 1")
    report("duration", not_finite("duration") | (pl.col("duration") <= 0), "a finite number of seconds > 0")
    report("duration", beyond("duration"), f"{at_most} seconds", "too long")
    short = (pl.col("duration") > 0) & (pl.col("duration") < SHORTEST)
    report("duration", short, f"at least {SHORTEST:g} seconds", "too short")
    report("iterations", beyond("iterations"), at_most, "too many")
    report("iterations", not_finite("iterations") | (pl.col("iterations") <= 0), "a finite number > 0")
    report(
        "duration",
        pl.col("duration").is_null() & (pl.col("iterations").is_null() | pl.col("profile").is_null()),
        "a duration, or iterations with a profile",
        "missing",
    )
    report("weight", not_finite("weight") | (pl.col("weight") < 0), "a finite number >= 0")
    tiny = (pl.col("weight") > 0) & (pl.col("weight") < 1 / LONGEST)
    report("weight", beyond("weight"), at_most, "too large")
    report("weight", tiny, f"0, or at least {1 / LONGEST:g}", "too small")
    report("due", not_finite("due"), "a finite number of seconds")
    report("due", beyond("due"), f"within {LONGEST:g} seconds of 0", "too far")
    report("gpu_memory", not_finite("gpu_memory") | (pl.col("gpu_memory") < 0), "a finite number of bytes >= 0")
    profiled = pl.col("duration").is_null() & pl.col("iterations").is_not_null() & pl.col("profile").is_not_null()
    needs = pl.col("profile").replace_strict(dict(replicas), default=None, return_dtype=pl.Int64)
    problems += _other_gangs(table.with_row_index("__row").filter(profiled & (needs != pl.col("gpus"))), replicas)
    problems += _too_wide(table, cluster)
    return sorted(problems, key=lambda problem: problem.row)


def _other_gangs(rows: pl.DataFrame, replicas: Mapping[str, int]) -> list[RowProblem]:
    # A gang has one GPU for each replica of its profile.
    return [
        RowProblem(row + 1, "gpus", gpus, f"{replicas[profile]}, the replicas of the profile {profile!r}")
        for row, gpus, profile in rows.head(_REPORTED).select("__row", "gpus", "profile").iter_rows()
    ]


def _too_wide(table: pl.DataFrame, cluster: Cluster) -> list[RowProblem]:
    # One check a distinct (types, memory): the GPUs that suit it; then one comparison a row.
    total = cluster.gpus
    if table["gpu_types"].null_count() == table.height and table["gpu_memory"].null_count() == table.height:
        offered = table.select(pl.lit(total).alias("offered"))["offered"].new_from_index(0, table.height)
    else:
        limits = table.select("gpu_types", "gpu_memory").unique(maintain_order=True)
        suited = [
            sum(group.count * group.gpus for group in cluster.nodes if group.suits(types, memory))
            for types, memory in limits.iter_rows()
        ]
        limits = limits.with_columns(pl.Series("offered", suited, dtype=pl.Int64))
        offered = table.select("gpu_types", "gpu_memory").join(
            limits, on=["gpu_types", "gpu_memory"], how="left", nulls_equal=True, maintain_order="left"
        )["offered"]
    wide = table.with_row_index("__row").with_columns(offered.alias("__offered"))
    wide = wide.filter(pl.col("gpus") > pl.col("__offered")).head(_REPORTED)
    return [
        RowProblem(
            row + 1,
            "gpus",
            gpus,
            f"at most {count}, the GPUs of the cluster {cluster.spec}"
            + ("" if count == total else " that its types and memory allow"),
            "the gang is larger than the cluster",
        )
        for row, gpus, count in wide.select("__row", "gpus", "__offered").iter_rows()
    ]
