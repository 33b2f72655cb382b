"""``optsched library``: instances with proven optima or intervals, and checks of submitted files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from optsched.cli.completion import completing
from optsched.cli.options import AsJson, argument, option
from optsched.cli.output import answer, print_json, show
from optsched.cli.verify_command import require_no_violations, rules_json
from optsched.errors import check_legal

WHAT = "list: a suite, instance by instance; check: a schedule, its tasks, or a certificate"
WHICH = "only instances whose optimum is proved, or only the others"


def library(
    action: Annotated[str, argument("[list|check]", "default: list")] = "list",
    what: Annotated[str | None, argument("[SUITE|FILE]", WHAT, completing("library-suites"))] = None,
    solved: Annotated[bool | None, option("--solved/--open", WHICH, show_default=False)] = None,
    as_json: AsJson = False,
) -> None:
    """List instances with proven optima or intervals; check files.

    \b
    optsched library list gangs-64 --open
    optsched library check better.json

    check reports what the file improves; exit status 1 if the file does not hold.

    \f
    Parameters
    ----------
    action
        ``list`` or ``check``.
    what
        For ``list`` a suite; for ``check`` a schedule, its tasks, or a certificate.
    solved
        Only instances whose optimum is proved, or only the others.
    as_json
        Print exactly one JSON document to stdout.
    """
    check_legal(action in ("list", "check"), "library", action, "list or check")
    if action == "check":
        check_legal(what is not None, "library check", "no file", "a schedule or a certificate")
        check_legal(solved is None, "library check", "--solved" if solved else "--open", "goes with list")
        _check(str(what), as_json)
        return
    from optsched.cli.library_tables import library_suites_view, library_view
    from optsched.io.library import library as frame

    rows = frame(what, solved).to_dicts()
    suites = what is None and solved is None
    answer(as_json, lambda: {"instances": rows}, lambda: library_suites_view(rows) if suites else library_view(rows))


def _check(file: str, as_json: bool) -> None:
    from optsched.io.submission import check_submission

    submission = check_submission(Path(file))
    if as_json:
        about: dict[str, Any] = {"file": file, "instance": submission.entry.name, "kind": submission.kind}
        about |= {"holds": not submission.violations, "violations": rules_json(submission.violations)}
        about |= {"improves": submission.improves, "closes": submission.closes, "verdict": submission.verdict}
        numbers = {"value": submission.value, "known": submission.known}
        print_json(about | {name: None if number is None else float(number) for name, number in numbers.items()})
    elif not submission.violations:
        from rich.text import Text

        show(Text(f"{file}: {submission.verdict}"))
    require_no_violations(submission.violations, file, as_json)
