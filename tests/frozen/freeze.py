"""``python -m frozen.freeze`` with tests/ on the path: makes digests.json anew, on as many processes as are asked for."""

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


def main(processes: int = 2) -> None:
    every = names()
    found = Parallel(n_jobs=processes)(delayed(frozen)(name) for name in every)
    document = {
        "placements": placements(),
        "runs": {name: runs for name, (runs, _) in zip(every, found, strict=True)},
        "bounds": {name: bounds for name, (_, bounds) in zip(every, found, strict=True)},
    }
    FILE.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
