"""The page of ``score``: the schedule that ran, and what of its waiting was avoidable."""

from __future__ import annotations

from collections.abc import Sequence

from optsched.evaluation.score import Score
from optsched.report.optimality_sentence import explanation
from optsched.report.page import PageLines, PageSection, PageTable, page
from optsched.report.run_page import assumptions_section, key_figures, over_time_section, slowdown_section


def score_page(
    score: Score, tables: Sequence[PageTable], keys: Sequence[str], notes: Sequence[str] = (), command: str = ""
) -> str:
    """Return the page of a score.

    Parameters
    ----------
    score
        The score.
    tables
        The tables of ``score``: bounds, metrics, and one for every key.
    keys
        Keys of the tables of groups.
    notes
        The sentence and the notes around the tables.
    command
        The command that made the page.
    """
    run = score.run
    schedules = {run.policy: run.schedule}
    sentence = score.sentence[0].upper() + score.sentence[1:] + "."
    bounds, metrics, *groups = (PageTable(t.heads, _signs(t.rows), "", t.texts) for t in tables)
    parts = [PageTable(t.heads, t.rows, f"By {key}", t.texts) for key, t in zip(keys, groups, strict=True)]
    sections = [
        PageSection("Distance from the best possible schedule", [bounds, metrics, PageLines(notes[1:])]),
        PageSection(
            "Groups of jobs", parts, "The ratio alone compares a group with a bound as if it had the cluster alone."
        ),
        *over_time_section(schedules),
        *slowdown_section(schedules),
        assumptions_section(score.report),
    ]
    return page(
        f"{score.instance.name or 'Jobs'}: {run.policy}",
        sentence,
        sections,
        details=explanation(score.objective),
        figures=key_figures(score.report),
        command=command,
        instance=score.instance,
    )


def _signs(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[cell.replace("<=", "\u2264").replace(">=", "\u2265") for cell in row] for row in rows]
