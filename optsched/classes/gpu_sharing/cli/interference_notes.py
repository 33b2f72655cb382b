"""Notes on the slow-downs of jobs that share GPUs."""

from __future__ import annotations

from optsched.cli.run_table import NOTES
from optsched.problem.instance import Instance


def _interference_notes(instance: Instance) -> list[str]:
    # Every result under sharing depends on it.
    interference = instance.interference
    if interference is None:
        return []
    if interference.kinds:
        text = f"slow-downs from a table of {len(interference.kinds)} kinds of jobs; {interference.ratio:g} for others"
    else:
        text = f"a job that shares a GPU with another one runs {interference.ratio:g} x as long"
    return [f"interference: {text}" + (f" ({interference.source})" if interference.source else "")]


NOTES.register("gpu-sharing", _interference_notes)
