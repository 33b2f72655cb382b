"""``optsched solve``: a proven optimum, or an interval at the time limit."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from optsched.cli.exit_status import require_kept
from optsched.cli.interrupt import due, telling
from optsched.cli.options import (
    AsJson,
    Objective,
    Reading,
    ReportFile,
    Source,
    how_long,
    option,
    output,
    reading_source,
)
from optsched.cli.output import answer, say, write
from optsched.cli.report_page import check_report, write_report
from optsched.deadline import NEVER, Deadline
from optsched.errors import InputError
from optsched.problem.atomic_files import check_writable

if TYPE_CHECKING:
    from rich.console import Group

    from optsched.problem.instance import Instance
    from optsched.report.page import PageTable
    from optsched.solvers.solution import Solution

MODEL = (
    "see: optsched list models; default: chosen from the instance; a program without a schedule, like "
    "hadar-primal:rounds=6, is solved directly"
)


@reading_source
def solve(
    source: Source,
    reading: Reading,
    model: Annotated[str | None, option("--model NAME[:KEY=VALUE,...]", MODEL)] = None,
    objective: Objective = None,
    time_limit: Annotated[
        str | None, option("--time-limit TIME", "seconds, 10s, 90min, 2h, 01:30:00; default: none")
    ] = None,
    file: Annotated[Path | None, output("FILE", "a file for the schedule (.json, .parquet, or .trace.json)")] = None,
    report_file: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Compute a proven optimum, or an interval at the time limit.

    For a program without a schedule (see --model): its optimum and its dual values.

    optsched solve rigid-10-1 -o best.json

    \f
    Parameters
    ----------
    source
        An instance file (.json, .parquet), a shipped instance, or DIALECT:PATH.
    reading
        The options that decide how the SOURCE is read.
    model
        A model of `optsched list models`. Default: chosen from the instance.
    objective
        Name of the objective. Default: that of the instance, else ``total_flow_time``.
    time_limit
        Time limit. Default: none.
    file
        A file for the schedule (.json, .parquet), or for a trace of it (.trace.json).
    report_file
        A page to forward: the result, tables, charts.
    as_json
        Print exactly one JSON document to stdout.
    """
    check_writable(file, "a schedule")
    check_report(report_file)
    deadline = due(how_long(time_limit, "--time-limit"))
    reading.look(source)
    from optsched.progress import bars
    from optsched.solvers.solve import begin

    loaded = reading.load(source)
    if model is not None and _program_solved(loaded.instance, model, objective, deadline, file, report_file, as_json):
        return
    with bars(words=True) as shown:
        interval, progress = shown.interval("solving")

        def interrupted() -> None:
            incumbent = solving.so_far("interrupted")
            numbers = (incumbent.value, incumbent.bound, incumbent.gap)
            interval.update(*(math.nan if x is None else x for x in numbers))
            _save(incumbent, file)
            say(interval.last)
            if file is not None:
                say(_written(incumbent, file))

        def late() -> None:
            _answer(solving.so_far("the time limit came first"), loaded.instance, model, file, report_file, as_json)

        solving = begin(loaded.instance, objective, model=model, deadline=deadline, progress=progress)
        with telling(interrupted, late=late, deadline=deadline):
            solution = solving.run()
    _answer(solution, loaded.instance, model, file, report_file, as_json)


def _save(solution: Solution, file: Path | None) -> None:
    if file is None or solution.schedule is None:
        return
    from optsched.problem.schedule_file import is_trace

    if is_trace(file):
        from optsched.plot.trace_events import save_trace

        save_trace(solution, file)
    else:
        solution.schedule.save(file, objective=solution.objective, value=solution.value, preemptive=solution.gain)


def _written(solution: Solution, file: Path) -> str:
    return f"wrote {file}" if solution.schedule is not None else f"{file}: not written, there is no schedule"


def _answer(
    solution: Solution,
    instance: Instance,
    model: str | None,
    file: Path | None,
    report_file: Path | None,
    as_json: bool,
) -> None:
    _save(solution, file)
    judgement = None
    if model is not None and solution.status == "feasible":  # an optimum needs no factor
        from optsched.evaluation.theorem_runs import judge_solution

        judgement = judge_solution(instance, solution)

    def view() -> Group:
        from optsched.cli.run_table import judged
        from optsched.cli.solution_tables import solution_view

        notes = [solution.note, None if judgement is None else judged(judgement, solution.objective)]
        return solution_view(solution.to_json(), instance, *(note for note in notes if note))

    _report(solution, instance, report_file, view)
    theorem = {} if judgement is None else {"guarantee": judgement.to_json()}
    answer(as_json, lambda: {**solution.to_json(), **theorem}, view, report_file)
    if file is not None and not as_json:
        write(f"{_written(solution, file)}\n")
    if judgement is not None and judgement.holds is False:
        require_kept([(instance, judgement)], None)


def _report(solution: Solution, instance: Instance, report_file: Path | None, view: Callable[[], Group]) -> None:
    def page(tables: list[PageTable], notes: list[str], command: str) -> str:
        from optsched.report.solution_page import solution_page

        return solution_page(solution, instance, tables, notes, command)

    write_report(report_file, view, page)


def _program_solved(
    instance: Instance,
    model: str,
    objective: str | None,
    deadline: Deadline,
    file: Path | None,
    report_file: Path | None,
    as_json: bool,
) -> bool:
    """Solve a program without a schedule and print its optimum; return False if ``model`` is not such a program."""
    from optsched.cli.solution_tables import program_view
    from optsched.solvers.formulate import is_program
    from optsched.solvers.solve_program import solve_program

    if not is_program(model):
        return False
    for stated, given in (("--objective", objective), ("--output", file)):
        if given is not None:
            legal = "a model of schedules; this program has its own objective and no schedule"
            raise InputError("not with this model", field=stated, value=str(given), legal=legal)
    from optsched.progress import bars

    with bars(words=True) as shown:
        _, progress = shown.interval("solving")
        limit = None if deadline is NEVER else max(deadline.left, 0.01)
        solution = solve_program(instance, model, limit, progress=progress)
    _report(solution, instance, report_file, lambda: program_view(solution, instance))
    answer(as_json, solution.to_json, lambda: program_view(solution, instance), report_file)
    return True
