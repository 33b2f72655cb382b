"""The table of ``sweep``."""

from __future__ import annotations

import polars as pl
from rich.console import Group
from rich.text import Text

from optsched.cli.layout import Sheet
from optsched.errors import OptschedError
from optsched.policies.simulate import specify
from optsched.report.classes import UNLIKE, marks
from optsched.rounding import number


def summary(table: pl.DataFrame) -> Group:
    """Return the table of ``sweep``: for every instance and policy the mean value, and the mean and worst ratio.

    For a sweep with a measure: the mean of each of its numbers. Letters mark ratios whose bounds are for different classes
    of schedules.

    Parameters
    ----------
    table
        The cells of the sweep.
    """
    axes = [name for name in table.columns[: table.columns.index("seed")] if table[name].n_unique() > 1]
    names = table.columns[table.columns.index("cpu_seconds") + 1 :]
    objectives = [name for name in names if {f"{name}_bound", f"{name}_ratio"} <= set(names)]
    measured = [] if objectives else names
    sums = [pl.col("state").eq("done").sum().alias("cells"), pl.col("state").eq("failed").sum().alias("failed")]
    for name in objectives:
        ratio = pl.col(f"{name}_ratio")
        sums += [pl.col(name).mean(), ratio.mean(), ratio.max().alias(f"{name}_worst")]
    sums += [pl.col(name).mean() for name in measured]
    rows = table.group_by(*axes, "policy", maintain_order=True).agg(sums)
    if not rows["failed"].sum():
        rows = rows.drop("failed")
    heads = {name: f"mean {name}" for name in (*objectives, *measured)}
    heads |= {
        f"{name}{end}": head
        for name in objectives
        for end, head in (("_ratio", "mean ratio"), ("_worst", "worst ratio"))
    }
    texts = len(axes) + 1
    shown, letters = rows.columns[:texts], {name: _letters(table, name) for name in objectives}
    sheet = Sheet(
        [*shown, "knowledge", *(heads.get(name, name) for name in rows.columns[texts:])], [*shown, "knowledge"]
    )
    for row in rows.iter_rows(named=True):
        words = ["" if row[name] is None else str(row[name]) for name in shown]
        cells = []
        for name in rows.columns[texts:]:
            of = name.removesuffix("_ratio").removesuffix("_worst")
            is_ratio = of in letters and of != name
            # the true ratio is at most a ratio to a bound
            mark = letters[of].get(row["policy"], "") if is_ratio and row[name] is not None else ""
            cells.append(f"{number(row[name], 5, 'up' if is_ratio else 'nearest')} {mark}".rstrip())
        sheet.add(*words, _knowledge(row["policy"]), *cells)
    return Group(sheet, *[Text(UNLIKE)] * any(mark for of in letters.values() for mark in of.values()))


def _letters(table: pl.DataFrame, objective: str) -> dict[str, str]:
    """Return the letter of every policy: on an instance ratios with one letter have the same bound."""
    at = table.columns.index("seed") + 1
    bounds: dict[str, dict[str, float]] = {policy: {} for policy in table["policy"].unique(maintain_order=True)}
    for row in table.iter_rows(named=True):
        if row[f"{objective}_ratio"] is not None:
            where = str([row[name] for name in table.columns[:at]])
            bounds[row["policy"]][where] = row[f"{objective}_bound"]
    return dict(zip(bounds, marks(list(bounds.values())), strict=True))


def _knowledge(policy: str) -> str:
    try:
        return str(specify(policy).policy.knowledge)
    except OptschedError:  # a user's policy that this machine does not have
        return "-"
