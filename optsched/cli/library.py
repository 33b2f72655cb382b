"""``optsched library``: instances with proven optima or intervals, and what a submitted schedule or certificate adds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from optsched.cli.names import completing
from optsched.cli.options import AsJson
from optsched.cli.output import print_json, show
from optsched.errors import check_legal, printable

WHAT = "list: a suite, instance by instance; check: a schedule, its tasks, or a certificate"
WHICH = "only instances whose optimum is proved; only the others"


def library(
    action: Annotated[str, typer.Argument(metavar="[list|check]", help="default: list", show_default=False)] = "list",
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[SUITE|FILE]", help=WHAT, show_default=False, autocompletion=completing("library-suites")
        ),
    ] = None,
    solved: Annotated[bool | None, typer.Option("--solved/--open", help=WHICH, show_default=False)] = None,
    as_json: AsJson = False,
) -> None:
    """Instances with proven optima or intervals; submit better.

    optsched library list gangs-64 --open; optsched library check better.json

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
    if as_json:
        print_json({"instances": rows})
        return
    from optsched.cli.tables import library_suites_view, library_view

    show(library_suites_view(rows) if what is None and solved is None else library_view(rows))


def _check(file: str, as_json: bool) -> None:
    from optsched.io.library import check_submission

    found = check_submission(Path(file))
    violations = [{"rule": each.rule, "message": each.message} for each in found.violations]
    if as_json:
        about: dict[str, Any] = {"file": file, "instance": found.entry.name, "kind": found.kind}
        about |= {"holds": not violations, "violations": violations, "improves": found.improves}
        about |= {"closes": found.closes, "verdict": found.verdict}
        numbers = {"value": found.value, "known": found.known}
        print_json(about | {name: None if each is None else float(each) for name, each in numbers.items()})
    elif not violations:
        from rich.text import Text

        show(Text(f"{file}: {found.verdict}"))
    for each in () if as_json else violations:
        sys.stderr.write(printable(f"{file}: {each['rule']}: {each['message']}") + "\n")
    if violations:
        raise typer.Exit(1)
