"""``optsched sweep``: a grid of instances, policies, parameters and seeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optsched.cli.interrupt import shield_processes, telling
from optsched.cli.options import AsJson, ReportFile, Workers, argument, option, output as output_to
from optsched.cli.output import answer, print_json, say, show
from optsched.cli.report_page import check_report, write_report
from optsched.cli.source_keeping import keep_sources
from optsched.problem.atomic_files import check_writable, suffix_of, write_atomic

if TYPE_CHECKING:
    from optsched.report.page import PageTable
    from optsched.sweeps.cell import CellResult
    from optsched.sweeps.run_sweep import Cost

SUFFIXES = (".parquet", ".csv")
Backend = Annotated[str, option("--backend NAME", "loky (this machine), dask or ray")]
Address = Annotated[str | None, option("--address A", "address of a running cluster: tcp://HOST:8786, HOST:6379")]


def sweep(
    file: Annotated[Path, argument("FILE.toml", "the grid; its format: docs/sweeps.md")],
    store: Annotated[Path | None, option("--store FILE", "the file that keeps results; default: FILE.sqlite")] = None,
    backend: Backend = "loky",
    address: Address = None,
    workers: Workers = None,
    retry: Annotated[bool, option("--retry", "run failed cells again")] = False,
    dry_run: Annotated[
        bool, option("--dry-run", "print the number of cells, and an estimate of their CPU time")
    ] = False,
    output: Annotated[Path | None, output_to("FILE", "a file for all numbers (.parquet, .csv)")] = None,
    report_file: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Run a grid of instances, policies and seeds; resume it.

    The command resumes from the point where it was stopped.

    optsched sweep grid.toml -o grid.parquet

    \f
    Parameters
    ----------
    file
        The grid; its format: docs/sweeps.md.
    store
        The file that keeps results; default: FILE.sqlite.
    backend
        ``loky`` (this machine), ``dask`` or ``ray``.
    address
        Address of a running cluster: tcp://HOST:8786, HOST:6379.
    workers
        Number of processes; default: one per processor.
    retry
        Run failed cells again.
    dry_run
        Print the number of cells, and an estimate of their CPU time.
    output
        A file for all numbers (.parquet, .csv).
    report_file
        A page to forward: the result, tables, charts.
    as_json
        Print exactly one JSON document to stdout.
    """
    from optsched.cli.sweep_table import summary
    from optsched.cli.wording import duration
    from optsched.progress import bars
    from optsched.sweeps.grid import Grid
    from optsched.sweeps.run_sweep import estimate, sweep as run_sweep

    check_writable(output, "a table of a sweep", SUFFIXES)
    check_report(report_file)
    grid, store = Grid.read(file), store or file.with_suffix(".sqlite")
    keep_sources()  # those that the grid names
    shield_processes()
    if dry_run:
        cost = estimate(grid, store)
        known = f"about {duration(cost.cpu_seconds)} of CPU time"
        return say_cost(cost, f"{cost.cells:,} cells, {cost.left:,} to run; {known}", as_json=as_json)
    reached = [0, 0]

    def tell() -> None:
        kept = f"{reached[0]:,} of {reached[1]:,} cells are kept" if reached[1] else "no cell of this run has ended"
        say(f"{kept}; the same command resumes from there")

    with bars() as shown, telling(tell):
        heard = listener("cell", reached, shown.step(f"running the sweep {file.stem}"))
        table = run_sweep(grid, store, backend=backend, address=address, workers=workers, retry=retry, heard=heard)
    if output is not None:
        from optsched.problem.parquet import write_parquet

        if suffix_of(output) == ".parquet":
            write_parquet(table, output, {})
        else:
            write_atomic(output, table.write_csv())

    def page(tables: list[PageTable], notes: list[str], command: str) -> str:
        from optsched.report.ratio_page import sweep_page

        return sweep_page(table, file.stem, tables, notes, command)

    write_report(report_file, lambda: summary(table), page)
    answer(as_json, lambda: {"sweep": file.stem, "cells": table.to_dicts()}, lambda: summary(table), report_file)
    if failed := table["state"].to_list().count("failed"):
        say(f"{failed:,} of {table.height:,} cells failed; run them again with --retry")
        raise typer.Exit(1)


def listener(
    what: str, reached: list[int], advance: Callable[[int, int], None]
) -> Callable[[CellResult, int, int], None]:
    """Return the callback for results: it counts, advances the progress bar, and reports failures on stderr.

    Parameters
    ----------
    what
        The noun for a result, in the singular.
    reached
        Updated to [settled results, all results].
    advance
        Advances the progress bar: (settled results, all results).
    """

    def heard(result: CellResult, settled: int, every: int) -> None:
        reached[:] = settled, every
        advance(settled, every)
        if result.error is not None:
            say(f"a {what} failed: {result.key}: {result.error}")

    return heard


def say_cost(cost: Cost, words: str, *, as_json: bool) -> None:
    """Print the cost of a campaign.

    Parameters
    ----------
    cost
        The cost.
    words
        The cost in words.
    as_json
        True to print a document instead.
    """
    if as_json:
        print_json(asdict(cost))
    else:
        show(words)
