"""Rank instances by how hard they are for optsched, CP-SAT and PyJobShop under one limit; the page is docs/optima.md.

``PYTHONPATH=tests:. python -m benchmarks.ranked --limit 60 --pyjobshop PYTHON`` solves every instance of `INSTANCES` by the
three solvers in turns, prints a row for each run, and adds it to the record ``docs/optima.json``. A run that the
record has with the same limit is not repeated, so that an interrupted measurement can be continued; ``--again`` measures
all. ``PYTHON`` is an interpreter with PyJobShop (``pip install pyjobshop``); default: this one, and without PyJobShop its
runs say that it is missing. ``make pages`` then draws the page.

**Ranks** toy: all three prove the optimum within `TOY` CPU seconds. Otherwise optsched's CPU seconds decide: easy, medium
and hard by `RANKS`. An instance that is not proved is open if the limit is that of hard or more, else it has no rank yet.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path

from benchmarks.solver_processes import CPSAT, OWN, SOLVERS, Answer, answer

import optsched as osd
from optsched.problem.instance import Instance

RECORD = Path(__file__).resolve().parents[2] / "docs" / "optima.json"
TOY = 5.0  # CPU seconds
RANKS = (("easy", 10.0), ("medium", 60.0), ("hard", 300.0))
PROBLEMS = {
    "tardiness": ("1 || sum w_j T_j", "total_weighted_tardiness"),
    "machines": ("P || sum w_j C_j", "total_weighted_completion_time"),
    "rigid": ("P | r_j, size_j | sum C_j", "total_completion_time"),
}
FIXED = {"machines": {"span": 0, "heaviest": 100, "longest": 100}}


@dataclass(frozen=True)
class Named:
    """An instance: a recipe with its parameters, and seed 1."""

    recipe: str
    jobs: int
    parameters: dict[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its name, such as ``machines-400-20``."""
        return "-".join([self.recipe, *(f"{number:g}" for number in (self.jobs, *self.parameters.values()))])

    def instance(self) -> Instance:
        """Return the instance."""
        return osd.generate(self.recipe, seed=1, jobs=self.jobs, **FIXED.get(self.recipe, {}), **self.parameters)


INSTANCES = (
    *(Named("tardiness", n, {"tightness": 0.6, "spread": 0.4}) for n in (12, 20, 40, 100)),
    *(Named("tardiness", 150, {"tightness": a, "spread": b}) for a, b in ((0.2, 0.8), (0.6, 0.4), (1.0, 0.6))),
    *(Named("machines", n, {"machines": m}) for n, m in ((10, 3), (20, 4), (50, 5), (100, 4), (100, 10), (200, 10))),
    *(Named("machines", 400, {"machines": m}) for m in (2, 4, 10, 20)),
    *(Named("rigid", n) for n in (10, 15, 20, 30, 40, 60, 100)),
)


@dataclass(frozen=True)
class Run:
    """One run: the ``name`` of an instance, a ``solver``, its ``limit`` in CPU seconds, and its ``answer``."""

    name: str
    solver: str
    limit: float
    answer: Answer

    def __str__(self) -> str:
        value, bound = (
            "-" if number is None else f"{number:,.0f}" for number in (self.answer.value, self.answer.bound)
        )
        proved = "proved" if self.answer.proved else self.answer.why or "interval"
        return f"{self.name:<24} {self.solver:<10} {bound:>12} {value:>12} {self.answer.seconds:>7.1f} {proved}"


@dataclass(frozen=True)
class Record:
    """The runs, and the ``versions`` of the solvers."""

    runs: tuple[Run, ...]
    versions: dict[str, str]

    def of(self, name: str, solver: str) -> Run | None:
        """Return the last run of a solver on an instance, or None.

        Parameters
        ----------
        name
            Name of the instance.
        solver
            Name of the solver.
        """
        return next((run for run in reversed(self.runs) if (run.name, run.solver) == (name, solver)), None)

    def rank(self, name: str) -> str:
        """Return the rank of an instance.

        Parameters
        ----------
        name
            Name of the instance.
        """
        runs = [run for run in (self.of(name, solver) for solver in SOLVERS) if run is not None]
        own = self.of(name, OWN)
        if own is None:
            return "-"
        if len(runs) == len(SOLVERS) and all(run.answer.proved and run.answer.seconds <= TOY for run in runs):
            return "toy"
        if own.answer.proved:
            return next((rank for rank, most in RANKS if own.answer.seconds <= most), "open")
        return "open" if own.limit >= RANKS[-1][1] else f"over {own.limit:g} s"

    def write(self, path: Path) -> None:
        """Write the record.

        Parameters
        ----------
        path
            The file.
        """
        document = {"versions": self.versions, "runs": [asdict(run) for run in self.runs]}
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def read_record(path: Path = RECORD) -> Record:
    """Return the record in a file, or an empty one.

    Parameters
    ----------
    path
        The file.
    """
    if not path.exists():
        return Record((), {})
    document = json.loads(path.read_text(encoding="utf-8"))
    runs = (Run(**(run | {"answer": Answer(**run["answer"])})) for run in document["runs"])
    return Record(tuple(runs), document["versions"])


def measure(names: Iterable[Named], limit: float, pyjobshop: str, record: Record) -> Iterator[Record]:
    """Yield the record after each new run.

    Parameters
    ----------
    names
        The instances.
    limit
        Limit in CPU seconds.
    pyjobshop
        Path of the Python interpreter that has PyJobShop.
    record
        Runs that are not repeated.
    """
    for named in names:
        for solver in SOLVERS:
            last = record.of(named.name, solver)
            if last is not None and (last.limit == limit or last.answer.proved):
                continue
            instance, objective = named.instance(), PROBLEMS[named.recipe][1]
            run = Run(named.name, solver, limit, answer(solver, instance, objective, limit, pyjobshop))
            contradicted = [
                other for other in map(partial(record.of, named.name), SOLVERS) if other and _contradict(run, other)
            ]
            if contradicted:
                raise ValueError(f"two runs contradict each other: {run}; {contradicted[0]}")
            runs = [other for other in record.runs if (other.name, other.solver) != (run.name, run.solver)]
            record = Record((*runs, run), record.versions)
            yield record


def _contradict(one: Run, other: Run) -> bool:
    """Return whether one run proves a bound above a value of the other."""
    pairs = ((one.answer.bound, other.answer.value), (other.answer.bound, one.answer.value))
    return any(
        bound is not None and value is not None and bound > value + 1e-6 * max(1.0, abs(value))
        for bound, value in pairs
    )


def main() -> None:
    """Measure, print a row for each run, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=float, default=60.0, help="CPU seconds of a run")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="names of instances, or recipes")
    parser.add_argument("--pyjobshop", default=sys.executable, help="Python interpreter with PyJobShop")
    parser.add_argument("--record", type=Path, default=RECORD)
    parser.add_argument("--again", action="store_true", help="measure what the record has, too")
    given = parser.parse_args()
    before = read_record(given.record)
    record = Record(
        () if given.again else before.runs, before.versions | {OWN: osd.__version__, CPSAT: version("ortools")}
    )
    asked = given.only or list(PROBLEMS)
    names = [named for named in INSTANCES if named.name in asked or named.recipe in asked]
    for named in names:  # machine code of every method is compiled before it is measured
        if named.jobs < 30 and record.of(named.name, OWN) is None:
            answer(OWN, named.instance(), PROBLEMS[named.recipe][1], 300.0)
    for after in measure(names, given.limit, given.pyjobshop, record):
        print(after.runs[-1], flush=True)
        after.write(given.record)


if __name__ == "__main__":
    main()
