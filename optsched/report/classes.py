"""Letters for the ratios of a table: only ratios to bounds on one class of schedules may be compared.

A class with more freedom (preemption, sharing, other numbers of GPUs) has a smaller optimum, so the ratio of the same
schedule to its bound is larger. A schedule with ratio 1.18 in one class may be better than one with ratio 1.17 in another.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from string import ascii_lowercase

from optsched.evaluation.report import Report

UNLIKE = "do not compare ratios with different letters: their bounds are for different classes of schedules"


def marks(bounds: Sequence[Mapping[str, Hashable]]) -> list[str]:
    """Return a letter for every row of a table, the same for rows that may be compared.

    Two rows may be compared if their bounds are the same on all instances that both have.

    Parameters
    ----------
    bounds
        For every row the bound of its ratio by instance: a class of schedules, or the value of a bound.

    Returns
    -------
    list of str
        Letters; "" for all rows if all may be compared.
    """
    first: list[Mapping[str, Hashable]] = []
    groups = []
    for row in bounds:
        alike = (
            k for k, other in enumerate(first) if all(row[name] == other[name] for name in row.keys() & other.keys())
        )
        group = next(alike, len(first))
        if group == len(first):
            first.append(row)
        groups.append(group)
    if len(first) < 2:
        return [""] * len(groups)
    return [ascii_lowercase[group] if group < len(ascii_lowercase) else f"({group + 1})" for group in groups]


def report_marks(report: Report) -> list[str]:
    """Return a letter for every line of a report (see `marks`); lines without a ratio may be compared with any.

    Parameters
    ----------
    report
        The report.
    """
    bounds = (None if line.ratio is None else line.bound for line in report.lines)
    return marks([{} if bound is None else {"": bound.schedule_class} for bound in bounds])
