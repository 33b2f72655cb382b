"""Reports of a session of tests: tables, Markdown, JSON, a badge, annotations of GitHub.

Only the standard library is needed. A record is that of `GuardedRatio.record` with the ``outcome`` of its test.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

Record = Mapping[str, Any]
FORMAT = "optsched-ratio-report/1"
HEADS = ("policy", "suite", "objective", "worst", "on", "mean", "no ratio", "limit", "baseline", "change", "guarantee")
SEEN = 0.005  # percent: less is the rounding of what was kept
LEFT = frozenset({"policy", "suite", "objective", "on", "no ratio", "guarantee", "test"})


def decisive(record: Record) -> Mapping[str, Any] | None:
    """Return the instance with the worst ratio, or the first if none has a ratio.

    Parameters
    ----------
    record
        Record of a measurement.
    """
    rows: Sequence[Mapping[str, Any]] = record["instances"]
    return next((row for row in rows if row["instance"] == record["worst_instance"]), rows[0] if rows else None)


def table(records: Sequence[Record]) -> list[str]:
    """Return the lines of a table with a row for each measurement, without empty columns.

    Parameters
    ----------
    records
        Records of the measurements.
    """
    cells = [_cells(each) for each in records]
    shown = [head for head in (*HEADS, "test") if any(row[head] for row in cells)]
    wide = {head: max(len(head), *(len(row[head]) for row in cells)) for head in shown}

    def line(row: Mapping[str, str]) -> str:
        parts = (row[head].ljust(wide[head]) if head in LEFT else row[head].rjust(wide[head]) for head in shown)
        return "  ".join(parts).rstrip()

    return [line({head: head for head in shown}), *map(line, cells)]


def markdown(records: Sequence[Record], without: Sequence[str] = (), notes: Sequence[str] = ()) -> str:
    """Return a summary or comment in Markdown: a heading, a table with the outcome of each test, and notes.

    Parameters
    ----------
    records
        Records of the measurements.
    without
        Tests that failed before they measured anything.
    notes
        Further lines.
    """
    tests = {each["test"]: each["outcome"] for each in records} | dict.fromkeys(without, "failed")
    passed = sum(outcome == "passed" for outcome in tests.values())
    lines = [f"### Competitive ratios: {passed} of {len(tests)} tests passed", ""]
    if records:
        cells = [{**_cells(each), "to": (decisive(each) or {}).get("ratio_to") or ""} for each in records]
        every = ("result", "policy", "suite", "objective", "worst", "to", *HEADS[4:], "test")
        rows = [{**row, "result": each["outcome"]} for row, each in zip(cells, records, strict=True)]
        shown = [head for head in every if any(row[head] for row in rows)]
        lines += [_columns(shown), _columns("---" if head in {*LEFT, "result", "to"} else "---:" for head in shown)]
        lines += [_columns(_escaped(row[head]) for head in shown) for row in rows]
        if any(row["to"] == "bound" for row in rows):
            lines += ["", "To a bound: the optimum is not proven, and the true ratio may be smaller."]
    else:
        lines.append("No ratio was measured.")
    said = [f"{test}: failed before anything was measured" for test in without] + list(notes)
    return "\n".join(lines + [""] * bool(said) + [f"* {_escaped(each)}" for each in said]) + "\n"


def document(records: Sequence[Record], without: Sequence[str] = (), notes: Sequence[str] = ()) -> str:
    """Return the report as JSON, with every instance.

    Parameters
    ----------
    records
        Records of the measurements.
    without
        Tests that failed before they measured anything.
    notes
        Further lines.
    """
    kept = ("test", "outcome", "policy", "suite", "objective", "worst", "worst_instance", "mean", "limit", "before")
    named = {"before": "baseline"}
    rows = [
        {**{named.get(key, key): each.get(key) for key in kept}, "guarantee": each.get("guarantee")}
        | {"instances": each["instances"]}
        for each in records
    ]
    whole = {"format": FORMAT, "ratios": rows, "not_measured": list(without), "notes": list(notes)}
    return json.dumps(whole, indent=1, allow_nan=False) + "\n"


def badge(records: Sequence[Record], without: Sequence[str] = ()) -> str:
    """Return the worst ratio for https://shields.io/badges/endpoint-badge; red if something failed.

    Parameters
    ----------
    records
        Records of the measurements.
    without
        Tests that failed before they measured anything.
    """
    ratios = [each["worst"] for each in records if each["worst"] is not None]
    message = f"{max(ratios):.3f} at worst" if ratios else "not measured"
    good = not without and all(each["outcome"] != "failed" for each in records)
    color = "red" if not good else "brightgreen" if ratios else "lightgrey"
    shown = {"schemaVersion": 1, "label": "competitive ratio", "message": message, "color": color}
    return json.dumps(shown) + "\n"


def properties(records: Sequence[Record]) -> list[tuple[str, str]]:
    """Return the properties of a test in a JUnit file; names of its second measurement end with ``_2``.

    Parameters
    ----------
    records
        Records of the measurements of one test.
    """
    found = []
    for number, each in enumerate(records, 1):
        row = decisive(each) or {}
        values = {name: each[name] for name in ("policy", "suite", "objective")}
        values |= {"ratio": each["worst"], "mean_ratio": each["mean"]}
        values |= {name: row.get(name) for name in ("instance", "value", "bound", "bound_kind", "ratio_to")}
        values |= {"limit": each.get("limit"), "baseline": each.get("before"), "guarantee": each.get("guarantee")}
        behind = f"_{number}" if number > 1 else ""
        found += [(f"{name}{behind}", str(value)) for name, value in values.items() if value is not None]
    return found


def annotation(kind: str, file: str, line: int, title: str, message: str) -> str:
    """Return a command of GitHub Actions that marks a line of a file in a pull request.

    Parameters
    ----------
    kind
        ``"error"``, ``"warning"`` or ``"notice"``.
    file
        The file.
    line
        Number of the line.
    title
        Title of the mark.
    message
        Its text.
    """
    where = {"file": file, "line": str(line), "title": title}
    marked = ",".join(f"{key}={_data(value).replace(':', '%3A').replace(',', '%2C')}" for key, value in where.items())
    return f"::{kind} {marked}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _columns(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    # Names of tests have underscores, commands anything: nothing of it is Markdown or HTML.
    for mark in "\\`*_[]|":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.replace("&", "&amp;").replace("<", "&lt;").split())


def _cells(record: Record) -> dict[str, str]:
    worst, before = record["worst"], record.get("before")
    grown = 100 * (worst / before - 1) if worst is not None and before else None
    change = "" if grown is None else f"{grown:+.2f} %" if abs(grown) >= SEEN else "none"
    ratios = {"worst": worst, "mean": record["mean"], "limit": record.get("limit"), "baseline": before}
    return {
        **{name: record[name] for name in ("policy", "suite", "objective", "test")},
        **{name: "" if value is None else f"{value:.4f}" for name, value in ratios.items()},
        "on": record["worst_instance"] or "",
        "no ratio": _without(record),
        "change": change,
        "guarantee": record.get("guarantee", ""),
    }


def _without(record: Record) -> str:
    rows = [row for row in record["instances"] if row["ratio"] is None]
    if not rows:
        return ""
    value, bound = ("none" if rows[0][key] is None else f"{rows[0][key]:.6g}" for key in ("value", "bound"))
    more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
    return f"{rows[0]['instance']}: {value}, bound {bound}{more}"
