"""Runs of the class ``paced``."""

from dataclasses import dataclass

from optsched.simulation.run import RUNS, Run, RunKind


@dataclass(frozen=True, eq=False, repr=False)
class PacedRun(Run):
    """A run in which jobs start some seconds apart."""

    @property
    def schedule_class(self) -> str:
        """``paced``."""
        return "paced"


RUNS.register("paced", RunKind(run=PacedRun))
