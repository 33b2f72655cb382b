"""Exit status 1 for results that do not hold or are incomplete."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from optsched.cli.output import say

if TYPE_CHECKING:
    from optsched.guarantees.judge import Judgement
    from optsched.problem.instance import Instance


def require_finished(prefix: str, unfinished: Sequence[str]) -> None:
    """Exit with 1 if policies left jobs unfinished.

    Parameters
    ----------
    prefix
        Words before the message.
    unfinished
        The policies that left jobs unfinished.
    """
    if unfinished:
        say(f"{prefix}jobs did not finish: {', '.join(unfinished)}")
        raise typer.Exit(1)


def require_kept(violations: Sequence[tuple[Instance, Judgement]], folder: Path | None) -> None:
    """Exit with 1 if guarantees are violated: a line each on stderr, and the instances saved for replay.

    Parameters
    ----------
    violations
        Instance and judgement of every violation.
    folder
        The folder for the instances. Default: the current one.
    """
    from optsched.guarantees.judge import save_violation

    for instance, judgement in violations:
        file = save_violation(instance, judgement, folder or Path())
        say(f"{judgement.complaint}; the instance is saved in {file}")
    if violations:
        raise typer.Exit(1)
