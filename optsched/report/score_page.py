"""The page of ``score``: the distance of the schedule that ran from the best possible one, over time and by group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from optsched.evaluation.score import Score
from optsched.report.optimality_sentence import objective_in_words
from optsched.report.page import PageLines, PageSection, PageTable, page
from optsched.report.run_page import (
    assumptions_section,
    key_figures,
    over_time_section,
    slowdown_section,
    without_reading,
)


def score_page(score: Score, tables: Sequence[PageTable], notes: Sequence[str] = (), command: str = "") -> str:
    """Return the page of a score.

    Parameters
    ----------
    score
        The score.
    tables
        The tables of ``score``: bounds, metrics, and groups by each key.
    notes
        The lines of ``score``; the first one is its sentence.
    command
        The command that made the page.
    """
    bounds, metrics, *groups = tables
    run, schedules = score.run, {score.run.policy: score.run.schedule}
    heads, (first, *rows) = ["objective", *bounds.heads[1:]], bounds.rows
    rows = [[objective_in_words(score.objective), *first[1:]], *rows]
    bounds = replace(bounds, heads=heads, rows=rows, caption="Distance from the best possible schedule")
    below = without_reading(notes[1:], score.instance)
    sections = [PageSection("Result", [bounds, replace(metrics, caption="Metrics"), PageLines(below)])]
    sections += over_time_section(schedules)
    named = [replace(table, caption=f"By {table.heads[0]}") for table in groups]
    sections += [PageSection("By group", named)] if named else []
    sections += [*slowdown_section(schedules), assumptions_section(score.report)]
    title = f"{score.instance.name or 'Jobs'}: {run.policy}"
    return page(title, notes[0], sections, figures=key_figures(score.report), command=command, instance=score.instance)
