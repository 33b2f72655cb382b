"""Optima and intervals of rigid gangs on 8 GPUs with arrivals, total completion time.

``PYTHONPATH=tests:. python -m benchmarks.gangs --jobs 60 100 --seeds 1 2 3 --limit 300`` prints a row for each instance of
the recipe ``rigid``: value, bound, gap, CPU seconds and peak memory of the process so far. CPU seconds include compilation,
the first time on a machine. The limit is wall time: on a busy machine a row has fewer CPU seconds.
"""

from __future__ import annotations

import argparse
import resource
import time

import optsched as osd


def row(jobs: int, seed: int, limit: float | None, model: str | None) -> str:
    """Return the row of an instance.

    Parameters
    ----------
    jobs
        Number of jobs.
    seed
        Seed of the recipe.
    limit
        Seconds of wall time; None: to the proof, or until memory ends it.
    model
        Name of the method; None: the default.
    """
    instance, begun = osd.generate("rigid", seed=seed, jobs=jobs), time.process_time()
    best = osd.solve(instance, model=model, time_limit=limit)
    seconds, memory = time.process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    key = f"{jobs:>5} {seed:>4} {best.model:<18}"
    return (
        f"{key} {best.value:>10.0f} {best.bound:>10.0f} {best.gap:>8.3%} {seconds:>7.1f} {memory:>7.0f} {best.status}"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, nargs="+", default=[20, 25, 30, 40])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--limit", type=float, default=None)
    parser.add_argument("--model", default=None)
    given = parser.parse_args()
    print(" jobs seed model                   value      bound      gap   CPU s      MB")
    for jobs in given.jobs:
        for seed in given.seeds:
            print(row(jobs, seed, given.limit, given.model), flush=True)


if __name__ == "__main__":
    main()
