"""``reproduce``: the experiments of a study again."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Annotated

import typer

from optsched.cli.interrupt import shield_processes, telling
from optsched.cli.options import AsJson
from optsched.cli.output import print_json, say, show

if TYPE_CHECKING:
    from optsched.studies.study import Reproduction


def reproduce(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="see: optsched list studies", show_default=False)],
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", metavar="N", help="workloads of every kind: seeds 1..N; default: as many as usual"),
    ] = None,
    small: Annotated[bool, typer.Option("--small", help="a quick look: few and small workloads")] = False,
    workers: Annotated[
        int | None, typer.Option("--workers", metavar="N", help="processes; default: one a processor")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run the experiments of a study again. Means and intervals over seeds, and what they say.

    optsched reproduce a-srpt --small
    """
    from optsched.progress import bars
    from optsched.studies.study import STUDIES

    chosen = STUDIES.get(study)
    shield_processes()
    reached, finished = [0, 0], deque["Reproduction"](maxlen=1)

    def tell() -> None:
        say(_so_far(study, *reached))
        if finished and not as_json:  # stdout is for a whole document
            from optsched.cli.study import reproduction_view

            show(reproduction_view(finished[-1]))

    with bars() as shown, telling(tell):
        advance = shown.step(f"running the study {study}")

        def progress(finished: int, every: int) -> None:
            reached[:] = finished, every
            advance(finished, every)

        done = chosen.run(seeds, small=small, workers=workers, progress=progress, so_far=finished.append)
    if as_json:
        print_json(done.to_json())
        return
    from optsched.cli.study import reproduction_view

    show(reproduction_view(done))


def _so_far(study: str, finished: int, every: int) -> str:
    of = f"{finished} of {every}" if every else "none"
    return f"the study {study}: {of} of its workloads had been run; a table needs all of its own"
