"""``verify``, ``generate``, ``convert``, ``plot``, ``fit``: from files to files; ``library``: what is known of instances."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optsched.cli.options import (
    AboutSource,
    AsJson,
    Reading,
    Seed,
    Source,
    argument,
    completing,
    how_long,
    option,
    output,
    reading_source,
)
from optsched.cli.output import answer, print_json, show, write
from optsched.errors import check_legal, printable
from optsched.problem.atomic_files import check_writable, write_atomic

if TYPE_CHECKING:
    from optsched.check.context import Violation
    from optsched.speeds.least_squares import Fitted

InstanceFile = output("FILE", "an instance file (.json, .parquet)")


@reading_source
def verify(
    file: Annotated[Path, argument("FILE", "a schedule, its tasks, or a certificate")],
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
    # of a schedule of other jobs every other rule is broken, too, and none of that says anything
    violations = [each for each in verdict.violations if each.rule == "instance"] or verdict.violations
    if as_json:
        rules = _rules(violations)
        print_json({"file": str(file), "kind": verdict.kind, "holds": verdict.holds, "violations": rules})
    elif verdict.holds:
        write(f"{printable(str(file))}: the {verdict.kind} holds\n")
    _require_none(violations, file, as_json)


def _rules(violations: Sequence[Violation]) -> list[dict[str, str]]:
    return [{"rule": each.rule, "message": each.message} for each in violations]


def _require_none(violations: Sequence[Violation], file: str | Path, as_json: bool) -> None:
    """Exit 1 where there are any: a line each on stderr, unless the document on stdout has them."""
    for each in () if as_json else violations:
        sys.stderr.write(printable(f"{file}: {each.rule}: {each.message}") + "\n")
    if violations:
        raise typer.Exit(1)


def generate(
    recipe: Annotated[str, argument("RECIPE", "see: optsched list recipes", completing("recipes"))],
    file: Annotated[Path, InstanceFile],
    setting: Annotated[
        list[str] | None, option("--set KEY=VALUE", "a parameter; see: optsched list recipes RECIPE")
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Make an instance from a recipe and a seed.

    optsched generate philly-like --set jobs=500 --seed 1 -o made.json
    """
    check_writable(file, "an instance")
    from optsched.io.traces.generate import generate as make, settings

    instance = make(recipe, seed, **settings(setting or []))
    instance.save(file)
    _say_written(file, instance, 0, as_json)


@reading_source
def convert(source: Source, file: Annotated[Path, InstanceFile], reading: Reading, as_json: AsJson = False) -> None:
    """Turn any dialect into an instance file.

    optsched convert tiresias:log.csv --cluster 8x8 -o log.parquet
    """
    check_writable(file, "an instance")
    reading.look(source)
    loaded = reading.load(source)
    loaded.instance.save(file)
    _say_written(file, loaded.instance, loaded.skipped_rows, as_json)


