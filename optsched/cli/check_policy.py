"""``check-policy``: the contract of the registry's policies, asked of anybody's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from optsched.cli.options import AsJson, output
from optsched.cli.output import others_print_to_stderr, print_json, say, show


def check_policy(
    policy: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:CLASS", help="or a registered policy; [:KEY=VALUE,...][+PLACEMENT]", show_default=False
        ),
    ],
    folder: Annotated[Path, output("DIR", "a folder for instances that show what is broken; default: here")] = Path(),
    as_json: AsJson = False,
) -> None:
    """Does a policy keep what every policy keeps? Else exit 1. It names the checks that do not hold.

    optsched check-policy my_policies:Mine
    """
    from optsched.contract.examine import examine
    from optsched.problem.files import check_writable
    from optsched.progress import bars

    check_writable(folder / "broken.json")
    with bars() as shown, others_print_to_stderr():
        found = examine(policy, progress=shown.step("checking"))
    files = found.save(folder)
    if as_json:
        print_json(found.to_json(files))
    else:
        from optsched.cli.tables import examination_view

        show(examination_view(found))
    for each in found.broken:
        written = f"; see {', '.join(files[each.check])}" if each.check in files else ""
        say(f"{policy}: {each.check}: {each.said}{written}")
    if found.broken:
        raise typer.Exit(1)
