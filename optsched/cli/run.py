"""The commands that compute: ``run``, ``solve``, ``bound`` and ``ratio``."""

from __future__ import annotations

import contextlib
import math
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optsched.cli.interrupt import due, telling, tidying
from optsched.cli.options import (
    DEFAULT_POLICIES,
    AsJson,
    Objective,
    Reading,
    Seed,
    Source,
    Strong,
    argument,
    how_long,
    option,
    output,
    policies,
    reading_source,
)
from optsched.cli.output import answer, others_print_to_stderr, print_json, say, show, write
from optsched.deadline import NEVER, Deadline
from optsched.errors import InputError
from optsched.problem.atomic_files import check_writable

if TYPE_CHECKING:
    from optsched.guarantees.evaluate import RatioTable
    from optsched.problem.instance import Instance
    from optsched.simulation.run import Run
    from optsched.solvers.solution import Solution


@reading_source
def run(
    source: Source,
    reading: Reading,
    policy: Annotated[list[str] | None, policies(DEFAULT_POLICIES)] = None,
    objective: Objective = None,
    strong: Strong = False,
    seed: Seed = 0,
    folder: Annotated[Path | None, output("DIR", "a folder for result, schedules and certificates")] = None,
    force: Annotated[bool, option("--force", "with -o: replace another run in the folder")] = False,
    as_json: AsJson = False,
) -> None:
    """Replay jobs under online policies, with certified ratios. Each is to a proven optimum, or to a bound on it.

    optsched run cluster-week -p fifo+consolidated -p srtf -o result
    """
    reading.look(source)
    from optsched.policies.simulate import seeded, specify
    from optsched.progress import bars
    from optsched.report.comparison import default_policies, evaluate
    from optsched.report.report_files import save_report

    # a slip in a name is reported before a long trace is read
    named = [specify(seeded(text, seed)) for text in policy or ()]
    loaded = reading.load(source)
    chosen = named or [specify(seeded(text, seed)) for text in default_policies(loaded.instance)]
    done: list[Run] = []
    with (
        _folder(folder, [each.text for each in chosen], loaded.instance, force),
        telling(lambda: _tell_finished(loaded.instance, objective, done, as_json)),
        bars() as shown,
        others_print_to_stderr(),
    ):
        report = evaluate(
            loaded.instance,
            chosen,
            objective,
            strong=strong,
            skipped_rows=loaded.skipped_rows,
            progress=shown.step,
            finished=done.append,
        )
    written = [] if folder is None else save_report(report, folder)
    if report.note:
        say(report.note)
    answer(as_json, report.to_json, lambda tables: tables.report_view(report))
    if folder is not None and not as_json:
        write(f"wrote {folder}: {', '.join(path.name for path in written)}\n")
    _require_kept([(report.instance, judgement) for judgement in report.violations], folder)
    _require_done("", [f"{each.policy} ({len(each.unfinished)})" for each in report.runs if each.unfinished])


def _tell_finished(instance: Instance, objective: str | None, done: list[Run], as_json: bool) -> None:
    from optsched.problem.objectives import objective_of

    if not done:
        say("no policy had finished")
        return
    name = objective_of(instance, objective).name
    if as_json:  # stdout is for a whole document
        say("finished: " + "; ".join(f"{each.policy}: {name} {each.value(name):.12g}" for each in done))
        return
    from optsched.cli.tables import finished_view

    show(finished_view(instance, name, done))


MODEL = (
    "see: optsched list models; default: chosen from the instance; a program without a schedule, like "
    "hadar-primal:rounds=6, is solved as it stands"
)
CLASSES = "gang, gang-nonpreemptive, forking, gpu-sharing, task-sharing, elastic; default: what the instance is"


