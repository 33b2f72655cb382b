"""``reproduce``: the experiments of a study again; it goes on from where it was stopped."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optsched.cli.interrupt import shield_processes, telling, tidying
from optsched.cli.options import AsJson
from optsched.cli.output import print_json, say, show
from optsched.cli.sweep import Address, Backend, Workers

if TYPE_CHECKING:
    from optsched.studies.study import Reproduction
    from optsched.sweeps.cell import CellResult


def reproduce(
    study: Annotated[
        str, typer.Argument(metavar="STUDY", help="see: optsched list studies; or FILE.toml", show_default=False)
    ],
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", metavar="N", help="workloads of every kind: seeds 1..N; default: as many as usual"),
    ] = None,
    small: Annotated[bool, typer.Option("--small", help="a quick look: few and small workloads")] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR", help="keeps every run (to go on from), draws the figures"),
    ] = None,
    backend: Backend = "loky",
    address: Address = None,
    workers: Workers = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="how many runs, and their CPU time")] = False,
    as_json: AsJson = False,
) -> None:
    """Run the experiments of a study again. Means and intervals over seeds, and what they say.

    With -o it goes on by itself from wherever it was stopped.

    optsched reproduce a-srpt --small -o a-srpt
    """
    from optsched.progress import bars
    from optsched.studies.study import Study

    chosen = Study.named(study)
    shield_processes()
    with _place(output) as folder:
        store, reached = folder / "runs.sqlite", [0, 0]
        cost = chosen.cost(store, seeds, small=small)
        if dry_run:
            return _say_cost(cost, as_json=as_json)
        if not as_json:
            say(_cost(cost))

        def heard(result: CellResult, settled: int, every: int) -> None:
            reached[:] = settled, every
            advance(settled, every)
            if result.error is not None:
                say(f"a run failed: {result.key}: {result.error}")

        def tell() -> None:
            say(f"{reached[0]:,} of {reached[1]:,} runs are done; a table needs all of its own")
            if output is not None:
                say("they are kept; the same command goes on from there")
            if reached[0] and not as_json:  # stdout is for a whole document
                _show(chosen.so_far(store, seeds, small=small))

        with bars() as shown, telling(tell):
            advance = shown.step(f"running the study {chosen.name}")
            how: dict[str, Any] = {"backend": backend, "address": address, "workers": workers}
            done = chosen.run(seeds, small=small, store=store, heard=heard, **how)
        files = [] if output is None else done.write(folder)
    if as_json:
        return print_json(done.to_json())
    _show(done)
    for file in files:
        say(f"wrote {file}")


@contextlib.contextmanager
def _place(output: Path | None) -> Iterator[Path]:
    from optsched.report.report_files import make_folder

    if output is not None:
        yield make_folder(output)
        return
    with tempfile.TemporaryDirectory() as nowhere, tidying(lambda: shutil.rmtree(nowhere, ignore_errors=True)):
        yield Path(nowhere)


def _show(done: Reproduction) -> None:
    from optsched.cli.study import reproduction_view

    show(reproduction_view(done))


def _cost(cost: tuple[int, int, float]) -> str:
    from optsched.cli.tables import duration

    every, left, seconds = cost
    known = f": some {duration(seconds)} of CPU time" if seconds else ""  # of a user's study nothing is known
    return f"{every:,} runs, {left:,} to be done{known}"


def _say_cost(cost: tuple[int, int, float], *, as_json: bool) -> None:
    if as_json:
        print_json(dict(zip(("cells", "left", "cpu_seconds"), cost, strict=True)))
    else:
        show(_cost(cost))
