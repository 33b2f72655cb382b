"""``optsched fit``: constants of a model from measurements."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from optsched.cli.options import AsJson, argument, how_long, option, output
from optsched.cli.output import answer
from optsched.errors import check_legal
from optsched.problem.atomic_files import check_writable, write_atomic

if TYPE_CHECKING:
    from optsched.speeds.least_squares import Fitted

MODELS = ("contention", "interference", "scaling")


def fit(
    kind: Annotated[str, argument("KIND", ", ".join(MODELS))],
    measured: Annotated[Path, argument("FILE.csv", "one measurement a row")],
    latency: Annotated[
        str | None, option("--latency TIME", "contention: the latency a, if known: seconds, 35us, 2ms")
    ] = None,
    ratio: Annotated[
        float | None, option("--ratio XI", "interference: slow-down of pairs that were not measured; default: 2")
    ] = None,
    file: Annotated[
        Path | None, output("FILE.json", "a file for --contention, --interference or --profiles of run")
    ] = None,
    picture: Annotated[Path | None, option("--picture FILE", "histograms of fitted / measured seconds")] = None,
    as_json: AsJson = False,
) -> None:
    """Fit the constants of a model to your measurements.

    \b
    optsched fit contention transfers.csv -o network.json  # bytes, transfers, seconds
    optsched fit interference pairs.csv -o pairs.json      # model, beside, seconds
    optsched fit scaling steps.csv -o profiles.json        # model, gpus, batch, seconds

    \f
    Parameters
    ----------
    kind
        ``contention``, ``interference`` or ``scaling``.
    measured
        A table with one measurement a row.
    latency
        For contention: the latency a, if known: seconds, 35us, 2ms.
    ratio
        For interference: slow-down of pairs that were not measured; default: 2.
    file
        A file for --contention, --interference or --profiles of run.
    picture
        A picture with histograms of fitted / measured seconds.
    as_json
        Print exactly one JSON document to stdout.
    """
    check_legal(kind in MODELS, "KIND", kind, ", ".join(MODELS))
    check_legal(latency is None or kind == "contention", "--latency", latency, "with contention only")
    pairs = ratio is None or (kind == "interference" and ratio >= 1)
    check_legal(pairs, "--ratio", ratio, "a number >= 1, with interference only")
    known = how_long(latency, "--latency", zero=True)
    from optsched.cli.fit_table import fits_view
    from optsched.io.measurements import measured_contention, measured_interference, measured_scalings

    check_writable(file, "the constants", (".json",))
    check_writable(picture, "the picture", (".png", ".svg", ".pdf"))
    if kind == "scaling":
        fits: dict[str, Fitted[Any]] = dict(measured_scalings(measured))
        part = {name: fitted.model.to_json() for name, fitted in fits.items()}
    else:
        contends = kind == "contention"
        one = measured_contention(measured, known) if contends else measured_interference(measured, ratio or 2.0)
        fits, part = {"": one}, one.model.to_json()
    if file is not None:
        write_atomic(file, json.dumps(part, indent=1) + "\n")
    if picture is not None:
        import numpy as np

        from optsched.plot.canvas import save
        from optsched.plot.curves import error_histogram

        errors = {name or kind: np.log2(1 - fitted.residuals / fitted.measured) for name, fitted in fits.items()}
        save(error_histogram(errors, signed=True, title="fitted / measured seconds"), picture)
    about = {"kind": kind, "file": str(measured)}
    answer(
        as_json,
        lambda: about | {"fits": [{"of": name, **fitted.to_json()} for name, fitted in fits.items()], kind: part},
        lambda: fits_view(fits),
        file,
        picture,
    )
