"""The pages of ``ratio`` and ``sweep``: their tables, and a picture of all ratios."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from optsched.evaluation.robustness import Robustness
from optsched.evaluation.suite_ratios import RatioTable
from optsched.report.optimality_sentence import objective_in_words
from optsched.report.page import PageLines, PageSection, PageTable, page
from optsched.report.page_charts import Curve, LineChart, StripChart, line_path, round_ticks, strip_chart
from optsched.rounding import number, ratio


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
    return page(f"Ratios over {table.suite}", ratio_sentence(table), sections, command=command)


def ratio_sentence(table: RatioTable) -> str:
    """Return the smallest of the worst ratios of the policies, in a plain sentence.

    Parameters
    ----------
    table
        The ratios.
    """
    worst = [(row.worst, row.policy, row.worst_instance) for row in table.policies if row.worst is not None]
    if not worst:
        return "No policy has a ratio: no bound is known, or jobs did not finish."
    value, policy, instance = min(worst)
    times, goal = (
        ratio(value, 2),
        objective_in_words(table.objective) if table.objective else "value",
    )
    said = f"{policy} took at most {times} times the best possible {goal} on every instance of {table.suite}"
    return f"{said} that has a bound; the worst instance is {instance}."


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
    top = max(y for _, y in points)

    def across(error: float) -> float:
        return float((np.log(error) - left) / ((right - left) or 1.0))

    drawn = [
        Curve(policy, k, line_path([(across(x), y / top) for x, y in row]))
        for k, (policy, row) in enumerate(known.items(), 1)
    ]
    said = "; ".join(f"{policy}: " + ", ".join(f"{y:.3f} at {x:g}" for x, y in row) for policy, row in known.items())
    ticks = [(100 * across(x), number(x)) for x in sorted({x for x, _ in points})]
    up = [(100 * y / top, number(y)) for y in round_ticks(0.0, top, 4)[1:]]
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
    numbers = [
        column for column in cells.columns[cells.columns.index("cpu_seconds") + 1 :] if done[column].dtype.is_numeric()
    ]
    ratios = [column for column in numbers if column.endswith("_ratio")]
    charts = []
    for column in (ratios or numbers)[:4]:
        rows = done.group_by("policy", maintain_order=True).agg(pl.col(column).drop_nulls())
        title = f"{column.removesuffix('_ratio')}: ratio to the best possible schedule" if ratios else column
        strips = [(row[0], row[1]) for row in rows.iter_rows()]
        charts.append(strip_chart(title, strips, 1.0 if ratios else 0.0))
    failed = cells.height - done.height
    said = f"The sweep {name} has {done.height:,} cells with results" + (
        f"; {failed:,} cells have none." if failed else "."
    )
    return page(
        f"Sweep {name}",
        said,
        [PageSection("Means", [*tables, PageLines(notes)]), ratios_section(charts, "cell")],
        command=command,
    )


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
