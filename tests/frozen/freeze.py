"""``python -m frozen.freeze`` with tests/ on the path: adds to digests.json what is new (instances, policies, objectives).

It uses as many processes as asked for, and prints what was added, removed and changed. ``python -m frozen.freeze 2 all``
makes all of it again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from frozen.runs import (
    FIGURES,
    bounds_of,
    description,
    digests_of_runs,
    figures_of_run,
    line,
    names,
    parts,
    placements,
    policies,
)

FILE = Path(__file__).with_name("digests.json")
SHOWN = 40  # changes of each kind that are printed
ABOUT = (
    "Schedules and bounds that the tests compare with those of today; made by python -m frozen.freeze.",
    "instances: where each comes from, its seed, its jobs and its cluster.",
    f"runs: by instance and policy; {' and '.join(FIGURES)} in seconds with the placement of the policy, a colon, and a"
    " digest for every placement in the order of placements. A digest is the beginning of the SHA-256 of the schedule:"
    " start, job, end, work and GPUs of every segment in order of time, bit for bit, and the tasks. -------- says that it is"
    " refused.",
    "bounds: by instance, objective and class of schedules; the kind of the best certificate and its value.",
)


def frozen(name: str, runs: dict[str, str], bounds: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """(lines by policy, bounds by objective and class) of an instance: what is known stays as it is."""
    lines: dict[str, str] = {}
    for policy in policies(name):
        figures, digests = parts(runs.get(policy, ""))
        digests = digests or digests_of_runs(name, policy)
        if digests:
            lines[policy] = line(figures or figures_of_run(name, policy), digests)
    print(name, len(lines) - len(runs), file=sys.stderr, flush=True)
    return lines, dict(bounds_of(name, bounds))


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """In words, what was added, removed and changed from one document to another, a line each."""
    said: dict[str, list[str]] = {"added": [], "removed": [], "changed": []}
    for kind, words in (("runs", _run_changed), ("bounds", _bound_changed)):
        before, after = ({(n, k): v for n, rows in each[kind].items() for k, v in rows.items()} for each in (old, new))
        for key in dict.fromkeys((*before, *after)):
            was, now, where = before.get(key), after.get(key), f"{key[0]}, {key[1]}"
            if was is None:
                said["added"].append(f"{where}: {_short(kind, now)}")
            elif now is None:
                said["removed"].append(f"{where}: {_short(kind, was)}")
            elif was != now:
                said["changed"] += [f"{where}: {each}" for each in words(was, now, new["placements"])]
    for verb, lines in said.items():
        yield from (f"{verb} {each}" for each in lines[:SHOWN])
        if len(lines) > SHOWN:
            yield f"{verb}: {len(lines) - SHOWN:,} more"
    yield ", ".join(f"{len(lines):,} {verb}" for verb, lines in said.items())


def _short(kind: str, value: Any) -> str:
    return (parts(value)[0] or "no figures") if kind == "runs" else str(value)


def _run_changed(was: str, now: str, placed: list[str]) -> Iterator[str]:
    (figures, digests), (new_figures, new_digests) = parts(was), parts(now)
    before, after = (dict(zip(placed, words.split(), strict=False)) for words in (digests, new_digests))
    other = [name for name in placed if before.get(name) != after.get(name)]
    if not other:
        if figures != new_figures and figures:
            yield f"the same schedules, but {figures} -> {new_figures}"
        return
    shown = f"{figures} -> {new_figures}" if figures != new_figures else f"{figures or 'no figures'} as before"
    names = ", ".join(name.lstrip("+") or "its own placement" for name in other)
    yield f"{shown}; another schedule with {len(other)} of {len(placed)} placements: {names}"


def _bound_changed(was: str, now: str, placed: list[str]) -> Iterator[str]:
    yield f"bound {was} -> {now}"


def main(processes: int = 2, anew: bool = False) -> None:
    old = json.loads(FILE.read_text())
    known = {"runs": {}, "bounds": {}} if anew else old
    every = list(dict.fromkeys((*known["runs"], *names())))
    found = Parallel(n_jobs=processes)(
        delayed(frozen)(name, known["runs"].get(name, {}), known["bounds"].get(name, {})) for name in every
    )
    document = {
        "about": ABOUT,
        "placements": placements(),
        "instances": {name: description(name) for name in every},
        "runs": {name: runs for name, (runs, _) in zip(every, found, strict=True)},
        "bounds": {name: bounds for name, (_, bounds) in zip(every, found, strict=True)},
    }
    FILE.write_text(json.dumps(document, indent=1) + "\n")
    print(*changes(old, document), sep="\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), anew="all" in sys.argv[2:])
