"""Tables of your own measurements, the constants fitted to them, and the files of constants that ``run`` reads.

============  ========================================================================================================
table         columns (others are ignored); every row is one measurement, which may be repeated
============  ========================================================================================================
contention    ``bytes`` of a message, ``transfers`` at once on an interface (itself included), ``seconds``
interference  ``model``, ``beside`` (the other model on its GPUs; empty: alone), ``seconds`` of an iteration, or
              ``throughput`` in any unit, the same for all
scaling       ``model``, ``gpus``, ``batch`` (samples of an iteration, over all GPUs), ``seconds`` of an iteration, or
              ``throughput`` in samples a second; optionally ``nodes`` (absent: on one)
============  ========================================================================================================
"""

from __future__ import annotations

import os

import polars as pl

from optsched.errors import InputError, naming
from optsched.io.traces.rows import Rows
from optsched.io.traces.text_table import read_text_table
from optsched.problem.atomic_files import read_bytes
from optsched.problem.contention import Contention
from optsched.problem.documents import read_document
from optsched.problem.instance_file import ContentionDocument
from optsched.problem.interference import TURNS, Interference
from optsched.problem.scaling import Scaling
from optsched.speeds.kinds.scaling_speeds import ScalingDocument
from optsched.speeds.least_squares import LARGEST, LEAST, NUMBER, Fitted, fit_contention, fit_interference
from optsched.speeds.scaling_fit import fit_scaling

Place = str | os.PathLike[str]


def measured_contention(path: Place, latency: float | None = None) -> Fitted[Contention]:
    """Return `fit_contention` of a table.

    Parameters
    ----------
    path
        The table.
    latency
        Seconds before the bytes of a message move; None: it is fitted, too.

    Raises
    ------
    RowErrors
        With all bad rows.
    InputError
        If the table cannot be read or fitted.
    """
    rows = _rows(path, "bytes", "transfers", "seconds")
    sizes, counts = _number(rows, "bytes"), rows.gang("transfers")
    seconds = _seconds(rows)
    with naming(path):
        return fit_contention(sizes.to_list(), counts.to_list(), seconds.to_list(), latency=latency)


def measured_interference(path: Place, ratio: float = TURNS) -> Fitted[Interference]:
    """Return `fit_interference` of a table.

    Parameters
    ----------
    path
        The table.
    ratio
        Slow-down of pairs that were not measured.

    Raises
    ------
    RowErrors
        With all bad rows.
    InputError
        If the table cannot be read or fitted.
    """
    rows = _rows(path, "model", "beside")
    models, beside = rows.text("model"), rows.text("beside", required=False)
    seconds = _seconds(rows)
    with naming(path):
        return fit_interference(models.to_list(), beside.to_list(), seconds.to_list(), ratio=ratio)


def measured_scalings(path: Place) -> dict[str, Fitted[Scaling]]:
    """Return `fit_scaling` of every model of a table.

    Parameters
    ----------
    path
        The table.

    Raises
    ------
    RowErrors
        With all bad rows.
    InputError
        If the table cannot be read or fitted.
    """
    rows = _rows(path, "model", "gpus", "batch")
    columns = {"model": rows.text("model"), "gpus": rows.gang("gpus"), "batch": rows.gang("batch")}
    columns["nodes"] = rows.gang("nodes") if "nodes" in rows.columns else pl.repeat(1, rows.count, eager=True)
    rows.reject(columns["nodes"] > columns["gpus"], "nodes", "at most its GPUs")
    columns["seconds"] = _seconds(rows, columns["batch"])
    found = {}
    for (name,), part in pl.DataFrame(columns).sort("model").group_by("model", maintain_order=True):
        gpus, batch, nodes, seconds = (part[each].to_list() for each in ("gpus", "batch", "nodes", "seconds"))
        with naming(f"{path}, {name}"):
            found[str(name)] = fit_scaling(gpus, batch, seconds, nodes=nodes)
    return found


def read_contention(path: Place) -> Contention:
    """Return the ``contention`` of an instance from a file of its own.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    InputError
        If the file is not valid; the message names file and field.
    """
    read = read_document(ContentionDocument, read_bytes(path), path, '{"seconds_per_byte": b, "penalty": eta}')
    with naming(path):
        return Contention.from_json(read.model_dump())


def read_profiles(path: Place) -> dict[str, Scaling]:
    """Return the ``scalings`` of an instance from a file of their own.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    InputError
        If the file is not valid; the message names file and field.
    """
    read = read_document(dict[str, ScalingDocument], read_bytes(path), path, '{"NAME": {"compute": seconds}}')
    with naming(path):
        return {name: Scaling.from_json(each.model_dump()) for name, each in read.items()}


def _rows(path: Place, *wanted: str) -> Rows:
    legal = f"a header with {', '.join(wanted)}, and a measurement a row"
    rows = Rows(read_text_table(path, separator=None, expected=legal))
    missing = [name for name in wanted if name not in rows.columns]
    if missing or not rows.count:
        said = f"missing: {', '.join(missing) or 'measurements'}"
        raise InputError(said, file=path, row=1, field="columns", value=", ".join(rows.columns), legal=legal)
    return rows


def _number(rows: Rows, field: str) -> pl.Series:
    return rows.number(field, least=LEAST, below=LARGEST, legal=NUMBER)


def _seconds(rows: Rows, work: pl.Series | float = 1.0) -> pl.Series:
    """Return seconds as given, or the ``work`` of an iteration divided by its throughput; raise the errors of the rows."""
    given = [name for name in ("seconds", "throughput") if name in rows.columns]
    if len(given) != 1:
        legal = "one of the columns seconds and throughput"
        raise InputError("both" if given else "neither", file=rows.file, row=1, field="columns", legal=legal)
    found = _number(rows, given[0])
    rows.raise_problems()
    return found if given[0] == "seconds" else work / found
