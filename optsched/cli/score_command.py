"""``optsched score``: how good the schedule was that really ran, or one in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from optsched.cli.options import (
    AboutSource,
    AsJson,
    Csv,
    Objective,
    Reading,
    ReportFile,
    Strong,
    argument,
    option,
    reading_source,
)
from optsched.cli.output import answer, print_json, say, say_if_plain
from optsched.cli.report_page import check_report, write_report

if TYPE_CHECKING:
    from rich.console import Group

    from optsched.report.page import PageTable

BY = "group jobs by user, group, size or week; may be given several times; default: size and week"


@reading_source
def score(
    what: Annotated[str, argument("SOURCE|SCHEDULE", "a log that says what ran, or with --instance a schedule file")],
    reading: Reading,
    instance: Annotated[str | None, AboutSource] = None,
    by: Annotated[list[str] | None, option("--by KEY", BY, show_default=False)] = None,
    every: Annotated[bool, option("--all", "show all groups, not only the first ten")] = False,
    objective: Objective = None,
    strong: Strong = False,
    csv: Csv = None,
    report_file: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Compare the schedule that really ran with the best possible.

    The log may be inconsistent: what no schedule can have is listed. Exit status 1 if the referee rejects a SCHEDULE.

    \b
    optsched score csv:jobs.csv --cluster 8x8
    optsched score result/schedule-01-fifo.json --instance cluster-week

    \f
    Parameters
    ----------
    what
        A log that says what ran, or with ``instance`` a schedule file.
    reading
        The options that decide how the SOURCE is read.
    instance
        The instance of a schedule file.
    by
        Keys of the tables of groups.
    every
        Show all groups, not only the first ten.
    objective
        Name of the objective. Default: that of the instance, else ``total_flow_time``.
    strong
        For rigid gangs compute a stronger bound, too, which takes up to a minute.
    csv
        File for the table of the first key, .csv, or for all tables, .xlsx.
    report_file
        A page to forward: the result, tables, charts.
    as_json
        Print exactly one JSON document to stdout.
    """
    check_report(report_file)
    from optsched.report.exports import check_table, save_tables

    check_table(csv)
    reading.look(what if instance is None else instance)
    from optsched.cli.score_table import DEFAULT_KEYS, score_view
    from optsched.evaluation.score import RejectedSchedule, score as scored
    from optsched.progress import bars

    loaded = reading.load(what if instance is None else instance, notes=False)
    file, about = (loaded.instance, None) if instance is None else (what, loaded.instance)
    try:
        with bars() as progress:
            progress.step("bounding")
            result = scored(file, about, objective, strong=strong, skipped_rows=loaded.skipped_rows)
            tables = {key: result.by(key) for key in by or DEFAULT_KEYS}
    except RejectedSchedule as error:
        if as_json:
            print_json({"file": what, "holds": False, "message": str(error)})
        else:
            say(f"{what}: {error}")
        raise typer.Exit(1) from None
    if result.report.note:
        say(result.report.note)
    if result.report.certificate is not None:
        say_if_plain(strong, result.report.certificate.kind)

    if csv is not None:
        save_tables({f"by {key}": table for key, table in tables.items()}, csv)

    def view() -> Group:
        return score_view(result, tables, whole=every)

    def page(sheets: list[PageTable], notes: list[str], command: str) -> str:
        from optsched.report.score_page import score_page

        return score_page(result, sheets, notes, command)

    write_report(report_file, view, page)
    answer(as_json, result.to_json, view, csv, report_file)
