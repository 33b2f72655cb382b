"""The tables of ``advise``: candidates, who loses, other clusters, and promises."""

from __future__ import annotations

import numpy as np
from rich.console import Group
from rich.text import Text

from optsched.cli.layout import Sheet
from optsched.cli.run_table import QUEUED, SLOWDOWN, SLOWDOWN_NOTE, WAIT, bound_notes, limit_notes, notes_of
from optsched.cli.wording import duration, instance_line
from optsched.errors import printable
from optsched.evaluation.advice.advice import Advice
from optsched.evaluation.advice.savings import FEWEST, Saving
from optsched.evaluation.advice.sentences import at_most, knowledge_note
from optsched.evaluation.advice.what_if import WhatIf
from optsched.evaluation.as_logged import AS_LOGGED
from optsched.evaluation.report import queued_hours
from optsched.io.traces.log_reading import in_its_unit, reading_notes, unit_of
from optsched.report.classes import report_marks
from optsched.rounding import counted, number, ratio
from optsched.simulation.run import Run

AVOIDED, DRAWN, WORSE = "avoided", "95 % of draws", "worse off"
LARGEST = "largest JCT"
LOSING = 5  # candidates in the table of those who lose, which need no durations


def captions(advice: Advice) -> tuple[str, ...]:
    """Return the captions of the tables of `advice_view`, in order.

    Parameters
    ----------
    advice
        The advice.
    """
    return tuple(_sheets(advice))


def advice_view(advice: Advice) -> Group:
    """Return the tables of ``advise`` with their notes.

    Parameters
    ----------
    advice
        The advice.
    """
    sentence = printable(advice.sentence[0].upper() + advice.sentence[1:] + ".")
    parts: list[Text | Sheet] = [Text(sentence, style="bold"), *map(Text, map(printable, advice.details))]
    parts += _sheets(advice).values()
    return Group(*parts, *map(Text, _notes(advice)))


def _sheets(advice: Advice) -> dict[str, Sheet]:
    sheets = {"Candidates": _candidates(advice)}
    if any(row.fairness is not None and not row.clairvoyant for row in advice.rows):
        sheets["Who loses"] = _fairness(advice)
    if advice.what_ifs:
        sheets["Other clusters"] = _what_ifs(advice)
    if any(row.promises is not None for row in advice.rows):
        sheets["Promises"] = _promises(advice)
    return sheets


def _candidates(advice: Advice) -> Sheet:
    queued = in_its_unit(advice.instance, QUEUED)
    heads = ("policy", "knowledge", "stops", queued, AVOIDED, *_drawn(advice), WAIT, SLOWDOWN, WORSE)
    sheet = Sheet((*heads, advice.report.objective, "ratio"), texts=("knowledge",))
    for row, mark in zip(advice.rows, report_marks(advice.report), strict=True):
        line, run = row.line, row.line.run
        exact = line.bound is not None and line.bound.exact
        quotient = "-" if line.ratio is None else f"{'=' if exact else '<='} {ratio(line.ratio, exact=exact)} {mark}"
        sheet.add(
            row.policy,
            row.knowledge,
            f"{run.preemptions:,}",
            *_queueing(run, row.saving)[: 3 if _drawn(advice) else 2],
            *_waits(run),
            "-" if row.fairness is None else f"{100 * row.fairness.share_worse:.0f} %",
            number(line.value),
            quotient.rstrip(),
        )
    return sheet


def _drawn(advice: Advice) -> list[str]:
    """Return the head of the column of intervals, if there are any."""
    return [DRAWN] * any(row.saving is not None and row.saving.low is not None for row in advice.rows)


def _queueing(run: Run, saving: Saving | None) -> tuple[str, str, str]:
    """Return the cells of queued GPU-hours, of those avoided, and of their interval."""
    queued = "-" if run.unfinished else number(queued_hours(run))
    if saving is None:
        return queued, "-", "-"
    low, high = saving.low, saving.high
    drawn = "-" if low is None or high is None else f"{number(low, 3, 'down')} to {number(high, 3, 'up')}"
    return queued, number(saving.gpu_hours), drawn


def _waits(run: Run) -> tuple[str, str]:
    if run.unfinished:
        return "-", "-"
    return duration(run.metrics["mean_queueing"]), f"{run.metrics['mean_bsld']:,.2f}"


def _fairness(advice: Advice) -> Sheet:
    rows = [row for row in advice.rows if row.fairness is not None and not row.clairvoyant][:LOSING]
    by = advice.people
    sheet = Sheet(
        ("policy", f"{by}s worse off", f"{by} that loses most", f"{SLOWDOWN} before", "after", LARGEST),
        texts=(f"{by} that loses most",),
    )
    for row in rows:
        fair = row.fairness
        assert fair is not None
        loser = fair.losers[0] if fair.losers else None
        sheet.add(
            row.policy,
            f"{fair.worse:,} of {fair.people:,} ({100 * fair.share_worse:.0f} %)",
            "-" if loser is None else loser.name,
            "-" if loser is None else f"{loser.before:,.2f}",
            "-" if loser is None else f"{loser.after:,.2f}",
            "-" if fair.longest_stay is None else f"{number(fair.longest_stay, 3)} x",
        )
    return sheet