@reading_source
def solve(
    source: Source,
    reading: Reading,
    model: Annotated[str | None, option("--model NAME[:KEY=VALUE,...]", MODEL)] = None,
    objective: Objective = None,
    time_limit: Annotated[
        str | None, option("--time-limit TIME", "seconds, 10s, 90min, 2h, 01:30:00; default: until it is proved")
    ] = None,
    file: Annotated[Path | None, output("FILE", "a file for the schedule (.json, .parquet)")] = None,
    as_json: AsJson = False,
) -> None:
    """The proven optimum, or at the time limit an interval. Of a program: its optimum, with prices.

    optsched solve rigid-10-1 -o best.json
    """
    check_writable(file, "a schedule")
    deadline = due(how_long(time_limit, "--time-limit"))
    reading.look(source)
    from optsched.progress import bars
    from optsched.solvers.solve import begin

    loaded = reading.load(source)
    if model is not None and _solved_as_it_stands(loaded.instance, model, objective, deadline, file, as_json):
        return
    with bars(words=True) as shown:
        interval, progress = shown.interval("solving")

        def interrupted() -> None:
            known = solving.so_far("interrupted")
            interval.update(*(math.nan if each is None else each for each in (known.value, known.bound, known.gap)))
            _save(known, file)
            say(interval.last)
            if file is not None:
                say(_written(known, file))

        def late() -> None:
            _answer(solving.so_far("the time limit came first"), loaded.instance, model, file, as_json)

        solving = begin(loaded.instance, objective, model=model, deadline=deadline, progress=progress)
        with telling(interrupted, late=late, deadline=deadline):
            solution = solving.run()
    _answer(solution, loaded.instance, model, file, as_json)


def _save(solution: Solution, file: Path | None) -> None:
    if file is not None and solution.schedule is not None:
        solution.schedule.save(file, objective=solution.objective, value=solution.value, preemptive=solution.gain)


def _written(solution: Solution, file: Path) -> str:
    return f"wrote {file}" if solution.schedule is not None else f"{file}: not written, there is no schedule"


def _answer(solution: Solution, instance: Instance, model: str | None, file: Path | None, as_json: bool) -> None:
    _save(solution, file)
    from optsched.cli.tables import judged, solution_view

    found = None
    if model is not None and solution.status == "feasible":  # an optimum needs no factor
        from optsched.guarantees.judge import judge_method

        found = judge_method(instance, solution)
    if as_json:
        print_json({**solution.to_json(), **({} if found is None else {"guarantee": found.to_json()})})
    else:
        notes = [solution.note, None if found is None else judged(found, solution.objective)]
        show(solution_view(solution.to_json(), instance, *(note for note in notes if note)))
        if file is not None:
            write(f"{_written(solution, file)}\n")
    if found is not None and found.holds is False:
        _require_kept([(instance, found)], None)


def _solved_as_it_stands(
    instance: Instance, model: str, objective: str | None, deadline: Deadline, file: Path | None, as_json: bool
) -> bool:
    """Is ``model`` a program without a schedule? Then this prints its optimum."""
    from optsched.solvers.formulate import is_program
    from optsched.solvers.solve_program import solve_program

    if not is_program(model):
        return False
    for stated, given in (("--objective", objective), ("--output", file)):
        if given is not None:
            legal = "a model of schedules; this one has an objective of its own, and no schedule"
            raise InputError("not with this model", field=stated, value=str(given), legal=legal)
    from optsched.progress import bars

    with bars(words=True) as shown:
        _, progress = shown.interval("solving")
        limit = None if deadline is NEVER else max(deadline.left, 0.01)
        solution = solve_program(instance, model, limit, progress=progress)
    answer(as_json, solution.to_json, lambda tables: tables.program_view(solution, instance))
    return True


@reading_source
def bound(
    source: Source,
    reading: Reading,
    objective: Objective = None,
    schedule_class: Annotated[str | None, option("--class CLASS", CLASSES)] = None,
    strong: Strong = False,
    file: Annotated[Path | None, output("FILE", "a file for the certificate")] = None,
    as_json: AsJson = False,
) -> None:
    """A certified lower bound: no schedule of the class is better.

    optsched bound cluster-week -o certificate.json
    """
    reading.look(source)
    from optsched.bounds import bound as best_bound
    from optsched.progress import bars

    loaded = reading.load(source)
    check_writable(file)
    with bars() as shown:
        shown.step("bounding")
        certificate = best_bound(loaded.instance, objective, schedule_class, strong=strong)
        shown.step("proving again")
        certificate.verify(loaded.instance)
    if file is not None:
        certificate.save(file)
    answer(
        as_json,
        lambda: {**certificate.to_json(), "float": certificate.exact_float},
        lambda tables: tables.certificate_view(certificate, loaded.instance),
        file,
    )


