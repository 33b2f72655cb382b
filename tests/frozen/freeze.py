"""``python -m frozen.freeze`` with tests/ on the path: adds to digests.json what is new (instances, policies,
objectives), on as many processes as asked for.

``python -m frozen.freeze 2 all`` makes it anew.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from joblib import Parallel, delayed

from frozen.runs import bounds_of, digests_of_runs, names, placements, policies

FILE = Path(__file__).with_name("digests.json")


def frozen(name: str, runs: dict[str, str], bounds: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """(digests by policy, bounds by objective and class) of an instance: what is known stays as it is."""
    every = {policy: runs[policy] if policy in runs else digests_of_runs(name, policy) for policy in policies(name)}
    kept = {policy: found for policy, found in every.items() if found}
    print(name, len(kept) - len(runs), file=sys.stderr, flush=True)
    return kept, dict(bounds_of(name, bounds))


def main(processes: int = 2, anew: bool = False) -> None:
    known = {"runs": {}, "bounds": {}} if anew else json.loads(FILE.read_text())
    every = list(dict.fromkeys((*known["runs"], *names())))
    found = Parallel(n_jobs=processes)(
        delayed(frozen)(name, known["runs"].get(name, {}), known["bounds"].get(name, {})) for name in every
    )
    document = {
        "placements": placements(),
        "runs": {name: runs for name, (runs, _) in zip(every, found, strict=True)},
        "bounds": {name: bounds for name, (_, bounds) in zip(every, found, strict=True)},
    }
    FILE.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), anew="all" in sys.argv[2:])
