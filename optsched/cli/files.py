"""``verify``, ``generate``, ``convert`` and ``plot``: from files to files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from optsched.cli.names import completing
from optsched.cli.options import AboutSource, AsJson, Reading, Seed, Source, output, reading_source
from optsched.cli.output import print_json, write
from optsched.errors import printable

InstanceFile = output("FILE", "an instance file (.json, .parquet)")


@reading_source
def verify(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="a schedule, its tasks, or a certificate", show_default=False)
    ],
    instance: Annotated[str, AboutSource],
    reading: Reading,
    as_json: AsJson = False,
) -> None:
    """Check a schedule or a certificate. Exit 1, naming the rule, when it does not hold.

    optsched verify certificate.json --instance cluster-week
    """
    reading.look(instance)
    from optsched.check.referee import check_file

    verdict = check_file(file, reading.load(instance).instance)
    if as_json:
        found = [{"rule": v.rule, "message": v.message} for v in verdict.violations]
        print_json({"file": str(file), "kind": verdict.kind, "holds": verdict.holds, "violations": found})
    elif verdict.holds:
        write(f"{printable(str(file))}: the {verdict.kind} holds\n")
    else:
        for violation in verdict.violations:
            sys.stderr.write(printable(f"{file}: {violation.rule}: {violation.message}") + "\n")
    if not verdict.holds:
        raise typer.Exit(1)


def generate(
    recipe: Annotated[
        str,
        typer.Argument(
            metavar="RECIPE",
            help="see: optsched list recipes",
            show_default=False,
            autocompletion=completing("recipes"),
        ),
    ],
    file: Annotated[Path, InstanceFile],
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="a parameter; see: optsched list recipes RECIPE"),
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Make an instance from a recipe and a seed.

    optsched generate philly-like --set jobs=500 --set cluster=8x8 --seed 1 -o made.json
    """
    from optsched.problem.files import check_writable

    check_writable(file, "an instance")
    from optsched.io.traces.generate import generate as make, settings

    instance = make(recipe, seed, **settings(setting or []))
    instance.save(file)
    _say_written(file, instance, 0, as_json)


@reading_source
def convert(
    source: Source,
    file: Annotated[Path, InstanceFile],
    reading: Reading,
    as_json: AsJson = False,
) -> None:
    """Turn any dialect into an instance file.

    optsched convert tiresias:log.csv --cluster 8x8 -o log.parquet
    """
    from optsched.problem.files import check_writable

    check_writable(file, "an instance")
    reading.look(source)
    loaded = reading.load(source)
    loaded.instance.save(file)
    _say_written(file, loaded.instance, loaded.skipped_rows, as_json)


@reading_source
def plot(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="a schedule, its tasks, or the result.json of a run", show_default=False),
    ],
    picture: Annotated[Path, output("PICTURE", "a picture (.png, .svg, .pdf), or a page to zoom into (.html)")],
    reading: Reading,
    instance: Annotated[str | None, AboutSource] = None,
    since: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="only what happens from then on: seconds, 90min, 2h, 1d"),
    ] = None,
    until: Annotated[str | None, typer.Option("--to", metavar="TIME", help="and until then")] = None,
    as_json: AsJson = False,
) -> None:
    """Draw a schedule by GPU and node, or a run's ratios. All of a schedule, or a window of time.

    optsched plot result/result.json -o ratios.png
    optsched plot result/schedule-01-srtf.json --instance rigid-12-1 -o srtf.html
    """
    if instance is not None:
        reading.look(instance)
    from optsched.plot.files import plot_file

    about = None if instance is None else reading.load(instance).instance
    plot_file(file, picture, about, start=since, end=until)
    if as_json:
        print_json({"file": str(picture)})
    else:
        write(f"{picture}\n")


def _say_written(path: Path, instance: Any, skipped: int, as_json: bool) -> None:
    from optsched.cli.tables import instance_line

    if as_json:
        about = {"name": instance.name, "jobs": instance.n, "gpus": instance.cluster.gpus, "skipped_rows": skipped}
        print_json({"file": str(path), "instance": about})
    else:
        write(f"{path}: {instance_line(instance, skipped)}\n")
