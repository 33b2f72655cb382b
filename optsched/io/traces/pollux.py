"""Dialect ``pollux``: the workloads of the Pollux artifact. Work is counted in iterations, not in seconds.

Comma-separated, with a header::

    name,time,application,num_replicas,batch_size
    cifar10-0,107,cifar10,6,2048

============  =================  ==================================================================================
column        unit               becomes
============  =================  ==================================================================================
name          text, unique       ``id``
time          seconds >= 0       ``arrival``, as it stands
application   text               ``model``, and with the batch size ``profile``: ``cifar10 (batch size 2048)``; where a
                                 scaling profile knows the application, ``profile`` is its name (`named_models`)
num_replicas  integer >= 1       ``gpus``
batch_size    samples >= 1       ``batch_size``: of one iteration, over all replicas
============  =================  ==================================================================================

``iterations`` come from the file ``iterations.csv`` in the same folder (``application,batch_size,iterations``): at
listed batch sizes as printed, between two of them linear. A job outside an application's range is a bad row. Without
that file the length of no job is known, and reading stops with an error that says so.

Originals: ``simulator/workloads/workload-{1..4}.csv`` of petuum/adaptdl, branch osdi21-artifact (Apache-2.0; A. Qiao et al.,
"Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep Learning", OSDI 2021), read whole as published.
``iterations.csv`` is **no** file of the artifact: its simulator counts progress from ``validation-*.csv``, and one's own
summary of them is asked for.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from optsched.errors import InputError
from optsched.io.traces.dialect import TraceRead, TraceRequest, dialect, finish, require_header
from optsched.io.traces.rows import Rows
from optsched.io.traces.text_table import read_text_table

HEADER = ("name", "time", "application", "num_replicas", "batch_size")
ITERATIONS_FILE = "iterations.csv"


@dialect("pollux", header=HEADER)
def read(request: TraceRequest) -> TraceRead:
    """Pollux: name,time,application,num_replicas,batch_size, with iterations.csv in the same folder.

    Parameters
    ----------
    request
        The file and the options of the call.
    """
    rows = Rows(read_text_table(request.path))
    require_header(rows, HEADER)
    application = rows.text("application")
    batch = rows.number("batch_size", least=1, whole=True)
    profile = pl.select(pl.format("{} (batch size {})", application, batch.cast(pl.Int64))).to_series()
    jobs = {
        "id": rows.unique("name"),
        "arrival": rows.non_negative("time"),
        "gpus": rows.gang("num_replicas"),
        "model": application,
        "profile": profile,
        "batch_size": batch.cast(pl.Int64),
        "iterations": _iterations(rows, application, batch, request.path.with_name(ITERATIONS_FILE)),
    }
    return finish(request, rows, jobs, notes={"iterations_file": ITERATIONS_FILE})


def _iterations(rows: Rows, application: pl.Series, batch: pl.Series, path: Path) -> pl.Series:
    # f64[rows]: piecewise linear in the batch size; unknown applications and batch sizes out of range are bad rows.
    known = _read_iterations(path)
    legal_application = f"an application of {ITERATIONS_FILE}: {', '.join(sorted(known))}"
    rows.reject(~application.is_in(list(known)), "application", legal_application, "iterations unknown")
    found = np.full(rows.count, np.nan)
    for name, (sizes, counts) in known.items():
        here = (application == name).fill_null(False)
        legal = f"a batch size of {name} from {sizes[0]:g} to {sizes[-1]:g}"
        outside = ((batch < sizes[0]) | (batch > sizes[-1])).fill_null(False)
        rows.reject(here & outside, "batch_size", legal, "iterations unknown")
        at = np.flatnonzero(here.to_numpy())
        found[at] = np.interp(batch.to_numpy()[at], sizes, counts)
    return pl.Series("iterations", found)


def _read_iterations(path: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    # application -> (batch sizes rising f64[k], iterations f64[k])
    if not path.is_file():
        legal = f"{ITERATIONS_FILE} (application,batch_size,iterations) there, which you write: the artifact has none"
        raise InputError("a Pollux workload does not say how long its jobs are", file=path, legal=legal)
    rows = Rows(read_text_table(path))
    rows.require(("application", "batch_size", "iterations"))
    table = pl.DataFrame([rows.text("application"), rows.positive("batch_size"), rows.positive("iterations")])
    twice = table.select("application", "batch_size").is_duplicated()
    rows.reject(twice, "batch_size", "one row a batch size", "twice")
    rows.raise_problems()
    return {
        str(name): (part["batch_size"].to_numpy(), part["iterations"].to_numpy())
        for (name,), part in table.sort("batch_size").group_by("application", maintain_order=True)
    }
