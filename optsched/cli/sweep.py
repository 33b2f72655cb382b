"""``sweep`` and ``reproduce``: a grid of instances, policies, parameters and seeds, or the experiments of a study again.

Both go on from where they were stopped.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optsched.cli.interrupt import shield_processes, telling, tidying
from optsched.cli.options import AsJson, Workers, argument, keep_sources, option, output as output_to
from optsched.cli.output import print_json, say, show
from optsched.errors import OptschedError
from optsched.problem.atomic_files import check_writable, suffix_of, write_atomic

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Group

    from optsched.studies.study_file import Reproduction
    from optsched.sweeps.cell import CellResult
    from optsched.sweeps.run_sweep import Cost

SUFFIXES = (".parquet", ".csv")


Backend = Annotated[str, option("--backend NAME", "loky (this machine), dask or ray")]
Address = Annotated[str | None, option("--address A", "of a running cluster: tcp://HOST:8786, HOST:6379")]


def sweep(
    file: Annotated[Path, argument("FILE.toml", "the grid (docs: sweeps)")],
    store: Annotated[Path | None, option("--store FILE", "where results are kept; default: FILE.sqlite")] = None,
    backend: Backend = "loky",
    address: Address = None,
    workers: Workers = None,
    retry: Annotated[bool, option("--retry", "run cells again that failed")] = False,
    dry_run: Annotated[
        bool, option("--dry-run", "how many cells, and their CPU time, by one cell of each policy")
    ] = False,
    output: Annotated[Path | None, output_to("FILE", "all numbers: .parquet or .csv")] = None,
    as_json: AsJson = False,
) -> None:
    """Run a grid of instances, policies and seeds; resume it.

    It goes on by itself from wherever it was stopped.

    optsched sweep grid.toml -o grid.parquet
    """
    from optsched.cli.tables import duration
    from optsched.progress import bars
    from optsched.sweeps.grid import Grid
    from optsched.sweeps.run_sweep import estimate, sweep as run_sweep

    check_writable(output, "a table of a sweep", SUFFIXES)
    grid, store = Grid.read(file), store or file.with_suffix(".sqlite")
    keep_sources()  # those that the grid names
    shield_processes()
    if dry_run:
        cost = estimate(grid, store)
        known = f"some {duration(cost.cpu_seconds)} of CPU time"
        return _say_cost(cost, f"{cost.cells:,} cells, {cost.left:,} to be run: {known}", as_json=as_json)
    reached = [0, 0]

    def tell() -> None:
        kept = f"{reached[0]:,} of {reached[1]:,} cells are kept" if reached[1] else "no cell of this run has ended"
        say(f"{kept}; the same command goes on from there")

    with bars() as shown, telling(tell):
        heard = _hearing("cell", reached, shown.step(f"running the sweep {file.stem}"))
        table = run_sweep(grid, store, backend=backend, address=address, workers=workers, retry=retry, heard=heard)
    if output is not None:
        from optsched.problem.parquet import write_parquet

        if suffix_of(output) == ".parquet":
            write_parquet(table, output, {})
        else:
            write_atomic(output, table.write_csv())
    if as_json:
        print_json({"sweep": file.stem, "cells": table.to_dicts()})
    else:
        show(summary(table))
    if failed := table["state"].to_list().count("failed"):
        say(f"{failed:,} of {table.height:,} cells failed; --retry runs them again")
        raise typer.Exit(1)


def _hearing(
    what: str, reached: list[int], advance: Callable[[int, int], None]
) -> Callable[[CellResult, int, int], None]:
    """Who hears of every result: what is ``reached``, the bar, and on stderr whatever failed."""

    def heard(result: CellResult, settled: int, every: int) -> None:
        reached[:] = settled, every
        advance(settled, every)
        if result.error is not None:
            say(f"a {what} failed: {result.key}: {result.error}")

    return heard


def _say_cost(cost: Cost, words: str, *, as_json: bool) -> None:
    if as_json:
        print_json(asdict(cost))
    else:
        show(words)


def summary(table: pl.DataFrame) -> Group:
    """What people look at: for every instance and policy cells, and of each objective mean value, mean and worst ratio.

    Of a sweep with a measure: the mean of each of its numbers. Every policy stands with its knowledge; ratios to bounds of
    different classes of schedules are marked.
    """
    import polars as pl
    from rich.console import Group
    from rich.text import Text

    from optsched.cli.layout import Sheet
    from optsched.report.classes import UNLIKE
    from optsched.rounding import number

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
    shown, letters = rows.columns[:texts], {name: _letters(table, name) for name in objectives}
    sheet = Sheet(
        [*shown, "knowledge", *(heads.get(name, name) for name in rows.columns[texts:])], [*shown, "knowledge"]
    )
    for row in rows.iter_rows(named=True):
        words = ["" if row[name] is None else str(row[name]) for name in shown]
        cells = []
        for name in rows.columns[texts:]:
            of = name.removesuffix("_ratio").removesuffix("_worst")
            is_ratio = of in letters and of != name
            # a ratio to a bound is one that the true ratio is at most
            mark = letters[of].get(row["policy"], "") if is_ratio and row[name] is not None else ""
            cells.append(f"{number(row[name], 5, 'up' if is_ratio else 'nearest')} {mark}".rstrip())
        sheet.add(*words, _knowledge(row["policy"]), *cells)
    return Group(sheet, *[Text(UNLIKE)] * any(mark for of in letters.values() for mark in of.values()))


def _letters(table: pl.DataFrame, objective: str) -> dict[str, str]:
    """Of every policy the letter of its ratios: on an instance those of one letter are to the same bound."""
    from optsched.report.classes import marks

    at = table.columns.index("seed") + 1
    bounds: dict[str, dict[str, float]] = {policy: {} for policy in table["policy"].unique(maintain_order=True)}
    for row in table.iter_rows(named=True):
        if row[f"{objective}_ratio"] is not None:
            where = str([row[name] for name in table.columns[:at]])
            bounds[row["policy"]][where] = row[f"{objective}_bound"]
    return dict(zip(bounds, marks(list(bounds.values())), strict=True))


def _knowledge(policy: str) -> str:
    from optsched.policies.simulate import specify

    try:
        return str(specify(policy).policy.knowledge)
    except OptschedError:  # somebody's own, which this machine has no more
        return "-"


def reproduce(
    study: Annotated[str, argument("STUDY", "see: optsched list studies; or FILE.toml")],
    seeds: Annotated[
        int | None, option("--seeds N", "workloads of every kind: seeds 1..N; default: as many as usual")
    ] = None,
    small: Annotated[bool, option("--small", "a quick look: few and small workloads")] = False,
    output: Annotated[Path | None, output_to("DIR", "keeps every run (to go on from), draws the figures")] = None,
    backend: Backend = "loky",
    address: Address = None,
    workers: Workers = None,
    dry_run: Annotated[bool, option("--dry-run", "how many runs, and their CPU time")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a paper's experiments again: claimed, and measured.

    Prints a summary; every table, with means and intervals over seeds and what they say, goes to a file.
    With -o it goes on by itself from wherever it was stopped.

    optsched reproduce a-srpt --small -o a-srpt
    """
    from optsched.cli.tables import duration
    from optsched.progress import bars
    from optsched.studies.record import write_record
    from optsched.studies.study_file import Study

    chosen = Study.named(study)
    shield_processes()
    with _place(output) as folder:
        store, reached = folder / "runs.sqlite", [0, 0]
        cost = chosen.cost(store, seeds, small=small)
        # of a user's study nothing is known
        known = f": some {duration(cost.cpu_seconds)} of CPU time" if cost.cpu_seconds else ""
        words = f"{cost.cells:,} runs, {cost.left:,} to be done{known}"
        if dry_run:
            return _say_cost(cost, words, as_json=as_json)
        if not as_json:
            say(words)

        def tell() -> None:
            say(f"{reached[0]:,} of {reached[1]:,} runs are done; a table needs all of its own")
            if output is not None:
                say("they are kept; the same command goes on from there")
            if reached[0] and not as_json:  # stdout is for a whole document
                _show(chosen.so_far(store, seeds, small=small), output)

        with bars() as shown, telling(tell):
            heard = _hearing("run", reached, shown.step(f"running the study {chosen.name}"))
            done = chosen.run(
                seeds, small=small, store=store, backend=backend, address=address, workers=workers, heard=heard
            )
        files = [] if output is None else done.write(folder)
        if output is not None:
            write_record(done, seeds, folder / RECORD)
            files.append(folder / RECORD)
    if as_json:
        return print_json(done.to_json())
    _show(done, output)
    if files:
        say(f"wrote to {output}: {', '.join(file.name for file in files)}")


@contextlib.contextmanager
def _place(output: Path | None) -> Iterator[Path]:
    from optsched.report.report_files import make_folder

    if output is not None:
        yield make_folder(output)
        return
    with tempfile.TemporaryDirectory() as nowhere, tidying(lambda: shutil.rmtree(nowhere, ignore_errors=True)):
        yield Path(nowhere)


TABLES, RECORD = "tables.txt", "record.json"


def _show(done: Reproduction, output: Path | None) -> None:
    """The summary on the screen, every table in a file: in the folder, else among the temporary files."""
    from optsched.cli.study import summary_view, tables_text

    if output is None:
        handle, name = tempfile.mkstemp(prefix=f"optsched-{done.study.name}-", suffix=".txt")
        os.close(handle)
        file, kept = Path(name), " (-o DIR keeps runs, figures and a record, too)"
    else:
        file, kept = output / TABLES, ""
    write_atomic(file, tables_text(done))
    show(summary_view(done))
    say(f"every table: {file}{kept}")
