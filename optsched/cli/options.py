"""Options, each written once; `reading_source` gives a command all that decide how a SOURCE is read."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from typer import Argument, Option
from typer.core import TyperCommand

from optsched.cli.output import say
from optsched.deadline import DURATION, seconds_in
from optsched.errors import InputError, check_legal
from optsched.problem.files import keeping_sources, note_named, refuse_source, sources

if TYPE_CHECKING:
    from optsched.io.sources import Loaded

# Names for shell completion, without importing what bears them: that takes seconds, and a key press must not. They are read
# from the lines of the source that register them; a test compares them with the registries.

_PACKAGE = Path(__file__).resolve().parent.parent
# kind: (folder, what the line of a registration looks like)
_FOUND = {
    "policies": (
        "policies",
        re.compile(r'^@(?:POLICIES\.register|queue_order|task_order|_predicted)\("([^"]+)"', re.MULTILINE),
    ),
    "placements": ("policies/placements", re.compile(r'^@PLACEMENTS\.register\("([^"]+)"\)', re.MULTILINE)),
    "recipes": ("io/traces/recipes", re.compile(r'^@recipe\(\s*"([^"]+)"', re.MULTILINE)),
    "dialects": ("io/traces", re.compile(r'^@dialect\(\s*"([^"]+)"', re.MULTILINE)),
}


def names(kind: str) -> list[str]:
    """All names of a kind, sorted: policies, placements, recipes, dialects, instances, library-suites."""
    if kind in ("instances", "library-suites"):
        return sorted({row["name" if kind == "instances" else "suite"] for row in _index()})
    folder, line = _FOUND[kind]
    files = (*(_PACKAGE / folder).rglob("*.py"), *(_PACKAGE / "classes").glob(f"*/{folder}/**/*.py"))
    return sorted({name for file in files for name in line.findall(file.read_text(encoding="utf-8"))})


def _index() -> list[dict[str, str]]:
    import csv

    for folder in (_PACKAGE / "_instances", _PACKAGE.parent / "instances"):
        index = folder / "index.csv"
        if index.is_file():
            with index.open(encoding="utf-8", newline="") as lines:
                return list(csv.DictReader(lines))
    return []


def completing(*kinds: str) -> Callable[[str], list[str]]:
    """What typer asks for the names that begin as the user has."""

    def complete(incomplete: str) -> list[str]:
        return [name for kind in kinds for name in names(kind) if name.startswith(incomplete)]

    return complete


def complete_policy(incomplete: str) -> list[str]:
    """A policy, or behind ``+`` a placement."""
    head, plus, tail = incomplete.rpartition("+")
    found = names("placements" if plus else "policies")
    return [f"{head}{plus}{name}" for name in found if name.startswith(tail)]


def option(written: str, said: str | None = None, **more: Any) -> Any:
    """The option that help shows so, ``-o,--output FILE``; without a word behind it it is switched on."""
    names, _, metavar = written.partition(" ")
    return Option(*names.split(","), metavar=metavar or None, help=said, **more)


def argument(metavar: str, said: str, complete: Callable[..., list[str]] | None = None) -> Any:
    """What stands on the command line without a name."""
    return Argument(metavar=metavar, help=said, show_default=False, autocompletion=complete)


SOURCE = "an instance file (.json, .parquet), a shipped instance, or DIALECT:PATH"
Source = Annotated[str, argument("SOURCE", SOURCE, completing("instances"))]
AboutSource = option(
    "--instance SOURCE", "what it is about", show_default=False, autocompletion=completing("instances")
)
Objective = Annotated[str | None, option("--objective NAME", "default: the instance's own, else total_flow_time")]


def policies(default: str = "") -> Any:
    """The option ``-p``."""
    said = "may be given several times; see: optsched list policies" + (f"; default: {default}" if default else "")
    written = "-p,--policy NAME[:KEY=VALUE,...][+PLACEMENT]"
    return option(written, said, show_default=False, autocompletion=complete_policy)


# as optsched.report.comparison has them, which takes seconds to import; a test compares
DEFAULT_POLICIES = (
    "fifo, sjf, srtf (jobs that may share GPUs: sjf, sjf-ffs, sjf-bsbf; jobs with tasks: srsf:k=1, srsf:k=2, ada-srsf, "
    "leader-first)"
)
Strong = Annotated[bool, option("--strong", "of rigid gangs also the bound that takes up to a minute, and closes more")]
AsJson = Annotated[bool, option("--json", "exactly one JSON document on stdout")]
Seed = Annotated[int, option("--seed S", "seed of everything random")]
Workers = Annotated[int | None, option("--workers N", "processes; default: one a processor")]


def how_long(text: str | None, name: str, *, zero: bool = False) -> float | None:
    """Seconds > 0 (``zero``: >= 0) that an option of this name says, None where it is not given; `InputError` for others."""
    if text is None:
        return None
    seconds = seconds_in(text, name)
    check_legal(seconds > 0 or (zero and seconds == 0), name, text, f"a time > 0: {DURATION}")
    return seconds


def output(metavar: str, what: str) -> Any:
    """The option ``-o``."""
    return option(f"-o,--output {metavar}", what, show_default=False)


class SourceKeepingCommand(TyperCommand):
    """A command that writes no file over one that it reads: refused before it begins, and once it knows what else it reads.

    That is so of stdout, too: ``run log.json --json > log.json``.
    """

    def invoke(self, ctx: Any) -> Any:
        with keeping_sources():
            _outputs.clear()
            for each in self.params:
                value = ctx.params.get(each.name or "")
                if set(each.opts) & {"-o", "--report"}:
                    _outputs.extend([] if value is None else [(each.opts[0], value)])
                else:
                    _note_named(value, getattr(each, "metavar", None) or "")
            keep_sources()
            return super().invoke(ctx)


_outputs: list[tuple[str, Path]] = []  # of the running command: the option, and what it writes there


def _note_named(value: Any, metavar: str) -> None:
    """What a parameter names that is a file, or a SOURCE, is read."""
    if isinstance(value, Path) or (isinstance(value, str) and any(w in metavar for w in ("SOURCE", "SUITE", "FILE"))):
        note_named(str(value))


def keep_sources() -> None:
    """`InputError` when the running command would write over a file that it reads, as far as is known by now."""
    for option, file in _outputs:
        refuse_source(file, option)
    for source in sources():
        same = False
        with contextlib.suppress(OSError):  # there is no such file any more, or no stdout
            same = os.path.samestat(os.fstat(1), os.stat(source))
        if same:
            message = "stdout is redirected into what is read; the shell may have emptied it already"
            raise InputError(message, file=source, legal="another file")


SLOWER = "slow-down of two jobs on one GPU: a number >= 1; k80, p100, v100 (measured); resources; a file"
SCALED = "scaling profiles: a folder of measurements (pollux), or a file of optsched fit scaling"


@dataclass(frozen=True)
class Reading:
    """How a SOURCE is read: the options of every command that reads one."""

    cluster: Annotated[str | None, option("--cluster NODESxGPUS[:TYPE][+...]", "e.g. 8x8, 4x8:V100+2x4:P100")] = None
    limit: Annotated[int | None, option("--limit N", "only the first N jobs by arrival")] = None
    columns: Annotated[
        str | None, option("--columns FIELD=NAME,...", "csv: arrival=NAME,gpus=NAME,duration=NAME,...")
    ] = None
    skip_bad: Annotated[bool, option("--skip-bad", "leave out rows that are invalid, and count them")] = False
    throughputs: Annotated[
        Path | None,
        option("--throughputs FILE", "iterations/s by model and GPU type (Gavel's JSON); default: the built-in table"),
    ] = None
    strict_throughputs: Annotated[
        bool, option("--strict-throughputs", "refuse rates that the table does not hold, instead of scaling")
    ] = False
    interference: Annotated[str | None, option("--interference XI|NAME|FILE", SLOWER)] = None
    contention: Annotated[
        Path | None, option("--contention FILE", "all-reduces at once; see: optsched fit contention")
    ] = None
    profiles: Annotated[Path | None, option("--profiles DIR|FILE", SCALED)] = None
    job_level: Annotated[
        bool, option("--job-level", "jobs with tasks as whole jobs, for policies that know no tasks")
    ] = False

    def load(self, source: str) -> Loaded:
        """The instance that ``source`` names, and how many rows were left out."""
        from optsched.io.sources import LoadRequest, load_counted
        from optsched.io.traces.generate import settings

        named = settings(self.columns.split(","), option="--columns") if self.columns else None
        asked = {each.name: getattr(self, each.name) for each in fields(self)}
        loaded = load_counted(source, LoadRequest(**{**asked, "columns": named, "say": say}))
        keep_sources()  # a trace may have read the file beside it
        return loaded

    def look(self, source: str) -> None:
        """Refuse a source that is nowhere, before anything is imported that takes seconds."""
        prefix, colon, place = source.partition(":")
        if colon and prefix.lower() in names("dialects"):
            there = any(Path(path).exists() for path in (place, place.rpartition("#")[0]) if path)
        else:
            there = Path(source).exists() or source.lower() in names("instances")
        if not there:
            self.load(source)  # which says so, with what is legal


def reading_source(command: Callable[..., None]) -> Callable[..., None]:
    """Give ``command(..., reading)`` the options of `Reading` in the place of ``reading``."""
    hints = get_type_hints(command, include_extras=True)
    options = get_type_hints(Reading, include_extras=True)
    parameters = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name == "reading":
            parameters += [
                inspect.Parameter(
                    each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=options[each.name]
                )
                for each in fields(Reading)
            ]
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name]))

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        reading = Reading(**{each.name: given.pop(each.name) for each in fields(Reading)})
        command(**given, reading=reading)

    with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_options.__annotations__ = {each.name: each.annotation for each in parameters}
    return with_options
