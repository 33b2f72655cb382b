"""Notes on what sharing costs."""

from __future__ import annotations

from optsched.cli.tables import NOTES
from optsched.problem.instance import Instance


def _interference_notes(instance: Instance) -> list[str]:
    # Every result under sharing stands and falls with it.
    interference = instance.interference
    if interference is None:
        return []
    if interference.kinds:
        text = f"slow-downs from a table of {len(interference.kinds)} kinds of jobs, {interference.ratio:g} for others"
    else:
        text = f"beside another job on its GPUs a job runs {interference.ratio:g} x as long"
    return [f"interference: {text}" + (f" ({interference.source})" if interference.source else "")]


NOTES.register("gpu-sharing", _interference_notes)
