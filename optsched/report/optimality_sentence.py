"""The distance of a run from the best possible schedule, as a plain sentence."""

from __future__ import annotations

from collections.abc import Sequence

from optsched.evaluation.as_logged import AS_LOGGED
from optsched.evaluation.report import Line, Report
from optsched.evaluation.score import SUMS, TIMES, UNITS, in_words
from optsched.plot.time_axis import in_unit
from optsched.rounding import number, ratio
from optsched.simulation.knowledge import Knowledge

CLOCKED = ("total_completion_time", "total_weighted_completion_time", "makespan")  # they include the clock of the log
IN_WORDS = {
    "total_flow_time": "total flow time",
    "total_weighted_flow_time": "weighted total flow time",
    "total_completion_time": "total completion time",
    "total_weighted_completion_time": "weighted total completion time",
    "total_weighted_tardiness": "total weighted tardiness",
    "max_flow_time": "longest flow time",
    "max_fair_slowdown": "largest slowdown relative to an equal share",
    "total_utility": "total utility",
}
DEFINED = {
    "total_flow_time": "The total flow time adds up, over all jobs, the time from submission to completion.",
    "total_completion_time": "The total completion time adds up the times at which the jobs complete.",
    "makespan": "The makespan is the time at which the last job completes.",
}


def objective_in_words(objective: str) -> str:
    """Return an objective as a noun phrase.

    Parameters
    ----------
    objective
        Name of the objective.
    """
    return IN_WORDS.get(objective, objective.replace("_", " "))


def subject(policy: str) -> str:
    """Return the subject of a sentence about a policy.

    Parameters
    ----------
    policy
        The policy as it is written, or ``as logged``.
    """
    return "The schedule that ran" if policy == AS_LOGGED else policy


def distance(line: Line) -> str:
    """Return one sentence or two: how far a run is from the best possible schedule, and how much was avoidable.

    Parameters
    ----------
    line
        The run in its report.
    """
    who, goal = subject(line.policy), objective_in_words(line.objective)
    if line.run.unfinished:
        jobs = f"{len(line.run.unfinished):,} of {line.run.instance.n:,} jobs"
        return f"{who} did not finish {jobs}, so it has no {goal} to compare."
    if line.bound is None:
        return f"No bound on the {goal} is known here, so nobody can tell how far {who} is from the best possible schedule."
    if line.ratio is None:
        return f"The bound on the {goal} is {number(line.bound.value)}, so {who} has no ratio to the best possible schedule."
    if line.ratio < 1:
        return f"The log is inconsistent: its {goal} is better than the bound {number(line.bound.value)}."
    if line.optimal:
        return f"{who} is optimal: no schedule of the class {line.bound.schedule_class} has a better {goal}."
    exact = line.bound.exact
    times = ratio(line.ratio, 2, exact=exact)
    said = f"{times} times" if exact else f"at most {times} times"
    if line.bound.gain:
        return f"The best possible {goal} is {said} that of {who}."
    return f"{who} took {said} the best possible {goal}.{_avoidable(line)}"


def _avoidable(line: Line) -> str:
    if line.bound is None or line.objective not in UNITS:
        return ""
    exact, excess = line.bound.exact, line.value - line.bound.value
    start, side = ("", "nearest") if exact else ("At most ", "up")
    if line.objective in TIMES:
        return f" {start}{in_unit(excess)} were avoidable."
    whole = "" if line.objective in CLOCKED else f" of {in_words(line.value)}"
    return f" {start}{in_words(excess, side)}{whole} {SUMS[line.objective]} were avoidable."  # type: ignore[arg-type]


def comparison(report: Report) -> list[str]:
    """Return sentences on the policies that come closest to the best possible schedule; none for a single policy.

    If the best policy knows processing times in advance, a second sentence is about the best of those that do not.

    Parameters
    ----------
    report
        The report.
    """
    done = [line for line in report.lines if not line.run.unfinished]
    first, gain = report.lines[0], any(line.bound is not None and line.bound.gain for line in report.lines)
    if len(report.lines) < 2 or not done:
        return []

    def best_of(lines: Sequence[Line]) -> Line:
        return (max if gain else min)(lines, key=lambda line: line.value)

    best = best_of(done)
    if best is first or best.value == first.value:
        return [f"No other policy of this page has a better {objective_in_words(report.objective)}."]
    said = [f"{best.policy} ({best.knowledge}) comes closest{_difference(first, best)}"]
    others = [line for line in done if line.knowledge != str(Knowledge.CLAIRVOYANT)]
    if best not in others and others:
        other = best_of(others)
        if other is not first:
            start = f"Of the policies that are not told the processing times, {other.policy} ({other.knowledge})"
            said.append(f"{start} comes closest{_difference(first, other)}")
    return said


def _difference(first: Line, other: Line) -> str:
    said = ""
    if other.ratio is not None and other.bound is not None:
        exact = other.bound.exact
        said = f": {'' if exact else 'at most '}{ratio(other.ratio, 2, exact=exact)} times the best possible"
    if other.objective in SUMS and not first.run.unfinished:
        change = first.value - other.value
        said += f". It takes {in_words(abs(change))} {SUMS[other.objective]} {'less' if change >= 0 else 'more'}"
        said += f" than {_object(first.policy)}"
    return f"{said}."


def _object(policy: str) -> str:
    return "the schedule that ran" if policy == AS_LOGGED else policy
