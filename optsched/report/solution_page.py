"""The page of ``solve``: status, interval, and the schedule as a Gantt chart or over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from optsched.io.traces.log_reading import in_its_unit
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule
from optsched.report.html_views import is_small
from optsched.report.optimality_sentence import objective_in_words
from optsched.report.page import PageFacts, PageLines, PageSection, PageTable, page
from optsched.report.page_charts import gantt_chart
from optsched.report.run_page import over_time_section, reading_facts
from optsched.rounding import Side, fixed, number
from optsched.solvers.solution import Solution


def solution_page(
    solution: Solution, instance: Instance, tables: Sequence[PageTable], notes: Sequence[str] = (), command: str = ""
) -> str:
    """Return the page of a solution.

    Parameters
    ----------
    solution
        The solution.
    instance
        The instance.
    tables
        The tables of ``solve``.
    notes
        The notes below these tables.
    command
        The command that made the page.
    """
    sections = [PageSection("Result", [*tables, PageLines(notes)])]
    if solution.schedule is not None:
        sections += schedule_section({solution.text: solution.schedule})
    facts = [("Objective", objective_in_words(solution.objective)), *reading_facts(instance)]
    proofs = {"certificate": "an exact certificate, re-verified from the instance", "solver": f"{solution.solver}"}
    if solution.bound is not None and proofs.get(solution.bound_by):
        facts.insert(1, ("Bound proved by", proofs[solution.bound_by]))
    if solution.certificate is not None:
        facts.insert(1, ("Certificate", f"{solution.certificate.kind}, class {solution.certificate.schedule_class}"))
    sections.append(PageSection("Assumptions", [PageFacts(facts)]))
    title = f"{instance.name or 'Jobs'}: {solution.status}"
    return page(title, _sentence(solution), sections, command=command, instance=instance)


def _sentence(solution: Solution) -> str:
    """Return what is known of the optimum."""
    goal = solution.meaning or objective_in_words(solution.objective)
    sides: tuple[Side, Side] = ("down", "up") if solution.gain else ("up", "down")
    value, bound = (
        number(end, 12, "nearest" if solution.meaning else side)
        for end, side in zip((solution.value, solution.bound), sides, strict=True)
    )
    if solution.value is None:
        side = "most" if solution.gain else "least"
        known = "" if solution.bound is None else f" The optimum is at {side} {bound}."
        return f"There is no schedule yet (status {solution.status}).{known}"
    if solution.status == "optimal":
        return (
            f"The optimum is {value}: {goal}."
            if solution.meaning
            else f"The optimal {goal} is {value}; the schedule below attains it."
        )
    if solution.bound is None:
        return f"The best schedule found has the {goal} {value}; no bound on the optimum is known."
    gap = "" if solution.gap is None else f", a gap of at most {fixed(100 * solution.gap, 2, 'up')} %"
    side = "most" if solution.gain else "least"
    return f"The best schedule found has the {goal} {value}; the optimum is at {side} {bound}{gap}."


def schedule_section(schedules: Mapping[str, Schedule]) -> list[PageSection]:
    """Return the section that draws schedules: small ones as Gantt charts, larger ones over time.

    Parameters
    ----------
    schedules
        Schedules of the same jobs by name.
    """
    if not all(map(is_small, schedules.values())):
        return over_time_section(schedules)
    first = next(iter(schedules.values())).instance
    intro = in_its_unit(first, "Each rectangle is a job on its GPUs. Every row stands for one GPU.")
    title = "Schedule" if len(schedules) == 1 else "Schedules"
    return [PageSection(title, [gantt_chart(schedule, name) for name, schedule in schedules.items()], intro)]
