"""The page of an attack: what was found, the jobs, the schedules side by side, and the instance file itself."""

from __future__ import annotations

import json
from collections.abc import Iterator

from optsched.adversary.attack import Attack
from optsched.adversary.solved import SECONDS
from optsched.policies.simulate import simulate
from optsched.problem.html import escaped, html_of
from optsched.problem.schedule import Schedule
from optsched.report.html_views import picture
from optsched.solvers.solve import solve

_STYLE = (
    "body{font-family:sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse}th,td{border:1px solid #999;padding:.2em .6em;text-align:right}"
    "img{max-width:100%}pre{overflow:auto}"
)


def page(title: str, body: str) -> str:
    """The document; ``body`` is HTML, ``title`` is text."""
    head = f'<meta charset="utf-8"><title>{escaped(title)}</title><style>{_STYLE}</style>'
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n'


def attack_page(found: Attack) -> str:
    """A whole HTML document, without scripts, that shows the instance and how to run it again."""
    drawn = [(caption, picture(schedule)) for caption, schedule in _schedules(found)]
    shown = "".join(f"<h2>{escaped(caption)}</h2>{drawing}" for caption, drawing in drawn if drawing)
    name = f"{found.instance.name}.json"
    again = f"optsched ratio {name} -p {found.policy} --objective {found.confirmed.objective}"
    file = json.dumps(found.instance.to_json(), indent=1)
    replay = f"<h2>Again</h2><p><code>{escaped(again)}</code>, with this file as <code>{escaped(name)}</code>:</p>"
    body = f"{html_of('attack', found)}{shown}{replay}<pre>{escaped(file)}</pre>"
    return page(f"The worst instance found for {found.policy}", body)


def _schedules(found: Attack) -> Iterator[tuple[str, Schedule]]:
    best, instance = found.confirmed, found.instance
    yield best.policy.text, simulate(instance, best.policy).schedule
    if best.rival is not None:
        yield best.rival.text, simulate(instance, best.rival).schedule
    elif instance.optimum is not None and instance.optimum["class"] == "gang-nonpreemptive":
        optimal = solve(instance, best.objective, time_limit=SECONDS).schedule
        if optimal is not None:
            yield "an optimal schedule", optimal
