"""``fit``: the constants of a model from one's own measurements, as a file that ``run`` takes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optsched.cli.options import AsJson, output
from optsched.cli.output import print_json, show, write
from optsched.errors import check_legal

if TYPE_CHECKING:
    from rich.console import Group

    from optsched.speeds.least_squares import Fitted

KINDS = ("contention", "interference", "scaling")


def fit(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=", ".join(KINDS), show_default=False)],
    measured: Annotated[Path, typer.Argument(metavar="FILE.csv", help="one measurement a row", show_default=False)],
    latency: Annotated[float | None, typer.Option("--latency", metavar="S", help="contention: a, where known")] = None,
    ratio: Annotated[
        float | None, typer.Option("--ratio", metavar="XI", help="interference: of pairs not measured; default: 2")
    ] = None,
    file: Annotated[Path | None, output("FILE.json", "for --contention, --interference or --profiles of run")] = None,
    as_json: AsJson = False,
) -> None:
    """Fit the constants of a model to one's own measurements.

    \b
    optsched fit contention transfers.csv -o network.json  # bytes, transfers, seconds
    optsched fit interference pairs.csv -o pairs.json      # model, beside, seconds
    optsched fit scaling steps.csv -o profiles.json        # model, gpus, batch, seconds
    """
    check_legal(kind in KINDS, "KIND", kind, ", ".join(KINDS))
    check_legal(latency is None or kind == "contention", "--latency", latency, "with contention only")
    pairs = ratio is None or (kind == "interference" and ratio >= 1)
    check_legal(pairs, "--ratio", ratio, "a number >= 1, with interference only")
    from optsched.io.measurements import measured_contention, measured_interference, measured_scalings
    from optsched.problem.files import check_writable, write_atomic

    if file is not None:
        check_writable(file, "the constants", (".json",))
    if kind == "scaling":
        found: dict[str, Fitted[Any]] = dict(measured_scalings(measured))
        part = {name: each.model.to_json() for name, each in found.items()}
    else:
        contends = kind == "contention"
        one = measured_contention(measured, latency) if contends else measured_interference(measured, ratio or 2.0)
        found, part = {"": one}, one.model.to_json()
    if file is not None:
        write_atomic(file, json.dumps(part, indent=1) + "\n")
    if as_json:
        fits = [{"of": name, **each.to_json()} for name, each in found.items()]
        print_json({"kind": kind, "file": str(measured), "fits": fits, kind: part})
        return
    show(_view(found))
    if file is not None:
        write(f"wrote {file}\n")


def _view(found: dict[str, Fitted[Any]]) -> Group:
    """One row a constant; then, a line a fit, how well it meets the measurements, and what was assumed."""
    from rich.console import Group
    from rich.text import Text

    from optsched.cli.layout import Column, Sheet

    heads = ("constant", "value", "std error", "95 % from", "to", "unit")
    sheet, notes = Sheet([Column(head, right=head != "unit") for head in heads]), []
    for name, each in found.items():
        of = f"{name}: " * bool(name)
        for row in each.constants:
            numbers = (row.value, row.error, *each.interval(row.name))
            sheet.add(of + row.name, *("-" if math.isnan(x) else f"{x:.4g}" for x in numbers), row.unit)
        rows, explained = len(each.measured), "-" if math.isnan(each.r_squared) else f"{each.r_squared:.6g}"
        error = f"largest relative error {100 * each.largest_error:.2g} %"
        notes += [of + note for note in (f"{rows} row{'s' * (rows > 1)}, R^2 {explained}, {error}", *each.notes)]
    return Group(sheet, *map(Text, notes))
