"""The generated part of docs/optima.md: the record of `benchmarks.ranked` as tables."""

from __future__ import annotations

from benchmarks.ranked import INSTANCES, PROBLEMS, RANKS, TOY, Named, Record, Run, read_record
from benchmarks.solver_processes import SOLVERS

from pages.page import ROOT

PAGE = ROOT / "docs" / "optima.md"
BEGIN, END = "<!-- optima: make pages writes this part -->", "<!-- optima: end -->"


def rewritten(text: str) -> str:
    """Return the text of the page with its generated part up to date.

    Parameters
    ----------
    text
        The present text.
    """
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{tables(read_record())}\n\n{END}{after}"


def tables(record: Record) -> str:
    """Return the rule, the number of instances of each rank, and a table for each problem.

    Parameters
    ----------
    record
        The record.
    """
    measured = [named for named in INSTANCES if record.of(named.name, SOLVERS[0])]
    versions = ", ".join(f"{name} {version}" for name, version in sorted(record.versions.items()))
    parts = [f"Measured with {versions}.", _counts(record, measured)]
    for recipe, (problem, _) in PROBLEMS.items():
        rows = [named for named in measured if named.recipe == recipe]
        if rows:
            parts.append(f"### `{problem}`\n\n{_table(record, rows)}")
    return "\n\n".join(parts)


def _counts(record: Record, measured: list[Named]) -> str:
    names = {
        "toy": f"all three prove the optimum within {TOY:g} CPU seconds",
        **{rank: f"optsched proves it within {most:g} CPU seconds" for rank, most in RANKS},
        "open": f"optsched does not prove it within {RANKS[-1][1]:g} CPU seconds",
    }
    rows = ["| rank | rule | instances |", "|---|---|---|"]
    for rank, rule in names.items():
        rows.append(f"| {rank} | {rule} | {sum(record.rank(named.name) == rank for named in measured)} |")
    unknown = sum(record.rank(named.name).startswith("over") for named in measured)
    if unknown:
        rows.append(f"| over a limit | not proved, and the limit was too small for a rank | {unknown} |")
    return "\n".join(rows)


def _table(record: Record, rows: list[Named]) -> str:
    lines = [f"| instance | rank | limit | {' | '.join(SOLVERS)} |", f"|---|---|---|{'---|' * len(SOLVERS)}"]
    for named in rows:
        runs = [record.of(named.name, solver) for solver in SOLVERS]
        best = min((run.answer.value for run in runs if run and run.answer.value is not None), default=0.0)
        limit = max(run.limit for run in runs if run)
        cells = " | ".join(_cell(run, best) for run in runs)
        lines.append(f"| `{named.name}` | {record.rank(named.name)} | {limit:g} s | {cells} |")
    return "\n".join(lines)


def _cell(run: Run | None, best: float) -> str:
    """Return CPU seconds if the optimum is proved, else the interval relative to the best value of all."""
    if run is None:
        return "not run"
    answer = run.answer
    if answer.proved:
        return f"proved, {answer.seconds:.1f} s"
    if answer.value is None or answer.bound is None:
        return answer.why or "no interval"
    if not best:
        return f"{answer.bound:,.0f} to {answer.value:,.0f}"
    bound, value = (100 * (number / best - 1) for number in (answer.bound, answer.value))
    return f"{bound:+.1f} % to {value:+.1f} %"
