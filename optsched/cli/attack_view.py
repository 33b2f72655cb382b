"""What ``attack`` prints for people: the ratio and what it is to, the jobs of the instance, what is known of it."""

from __future__ import annotations

from rich.console import Group
from rich.text import Text

from optsched.adversary.attack import Attack
from optsched.cli.layout import Column, Sheet
from optsched.cli.tables import instance_line, number
from optsched.problem.instance import Instance
from optsched.rounding import significant

SHOWN = ("arrival", "gpus", "duration", "iterations", "profile", "weight")  # where they are not the same for all jobs


def attack_view(found: Attack) -> Group:
    """A line that says what was found, the jobs, and what there is to say of them."""
    best = found.confirmed
    to = {"optimum": "the optimum", "schedule": "what another schedule reaches"}.get(best.ratio_to, best.ratio_to)
    exact = f" = {best.exact}" if best.exact.denominator < 10**6 else ""
    head = (
        f"{found.policy}: {significant(found.ratio, 6, 'down')}{exact} times {to} "
        f"({best.objective} {number(float(best.value), 8)} against {number(float(best.other), 8)})"
    )
    return Group(Text(head, style="bold"), _jobs(found.instance), *(Text(line) for line in _lines(found)))


def _jobs(instance: Instance) -> Sheet:
    rows = instance.table.to_dicts()
    shown = [name for name in SHOWN if any(row[name] is not None for row in rows)]
    shown = [name for name in shown if name in ("arrival", "duration") or len({row[name] for row in rows}) > 1]
    sheet = Sheet([Column("job", right=False), *map(Column, shown)])
    for row in rows:
        sheet.add(row["id"], *(row[name] if isinstance(row[name], str) else number(row[name]) for name in shown))
    return sheet


def _lines(found: Attack) -> list[str]:
    best = found.confirmed
    lines = [instance_line(found.instance)]
    if best.ratio_to == "schedule":
        most = "nothing bounds it" if best.most is None else f"at most {significant(best.most, 6, 'up')}"
        lines.append(f"the optimum is not proved: the ratio to it is at least the one above, and {most}")
    for judged in best.judged:
        lines.append(
            f"{judged.id}: <= {significant(judged.ratio, 6, 'up')} x the optimum of {judged.objective}, {judged.verdict}"
        )
    if found.resembles is not None:
        lines.append(f"it {found.resembles.text}")
    if found.method == "search":
        searched = significant(found.searched, 6, "down")
        return [*lines, f"found in {found.tries:,} tries; before it was made small: {searched}"]
    return [*lines, *_proof(found)]


def _proof(found: Attack) -> list[str]:
    where, solved = f"no instance of {found.space.text}", f"{found.tries:,} mixed-integer programs"
    if found.proved == found.space.jobs:
        return [f"{where} is worse: proved by HiGHS, {solved}"]
    if found.proved == 0:
        return [f"{solved}: the budget ended before anything was proved"]
    return [f"{where} with at most {found.proved} jobs is worse: proved by HiGHS, {solved}, when the budget ended"]
