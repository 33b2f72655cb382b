"""What ``attack`` prints for people: the ratio and what it is to, the jobs of the instance, what is known of it."""

from __future__ import annotations

from rich.console import Group
from rich.text import Text

from optsched.adversary.attack import Attack
from optsched.cli.layout import Column, Sheet
from optsched.cli.tables import instance_line, number
from optsched.report.attack_words import columns, facts, headline


def attack_view(found: Attack) -> Group:
    """A line that says what was found, the jobs, and what there is to say of them."""
    lines = [instance_line(found.instance), *facts(found)]
    return Group(Text(headline(found), style="bold"), _jobs(found), *map(Text, lines))


def _jobs(found: Attack) -> Sheet:
    shown = columns(found)
    sheet = Sheet([Column("job", right=False), *map(Column, shown)])
    for row in found.instance.table.to_dicts():
        sheet.add(row["id"], *(row[name] if isinstance(row[name], str) else number(row[name]) for name in shown))
    return sheet
