"""The page of ``attack``: the ratio, the jobs, the schedules, and the instance file itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from optsched.problem.schedule import Schedule
from optsched.report.page import PageLines, PageListing, PageSection, PageTable, page
from optsched.report.solution_page import schedule_section

if TYPE_CHECKING:
    from optsched.adversary.attack_search import Attack


def attack_page(
    found: Attack,
    schedules: Iterable[tuple[str, Schedule]],
    tables: Sequence[PageTable],
    notes: Sequence[str] = (),
    command: str = "",
) -> str:
    """Return the page of an attack, which shows how to repeat it.

    Parameters
    ----------
    found
        The result of the attack.
    schedules
        (caption, schedule) of the schedules to draw.
    tables
        The tables of ``attack``.
    notes
        The notes below these tables.
    command
        The command that made the page.
    """
    more = [note for note in notes if note != found.headline]
    sections = [PageSection("Jobs", [*tables, PageLines(more)]), *schedule_section(dict(schedules))]
    name = f"{found.instance.name}.json"
    again = f"optsched ratio {name} -p {found.policy} --objective {found.confirmed.objective}"
    file = PageListing(json.dumps(found.instance.to_json(), indent=1))
    intro = f"Save the file below as {name} and run the command:"
    sections.append(PageSection("Repeat it", [PageListing(again)], intro, more=[file], more_title=name))
    title = f"The worst instance found for {found.policy}"
    return page(title, found.headline, sections, command=command, instance=found.instance)
