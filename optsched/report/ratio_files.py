"""What ``ratio -o DIR`` writes: ratios.json, and the instance on which every policy is worst, to be run again."""

from __future__ import annotations

import json
import re
from pathlib import Path

from optsched.guarantees.evaluate import RatioTable
from optsched.guarantees.robustness import Robustness
from optsched.guarantees.suites import Suite
from optsched.problem.files import write_atomic


def save_ratios(table: RatioTable, suite: Suite, folder: Path, curves: Robustness | None = None) -> list[str]:
    """Write the table and, for every policy with a ratio, its worst instance; a line on each of these for people.

    With ``curves`` also robustness.json. Files of the same names are replaced.
    """
    for name, document in (("ratios.json", table), ("robustness.json", curves)):
        if document is not None:
            write_atomic(folder / name, json.dumps(document.to_json(), indent=1) + "\n")
    instances = dict(suite.instances())
    lines = []
    for row in table.policies if curves is None else [curve.worst_row for curve in curves.curves]:
        if row.worst_instance is None:
            continue
        path = folder / f"worst-{re.sub(r'[^A-Za-z0-9._=-]+', '-', row.policy).strip('-')}.json"
        instances[row.worst_instance].save(path)
        again = f"optsched ratio {path} -p {row.policy}" + (f" --speed {table.speed}" if table.speed else "")
        lines.append(f"{row.policy}: worst on {row.worst_instance}; again: {again}")
    return lines
