"""Speeds for a trace that names applications and batch sizes: the scaling profiles that its jobs run at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import polars as pl

from optsched.errors import InputError
from optsched.io.traces.dialect import TraceRead
from optsched.problem.scaling import Scaling
from optsched.speeds.built_in_scalings import built_in_scalings


def with_scalings(
    read: TraceRead,
    scalings: Mapping[str, Scaling] | None,
    file: str,
    *,
    say: Callable[[str], None] | None = None,
) -> TraceRead:
    """``read`` with scaling profiles for its jobs that state a batch size and iterations, by their ``model``.

    Their ``profile`` becomes the name of the application. Jobs whose application no profile knows stay as they are; the
    rest of the table too. ``scalings``: None takes the built-in ones (`optsched.speeds.built_in_scalings`), and ``say``
    hears that the measurements themselves were not used.

    Raises
    ------
    InputError
        ``scalings`` are given, and know no application of the trace.
    """
    table = read.table
    needed = {"model", "batch_size", "iterations"}
    if not needed <= set(table.columns):
        if scalings is not None:
            message = "no job of this trace names an application and a batch size"
            raise InputError(message, file=file, field="profiles", legal="a trace with batch sizes, e.g. pollux:PATH")
        return read
    known = built_in_scalings() if scalings is None else scalings
    rows = pl.col("model").is_in(list(known)) & pl.col("batch_size").is_not_null() & pl.col("iterations").is_not_null()
    if "duration" in table.columns:
        rows &= pl.col("duration").is_null()
    used = sorted(set(table.filter(rows)["model"].to_list()))
    if not used:
        if scalings is None:
            return read
        names = ", ".join(sorted(set(table["model"].drop_nulls().to_list()))[:10]) or "none"
        legal = f"profiles of its applications: {names}"
        raise InputError("the profiles know no application of the trace", file=file, field="profiles", legal=legal)
    if say is not None and scalings is None:
        say(
            f"{', '.join(used)}: iteration times by formulas fitted to measurements (--profiles DIR takes measurements)"
        )
    profile = pl.col("profile") if "profile" in table.columns else pl.lit(None, dtype=pl.String)
    named = table.with_columns(pl.when(rows).then(pl.col("model")).otherwise(profile).alias("profile"))
    return replace(read, table=named, scalings={name: known[name] for name in used})
