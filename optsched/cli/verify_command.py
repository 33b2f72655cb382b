"""``optsched verify``: check a schedule or a certificate against its instance."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optsched.cli.options import AboutSource, AsJson, Reading, argument, reading_source
from optsched.cli.output import print_json, write
from optsched.errors import printable

if TYPE_CHECKING:
    from optsched.check.context import Violation


@reading_source
def verify(
    file: Annotated[Path, argument("FILE", "a schedule, its tasks, or a certificate")],
    instance: Annotated[str, AboutSource],
    reading: Reading,
    as_json: AsJson = False,
) -> None:
    """Verify a schedule or a certificate.

    Exit status 1 if it does not hold; the message names the rule.

    optsched verify certificate.json --instance cluster-week

    \f
    Parameters
    ----------
    file
        A schedule, its tasks, or a certificate.
    instance
        The instance of FILE.
    reading
        The options that decide how the SOURCE is read.
    as_json
        Print exactly one JSON document to stdout.
    """
    reading.look(instance)
    from optsched.check.referee import check_file

    verdict = check_file(file, reading.load(instance).instance)
    # a schedule of another instance breaks every other rule, too, which tells the user nothing
    violations = [violation for violation in verdict.violations if violation.rule == "instance"] or verdict.violations
    if as_json:
        rules = rules_json(violations)
        print_json({"file": str(file), "kind": verdict.kind, "holds": verdict.holds, "violations": rules})
    elif verdict.holds:
        write(f"{printable(str(file))}: the {verdict.kind} holds\n")
    require_no_violations(violations, file, as_json)


def rules_json(violations: Sequence[Violation]) -> list[dict[str, str]]:
    """Return violations as ``--json`` writes them.

    Parameters
    ----------
    violations
        The violations of a file.
    """
    return [{"rule": violation.rule, "message": violation.message} for violation in violations]


def require_no_violations(violations: Sequence[Violation], file: str | Path, as_json: bool) -> None:
    """Exit with 1 if there are violations: a line each on stderr, unless the document on stdout lists them.

    Parameters
    ----------
    violations
        The violations of the file.
    file
        The file.
    as_json
        True if a document has been printed.
    """
    for violation in () if as_json else violations:
        sys.stderr.write(printable(f"{file}: {violation.rule}: {violation.message}") + "\n")
    if violations:
        raise typer.Exit(1)
