"""Options, each defined once; `reading_source` gives a command all options that decide how a SOURCE is read."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from typer import Argument, Option

from optsched.cli.completion import complete_policy, completing, names
from optsched.cli.output import say
from optsched.cli.source_keeping import keep_sources
from optsched.deadline import DURATION, seconds_in
from optsched.errors import check_legal

if TYPE_CHECKING:
    from optsched.io.sources import Loaded


def option(written: str, said: str | None = None, **more: Any) -> Any:
    """Return an option of a command.

    Parameters
    ----------
    written
        Names and value as help shows them, ``-o,--output FILE``; without a value the option is a switch.
    said
        The help text.
    **more
        Further arguments of `typer.Option`.
    """
    flags, _, metavar = written.partition(" ")
    return Option(*flags.split(","), metavar=metavar or None, help=said, **more)


def argument(metavar: str, said: str, complete: Callable[..., list[str]] | None = None) -> Any:
    """Return a positional argument of a command.

    Parameters
    ----------
    metavar
        The name that help shows.
    said
        The help text.
    complete
        Completes the argument in a shell.
    """
    return Argument(metavar=metavar, help=said, show_default=False, autocompletion=complete)


SOURCE = "an instance file (.json, .parquet), a shipped instance, or DIALECT:PATH"
Source = Annotated[str, argument("SOURCE", SOURCE, completing("instances"))]
AboutSource = option(
    "--instance SOURCE", "the instance of FILE", show_default=False, autocompletion=completing("instances")
)
Objective = Annotated[
    str | None, option("--objective NAME", "default: the objective of the instance, else total_flow_time")
]


def policies(default: str = "") -> Any:
    """Return the option ``-p``.

    Parameters
    ----------
    default
        The default, in words.
    """
    said = "may be given several times; see: optsched list policies" + (f"; default: {default}" if default else "")
    written = "-p,--policy NAME[:KEY=VALUE,...][+PLACEMENT]"
    return option(written, said, show_default=False, autocompletion=complete_policy)


# the same as in optsched.evaluation.evaluate, which takes seconds to import; a test compares them
DEFAULT_POLICIES = (
    "fifo, sjf, srtf (jobs that may share GPUs: sjf, sjf-ffs, sjf-bsbf; jobs with tasks: srsf:k=1, srsf:k=2, ada-srsf, "
    "leader-first)"
)
Strong = Annotated[
    bool, option("--strong", "for rigid gangs compute a stronger bound, too, which takes up to a minute")
]
AsJson = Annotated[bool, option("--json", "print exactly one JSON document to stdout")]
Seed = Annotated[int, option("--seed S", "seed of all random numbers")]
Workers = Annotated[int | None, option("--workers N", "number of processes; default: one per processor")]


def how_long(text: str | None, name: str, *, zero: bool = False) -> float | None:
    """Return the seconds that an option gives; None if it is not given.

    Parameters
    ----------
    text
        The value of the option.
    name
        The name of the option.
    zero
        True if 0 is legal.

    Raises
    ------
    InputError
        The value is not a positive time.
    """
    if text is None:
        return None
    seconds = seconds_in(text, name)
    check_legal(seconds > 0 or (zero and seconds == 0), name, text, f"a time > 0: {DURATION}")
    return seconds


def output(metavar: str, what: str) -> Any:
    """Return the option ``-o``.

    Parameters
    ----------
    metavar
        The value that help shows.
    what
        The help text.
    """
    return option(f"-o,--output {metavar}", what, show_default=False)


Csv = Annotated[Path | None, option("--csv FILE", "the table as .csv, or as .xlsx (extra excel)", show_default=False)]
ReportFile = Annotated[
    Path | None,
    option("--report FILE.html", "a self-contained page to forward: the result, tables, charts", show_default=False),
]


SLOWER = "slow-down of two jobs that share a GPU: a number >= 1; k80, p100, v100 (measured); resources; a file"
SCALED = "scaling profiles: a folder of measurements (pollux), or a file from optsched fit scaling"


@dataclass(frozen=True)
class Reading:
    """The options of every command that reads a SOURCE; they decide how it is read."""

    cluster: Annotated[
        str | None, option("--cluster NODESxGPUS[:TYPE][+...]", "the cluster, e.g. 8x8 or 4x8:V100+2x4:P100")
    ] = None
    limit: Annotated[int | None, option("--limit N", "read only the first N jobs by arrival")] = None
    since: Annotated[
        str | None, option("--from DATE", "only jobs submitted from this date, or time after the first submission, on")
    ] = None
    until: Annotated[str | None, option("--to DATE", "only jobs submitted before this date or time")] = None
    columns: Annotated[
        str | None, option("--columns FIELD=NAME,...", "csv: map columns, arrival=NAME,gpus=NAME,duration=NAME,...")
    ] = None
    skip_bad: Annotated[bool, option("--skip-bad", "leave out invalid rows, and count them")] = False
    unit: Annotated[str, option("--unit gpu|cpu|node", "logs: what the gang of a job counts")] = "gpu"
    release: Annotated[str, option("--release submit|eligible", "logs: when a job arrives")] = "submit"
    walltimes: Annotated[
        str, option("--walltimes keep|cut", "logs: keep runs beyond the walltime of their job, or end them there")
    ] = "keep"
    throughputs: Annotated[
        Path | None,
        option("--throughputs FILE", "iterations/s by model and GPU type (Gavel's JSON); default: the built-in table"),
    ] = None
    strict_throughputs: Annotated[
        bool, option("--strict-throughputs", "refuse rates that the table lacks instead of scaling others")
    ] = False
    interference: Annotated[str | None, option("--interference XI|NAME|FILE", SLOWER)] = None
    contention: Annotated[
        Path | None,
        option("--contention FILE", "seconds of concurrent all-reduces; a file from optsched fit contention"),
    ] = None
    profiles: Annotated[Path | None, option("--profiles DIR|FILE", SCALED)] = None
    job_level: Annotated[
        bool, option("--job-level", "treat jobs with tasks as whole jobs, for policies that schedule whole jobs")
    ] = False

    def load(self, source: str, *, notes: bool = True) -> Loaded:
        """Return the instance that a SOURCE names, and the number of rows that were left out.

        Parameters
        ----------
        source
            The SOURCE.
        notes
            Print how a log was read to stderr; False for a command whose table has these notes.

        Raises
        ------
        InputError
            There is no such SOURCE, or its content is invalid.
        """
        from optsched.io.sources import LoadRequest, load_counted
        from optsched.io.traces.generate import settings

        named = settings(self.columns.split(","), option="--columns") if self.columns else None
        asked = {field.name: getattr(self, field.name) for field in fields(self)}
        loaded = load_counted(source, LoadRequest(**{**asked, "columns": named, "say": say, "notes": notes}))
        keep_sources()  # a trace may have read a second file
        return loaded

    def look(self, source: str) -> None:
        """Refuse a SOURCE that does not exist, before imports that take seconds.

        Parameters
        ----------
        source
            The SOURCE.

        Raises
        ------
        InputError
            There is no such SOURCE.
        """
        prefix, colon, place = source.partition(":")
        if colon and prefix.lower() in names("dialects"):
            there = any(Path(path).exists() for path in (place, place.rpartition("#")[0]) if path)
        else:
            there = Path(source).exists() or source.lower() in names("instances")
        if not there:
            self.load(source)  # raises the error that lists the legal ones


def reading_source(command: Callable[..., None]) -> Callable[..., None]:
    """Give ``command(..., reading)`` the options of `Reading` in place of the parameter ``reading``.

    Parameters
    ----------
    command
        The command.
    """
    hints = get_type_hints(command, include_extras=True)
    options = get_type_hints(Reading, include_extras=True)
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name == "reading":
            parameters += [
                inspect.Parameter(
                    field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=options[field.name]
                )
                for field in fields(Reading)
            ]
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name]))

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        reading = Reading(**{field.name: given.pop(field.name) for field in fields(Reading)})
        command(**given, reading=reading)

    with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_options
