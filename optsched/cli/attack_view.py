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
    lines.append(f"found in {found.tries:,} tries; before it was made small: {significant(found.searched, 6, 'down')}")
    return lines
