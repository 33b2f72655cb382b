"""``sweep``: a grid of instances, policies, parameters and seeds; it goes on from where it was stopped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optsched.cli.interrupt import shield_processes, telling
from optsched.cli.options import AsJson
from optsched.cli.output import print_json, say, show

if TYPE_CHECKING:
    import polars as pl

SUFFIXES = (".parquet", ".csv")


def sweep(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="the grid (docs: sweeps)", show_default=False)],
    store: Annotated[
        Path | None, typer.Option("--store", metavar="FILE", help="where results are kept; default: FILE.sqlite")
    ] = None,
    backend: Annotated[
        str, typer.Option("--backend", metavar="NAME", help="loky (this machine), dask or ray")
    ] = "loky",
    address: Annotated[
        str | None, typer.Option("--address", metavar="A", help="of a running cluster: tcp://HOST:8786, HOST:6379")
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", metavar="N", help="processes; default: one a processor")
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="run cells again that failed")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="how many cells, and their CPU time, by one cell of each policy")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="all numbers: .parquet or .csv")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a grid of instances, policies and seeds; resume it.

    It goes on by itself from wherever it was stopped.

    optsched sweep grid.toml -o grid.parquet
    """
    from optsched.errors import InputError
    from optsched.progress import bars
    from optsched.sweeps.run import estimate
    from optsched.sweeps.run import sweep as run_sweep

    if output is not None and output.suffix.lower() not in SUFFIXES:
        raise InputError("cannot tell the format from the name", file=output, legal=" or ".join(SUFFIXES))
    shield_processes()
    if dry_run:
        cost = estimate(file, store)
        if as_json:
            print_json({"cells": cost.cells, "left": cost.left, "cpu_seconds": cost.cpu_seconds})
        else:
            show(f"{cost.cells:,} cells, {cost.left:,} to be run: some {_duration(cost.cpu_seconds)} of CPU time")
        return
    reached = [0, 0]

    def heard(result: Any, settled: int, every: int) -> None:
        reached[:] = settled, every
        advance(settled, every)
        if result.error is not None:
            say(f"a cell failed: {result.key}: {result.error}")

    def tell() -> None:
        say(f"{reached[0]:,} of {reached[1]:,} cells are kept; the same command goes on from there")

    with bars() as shown, telling(tell):
        advance = shown.step(f"running the sweep {file.stem}")
        table = run_sweep(file, store, backend=backend, address=address, workers=workers, retry=retry, heard=heard)
    if output is not None:
        table.write_parquet(output) if output.suffix.lower() == ".parquet" else table.write_csv(output)
    if as_json:
        print_json({"sweep": file.stem, "cells": table.to_dicts()})
        return
    show(summary(table))


def summary(table: pl.DataFrame) -> Any:
    """What people look at: for every instance and policy cells, and of each objective mean value, mean and worst ratio."""
    import polars as pl
    from rich.table import Table as Sheet

    facts = {"seed", "policy", "state", "error", "failed_on", "cpu_seconds"}
    at = table.columns.index("seed")
    axes = [name for name in table.columns[:at] if table[name].n_unique() > 1]
    objectives = [
        name.removesuffix("_ratio") for name in table.columns if name.endswith("_ratio") and name not in facts
    ]
    numbers = [pl.col("state").eq("done").sum().alias("done"), pl.col("state").eq("failed").sum().alias("failed")]
    for name in objectives:
        numbers += [
            pl.col(name).mean(),
            pl.col(f"{name}_ratio").mean(),
            pl.col(f"{name}_ratio").max().alias(f"{name}_worst"),
        ]
    rows = table.group_by(*axes, "policy", maintain_order=True).agg(numbers)
    sheet = Sheet(box=None, header_style="bold", pad_edge=False)
    failed = bool(rows["failed"].sum())
    for name in (*axes, "policy"):
        sheet.add_column(name.replace("_", " "), overflow="fold")
    for name in ("cells", *(["failed"] if failed else [])):
        sheet.add_column(name, justify="right")
    for name in objectives:
        words = name.replace("_", " ")
        for head in (f"mean {words}", "over bound", "worst"):
            sheet.add_column(head, justify="right")
    for row in rows.iter_rows(named=True):
        cells = ["" if row[name] is None else f"{row[name]}" for name in (*axes, "policy")]
        cells += [f"{row['done']}", *([f"{row['failed']}"] if failed else [])]
        for name in objectives:
            cells += [
                _number(row[name], ",.1f"),
                _number(row[f"{name}_ratio"], ".4f"),
                _number(row[f"{name}_worst"], ".4f"),
            ]
        sheet.add_row(*cells)
    return sheet


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _duration(seconds: float) -> str:
    for size, word in ((3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {word}"
    return f"{seconds:.1f} s"
