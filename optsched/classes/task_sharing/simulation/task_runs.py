"""Runs at the task level have an engine of their own."""

from optsched.simulation.iterations import TaskRun, run_iterations
from optsched.simulation.run import RUNS, RunKind

RUNS.register("task-sharing", RunKind(run=TaskRun, engine=run_iterations))