SUITES = "see: optsched list suites; or a folder of instances, an instance, or a recipe with --seeds"
WORST = "the table as JSON, and for every policy the instance on which it is worst"


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
        str | None, option("--speed S", "policies run on machines S times as fast (3/2) as those of the optimum")
    ] = None,
    strong: Strong = False,
    folder: Annotated[Path | None, output("DIR", WORST)] = None,
    as_json: AsJson = False,
) -> None:
    """Worst, mean and median ratio over a suite of instances. Each is to the best possible; is every guarantee kept?

    \b
    optsched ratio ddl -p a-srpt -p spjf
    optsched ratio rigid --set jobs=8 --seeds 20 -p srtf
    """
    from optsched.guarantees.evaluate import ratios
    from optsched.guarantees.robustness import errors_in, robustness_curves
    from optsched.guarantees.speed import speed_in
    from optsched.guarantees.suites import drawn, suite as suite_of
    from optsched.io.traces.generate import settings
    from optsched.progress import bars

    if setting and seeds is None:
        raise typer.BadParameter("goes with a recipe and --seeds N", param_hint="--set")
    if speed is not None and errors is not None:
        raise typer.BadParameter("does not go with --errors", param_hint="--speed")
    if strong and errors is not None:
        raise typer.BadParameter("does not go with --errors", param_hint="--strong")
    at = None if speed is None else speed_in(speed)
    members = suite_of(suite) if seeds is None else drawn(suite, seeds, **settings(setting or []))
    if folder is not None:
        from optsched.report.report_files import make_ratios_folder

        make_ratios_folder(folder)
    curves, done = None, deque["RatioTable"](maxlen=1)
    with (
        bars() as shown,
        telling(lambda: _tell_ratios(done, len(members.instances()), as_json)),
        others_print_to_stderr(),
    ):
        step = shown.step("measuring ratios")
        if errors is None:
            table = ratios(members, policy, objective, speed=at, strong=strong, progress=step, so_far=done.append)
        else:
            levels = errors_in(errors)
            curves = robustness_curves(
                members, policy, objective, errors=levels, draws=draws, progress=step, so_far=done.append
            )
            table = curves.table
    for note in table.notes:
        say(note)
    if folder is not None:
        from optsched.report.report_files import save_ratios

        for line in save_ratios(table, members, folder, curves):
            say(line)
    answer(
        as_json,
        (curves or table).to_json,
        lambda tables: tables.ratio_view(table) if curves is None else tables.robustness_view(curves),
    )
    if table.violations:
        instances = dict(members.instances())
        _require_kept([(instances[name], judgement) for name, judgement in table.violations], folder)
    without = (row for row in table.policies if row.worst is None)
    _require_done("no ratio, ", [row.policy for row in without if any(math.isnan(each.value) for each in row.measured)])


def _tell_ratios(done: Sequence[RatioTable], every: int, as_json: bool) -> None:
    finished = max((len(row.measured) for table in done for row in table.policies), default=0)
    say(f"{finished:,} of {every:,} instances had been measured")
    for table in done:
        if not as_json:  # stdout is for a whole document
            from optsched.cli.tables import ratio_view

            show(ratio_view(table))
        else:
            worst = [(row.policy, row.worst) for row in table.policies if row.worst is not None]
            say("worst so far: " + "; ".join(f"{policy} {ratio:.6g}" for policy, ratio in worst))


@contextlib.contextmanager
def _folder(path: Path | None, named: list[str], instance: Instance, force: bool) -> Iterator[None]:
    # Made before a long run, not after it; where the run fails, a new one is not left behind.
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


def _require_done(what: str, undone: list[str]) -> None:
    """Exit 1 where policies left jobs undone."""
    if undone:
        say(f"{what}jobs did not finish: {', '.join(undone)}")
        raise typer.Exit(1)


def _require_kept(violations: list[tuple[Any, Any]], folder: Path | None) -> None:
    """Exit 1 when a guarantee is violated: a line each on stderr, the instances saved for replay."""
    from optsched.guarantees.judge import save_violation

    for instance, judgement in violations:
        saved = save_violation(instance, judgement, folder or Path())
        say(f"{judgement.complaint}; the instance is saved in {saved}")
    if violations:
        raise typer.Exit(1)
