"""What there is to say of an attack, for the command line and for pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.problem.html import number
from optsched.rounding import significant

if TYPE_CHECKING:
    from optsched.adversary.attack import Attack

SHOWN = ("arrival", "gpus", "duration", "iterations", "profile", "weight")  # where they are not the same for all jobs


def headline(found: Attack) -> str:
    """The ratio, and what it is to."""
    best = found.confirmed
    to = {"optimum": "the optimum", "schedule": "what another schedule reaches"}.get(best.ratio_to, best.ratio_to)
    exact = f" = {best.exact}" if best.exact.denominator < 10**6 else ""
    return (
        f"{found.policy}: {significant(found.ratio, 6, 'down')}{exact} times {to} "
        f"({best.objective} {number(float(best.value))} against {number(float(best.other))})"
    )


def columns(found: Attack) -> list[str]:
    """The columns of the table of jobs that say something."""
    rows = found.instance.table.to_dicts()
    shown = [name for name in SHOWN if any(row[name] is not None for row in rows)]
    return [name for name in shown if name in ("arrival", "duration") or len({row[name] for row in rows}) > 1]


def facts(found: Attack) -> list[str]:
    """A line on the bound, on each theorem, on the family, and on the search or the proof."""
    best, lines = found.confirmed, []
    if best.ratio_to == "schedule":
        most = "nothing bounds it" if best.most is None else f"at most {significant(best.most, 6, 'up')}"
        lines.append(f"the optimum is not proved: the ratio to it is at least the one above, and {most}")
    for judged in best.judged:
        lines.append(
            f"{judged.id}: <= {significant(judged.ratio, 6, 'up')} x the optimum of {judged.objective}, {judged.verdict}"
        )
    if found.resembles is not None:
        lines.append(f"it {found.resembles.text}")
    return [*lines, _effort(found)]


def _effort(found: Attack) -> str:
    if found.method == "search":
        return f"found in {found.tries:,} tries; before it was made small: {significant(found.searched, 6, 'down')}"
    where, solved = f"no instance of {found.space.text}", f"{found.tries:,} mixed-integer programs"
    if found.proved == found.space.jobs:
        return f"{where} is worse: proved by HiGHS, {solved}"
    if found.proved == 0:
        return f"{solved}: the budget ended before anything was proved"
    return f"{where} with at most {found.proved} jobs is worse: proved by HiGHS, {solved}, when the budget ended"
