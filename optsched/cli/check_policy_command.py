"""``optsched check-policy``: check that a policy obeys the policy contract."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from optsched.cli.options import AsJson, argument, output
from optsched.cli.output import answer, others_print_to_stderr, say
from optsched.problem.atomic_files import check_writable


def check_policy(
    policy: Annotated[str, argument("MODULE:CLASS", "or a registered policy; [:KEY=VALUE,...][+PLACEMENT]")],
    folder: Annotated[
        Path, output("DIR", "a folder for instances on which a check fails; default: the current one")
    ] = Path(),
    as_json: AsJson = False,
) -> None:
    """Check that a policy obeys the policy contract.

    Exit status 1 if it does not; the messages name the checks that fail.

    optsched check-policy my_policies:Mine

    \f
    Parameters
    ----------
    policy
        Or a registered policy; [:KEY=VALUE,...][+PLACEMENT].
    folder
        A folder for instances on which a check fails; default: the current one.
    as_json
        Print exactly one JSON document to stdout.
    """
    from optsched.cli.text_columns import examination_view
    from optsched.contract.examine import examine
    from optsched.progress import bars

    check_writable(folder / "broken.json")
    with bars() as progress, others_print_to_stderr():
        examination = examine(policy, progress=progress.step("checking"))
    files = examination.save(folder)
    answer(as_json, lambda: examination.to_json(files), lambda: examination_view(examination))
    for finding in examination.broken:
        written = f"; see {', '.join(files[finding.check])}" if finding.check in files else ""
        say(f"{policy}: {finding.check}: {finding.said}{written}")
    if examination.broken:
        raise typer.Exit(1)
