"""``optsched run``: replay an instance under online policies, and compare each with the best possible.

The steps: read the instance; call `optsched.evaluation.evaluate.evaluate`, which simulates, referees, bounds and judges;
write the files of ``-o``; print the table; exit with 1 if a guarantee is violated or jobs are unfinished.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from optsched.cli.exit_status import require_finished, require_kept
from optsched.cli.interrupt import telling, tidying
from optsched.cli.options import (
    DEFAULT_POLICIES,
    AsJson,
    Csv,
    Objective,
    Reading,
    ReportFile,
    Seed,
    Source,
    Strong,
    option,
    output,
    policies,
    reading_source,
)
from optsched.cli.output import answer, others_print_to_stderr, say, say_if_plain, show, write
from optsched.cli.report_page import check_report, write_report

if TYPE_CHECKING:
    from optsched.problem.instance import Instance
    from optsched.report.page import PageTable
    from optsched.simulation.run import Run


@reading_source
def run(
    source: Source,
    reading: Reading,
    policy: Annotated[list[str] | None, policies(DEFAULT_POLICIES)] = None,
    objective: Objective = None,
    strong: Strong = False,
    seed: Seed = 0,
    folder: Annotated[
        Path | None, output("DIR", "a folder for result, schedules and certificates; or FILE.trace.json, for Perfetto")
    ] = None,
    force: Annotated[bool, option("--force", "with -o: replace another run in the folder")] = False,
    csv: Csv = None,
    export: Annotated[
        tuple[str, Path] | None, option("--export KIND FILE", "jobs, or slurm-priorities (advice), as .csv or .xlsx")
    ] = None,
    report_file: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Run online policies on an instance; report certified ratios.

    Each ratio is to a proven optimum, or to a verified lower bound on it. If the log says what ran, that is the first row.

    optsched run cluster-week -p fifo+consolidated -p srtf -o result

    \f
    Parameters
    ----------
    source
        An instance file (.json, .parquet), a shipped instance, or DIALECT:PATH.
    reading
        The options that decide how the SOURCE is read.
    policy
        Policies with their placements, as texts. Default: see the help.
    objective
        Name of the objective. Default: that of the instance, else ``total_flow_time``.
    strong
        For rigid gangs compute a stronger bound, too, which takes up to a minute.
    seed
        Seed of all random numbers.
    folder
        A folder for result, schedules and certificates; or FILE.trace.json for a trace of the one schedule.
    force
        With -o: replace another run in the folder.
    csv
        File for the table, .csv or .xlsx.
    export
        An export of `optsched.report.exports`, and its file.
    report_file
        A page to forward: the result, tables, charts.
    as_json
        Print exactly one JSON document to stdout.
    """
    check_report(report_file)
    reading.look(source)
    from optsched.cli.run_table import report_view
    from optsched.evaluation.as_logged import AS_LOGGED, has_log
    from optsched.evaluation.evaluate import default_policies, evaluate
    from optsched.policies.simulate import seeded, specify
    from optsched.problem.memory import require_memory
    from optsched.progress import bars
    from optsched.report.exports import RunOutputs
    from optsched.report.report_files import save_report

    # a mistake in a name is reported before a long trace is read
    named = [specify(seeded(text, seed)) for text in policy or ()]
    loaded = reading.load(source, notes=False)
    instance = loaded.instance
    chosen = named or [specify(seeded(text, seed)) for text in default_policies(instance)]
    require_memory(instance.n, len(chosen))
    outputs = RunOutputs(folder, csv, export)
    outputs.check([specification.text for specification in chosen], instance)
    folder, finished = outputs.folder, list["Run"]()
    rows = [*[AS_LOGGED] * has_log(instance), *(specification.text for specification in chosen)]
    with (
        _folder(folder, rows, instance, force),
        telling(lambda: _tell_finished(instance, objective, finished, as_json)),
        bars() as progress,
        others_print_to_stderr(),
    ):
        report = evaluate(
            instance,
            chosen,
            objective,
            strong=strong,
            skipped_rows=loaded.skipped_rows,
            progress=progress.step,
            finished=finished.append,
        )
        written = [] if folder is None else save_report(report, folder)
    files = outputs.save(report)
    if report.note:
        say(report.note)
    if report.certificate is not None:
        say_if_plain(strong, report.certificate.kind)

    def page(tables: list[PageTable], notes: list[str], command: str) -> str:
        from optsched.report.run_page import run_page

        return run_page(report, tables[0], notes, command)

    write_report(report_file, lambda: report_view(report), page)
    answer(as_json, report.to_json, lambda: report_view(report), *files, report_file)
    if folder is not None and not as_json:
        write(f"wrote {folder}: {', '.join(path.name for path in written)}\n")
    require_kept([(instance, judgement) for judgement in report.violations], folder)
    simulated = (done for done in report.runs if done is not report.logged)
    require_finished("", [f"{done.policy} ({len(done.unfinished)})" for done in simulated if done.unfinished])


def _tell_finished(instance: Instance, objective: str | None, finished: list[Run], as_json: bool) -> None:
    from optsched.problem.objectives import objective_of

    if not finished:
        say("no policy had finished")
        return
    name = objective_of(instance, objective).name
    if as_json:  # stdout is for a whole document
        values = (f"{done.policy}: {name} {done.value(name):.12g}" for done in finished)
        say("finished: " + "; ".join(values))
        return
    from optsched.cli.run_table import finished_view

    show(finished_view(instance, name, finished))


@contextlib.contextmanager
def _folder(path: Path | None, named: list[str], instance: Instance, force: bool) -> Iterator[None]:
    # Made before a long run, not after it; if the run fails, a new folder is removed.
    if path is None:
        yield
        return
    from optsched.report.report_files import prepare_folder

    new = not path.exists()
    prepare_folder(path, named, instance.digest, force=force)

    def remove() -> None:
        if new:
            with contextlib.suppress(OSError):
                path.rmdir()

    try:
        with tidying(remove):
            yield
    except BaseException:
        remove()
        raise
