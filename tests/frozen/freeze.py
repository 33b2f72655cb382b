"""``python -m frozen.freeze`` with tests/ on the path: adds to digests.json what is new, on as many processes as asked for.

``python -m frozen.freeze 2 all`` makes it anew.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from joblib import Parallel, delayed

from frozen.runs import bounds_of, digests_of_runs, names, placements, policies

FILE = Path(__file__).with_name("digests.json")


def frozen(name: str) -> tuple[dict[str, str], dict[str, str]]:
    """(digests by policy, bounds by objective and class) of an instance."""
    runs = {policy: found for policy in policies(name) if (found := digests_of_runs(name, policy))}
    print(name, len(runs), file=sys.stderr, flush=True)
    return runs, dict(bounds_of(name))


def main(processes: int = 2, anew: bool = False) -> None:
    known = {} if anew else json.loads(FILE.read_text())
    every = [name for name in names() if name not in known.get("runs", {})]
    found = Parallel(n_jobs=processes)(delayed(frozen)(name) for name in every)
    document = {
        "placements": placements(),
        "runs": known.get("runs", {}) | {name: runs for name, (runs, _) in zip(every, found, strict=True)},
        "bounds": known.get("bounds", {}) | {name: bounds for name, (_, bounds) in zip(every, found, strict=True)},
    }
    FILE.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), anew="all" in sys.argv[2:])
