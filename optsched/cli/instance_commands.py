"""``optsched generate`` and ``optsched convert``: write an instance file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from optsched.cli.completion import completing
from optsched.cli.options import AsJson, Reading, Seed, Source, argument, option, output, reading_source
from optsched.cli.output import print_json, write
from optsched.problem.atomic_files import check_writable

if TYPE_CHECKING:
    from optsched.problem.instance import Instance

InstanceFile = output("FILE", "an instance file (.json, .parquet)")


def generate(
    recipe: Annotated[str, argument("RECIPE", "see: optsched list recipes", completing("recipes"))],
    file: Annotated[Path, InstanceFile],
    setting: Annotated[
        list[str] | None, option("--set KEY=VALUE", "a parameter; see: optsched list recipes RECIPE")
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Generate an instance from a recipe and a seed.

    optsched generate philly-like --set jobs=500 --seed 1 -o made.json

    \f
    Parameters
    ----------
    recipe
        A recipe; see: optsched list recipes.
    file
        An instance file (.json, .parquet).
    setting
        A parameter; see: optsched list recipes RECIPE.
    seed
        Seed of all random numbers.
    as_json
        Print exactly one JSON document to stdout.
    """
    check_writable(file, "an instance")
    from optsched.io.traces.generate import generate as make, settings

    instance = make(recipe, seed, **settings(setting or []))
    instance.save(file)
    _say_written(file, instance, 0, as_json)


@reading_source
def convert(source: Source, file: Annotated[Path, InstanceFile], reading: Reading, as_json: AsJson = False) -> None:
    """Convert a trace, a log or an instance to an instance file.

    optsched convert tiresias:log.csv --cluster 8x8 -o log.parquet

    \f
    Parameters
    ----------
    source
        An instance file (.json, .parquet), a shipped instance, or DIALECT:PATH.
    file
        An instance file (.json, .parquet).
    reading
        The options that decide how the SOURCE is read.
    as_json
        Print exactly one JSON document to stdout.
    """
    check_writable(file, "an instance")
    reading.look(source)
    loaded = reading.load(source)
    loaded.instance.save(file)
    _say_written(file, loaded.instance, loaded.skipped_rows, as_json)


def _say_written(path: Path, instance: Instance, skipped: int, as_json: bool) -> None:
    from optsched.cli.wording import instance_line

    if as_json:
        about = {"name": instance.name, "jobs": instance.n, "gpus": instance.cluster.gpus, "skipped_rows": skipped}
        print_json({"file": str(path), "instance": about})
    else:
        write(f"{path}: {instance_line(instance, skipped)}\n")
