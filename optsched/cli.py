"""The command line. Names are a contract: scripts and other people's tests call them.

Exit codes: 0, 1 for a result that does not hold, 2 for a user's mistake (one clear line on stderr).
"""

from __future__ import annotations

import contextlib
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from optsched.errors import InputError, OptschedError

app = typer.Typer(
    name="optsched",
    help="How far is a schedule from the best possible one, and can you prove it?",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

Source = Annotated[
    str, typer.Argument(help="an instance file, a shipped instance, or DIALECT:PATH", show_default=False)
]
ClusterOption = Annotated[str | None, typer.Option("--cluster", help="NODESxGPUS[:TYPE][+...], e.g. 8x8")]
ObjectiveOption = Annotated[
    str | None, typer.Option("--objective", help="default: the instance's own, else total_flow_time")
]
LimitOption = Annotated[int | None, typer.Option("--limit", help="only the first N jobs by arrival")]
ColumnsOption = Annotated[str | None, typer.Option("--columns", help="csv: arrival=NAME,gpus=NAME,duration=NAME,...")]
SkipBadOption = Annotated[bool, typer.Option("--skip-bad", help="leave out rows that are not legal, and count them")]
ThroughputsOption = Annotated[
    Path | None,
    typer.Option(
        "--throughputs", help="iterations/s by model and GPU type (Gavel's JSON); default: the built-in table"
    ),
]
StrictOption = Annotated[
    bool, typer.Option("--strict-throughputs", help="refuse rates that the table does not hold, instead of scaling")
]
InterferenceOption = Annotated[
    str | None,
    typer.Option(
        "--interference",
        metavar="XI|NAME|FILE",
        help="slow-down of two jobs on one GPU: a number >= 1; k80, p100, v100 (measured); resources; a file",
    ),
]
ProfilesOption = Annotated[
    Path | None,
    typer.Option("--profiles", help="folder of measured scaling profiles (pollux); default: the built-in ones"),
]
JsonOption = Annotated[bool, typer.Option("--json", help="exactly one JSON document on stdout")]
SeedOption = Annotated[int, typer.Option("--seed", help="seed of everything random")]


def _load(
    source: str,
    cluster: str | None,
    limit: int | None,
    columns: str | None,
    skip_bad: bool,
    throughputs: Path | None,
    strict: bool,
    interference: str | None,
    profiles: Path | None,
) -> Any:
    from optsched.sources import load_counted
    from optsched.traces.generate import settings

    named = settings(columns.split(","), option="--columns") if columns else None
    return load_counted(
        source,
        cluster=cluster,
        limit=limit,
        columns=named,
        skip_bad=skip_bad,
        throughputs=throughputs,
        strict_throughputs=strict,
        interference=interference,
        profiles=profiles,
        say=_say,
    )


def _say(line: str) -> None:
    sys.stderr.write(f"optsched: {line}\n")


def _print_json(document: Any) -> None:
    sys.stdout.write(json.dumps(document, allow_nan=False) + "\n")


def _show(view: Any) -> None:
    from optsched.cli_tables import show

    show(view)


@app.command()
def run(
    source: Source,
    policy: Annotated[list[str] | None, typer.Option("-p", "--policy", help="NAME[:key=value,...][+PLACEMENT]")] = None,
    cluster: ClusterOption = None,
    objective: ObjectiveOption = None,
    limit: LimitOption = None,
    seed: SeedOption = 0,
    output: Annotated[Path | None, typer.Option("-o", help="a folder for result, schedules and certificate")] = None,
    columns: ColumnsOption = None,
    skip_bad: SkipBadOption = False,
    throughputs: ThroughputsOption = None,
    strict_throughputs: StrictOption = False,
    interference: InterferenceOption = None,
    profiles: ProfilesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Replay jobs under online policies; a certified ratio to the best possible beside each."""
    from optsched.online.specification import seeded, specify
    from optsched.progress import bars
    from optsched.report import default_policies, evaluate
    from optsched.report_files import save_report

    named = [
        specify(seeded(text, seed)) for text in policy or ()
    ]  # a slip in a name is told before a long trace is read
    loaded = _load(source, cluster, limit, columns, skip_bad, throughputs, strict_throughputs, interference, profiles)
    chosen = named or [specify(seeded(text, seed)) for text in default_policies(loaded.instance)]
    with _folder(output), bars() as shown:
        report = evaluate(loaded.instance, chosen, objective, skipped_rows=loaded.skipped_rows, progress=shown.step)
    if output is not None:
        save_report(report, output)
    if report.note:
        _say(report.note)
    if as_json:
        _print_json(report.to_json())
    else:
        from optsched.cli_tables import report_view

        _show(report_view(report))
    _require_kept([(report.instance, judgement) for judgement in report.violations], output)


@app.command()
def solve(
    source: Source,
    model: Annotated[
        str | None, typer.Option("--model", help="a formulation; default: chosen from the instance")
    ] = None,
    objective: ObjectiveOption = None,
    cluster: ClusterOption = None,
    limit: LimitOption = None,
    time_limit: Annotated[float | None, typer.Option("--time-limit", help="seconds")] = None,
    output: Annotated[Path | None, typer.Option("-o", help="a file for the schedule")] = None,
    columns: ColumnsOption = None,
    skip_bad: SkipBadOption = False,
    throughputs: ThroughputsOption = None,
    strict_throughputs: StrictOption = False,
    interference: InterferenceOption = None,
    profiles: ProfilesOption = None,
    as_json: JsonOption = False,
) -> None:
    """The proven optimum, or at the time limit a proven interval."""
    from optsched.files import check_writable
    from optsched.offline.solve import solve as find
    from optsched.progress import bars

    if output is not None:
        check_writable(output, "a schedule")
    loaded = _load(source, cluster, limit, columns, skip_bad, throughputs, strict_throughputs, interference, profiles)
    with bars() as shown:
        say = shown.say("solving")
        solution = find(loaded.instance, objective, model=model, time_limit=time_limit, progress=lambda p: say(str(p)))
    if output is not None and solution.schedule is not None:
        solution.schedule.save(output, objective=solution.objective, value=solution.value, preemptive=False)
    if as_json:
        _print_json(solution.to_json())
        return
    from optsched.cli_tables import solution_view

    _show(solution_view(solution.to_json(), loaded.instance, solution.note))


@app.command()
def bound(
    source: Source,
    objective: ObjectiveOption = None,
    schedule_class: Annotated[
        str | None,
        typer.Option(
            "--class",
            help="gang, gang-nonpreemptive, forking, sharing, elastic; default: sharing where jobs may",
        ),
    ] = None,
    cluster: ClusterOption = None,
    limit: LimitOption = None,
    output: Annotated[Path | None, typer.Option("-o", help="a file for the certificate")] = None,
    columns: ColumnsOption = None,
    skip_bad: SkipBadOption = False,
    throughputs: ThroughputsOption = None,
    strict_throughputs: StrictOption = False,
    interference: InterferenceOption = None,
    profiles: ProfilesOption = None,
    as_json: JsonOption = False,
) -> None:
    """A certified lower bound: no schedule of the class is better."""
    from optsched.bounds import bound as best_bound
    from optsched.files import check_writable
    from optsched.progress import bars

    loaded = _load(source, cluster, limit, columns, skip_bad, throughputs, strict_throughputs, interference, profiles)
    if output is not None:
        check_writable(output)
    with bars() as shown:
        shown.step("bounding")
        certificate = best_bound(loaded.instance, objective, schedule_class)
        shown.step("proving again")
        certificate.verify(loaded.instance)
    if output is not None:
        certificate.save(output)
    if as_json:
        _print_json({**certificate.to_json(), "float": certificate.exact_float})
        return
    from optsched.cli_tables import certificate_view

    _show(certificate_view(certificate, loaded.instance))


@app.command()
def verify(
    file: Annotated[Path, typer.Argument(help="a schedule or a certificate", show_default=False)],
    instance: Annotated[str, typer.Option("--instance", help="the SOURCE it is about", show_default=False)],
    cluster: ClusterOption = None,
    limit: LimitOption = None,
    columns: ColumnsOption = None,
    skip_bad: SkipBadOption = False,
    throughputs: ThroughputsOption = None,
    strict_throughputs: StrictOption = False,
    interference: InterferenceOption = None,
    profiles: ProfilesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check a schedule or a certificate; exit 1, naming the rule, when it does not hold."""
    from optsched.check import check_file

    loaded = _load(instance, cluster, limit, columns, skip_bad, throughputs, strict_throughputs, interference, profiles)
    verdict = check_file(file, loaded.instance)
    if as_json:
        found = [{"rule": v.rule, "message": v.message} for v in verdict.violations]
        _print_json({"file": str(file), "kind": verdict.kind, "holds": verdict.holds, "violations": found})
    elif verdict.holds:
        sys.stdout.write(f"{file}: the {verdict.kind} holds\n")
    else:
        for violation in verdict.violations:
            sys.stderr.write(f"{file}: {violation.rule}: {violation.message}\n")
    if not verdict.holds:
        raise typer.Exit(1)


@app.command()
def ratio(
    suite: Annotated[
        str,
        typer.Argument(help="see: optsched list suites; or a folder of instances, or an instance", show_default=False),
    ],
    policy: Annotated[
        list[str], typer.Option("-p", "--policy", help="NAME[:key=value,...][+PLACEMENT]", show_default=False)
    ],
    objective: Annotated[str | None, typer.Option("--objective", help="default: each instance's own")] = None,
    as_json: JsonOption = False,
) -> None:
    """Worst and mean ratio to the best possible over a suite of instances; is every guarantee kept?"""
    from optsched.progress import bars
    from optsched.ratios.evaluate import ratios
    from optsched.ratios.suites import suite as suite_of

    members = suite_of(suite)
    with bars() as shown:
        table = ratios(members, list(policy), objective, progress=shown.step("measuring ratios"))
    for note in table.notes:
        _say(note)
    if as_json:
        _print_json(table.to_json())
    else:
        from optsched.cli_tables import ratio_view

        _show(ratio_view(table))
    if table.violations:
        instances = dict(members.instances())
        _require_kept([(instances[name], judgement) for name, judgement in table.violations], None)


@app.command()
def generate(
    recipe: Annotated[str, typer.Argument(help="see: optsched list recipes", show_default=False)],
    output: Annotated[Path, typer.Option("-o", help="an instance file (.json, .parquet)", show_default=False)],
    setting: Annotated[list[str] | None, typer.Option("--set", help="key=value")] = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Make an instance from a recipe and a seed."""
    from optsched.files import check_writable
    from optsched.traces.generate import generate as make
    from optsched.traces.generate import settings

    check_writable(output, "an instance")
    instance = make(recipe, seed, **settings(setting or []))
    instance.save(output)
    _say_written(output, instance, 0, as_json)


@app.command()
def convert(
    source: Source,
    output: Annotated[Path, typer.Option("-o", help="an instance file (.json, .parquet)", show_default=False)],
    cluster: ClusterOption = None,
    limit: LimitOption = None,
    columns: ColumnsOption = None,
    skip_bad: SkipBadOption = False,
    throughputs: ThroughputsOption = None,
    strict_throughputs: StrictOption = False,
    interference: InterferenceOption = None,
    profiles: ProfilesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Turn any dialect into an instance file."""
    from optsched.files import check_writable

    check_writable(output, "an instance")
    loaded = _load(source, cluster, limit, columns, skip_bad, throughputs, strict_throughputs, interference, profiles)
    loaded.instance.save(output)
    _say_written(output, loaded.instance, loaded.skipped_rows, as_json)


@app.command()
def reproduce(
    study: Annotated[str, typer.Argument(help="see: optsched list studies", show_default=False)],
    seeds: Annotated[
        int | None, typer.Option("--seeds", help="workloads of every kind: seeds 1..N; default: as many as usual")
    ] = None,
    small: Annotated[bool, typer.Option("--small", help="a quick look: few and small workloads")] = False,
    workers: Annotated[int | None, typer.Option("--workers", help="processes; default: one a processor")] = None,
    as_json: JsonOption = False,
) -> None:
    """Run the experiments of a study again: means and intervals over seeds, and what they say."""
    from optsched.progress import bars
    from optsched.studies.study import STUDIES

    chosen = STUDIES.get(study)
    with bars() as shown:
        done = chosen.run(seeds, small=small, workers=workers, progress=shown.step(f"running the study {study}"))
    if as_json:
        _print_json(done.to_json())
        return
    from optsched.cli_study import reproduction_view

    _show(reproduction_view(done))


@app.command()
def plot(
    file: Annotated[
        Path,
        typer.Argument(help="a schedule, its tasks, or the result.json of a run", show_default=False),
    ],
    output: Annotated[Path, typer.Option("-o", help="a picture (.png, .svg, .pdf)", show_default=False)],
    instance: Annotated[str | None, typer.Option("--instance", help="the SOURCE of a schedule: shows arrivals")] = None,
    cluster: ClusterOption = None,
    limit: LimitOption = None,
    columns: ColumnsOption = None,
    skip_bad: SkipBadOption = False,
    throughputs: ThroughputsOption = None,
    strict_throughputs: StrictOption = False,
    interference: InterferenceOption = None,
    profiles: ProfilesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Draw a schedule by GPU and node, or a run's values and ratios."""
    from optsched.plot.files import plot_file

    about = (
        _load(
            instance, cluster, limit, columns, skip_bad, throughputs, strict_throughputs, interference, profiles
        ).instance
        if instance
        else None
    )
    plot_file(file, output, about)
    if as_json:
        _print_json({"file": str(output)})
    else:
        sys.stdout.write(f"{output}\n")


@app.command(name="list")
def list_names(
    kind: Annotated[str, typer.Argument(help="policies, placements, models, bounds, ...", show_default=False)],
    as_json: JsonOption = False,
) -> None:
    """Names that can be used, each with a line on what it is."""
    from optsched.catalogue import catalogue

    rows = catalogue(kind)
    if as_json:
        _print_json({kind: [{"name": name, "text": text} for name, text in rows]})
        return
    from optsched.cli_tables import names_view

    _show(names_view(kind, rows))


@contextlib.contextmanager
def _folder(path: Path | None) -> Iterator[None]:
    # Made before a long run, not after it; where the run fails, a new one is not left behind.
    if path is None:
        yield
        return
    from optsched.report_files import prepare_folder

    new = not path.exists()
    prepare_folder(path)
    try:
        yield
    except BaseException:
        if new:
            with contextlib.suppress(OSError):
                path.rmdir()
        raise


def _require_kept(violations: list[tuple[Any, Any]], folder: Path | None) -> None:
    """Exit 1 when a guarantee is violated: a line each on stderr, the instances saved for replay."""
    from optsched.ratios.replay import save_violation

    for instance, judgement in violations:
        saved = save_violation(instance, judgement, folder or Path())
        sys.stderr.write(f"optsched: {judgement.complaint}; the instance is saved in {saved}\n")
    if violations:
        raise typer.Exit(1)


def _say_written(path: Path, instance: Any, skipped: int, as_json: bool) -> None:
    from optsched.cli_tables import instance_line

    if as_json:
        about = {"name": instance.name, "jobs": instance.n, "gpus": instance.cluster.gpus, "skipped_rows": skipped}
        _print_json({"file": str(path), "instance": about})
    else:
        sys.stdout.write(f"{path}: {instance_line(instance, skipped)}\n")


def main(arguments: list[str] | None = None) -> None:
    """Entry point: runs a command and turns errors into one line and an exit code."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="interference: ")  # said when the source was read
            code = app(arguments, standalone_mode=False)
    except InputError as error:
        sys.stderr.write(f"optsched: {error}\n")
        code = 2
    except OptschedError as error:
        sys.stderr.write(f"optsched: {error}\n")
        code = 1
    except typer.Abort:
        code = 130
    except KeyboardInterrupt:
        sys.stderr.write("optsched: interrupted\n")
        code = 130
    except BrokenPipeError:
        code = 0
    except Exception as error:
        # The command-line parser's own errors: unknown options, missing arguments, wrong types.
        if not hasattr(error, "format_message"):
            raise
        sys.stderr.write(f"optsched: {' '.join(error.format_message().split())} (see optsched --help)\n")
        code = 2
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
