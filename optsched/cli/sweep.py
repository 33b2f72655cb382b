"""``sweep``: a grid of instances, policies, parameters and seeds; it goes on from where it was stopped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optsched.cli.interrupt import shield_processes, telling
from optsched.cli.options import AsJson
from optsched.cli.output import print_json, say, show

if TYPE_CHECKING:
    import polars as pl

    from optsched.cli.layout import Sheet
    from optsched.rounding import Side
    from optsched.sweeps.cell import CellResult

SUFFIXES = (".parquet", ".csv")


Backend = Annotated[str, typer.Option("--backend", metavar="NAME", help="loky (this machine), dask or ray")]
Address = Annotated[
    str | None, typer.Option("--address", metavar="A", help="of a running cluster: tcp://HOST:8786, HOST:6379")
]
Workers = Annotated[int | None, typer.Option("--workers", metavar="N", help="processes; default: one a processor")]


def sweep(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="the grid (docs: sweeps)", show_default=False)],
    store: Annotated[
        Path | None, typer.Option("--store", metavar="FILE", help="where results are kept; default: FILE.sqlite")
    ] = None,
    backend: Backend = "loky",
    address: Address = None,
    workers: Workers = None,
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
    from optsched.problem.files import check_writable
    from optsched.progress import bars
    from optsched.sweeps.run import sweep as run_sweep

    if output is not None:
        check_writable(output, "a table of a sweep", SUFFIXES)
    shield_processes()
    if dry_run:
        _say_cost(file, store, as_json=as_json)
        return
    reached = [0, 0]

    def heard(result: CellResult, settled: int, every: int) -> None:
        reached[:] = settled, every
        advance(settled, every)
        if result.error is not None:
            say(f"a cell failed: {result.key}: {result.error}")

    def tell() -> None:
        kept = f"{reached[0]:,} of {reached[1]:,} cells are kept" if reached[1] else "no cell of this run has ended"
        say(f"{kept}; the same command goes on from there")

    with bars() as shown, telling(tell):
        advance = shown.step(f"running the sweep {file.stem}")
        table = run_sweep(file, store, backend=backend, address=address, workers=workers, retry=retry, heard=heard)
    if output is not None:
        _write(table, output)
    if as_json:
        print_json({"sweep": file.stem, "cells": table.to_dicts()})
    else:
        show(summary(table))
    if failed := table["state"].to_list().count("failed"):
        say(f"{failed:,} of {table.height:,} cells failed; --retry runs them again")
        raise typer.Exit(1)


def _say_cost(file: Path, store: Path | None, *, as_json: bool) -> None:
    from optsched.cli.tables import duration
    from optsched.sweeps.run import estimate

    cost = estimate(file, store)
    if as_json:
        print_json({"cells": cost.cells, "left": cost.left, "cpu_seconds": cost.cpu_seconds})
    else:
        show(f"{cost.cells:,} cells, {cost.left:,} to be run: some {duration(cost.cpu_seconds)} of CPU time")


def _write(table: pl.DataFrame, output: Path) -> None:
    from optsched.problem.files import suffix_of, write_atomic
    from optsched.problem.parquet import write_parquet

    if suffix_of(output) == ".parquet":
        write_parquet(table, output, {})
    else:
        write_atomic(output, table.write_csv())


def summary(table: pl.DataFrame) -> Sheet:
    """What people look at: for every instance and policy cells, and of each objective mean value, mean and worst ratio.

    Of a sweep with a measure: the mean of each of its numbers.
    """
    import polars as pl

    from optsched.cli.layout import Column, Sheet
    from optsched.cli.tables import number

    axes = [name for name in table.columns[: table.columns.index("seed")] if table[name].n_unique() > 1]
    names = table.columns[table.columns.index("cpu_seconds") + 1 :]
    objectives = [name for name in names if {f"{name}_bound", f"{name}_ratio"} <= set(names)]
    measured = [] if objectives else names
    sums = [pl.col("state").eq("done").sum().alias("cells"), pl.col("state").eq("failed").sum().alias("failed")]
    for name in objectives:
        ratio = pl.col(f"{name}_ratio")
        sums += [pl.col(name).mean(), ratio.mean(), ratio.max().alias(f"{name}_worst")]
    sums += [pl.col(name).mean() for name in measured]
    rows = table.group_by(*axes, "policy", maintain_order=True).agg(sums)
    if not rows["failed"].sum():
        rows = rows.drop("failed")
    heads = {name: f"mean {name}" for name in (*objectives, *measured)}
    heads |= {
        f"{name}{end}": head for name in objectives for end, head in (("_ratio", "over bound"), ("_worst", "worst"))
    }
    texts = len(axes) + 1
    sheet = Sheet([Column(heads.get(name, name), right=k >= texts) for k, name in enumerate(rows.columns)])
    for row in rows.iter_rows(named=True):
        words = ["" if row[name] is None else str(row[name]) for name in rows.columns[:texts]]
        # a ratio to a bound is one that the true ratio is at most
        sides: list[Side] = [
            "up" if name.endswith(("_ratio", "_worst")) else "nearest" for name in rows.columns[texts:]
        ]
        numbers = [number(row[name], 5, side) for name, side in zip(rows.columns[texts:], sides, strict=True)]
        sheet.add(*words, *numbers)
    return sheet
