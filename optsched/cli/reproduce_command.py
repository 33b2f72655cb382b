"""``optsched reproduce``: repeat the experiments of a study."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from optsched.cli.interrupt import shield_processes, telling, tidying
from optsched.cli.options import AsJson, Workers, argument, option, output as output_to
from optsched.cli.output import print_json, say, show
from optsched.cli.sweep_command import Address, Backend, listener, say_cost
from optsched.problem.atomic_files import write_atomic

if TYPE_CHECKING:
    from optsched.studies.study_file import Reproduction


def reproduce(
    study: Annotated[str, argument("STUDY", "see: optsched list studies; or a file, FILE.toml")],
    seeds: Annotated[
        int | None, option("--seeds N", "use the seeds 1..N of every workload; default: those of the study")
    ] = None,
    small: Annotated[bool, option("--small", "run few and small workloads")] = False,
    output: Annotated[
        Path | None, output_to("DIR", "a folder for all runs, to resume from, and for the figures")
    ] = None,
    backend: Backend = "loky",
    address: Address = None,
    workers: Workers = None,
    dry_run: Annotated[bool, option("--dry-run", "print the number of runs and their CPU time")] = False,
    as_json: AsJson = False,
) -> None:
    """Repeat the experiments of a paper; compare with its claims.

    The command prints a summary, and writes all tables, with means and intervals over seeds, to a file. With -o
    it resumes from the point where it was stopped.

    optsched reproduce a-srpt --small -o a-srpt

    \f
    Parameters
    ----------
    study
        A study; see: optsched list studies; or a file, FILE.toml.
    seeds
        Use the seeds 1..N of every workload; default: those of the study.
    small
        Run few and small workloads.
    output
        A folder for all runs, to resume from, and for the figures.
    backend
        ``loky`` (this machine), ``dask`` or ``ray``.
    address
        Address of a running cluster: tcp://HOST:8786, HOST:6379.
    workers
        Number of processes; default: one per processor.
    dry_run
        Print the number of runs and their CPU time.
    as_json
        Print exactly one JSON document to stdout.
    """
    from optsched.cli.wording import duration
    from optsched.progress import bars
    from optsched.studies.record import write_record
    from optsched.studies.study_file import Study

    chosen = Study.named(study)
    shield_processes()
    with _place(output) as folder:
        store, reached = folder / "runs.sqlite", [0, 0]
        cost = chosen.cost(store, seeds, small=small)
        # the time of a user's study is not known
        known = f"; about {duration(cost.cpu_seconds)} of CPU time" if cost.cpu_seconds else ""
        words = f"{cost.cells:,} runs, {cost.left:,} to do{known}"
        if dry_run:
            return say_cost(cost, words, as_json=as_json)
        if not as_json:
            say(words)
        if reason := chosen.left_out(small):
            say(reason)

        def tell() -> None:
            say(f"{reached[0]:,} of {reached[1]:,} runs are done; a table is made when all of its runs are")
            if output is not None:
                say("they are kept; the same command resumes from there")
            if reached[0] and not as_json:  # stdout is for a whole document
                _show(chosen.so_far(store, seeds, small=small), output)

        with bars() as shown, telling(tell):
            heard = listener("run", reached, shown.step(f"running the study {chosen.name}"))
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
    """Print the summary; write all tables to the folder, or without one to a temporary file."""
    from optsched.cli.study_tables import summary_view, tables_text

    if output is None:
        handle, name = tempfile.mkstemp(prefix=f"optsched-{done.study.name}-", suffix=".txt")
        os.close(handle)
        file, kept = Path(name), " (with -o DIR: runs, figures and a record, too)"
    else:
        file, kept = output / TABLES, ""
    write_atomic(file, tables_text(done))
    show(summary_view(done))
    say(f"all tables: {file}{kept}")
