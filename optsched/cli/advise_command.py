"""``optsched advise``: which policies avoid waiting on a cluster, who loses by them, and what more GPUs would change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from optsched.cli.completion import completing
from optsched.cli.interrupt import shield_processes
from optsched.cli.options import (
    AsJson,
    Objective,
    Reading,
    ReportFile,
    Source,
    Workers,
    how_long,
    option,
    policies,
    reading_source,
)
from optsched.cli.output import answer, others_print_to_stderr, say
from optsched.cli.report_page import check_report, write_report

if TYPE_CHECKING:
    from optsched.report.page import PageTable

ADDED = "those that suit the log, and these"
CHANGES = (
    "gpus=+10% (cpus=, processors= if the log counts these), nodes=-1 or cluster=SPEC, may be given several times; "
    "default: 10 % or one node more and fewer"
)
PLACES = "placements of all policies that name none; default: count, and consolidated where gangs can be spread"


@reading_source
def advise(
    source: Source,
    reading: Reading,
    policy: Annotated[list[str] | None, policies(ADDED)] = None,
    only: Annotated[bool, option("--only", "compare only the policies of -p")] = False,
    placement: Annotated[
        list[str] | None,
        option("--placement NAME", PLACES, show_default=False, autocompletion=completing("placements")),
    ] = None,
    what_if: Annotated[list[str] | None, option("--what-if CHANGE", CHANGES, show_default=False)] = None,
    restart: Annotated[
        str, option("--restart TIME", "what a restart costs where neither the policy nor the job says it")
    ] = "60s",
    objective: Objective = None,
    draws: Annotated[int, option("--draws N", "draws of the bootstrap over weeks")] = 200,
    seed: Annotated[int, option("--seed S", "seed of the draws")] = 0,
    workers: Workers = None,
    report_file: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Compare the policies that could run on a cluster.

    If the log says what ran, that is the first row. The others are sorted by the queued GPU-hours that they avoid.

    \b
    optsched advise cluster-week
    optsched advise csv:jobs.csv --cluster 8x8 --what-if nodes=+2 --report advice.html

    \f
    Parameters
    ----------
    source
        An instance file (.json, .parquet), a shipped instance, or DIALECT:PATH.
    reading
        The options that decide how the SOURCE is read.
    policy
        Policies in addition to those that suit the log.
    only
        Compare only the policies of -p.
    placement
        Placements of policies that name none.
    what_if
        Changes of the cluster.
    restart
        Cost of a restart.
    objective
        Name of the objective. Default: that of the instance, else ``total_flow_time``.
    draws
        Draws of the bootstrap over weeks.
    seed
        Seed of the draws.
    workers
        Number of processes.
    report_file
        A page to forward: the result, tables, charts.
    as_json
        Print exactly one JSON document to stdout.
    """
    check_report(report_file)
    seconds = how_long(restart, "restart", zero=True)
    reading.look(source)
    from optsched.cli.advise_table import advice_view, captions
    from optsched.evaluation.advice.advice import advise as advised
    from optsched.policies.simulate import specify
    from optsched.progress import bars

    for text in policy or ():  # a mistake in a name is reported before a long log is read
        specify(text)
    loaded = reading.load(source, notes=False)
    shield_processes()
    with bars() as progress, others_print_to_stderr():
        progress.step("comparing")
        advice = advised(
            loaded.instance,
            policy or (),
            objective,
            placements=placement or (),
            what_if=what_if or None,
            restart=seconds or 0.0,
            only=only,
            draws=draws,
            seed=seed,
            workers=workers,
            skipped_rows=loaded.skipped_rows,
        )
    if advice.report.note:
        say(advice.report.note)

    def page(tables: list[PageTable], notes: list[str], command: str) -> str:
        from optsched.report.advice_page import advice_page

        return advice_page(advice, dict(zip(captions(advice), tables, strict=True)), notes, command)

    write_report(report_file, lambda: advice_view(advice), page)
    answer(as_json, advice.to_json, lambda: advice_view(advice), report_file)
