"""The pages of ``ratio`` and ``sweep``: their tables, and a picture of all ratios."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from optsched.evaluation.robustness import Robustness
from optsched.evaluation.suite_ratios import RatioTable
from optsched.plot.time_axis import number
from optsched.report.optimality_sentence import objective_in_words
from optsched.report.page import PageLines, PageSection, PageTable, page
from optsched.report.page_charts import Curve, LineChart, StripChart, line_path, round_ticks, strip_chart
from optsched.rounding import ratio

MOST_STRIPS = 4  # charts of a sweep


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
    measured = [
        (row.policy, [entry.ratio for entry in row.measured if entry.ratio is not None]) for row in table.policies
    ]
    sections = [PageSection("Ratios", [*tables, PageLines(notes)])]
    if curves is not None:
        sections.append(
            PageSection("Prediction errors", [errors_chart(curves)], legend=[c.policy for c in curves.curves])
        )
    else:
        sections.append(ratios_section([strip_chart("Ratio to the best possible schedule", measured)], "instance"))
    said = ratio_sentences(table) if curves is None else error_sentences(curves)
    return page(f"Ratios over {table.suite}", said[0], sections, details=said[1:], command=command)


def ratio_sentences(table: RatioTable) -> list[str]:
    """Return plain sentences on the policy with the smallest worst ratio.

    Parameters
    ----------
    table
        The ratios.
    """
    rows = [row for row in table.policies if row.worst is not None]
    if not rows:
        return ["No policy has a ratio: no bound is known, or jobs did not finish."]
    best = min(rows, key=lambda row: row.worst or 0.0)
    said = [_at_most(best.policy, best.worst, table), f"The worst instance is {best.worst_instance}."]
    missing = len(best.without)
    return said + (
        [f"The sentence leaves out {missing:,} instances on which {best.policy} has no ratio."] if missing else []
    )


def error_sentences(curves: Robustness) -> list[str]:
    """Return a plain sentence on the policy with the smallest worst ratio at any prediction error.

    Parameters
    ----------
    curves
        The curves of the policies.
    """
    rows = [curve for curve in curves.curves if curve.robustness is not None]
    if not rows:
        return ["No policy has a ratio: no bound is known, or jobs did not finish."]
    best = min(rows, key=lambda curve: curve.robustness or 0.0)
    largest = number(max(point.error for point in best.points))
    return [
        _at_most(
            f"With predictions that are wrong by up to {largest} times, {best.policy}", best.robustness, curves.table
        )
    ]


def _at_most(who: str, worst: float | None, table: RatioTable) -> str:
    goal = objective_in_words(table.objective) if table.objective else "value"
    return f"{who} took at most {ratio(worst or 1.0, 2)} times the best possible {goal} on every instance of {table.suite}."


def errors_chart(curves: Robustness) -> LineChart:
    """Return the worst ratio of every policy at every prediction error.

    Parameters
    ----------
    curves
        The curves of the policies.
    """
    known = {c.policy: [(p.error, p.worst) for p in c.points if p.worst is not None] for c in curves.curves}
    points = [point for row in known.values() for point in row] or [(1.0, 1.0)]
    left, right = np.log(min(x for x, _ in points)), np.log(max(x for x, _ in points)) or 1.0
    top = max(max(y for _, y in points), 1.01)

    def across(error: float) -> float:
        return float((np.log(error) - left) / ((right - left) or 1.0))

    drawn = [
        Curve(policy, k, line_path([(across(x), (y - 1) / (top - 1)) for x, y in row]))
        for k, (policy, row) in enumerate(known.items(), 1)
    ]
    said = "; ".join(f"{policy}: " + ", ".join(f"{y:.3f} at {x:g}" for x, y in row) for policy, row in known.items())
    ticks = [(100 * across(x), number(x)) for x in sorted({x for x, _ in points})]
    up = [(100 * (y - 1) / (top - 1), number(y)) for y in round_ticks(1.0, top, 4)]
    return LineChart("Worst ratio at every prediction error", said, drawn, ticks, up, "prediction error (log scale)")


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
    sections = [PageSection("Means", [*tables, PageLines(notes)]), ratios_section(charts, "cell")]
    return page(f"Sweep {name}", said, sections, details=details, command=command)


def ratios_section(charts: Sequence[StripChart], what: str) -> PageSection:
    """Return the section of strip charts.

    Parameters
    ----------
    charts
        The charts.
    what
        Noun for what a mark shows.
    """
    return PageSection("All results", charts, f"Every thin mark is one {what}; the dot is the mean.")
