"""``optsched measure``: seconds of training steps of pairs of jobs on one device, and of split batches."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

from optsched.cli.interrupt import telling
from optsched.cli.options import AsJson, argument, option, output
from optsched.cli.output import answer, say
from optsched.errors import OptschedError, check_legal
from optsched.problem.atomic_files import check_writable
from optsched.rounding import counted

KINDS = {"sharing": "interference", "batches": "scaling"}  # what `optsched fit` makes of the file


def measure(
    kind: Annotated[str, argument("KIND", "sharing, batches")],
    models: Annotated[
        str | None, option("--models NAMES", "workloads, with commas; default: all that need PyTorch")
    ] = None,
    seconds: Annotated[float, option("--seconds S", "window of a measurement")] = 2.0,
    repetitions: Annotated[int, option("--repetitions N", "rounds over all measurements")] = 3,
    split: Annotated[
        str | None, option("--split NUMBERS", "numbers of sub-batches; default: 1 for sharing, 1,2,4,8 for batches")
    ] = None,
    device: Annotated[str | None, option("--device NAME", "cuda or cpu; default: cuda if PyTorch finds a GPU")] = None,
    file: Annotated[Path | None, output("FILE.csv", "made, or continued; default: KIND.csv")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure training steps on this machine, for `optsched fit`.

    `sharing` measures every model alone and with every other one on the same device. `batches` splits
    a batch into sub-batches. Each measurement is written at once, and the same command continues a file.

    \b
    optsched measure sharing -o sharing.csv
    optsched measure batches --models recurrent,graph

    \f
    Parameters
    ----------
    kind
        ``sharing`` or ``batches``.
    models
        Names of workloads, with commas between them; None: all that need PyTorch.
    seconds
        Window of a measurement; steps that take long have a longer window.
    repetitions
        Rounds over all measurements.
    split
        Numbers of sub-batches, with commas between them.
    device
        ``cuda`` or ``cpu``; None: ``cuda`` if PyTorch finds a GPU.
    file
        CSV file that is made, or continued; None: ``KIND.csv``.
    as_json
        Print exactly one JSON document to stdout.
    """
    from optsched.measure import device_times as times
    from optsched.progress import bars

    check_legal(kind in KINDS, "KIND", kind, ", ".join(KINDS))
    check_legal(0 < seconds < math.inf, "--seconds", seconds, "a number above 0")
    check_legal(repetitions >= 1, "--repetitions", repetitions, "an integer >= 1")
    check_legal(device in (None, "cpu", "cuda"), "--device", device, "cpu, cuda")
    names = [name.strip() for name in (models or "").split(",") if name.strip()]
    for name in names:
        check_legal(name in times.WORKLOADS, "--models", name, ", ".join(times.WORKLOADS))
    parts = (split or "").replace(",", " ").split()
    check_legal(all(part.isdecimal() for part in parts), "--split", split, "integers, with commas")
    path = file or Path(f"{kind}.csv")
    check_writable(path, "the measurements", (".csv",))
    try:
        plan = times.campaign(kind, names, list(map(int, parts)), device or "", seconds, repetitions)
        with telling(lambda: say(f"{path} keeps what was measured; the same command continues")), bars() as shown:
            step = shown.step(f"{kind} on {plan.device}")
            new = times.measure(plan, path, lambda done, total, _: step(done, total))
    except times.CannotMeasure as reason:
        raise OptschedError(str(reason)) from None
    total = len(plan.groups) * repetitions
    answer(
        as_json,
        lambda: {"kind": kind, "file": str(path), "groups": total, "new": new, "device": plan.device},
        lambda: f"{counted(total, 'measurement')} in {path}, {new} new\nnext: optsched fit {KINDS[kind]} {path}",
    )
