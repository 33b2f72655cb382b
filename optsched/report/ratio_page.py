"""The pages of ``ratio`` and ``sweep``: their tables, and a picture of all ratios."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from optsched.evaluation.robustness import Robustness
from optsched.evaluation.suite_ratios import RatioTable
from optsched.plot.time_axis import number
from optsched.report.optimality_sentence import objective_in_words
from optsched.report.page import PageLines, PageSection, PageTable, page
from optsched.report.page_charts import PageChart, error_chart, strip_chart
from optsched.rounding import ratio

MOST_STRIPS = 4  # charts of a sweep
NO_RATIO = "No policy has a ratio: no bound is known, or jobs did not finish."


def ratio_page(
    table: RatioTable,
    curves: Robustness | None,
    tables: Sequence[PageTable],
    notes: Sequence[str] = (),
    command: str = "",
) -> str:
    """Return the page of ratios over a suite.

    Parameters
    ----------
    table
        The ratios.
    curves
        Ratios at every prediction error, or None.
    tables
        The tables of ``ratio``.
    notes
        The notes below these tables.
    command
        The command that made the page.
    """
    sections = [PageSection("Ratios", [*tables, PageLines(notes)])]
    if curves is None:
        said = _ratio_sentences(table)
        measured = [
            (row.policy, [entry.ratio for entry in row.measured if entry.ratio is not None]) for row in table.policies
        ]
        sections.append(_all_results([strip_chart("Ratio to the best possible schedule", measured)], "instance"))
    else:
        said = _error_sentences(curves)
        errors = {
            curve.policy: [(p.error, p.worst) for p in curve.points if p.worst is not None] for curve in curves.curves
        }
        chart = error_chart("Worst ratio at every prediction error", list(errors.items()))
        sections.append(PageSection("Prediction errors", [chart], legend=list(errors)))
    return page(f"Ratios over {table.suite}", said[0], sections, details=said[1:], command=command)


def _ratio_sentences(table: RatioTable) -> list[str]:
    """Return sentences on the policy with the smallest worst ratio."""
    rows = [row for row in table.policies if row.worst is not None]
    if not rows:
        return [NO_RATIO]
    best = min(rows, key=lambda row: row.worst or 0.0)
    said = [_at_most(best.policy, best.worst, table), f"The worst instance is {best.worst_instance}."]
    missing = f"This leaves out {len(best.without):,} instances on which {best.policy} has no ratio."
    return [*said, missing] if best.without else said


def _error_sentences(curves: Robustness) -> list[str]:
    """Return a sentence on the policy with the smallest worst ratio at any prediction error."""
    rows = [curve for curve in curves.curves if curve.robustness is not None]
    if not rows:
        return [NO_RATIO]
    best = min(rows, key=lambda curve: curve.robustness or 0.0)
    largest = number(max(point.error for point in best.points))
    who = f"With predictions that are wrong by up to {largest} times, {best.policy}"
    return [_at_most(who, best.robustness, curves.table)]


def _at_most(who: str, worst: float | None, table: RatioTable) -> str:
    goal = objective_in_words(table.objective) if table.objective else "value"
    return f"{who} took at most {ratio(worst or 1.0, 2)} times the best possible {goal} on every instance of {table.suite}."


def sweep_page(
    cells: pl.DataFrame, name: str, tables: Sequence[PageTable], notes: Sequence[str] = (), command: str = ""
) -> str:
    """Return the page of a sweep.

    Parameters
    ----------
    cells
        The cells of the sweep, with the columns policy, state, seed, cpu_seconds and the numbers of the sweep.
    name
        Name of the sweep.
    tables
        The tables of ``sweep``.
    notes
        The notes below these tables.
    command
        The command that made the page.
    """
    done = cells.filter(pl.col("state") == "done")
    measured = cells.columns[cells.columns.index("cpu_seconds") + 1 :]
    columns = [column for column in measured if done[column].dtype.is_numeric()]
    ratios = [column for column in columns if column.endswith("_ratio")]
    charts, details = [], []
    for column in (ratios or columns)[:MOST_STRIPS]:
        rows = done.group_by("policy", maintain_order=True).agg(pl.col(column).drop_nulls())
        goal = objective_in_words(column.removesuffix("_ratio"))
        charts.append(
            strip_chart(f"Ratio of the {goal}" if ratios else goal, list(rows.iter_rows()), 1.0 if ratios else 0.0)
        )
        means = [(mean, policy) for policy, mean in rows.with_columns(pl.col(column).list.mean()).iter_rows() if mean]
        if ratios and means:
            mean, policy = min(means)
            details.append(f"{policy} has the smallest mean ratio of the {goal}: at most {ratio(mean)}.")
    failed = cells.height - done.height
    said = f"The sweep {name} has {done.height:,} cells with results{f' and {failed:,} without' if failed else ''}."
    sections = [PageSection("Means", [*tables, PageLines(notes)]), _all_results(charts, "cell")]
    return page(f"Sweep {name}", said, sections, details=details, command=command)


def _all_results(charts: Sequence[PageChart], what: str) -> PageSection:
    return PageSection("All results", charts, f"Every thin mark is one {what}; the dot is the mean.")
