"""``optsched ratio``: ratios to the best possible over a suite of instances."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optsched.cli.exit_status import require_finished, require_kept
from optsched.cli.interrupt import telling
from optsched.cli.options import AsJson, Csv, ReportFile, Strong, argument, option, output, policies
from optsched.cli.output import answer, others_print_to_stderr, say, show
from optsched.cli.report_page import check_report, write_report

if TYPE_CHECKING:
    from rich.console import Group

    from optsched.evaluation.robustness import Robustness
    from optsched.evaluation.suite_ratios import RatioTable
    from optsched.evaluation.suites import Suite
    from optsched.report.page import PageTable

SUITES = "see: optsched list suites; or a folder of instances, an instance, or a recipe with --seeds"
WORST = "a folder for the table as JSON and every policy's worst instance"


def ratio(
    suite: Annotated[str, argument("SUITE", SUITES)],
    policy: Annotated[list[str], policies()],
    objective: Annotated[str | None, option("--objective NAME", "default: each instance's own")] = None,
    seeds: Annotated[int | None, option("--seeds N", "SUITE is a recipe: its instances of the seeds 1..N")] = None,
    setting: Annotated[list[str] | None, option("--set KEY=VALUE", "a parameter of that recipe")] = None,
    errors: Annotated[
        str | None, option("--errors E,E,...", "consistency and robustness at these prediction errors >= 1")
    ] = None,
    draws: Annotated[int, option("--draws N", "draws of the noise at every error")] = 1,
    speed: Annotated[
        str | None, option("--speed S", "run policies on machines S times as fast (e.g. 3/2) as those of the optimum")
    ] = None,
    strong: Strong = False,
    folder: Annotated[Path | None, output("DIR", WORST)] = None,
    csv: Csv = None,
    report_file: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Measure the ratios of policies over a suite of instances.

    The table has the worst, mean and median ratio, each to a proven optimum or to a verified lower bound on it.
    Exit status 1 if a guarantee is violated.

    \b
    optsched ratio ddl -p a-srpt -p spjf
    optsched ratio rigid --set jobs=8 --seeds 20 -p srtf

    \f
    Parameters
    ----------
    suite
        A suite of `optsched list suites`, a folder of instances, an instance, or a recipe with ``seeds``.
    policy
        Policies with their placements, as texts. Default: see the help.
    objective
        Name of the objective. Default: each instance's own.
    seeds
        If SUITE is a recipe: its instances of the seeds 1..N.
    setting
        A parameter of that recipe.
    errors
        Consistency and robustness at these prediction errors >= 1.
    draws
        Draws of the noise at every error.
    speed
        Run policies on machines S times as fast (e.g. 3/2) as those of the optimum.
    strong
        For rigid gangs compute a stronger bound, too, which takes up to a minute.
    folder
        A folder for the table as JSON and every policy's worst instance.
    csv
        File for the ratios of all instances, .csv or .xlsx.
    report_file
        A page to forward: the result, tables, charts.
    as_json
        Print exactly one JSON document to stdout.
    """
    check_report(report_file)
    from optsched.cli.ratio_tables import ratio_view, robustness_view
    from optsched.evaluation.suites import drawn, suite as suite_of
    from optsched.guarantees.speed import speed_in
    from optsched.io.traces.generate import settings

    _require_fitting(setting, seeds, errors, speed, strong)
    if csv is not None:
        from optsched.report.exports import check_table, save_tables

        check_table(csv)
    at = None if speed is None else speed_in(speed)
    members = suite_of(suite) if seeds is None else drawn(suite, seeds, **settings(setting or []))
    if folder is not None:
        from optsched.report.report_files import make_ratios_folder

        make_ratios_folder(folder)
    table, curves = _measured(members, policy, objective, errors, draws, at, strong, as_json)
    for note in table.notes:
        say(note)
    if folder is not None:
        from optsched.report.report_files import save_ratios

        for line in save_ratios(table, members, folder, curves):
            say(line)
    if csv is not None:
        save_tables({"ratios": table.frame()}, csv)

    def view() -> Group:
        return ratio_view(table) if curves is None else robustness_view(curves)

    def page(tables: list[PageTable], notes: list[str], command: str) -> str:
        from optsched.report.ratio_page import ratio_page

        return ratio_page(table, curves, tables, notes, command)

    write_report(report_file, view, page)
    answer(as_json, (curves or table).to_json, view, csv, report_file)
    if table.violations:
        instances = dict(members.instances())
        require_kept([(instances[name], judgement) for name, judgement in table.violations], folder)
    without = (row for row in table.policies if row.worst is None)
    unfinished = [row.policy for row in without if any(math.isnan(entry.value) for entry in row.measured)]
    require_finished("no ratio, ", unfinished)


def _require_fitting(
    setting: list[str] | None, seeds: int | None, errors: str | None, speed: str | None, strong: bool
) -> None:
    """Refuse options that do not go together."""
    if setting and seeds is None:
        raise typer.BadParameter("goes with a recipe and --seeds N", param_hint="--set")
    if speed is not None and errors is not None:
        raise typer.BadParameter("does not go with --errors", param_hint="--speed")
    if strong and errors is not None:
        raise typer.BadParameter("does not go with --errors", param_hint="--strong")


def _measured(
    members: Suite,
    policy: list[str],
    objective: str | None,
    errors: str | None,
    draws: int,
    speed: Fraction | None,
    strong: bool,
    as_json: bool,
) -> tuple[RatioTable, Robustness | None]:
    """Return the ratios, and with prediction errors the curves."""
    from optsched.evaluation.robustness import errors_in, robustness_curves
    from optsched.evaluation.suite_ratios import ratios
    from optsched.progress import bars

    done, counts = deque["RatioTable"](maxlen=1), deque[int](maxlen=1)
    with (
        bars() as progress,
        telling(lambda: _tell_ratios(done, counts, as_json)),
        others_print_to_stderr(),
    ):
        shown = progress.step("measuring ratios")

        def step(measured: int, every: int) -> None:
            counts.append(every)
            shown(measured, every)

        if errors is None:
            table = ratios(members, policy, objective, speed=speed, strong=strong, progress=step, so_far=done.append)
            return table, None
        levels = errors_in(errors)
        curves = robustness_curves(
            members, policy, objective, errors=levels, draws=draws, progress=step, so_far=done.append
        )
        return curves.table, curves


def _tell_ratios(done: Sequence[RatioTable], counts: Sequence[int], as_json: bool) -> None:
    finished = max((len(row.measured) for table in done for row in table.policies), default=0)
    every = f" of {counts[0]:,}" if counts else ""
    say(f"{finished:,}{every} instances had been measured")
    for table in done:
        if not as_json:  # stdout is for a whole document
            from optsched.cli.ratio_tables import ratio_view

            show(ratio_view(table))
        else:
            worst = [(row.policy, row.worst) for row in table.policies if row.worst is not None]
            say("worst so far: " + "; ".join(f"{policy} {ratio:.6g}" for policy, ratio in worst))
