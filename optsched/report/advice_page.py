"""The page of ``advise``: what was avoidable, the candidates, who loses, other clusters and promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from optsched.evaluation.advice.advice import Advice
from optsched.evaluation.advice.advice_row import AdviceRow
from optsched.evaluation.advice.sentences import at_most, knowledge_note, spelled
from optsched.evaluation.report import queued_hours
from optsched.io.traces.log_reading import in_its_unit, unit_of
from optsched.plot.time_axis import in_unit
from optsched.report.optimality_sentence import DEFINED
from optsched.report.page import PageFacts, PageLines, PageSection, PageTable, page
from optsched.report.run_page import assumptions_section, over_time_section, slowdown_section, without_reading
from optsched.rounding import fixed
from optsched.simulation.knowledge import Knowledge

INTROS = {
    "Candidates": "Queued GPU-hours add up, over all jobs, the time that a gang waits or restarts times its GPUs. They are "
    "not hardware that could be saved: if many jobs wait, they are more than the GPU-hours of the cluster. The candidates "
    "are sorted by the queued GPU-hours that they avoid.",
    "Who loses": "A policy that helps most jobs can hurt some. The slowdown of a job is its completion time divided by its "
    "processing time (at least 10 seconds); 1 means that it never waited. A {by} is worse off if the mean "
    "slowdown of its jobs grows by more than 1 % compared with {base}. The {by} that loses most has the largest growth, "
    "added up over its jobs. The largest JCT is that of one job, relative to its JCT under conservative backfilling.",
    "Other clusters": "The same jobs on another cluster, with whole nodes, under ",
    "Promises": "A policy that reserves GPUs can tell a user how long a job will wait. The table compares the first start "
    "that it reserves for a waiting job with its start in the simulation. A promise is kept if the job starts by then; "
    "negative times are earlier than promised.",
}
YARDSTICK = ". Nobody knows it on a real cluster: such a policy shows what good predictions could reach"


def advice_page(advice: Advice, tables: Mapping[str, PageTable], notes: Sequence[str] = (), command: str = "") -> str:
    """Return the page of an advice.

    Parameters
    ----------
    advice
        The advice.
    tables
        The tables of ``advise`` by caption.
    notes
        The sentences and notes around them.
    command
        The command that made the page.
    """
    sections = [
        PageSection(title, _parts(title, table, advice), _intro(title, advice)) for title, table in tables.items()
    ]
    shown = [row for row in (advice.base, advice.best, advice.best_with_stops) if row is not None]
    schedules = {row.policy: row.line.run.schedule for row in shown}
    sentence = advice.sentence[0].upper() + advice.sentence[1:] + "."
    above = {text.rstrip(".") for text in (sentence, *advice.details)} | {
        knowledge_note(advice.rows)
    }  # the assumptions have the last
    below = [note for note in without_reading(notes, advice.instance) if note.rstrip(".") not in above]
    return page(
        f"{advice.instance.name or 'Jobs'}: which policy?",
        sentence,
        [*sections, *over_time_section(schedules), *slowdown_section(schedules), _assumptions(advice, below)],
        details=[*advice.details, *filter(None, [DEFINED.get(advice.report.objective)])],
        figures=_figures(advice),
        command=command,
        instance=advice.instance,
    )


def _intro(title: str, advice: Advice) -> str:
    if title != "Other clusters":
        return in_its_unit(advice.instance, INTROS[title]).format(by=advice.people, base=advice.base.policy)
    some = " Where some jobs do not fit, what is avoided compares only those that do."
    misfits = any(entry.misfits for entry in advice.what_ifs)
    return f"{INTROS[title]}{advice.what_ifs[0].run.policy}.{some * misfits}"


def _parts(title: str, table: PageTable, advice: Advice) -> list[PageTable]:
    rows, parts = table.rows, [table]
    if title == "Candidates":  # one table would be wider than a page
        split = list(table.heads).index("mean wait")
        parts = [
            PageTable(table.heads[:split], [row[:split] for row in rows], "Queueing", table.texts),
            PageTable(
                [table.heads[0], *table.heads[split:]],
                [[row[0], *row[split:]] for row in rows],
                "Waits, who is worse off, and the distance from the best possible schedule",
            ),
        ]
    if title == "Who loses":
        parts += [_losers(row) for row in (advice.best, advice.best_with_stops) if row is not None and _lost(row)]
    return parts


def _lost(row: AdviceRow) -> bool:
    return row.fairness is not None and bool(row.fairness.losers)


def _losers(row: AdviceRow) -> PageTable:
    assert row.fairness is not None
    by = row.fairness.by
    rows = [
        (loser.name, f"{loser.jobs:,}", f"{loser.before:,.2f}", f"{loser.after:,.2f}") for loser in row.fairness.losers
    ]
    return PageTable((by, "jobs", "mean slowdown before", "after"), rows, f"Who loses most under {row.named}")


def _figures(advice: Advice) -> list[tuple[str, str]]:
    base, unit = advice.base, unit_of(advice.instance)
    figures = []
    if base.line.ratio is not None and not advice.score.below_bound:
        figures.append(
            (f"\u2264\u00a0{fixed(base.line.ratio, 2, 'up')} \u00d7", f"{base.policy}: times the best possible")
        )
    queued, avoidable = queued_hours(base.line.run), base.line.avoidable_queueing
    figures.append((spelled(queued), f"{base.policy}: queued {unit}-hours"))
    if avoidable is not None:
        figures.append((f"\u2264\u00a0{at_most(avoidable, queued)}", "of them are avoidable at all"))
    best = advice.best
    if best is not None and best.saving is not None:
        others = len(advice.tied) - 1
        by = f"{best.named}{f' and {others} others' if others > 1 else ' and one other' if others else ''}"
        figures.append((spelled(best.saving.gpu_hours), f"avoided by {by}"))
    figures.append((in_unit(base.line.run.metrics["mean_queueing"]), f"{base.policy}: mean wait"))
    figures.append((f"{100 * advice.utilization:.0f} %", f"of the {unit}s are held while jobs are submitted"))
    return figures


def _assumptions(advice: Advice, notes: Sequence[str]) -> PageSection:
    """Return the section of assumptions; knowledge is stated by level, not by policy."""
    section = assumptions_section(advice.report)
    facts = [
        (f"Knowledge: {level}", f"the policy {level.meaning}{YARDSTICK * (level == Knowledge.CLAIRVOYANT)}")
        for level in Knowledge
        if any(row.knowledge == level for row in advice.rows)
    ]
    restart = f"{advice.restart:g} s where neither the policy nor the job says it"
    same = "they ask for the same GPUs, run as long, and are submitted at the same times under every policy"
    facts += [("Cost of a restart", restart), ("The jobs of every candidate", in_its_unit(advice.instance, same))]
    for part in section.parts:
        if isinstance(part, PageFacts):
            facts += [fact for fact in part.facts if not fact[0].startswith("Knowledge of ")]
    return replace(section, parts=[PageFacts(facts), PageLines(notes)])