@reading_source
def plot(
    file: Annotated[Path, argument("FILE", "a schedule, its tasks, or the result.json of a run")],
    picture: Annotated[Path, output("PICTURE", "a picture (.png, .svg, .pdf), or a page to zoom into (.html)")],
    reading: Reading,
    instance: Annotated[str | None, AboutSource] = None,
    since: Annotated[
        str | None, option("--from TIME", "only what happens from then on: seconds, 90min, 2h, 1d")
    ] = None,
    until: Annotated[str | None, option("--to TIME", "and until then")] = None,
    width: Annotated[
        str | None, option("--width WIDTH", "for paper: column (3.33 inches), page (7), or a number of inches")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Draw a schedule by GPU and node, or a run's ratios. All of a schedule, or a window of time.

    \b
    optsched plot result/result.json -o ratios.png
    optsched plot result/result.json --width column -o ratios.pdf
    optsched plot result/schedule-01-srtf.json --instance rigid-12-1 -o srtf.html
    """
    if instance is not None:
        reading.look(instance)
    from optsched.plot.plot_file import plot_file

    about = None if instance is None else reading.load(instance).instance
    plot_file(file, picture, about, start=since, end=until, width=width)
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


WHAT = "list: a suite, instance by instance; check: a schedule, its tasks, or a certificate"
WHICH = "only instances whose optimum is proved; only the others"


def library(
    action: Annotated[str, argument("[list|check]", "default: list")] = "list",
    what: Annotated[str | None, argument("[SUITE|FILE]", WHAT, completing("library-suites"))] = None,
    solved: Annotated[bool | None, option("--solved/--open", WHICH, show_default=False)] = None,
    as_json: AsJson = False,
) -> None:
    """Instances with proven optima or intervals; submit better.

    \b
    optsched library list gangs-64 --open
    optsched library check better.json

    check exits with 1, naming the rule, when the file does not hold; else it says what the file improves.
    """
    check_legal(action in ("list", "check"), "library", action, "list or check")
    if action == "check":
        check_legal(what is not None, "library check", "no file", "a schedule or a certificate")
        check_legal(solved is None, "library check", "--solved" if solved else "--open", "goes with list")
        _check(str(what), as_json)
        return
    from optsched.io.library import library as frame

    rows = frame(what, solved).to_dicts()
    suites = what is None and solved is None
    answer(
        as_json,
        lambda: {"instances": rows},
        lambda tables: tables.library_suites_view(rows) if suites else tables.library_view(rows),
    )


def _check(file: str, as_json: bool) -> None:
    from optsched.io.library import check_submission

    found = check_submission(Path(file))
    if as_json:
        about: dict[str, Any] = {"file": file, "instance": found.entry.name, "kind": found.kind}
        about |= {"holds": not found.violations, "violations": _rules(found.violations), "improves": found.improves}
        about |= {"closes": found.closes, "verdict": found.verdict}
        numbers = {"value": found.value, "known": found.known}
        print_json(about | {name: None if each is None else float(each) for name, each in numbers.items()})
    elif not found.violations:
        from rich.text import Text

        show(Text(f"{file}: {found.verdict}"))
    _require_none(found.violations, file, as_json)


KINDS = ("contention", "interference", "scaling")


def fit(
    kind: Annotated[str, argument("KIND", ", ".join(KINDS))],
    measured: Annotated[Path, argument("FILE.csv", "one measurement a row")],
    latency: Annotated[str | None, option("--latency TIME", "contention: a, where known: seconds, 35us, 2ms")] = None,
    ratio: Annotated[float | None, option("--ratio XI", "interference: of pairs not measured; default: 2")] = None,
    file: Annotated[Path | None, output("FILE.json", "for --contention, --interference or --profiles of run")] = None,
    as_json: AsJson = False,
) -> None:
    """Fit the constants of a model to one's own measurements.

    \b
    optsched fit contention transfers.csv -o network.json  # bytes, transfers, seconds
    optsched fit interference pairs.csv -o pairs.json      # model, beside, seconds
    optsched fit scaling steps.csv -o profiles.json        # model, gpus, batch, seconds
    """
    check_legal(kind in KINDS, "KIND", kind, ", ".join(KINDS))
    check_legal(latency is None or kind == "contention", "--latency", latency, "with contention only")
    pairs = ratio is None or (kind == "interference" and ratio >= 1)
    check_legal(pairs, "--ratio", ratio, "a number >= 1, with interference only")
    known = how_long(latency, "--latency", zero=True)
    from optsched.io.measurements import measured_contention, measured_interference, measured_scalings

    check_writable(file, "the constants", (".json",))
    if kind == "scaling":
        found: dict[str, Fitted[Any]] = dict(measured_scalings(measured))
        part = {name: each.model.to_json() for name, each in found.items()}
    else:
        contends = kind == "contention"
        one = measured_contention(measured, known) if contends else measured_interference(measured, ratio or 2.0)
        found, part = {"": one}, one.model.to_json()
    if file is not None:
        write_atomic(file, json.dumps(part, indent=1) + "\n")
    about = {"kind": kind, "file": str(measured)}
    answer(
        as_json,
        lambda: about | {"fits": [{"of": name, **each.to_json()} for name, each in found.items()], kind: part},
        lambda tables: tables.fits_view(found),
        file,
    )
