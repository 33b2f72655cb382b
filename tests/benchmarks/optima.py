"""Optima of 1 || sum w_j T_j by class of OR-Library's generator, with CP-SAT (one worker) under the same limit.

``PYTHONPATH=tests:. python -m benchmarks.optima --jobs 150 --limit 120`` prints a row for each of the 25 classes (tightness
and spread 0.2, 0.4, ..., 1.0): value, bound, gap and CPU seconds of both methods. A class is *solved* if every seed is
proved. CPU seconds include compilation, the first time on a machine.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import optsched as osd

SHARES = (0.2, 0.4, 0.6, 0.8, 1.0)
OWN, OTHER = "sequence-branching", "cp-sat"


@dataclass(frozen=True)
class Row:
    """One proof: the interval, and CPU seconds of this process and its children."""

    tightness: float
    spread: float
    seed: int
    model: str
    value: float
    bound: float
    seconds: float

    @property
    def solved(self) -> bool:
        """True if the optimum is proved."""
        return self.bound == self.value

    @property
    def gap(self) -> float:
        """Gap relative to the value."""
        return (self.value - self.bound) / self.value if self.value else 0.0

    def __str__(self) -> str:
        interval = f"{self.value:>10.0f} {self.bound:>10.0f} {self.gap:>8.3%}"
        solved = "solved" if self.solved else "open"
        key = f"{self.tightness:.1f} {self.spread:.1f} {self.seed:>3} {self.model:<18}"
        return f"{key} {interval} {self.seconds:>7.1f} {solved}"


def _cpu() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def prove(jobs: int, tightness: float, spread: float, seed: int, model: str, limit: float) -> Row:
    """Return the interval that a method proves within the limit.

    Parameters
    ----------
    jobs
        Number of jobs.
    tightness
        TF of the recipe.
    spread
        RDD of the recipe.
    seed
        Seed of the recipe.
    model
        Name of the method.
    limit
        Seconds of wall time.
    """
    instance = osd.generate("tardiness", seed=seed, jobs=jobs, tightness=tightness, spread=spread)
    begun = _cpu()
    best = osd.solve(instance, model=model, time_limit=limit)
    bound = 0.0 if best.bound is None else best.bound
    return Row(tightness, spread, seed, model, best.value, bound, _cpu() - begun)


def rows(jobs: int, limit: float, seeds: Sequence[int], models: Sequence[str]) -> Iterator[Row]:
    """Yield a row for every class, seed and method.

    Parameters
    ----------
    jobs
        Number of jobs.
    limit
        Seconds of wall time for each proof.
    seeds
        Seeds of the recipe.
    models
        Names of the methods.
    """
    for tightness in SHARES:
        for spread in SHARES:
            for seed in seeds:
                for model in models:
                    yield prove(jobs, tightness, spread, seed, model, limit)


def main() -> None:
    """Print the table and the number of classes that each method has solved."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=150)
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--models", nargs="+", default=[OWN, OTHER])
    given = parser.parse_args()
    print("TF  RDD seed model                   value      bound      gap   CPU s")
    open_classes: dict[str, set[tuple[float, float]]] = {model: set() for model in given.models}
    for row in rows(given.jobs, given.limit, given.seeds, given.models):
        print(row, flush=True)
        if not row.solved:
            open_classes[row.model].add((row.tightness, row.spread))
    for model, left in open_classes.items():
        print(f"{model}: {len(SHARES) ** 2 - len(left)} of {len(SHARES) ** 2} classes solved at {given.jobs} jobs")


if __name__ == "__main__":
    main()