def _what_ifs(advice: Advice) -> Sheet:
    queued = in_its_unit(advice.instance, QUEUED)
    sheet = Sheet(
        ("change", "cluster", f"{unit_of(advice.instance)}s", queued, AVOIDED, *_drawn(advice), WAIT, SLOWDOWN),
        texts=("cluster",),
    )
    for entry in advice.what_ifs:
        cluster = entry.change.cluster
        change = entry.change.label
        if entry.misfits:
            change += f", {entry.run.instance.n:,} of {advice.instance.n:,} jobs"
        sheet.add(
            change,
            cluster.spec,
            f"{cluster.gpus:,}",
            *_queueing(entry.run, entry.saving)[: 3 if _drawn(advice) else 2],
            *_waits(entry.run),
        )
    return sheet


def _promises(advice: Advice) -> Sheet:
    sheet = Sheet(("policy", "jobs that wait", "promised", "kept", "p50", "p90", "p99"))
    for row in advice.rows:
        made = row.promises
        if made is not None:
            promised = int(np.isfinite(made.wait).sum())
            late = [duration(made.late_at(share)) if promised else "-" for share in (0.5, 0.9, 0.99)]
            kept = f"{100 * made.share_kept:.1f} %" if promised else "-"
            sheet.add(row.policy, f"{made.wait.size:,}", f"{promised:,}", kept, *late)
    return sheet


def _notes(advice: Advice) -> list[str]:
    instance, base = advice.instance, advice.base.policy
    notes = [instance_line(instance, advice.report.skipped_rows), *notes_of(instance)]
    notes += map(printable, reading_notes(instance))
    notes += [*bound_notes(advice.report, report_marks(advice.report)), *limit_notes(advice.report)]
    most, line = "", advice.base.line
    if line.avoidable_queueing is not None:
        most = f"; at most {at_most(line.avoidable_queueing, queued_hours(line.run), number)} of them can be avoided"
    what = f"{QUEUED}: GPU-hours in which gangs waited or restarted; {AVOIDED}: difference from {base}{most}"
    notes.append(in_its_unit(instance, what))
    if advice.weeks < FEWEST:
        weeks = counted(advice.weeks, "week")
        notes.append(f"no interval for what is avoided: the log has {weeks}, and a bootstrap needs {FEWEST}")
    else:
        what = f"{advice.draws:,} draws of {advice.weeks} weeks of the log with replacement (seed {advice.seed})"
        notes.append(f"{DRAWN}: the saving in {what}; nothing is simulated again")
    notes.append(knowledge_note(advice.rows))
    perfect = [printable(row.policy) for row in advice.rows if row.perfectly_predicted]
    if perfect:
        notes.append(f"perfect predictions, which count as clairvoyant: {', '.join(perfect)}")
    notes.append(
        f"stops: jobs stopped and resumed; a restart costs {number(advice.restart)} s where nothing else is stated"
    )
    notes.append(
        f"{SLOWDOWN_NOTE}; the mean is at least {number(advice.score.least_slowdown, 4, 'down')} in any schedule"
    )
    if any(row.fairness is not None for row in advice.rows):
        notes.append(
            f"worse off: {advice.people}s whose {SLOWDOWN} grows by more than 1 % compared with {base}; "
            f"{LARGEST}: of a job, relative to its JCT under conservative backfilling"
        )
    if any(row.promises is not None for row in advice.rows):
        notes.append(
            "kept: jobs that start by the first start that the policy reserves for them; p50 to p99: start minus promise. "
            "conservative promises at submission, EASY when a job is the first of the queue; promises count "
            f"{unit_of(instance)}s and not their types or nodes"
        )
        if not instance.unrestricted:
            notes.append(
                "reservations count GPUs of all types, but jobs name types: backfilling may do better than in this table if "
                "every type is a log of its own"
            )
    if advice.same:
        notes.append(
            f"left out, with the same times as under another placement: {', '.join(map(printable, advice.same))}"
        )
    if advice.what_ifs:
        rounded = in_its_unit(instance, "; shares are rounded to whole nodes, on a single node to whole GPUs")
        shares = any("%" in entry.change.text for entry in advice.what_ifs)
        notes.append(f"change: the cluster with {advice.what_ifs[0].run.policy}{rounded * shares}")
        notes += (_misfit_note(entry, base) for entry in advice.what_ifs if entry.misfits)
    if advice.left_out:
        notes.append(f"without {counted(len(advice.left_out), 'job')} that never ran")
    notes += _logged_notes(advice)
    return notes


def _misfit_note(entry: WhatIf, base: str) -> str:
    unit = unit_of(entry.run.instance)
    queued = f"queued {number(entry.queued_before)} {unit}-h {base if base == AS_LOGGED else f'under {base}'}"
    jobs = f"{entry.change.label}: without {counted(entry.misfits, 'job')} too large for that cluster"
    return f"{jobs}; {AVOIDED} compares the other {entry.run.instance.n:,}, which {queued}"


def _logged_notes(advice: Advice) -> list[str]:
    wrong = advice.score.inconsistencies
    return [f"the log is inconsistent in {counted(len(wrong), 'place')}: `optsched score` lists them"] if wrong else []
