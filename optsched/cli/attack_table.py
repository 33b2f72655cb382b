"""The table of ``attack``."""

from __future__ import annotations

from rich.console import Group
from rich.text import Text

from optsched.adversary.attack_search import Attack
from optsched.cli.layout import Sheet
from optsched.cli.wording import instance_line
from optsched.rounding import number


def attack_view(found: Attack) -> Group:
    """Return the ratio, the table of jobs, and further facts.

    Parameters
    ----------
    found
        The result of the attack.
    """
    sheet = Sheet(("job", *found.columns))
    for row in found.instance.table.to_dicts():
        values = (row[name] for name in found.columns)
        sheet.add(row["id"], *(value if isinstance(value, str) else number(value) for value in values))
    lines = [instance_line(found.instance), *found.facts]
    return Group(Text(found.headline, style="bold"), sheet, *map(Text, lines))
