"""Files of a run that other programs read: its table as CSV or Excel, `EXPORTS`, and a trace for Perfetto."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from optsched.errors import InputError, NotInstalledError
from optsched.evaluation.as_logged import jobs_that_ran
from optsched.evaluation.report import Report
from optsched.problem.atomic_files import atomic_path, check_writable, file_name, suffix_of, write_atomic
from optsched.problem.instance import Instance
from optsched.problem.schedule_file import is_trace
from optsched.registry import Registry
from optsched.simulation.run import Run

SUFFIXES = (".csv", ".xlsx")
MOST_ROWS = 1_048_575  # of a sheet of Excel, without its header
TOP = 4_294_960_000  # above every priority that Slurm's priority/basic assigns (4,294,901,759 and less)
NICE_STEP, NICEST = 1000, 2_147_483_645  # between jobs; the largest that scontrol takes
EXPORTS: Registry[Callable[[Report], pl.DataFrame]] = Registry("export", package="optsched.report")
OF_ONE = ("slurm-priorities",)  # exports of a single run


@dataclass(frozen=True)
class RunOutputs:
    """The files that a run writes.

    Parameters
    ----------
    output
        A folder for the results, or FILE.trace.json for a trace; None: neither.
    csv
        File for the table, ``.csv`` or ``.xlsx``; None: no file.
    export
        Name of an export, and its file; None: no export.
    """

    output: Path | None = None
    csv: Path | None = None
    export: tuple[str, Path] | None = None

    @property
    def folder(self) -> Path | None:
        """The folder for the results, if any."""
        return None if self.output is not None and is_trace(self.output) else self.output

    @property
    def trace(self) -> Path | None:
        """The file for a trace, if any."""
        return None if self.folder is not None else self.output

    def check(self, policies: Sequence[str], instance: Instance) -> None:
        """Check before a long run that the files can be written.

        Parameters
        ----------
        policies
            The policies of the run.
        instance
            The jobs.

        Raises
        ------
        InputError
            A file cannot be written, an export does not exist, or a file holds one run and there are several policies.
        """
        kind, file = self.export or ("", None)
        if file is not None:
            kind = EXPORTS.canonical(kind)
            EXPORTS.get(kind)
        for what, place in ((f"the export {kind}", file if kind in OF_ONE else None), ("a trace", self.trace)):
            if place is not None and len(policies) != 1:
                raise InputError(f"{what} holds one run, not {len(policies)}", file=place, legal="exactly one -p")
        if kind == OF_ONE[0] and jobs_that_ran(instance).all():
            legal = "slurm-pending:FILE, the jobs that wait at the end of an export of sacct"
            raise InputError(
                "no job waits: the log says of every job when it ran", field="export", value=kind, legal=legal
            )
        check_writable(self.trace)
        for table in (self.csv, file):
            check_table(table)

    def save(self, report: Report) -> list[Path]:
        """Write all files except those of the folder, and return them.

        Parameters
        ----------
        report
            The report of the run.
        """
        if self.trace is not None:
            from optsched.plot.trace_events import save_trace

            save_trace(report.runs[-1].schedule, self.trace)  # of the one policy
        if self.csv is not None:
            jobs = {f"{k:02d} {file_name(run.policy)}": run.jobs for k, run in enumerate(report.runs, 1)}
            save_tables({"policies": report.frame(), **jobs}, self.csv)
        if self.export is not None:
            kind, file = self.export
            save_tables({kind: EXPORTS.get(EXPORTS.canonical(kind))(report)}, file)
        return [file for file in (self.trace, self.csv, (self.export or (None, None))[1]) if file is not None]


def check_table(path: Path | None) -> None:
    """Check before a long computation that a table can be written.

    Parameters
    ----------
    path
        File for the table, ``.csv`` or ``.xlsx``; None: no file.

    Raises
    ------
    InputError
        The file cannot be written.
    NotInstalledError
        An Excel file needs the extra ``excel``.
    """
    check_writable(path, "a table", SUFFIXES)
    if path is not None and suffix_of(path) == ".xlsx" and importlib.util.find_spec("xlsxwriter") is None:
        raise NotInstalledError("Excel files need XlsxWriter: pip install 'optsched[excel]'", file=path)


def save_tables(sheets: Mapping[str, pl.DataFrame], path: Path) -> None:
    """Write the first table as CSV, or all tables as the sheets of an Excel file.

    Parameters
    ----------
    sheets
        Tables by the names of their sheets.
    path
        File to write, ``.csv`` or ``.xlsx``.

    Raises
    ------
    InputError
        The file cannot be written, or a table has more rows than a sheet.
    """
    check_table(path)
    if suffix_of(path) != ".xlsx":
        write_atomic(path, _without_formulas(next(iter(sheets.values()))).write_csv())
        return
    from xlsxwriter import Workbook

    longest = max(table.height for table in sheets.values())
    if longest > MOST_ROWS:
        raise InputError(f"{longest:,} rows do not fit on a sheet", file=path, legal=f"at most {MOST_ROWS:,}; or .csv")
    options = {"strings_to_formulas": False, "strings_to_urls": False, "nan_inf_to_errors": True}
    with atomic_path(path) as temporary, Workbook(str(temporary), options) as book:
        for name, table in sheets.items():
            table.write_excel(book, name[:31], freeze_panes=(1, 0), autofit=True)


def _without_formulas(table: pl.DataFrame) -> pl.DataFrame:
    # A spreadsheet would evaluate a name from a log that begins as a formula; an apostrophe makes it text. Numbers stay.
    text = pl.col(pl.String)
    formula = text.str.contains(r"^[=+\-@\t\r]") & text.cast(pl.Float64, strict=False).is_null()
    return table.with_columns(pl.when(formula).then(pl.lit("'") + text).otherwise(text).name.keep())


@EXPORTS.register("jobs")
def jobs(report: Report) -> pl.DataFrame:
    """Return a row for every policy and job: arrival, start, end, JCT, queueing time, GPUs.

    Parameters
    ----------
    report
        The report of the run.
    """
    tables = [run.jobs.select(pl.lit(run.policy).alias("policy"), pl.all()) for run in report.runs]
    return pl.concat(tables)


@EXPORTS.register("slurm-priorities")
def slurm_priorities(report: Report) -> pl.DataFrame:
    """Return the order of starts as priorities that an administrator can give to waiting jobs of Slurm.

    Jobs that ran by the log have none.

    Columns: ``job_id``; ``priority`` for ``scontrol update JobId=ID Priority=N``, highest for the job that starts first;
    ``nice`` for ``Nice=N``, 0 for the first job and `NICE_STEP` more for each next one; ``start`` in seconds on the clock
    of the run. Jobs that start together are in the order of arrival. This is advice: Slurm decides when a job starts.

    Parameters
    ----------
    report
        The report of one run.
    """
    run: Run = report.runs[-1]
    waiting = run.jobs.with_row_index("row").filter(~jobs_that_ran(report.instance))
    table = waiting.filter(pl.col("start").is_not_null()).sort("start", "arrival", "row")
    rank = np.arange(table.height)
    return table.select(
        pl.col("id").str.replace(r"%\d+\]$", "]").alias("job_id"),  # scontrol takes 9_[1-5], not 9_[1-5%2]
        pl.Series("priority", TOP - rank),
        pl.Series("nice", np.minimum(NICE_STEP * rank, NICEST)),
        "start",
    )
