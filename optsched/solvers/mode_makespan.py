"""`makespan_interval`: the LP of `makespan_modes` solved once, and its value proved from both sides in fractions."""

from __future__ import annotations

from optsched.models import makespan_modes
from optsched.models.makespan_modes import MakespanCertificate, ModeJobs
from optsched.solvers.compile_model import solved


def makespan_interval(jobs: ModeJobs) -> MakespanCertificate:
    """The verified interval [lower, upper] seconds of the least total time; relative width about 1e-15.

    ``lower`` bounds the makespan of every schedule whose allocations are among the modes.
    """
    model = makespan_modes.build(jobs)
    solved(model, "makespan LP")
    resource, job = makespan_modes.prices(model, jobs)
    found = makespan_modes.makespan_certificate(
        jobs, resource.tolist(), job.tolist(), makespan_modes.times(model).tolist()
    )
    found.verify(jobs)
    return found
