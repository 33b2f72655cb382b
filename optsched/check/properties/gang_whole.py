"""The physics of rigid jobs: nobody starts before the submission, GPUs serve one job at a time, and gangs run whole."""

from __future__ import annotations

from optsched.check.properties import Breach, schedule_property
from optsched.check.properties.executions import Executions, instants


@schedule_property(
    "gang-whole",
    statement="no job starts before its submission; each runs once, on its whole gang, for min(run time, limit)",
    source="the model of rigid jobs: P | r_j, size_j",
)
def gang_whole(jobs: Executions) -> list[Breach]:
    """Return the jobs that break the model, and the instants at which more GPUs are in use than exist.

    A job that runs beyond its limit, for its whole run time, is legal: systems differ in what they do then.

    Parameters
    ----------
    jobs
        The executions.
    """
    found = list[Breach]()

    def add(job: int, instant: float, text: str, **numbers: float) -> None:
        found.append(Breach(f"{jobs.named(job)} {text}", jobs.on_clock(instant), (jobs.ids[job],), numbers))

    for job, start in enumerate(jobs.start.tolist()):
        arrival, ran = float(jobs.arrival[job]), float(jobs.end[job]) - start
        whole, least = float(jobs.duration[job]), float(min(jobs.duration[job], jobs.limit[job]))
        tolerance = 2 * jobs.slack + 1e-9 * whole
        if start == float("inf"):
            add(job, arrival, "never runs")
            continue
        if start < arrival:
            text = f"starts at {jobs.at(start)}, before its submission at {jobs.at(arrival)}"
            add(job, start, text, early=arrival - start)
        if jobs.width[job] != jobs.gpus[job]:
            add(job, start, f"runs on {jobs.width[job]} GPUs", width=float(jobs.width[job]))
        if abs(ran - whole) > tolerance and abs(ran - least) > tolerance:
            add(job, start, f"runs for {ran:.15g} s, not for {least:.15g} s", ran=ran, expected=least)
    for instant in instants(jobs):
        free = instant.free - sum(int(jobs.gpus[job]) for job in instant.started)
        if free < 0 and instant.started:
            text = f"starts at {jobs.at(instant.now)} with {-free} GPU{'s' if free < -1 else ''} too few"
            add(instant.started[-1], instant.now, text, free=free)
    return sorted(found, key=lambda broken: broken.instant)
