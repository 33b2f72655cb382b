"""``optsched warm-up``: compile everything now, for images and CI."""

from __future__ import annotations

import time
from typing import Annotated

import typer


def warm_up(
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="no line a step")] = False,
) -> None:
    """Compile everything now, so that no later run waits. For images and CI; minutes, once for a machine."""
    from optsched.cli.compile_all import warm_up as compile_all
    from optsched.cli.output import say, write

    begun = time.perf_counter()
    steps = compile_all(None if quiet else lambda what, done, of: say(f"{done + 1}/{of} {what}"))
    write(f"compiled what {steps} steps use, in {time.perf_counter() - begun:.0f} s; kept for later runs\n")
