"""Tables of your own measurements, the constants fitted to them, and the files of constants that ``run`` reads.

============  ========================================================================================================
table         columns (others are ignored); every row is one measurement, which may be repeated
============  ========================================================================================================
contention    ``bytes`` of a message, ``transfers`` at once on an interface (itself included), ``seconds``
interference  ``model``, ``beside`` (the other model on its GPUs; empty: alone), ``seconds`` of an iteration, or
              ``throughput`` in any unit, the same for all; optionally ``problem`` (text if the pair does not fit on a
              GPU); ``batch``, ``steps``, ``beside_batch``, ``beside_steps`` make a kind of each sub-batch, ``MODEL@SAMPLES``
scaling       ``model``, ``gpus``, ``batch`` (samples of an iteration, over all GPUs), ``seconds`` of an iteration, or
              ``throughput`` in samples a second; optionally ``nodes`` (absent: on one), ``steps`` of gradient
              accumulation (absent: 1; more of them on one GPU only)
============  ========================================================================================================
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import polars as pl

from optsched.errors import InputError, naming
from optsched.io.traces.rows import Rows
from optsched.io.traces.text_table import read_text_table
from optsched.problem.atomic_files import read_bytes
from optsched.problem.cluster import Cluster
from optsched.problem.contention import Contention
from optsched.problem.documents import read_document
from optsched.problem.instance_file import ContentionDocument
from optsched.problem.interference import TURNS, Interference
from optsched.problem.scaling import Scaling
from optsched.speeds.interference_sources import Asked, Say, interference
from optsched.speeds.kinds.scaling_speeds import ScalingDocument
from optsched.speeds.least_squares import LARGEST, LEAST, NUMBER, Fitted, fit_contention, fit_interference
from optsched.speeds.scaling_fit import fit_scaling
from optsched.speeds.sub_batch_ratios import AT

Place = str | os.PathLike[str]
SCALED = ("gpus", "batch", "nodes", "steps", "seconds")
SUB_BATCHES = ("batch", "steps", "beside_batch", "beside_steps")


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
    apart = pl.repeat(False, rows.count, eager=True)
    if "problem" in rows.columns:
        apart = rows.text("problem", required=False).is_not_null()
        rows.reject(apart & beside.is_null(), "problem", "empty for a model alone, which has to run")
    kinds = [models, beside]
    if all(field in rows.columns for field in SUB_BATCHES):
        kinds = _with_sub_batches(rows, models, beside)
    rows.pass_over(apart)
    seconds = _seconds(rows)
    one, other = (kind.to_list() for kind in kinds)
    never = {(a, b) for a, b, out in zip(one, other, apart.to_list(), strict=True) if out}
    with naming(path):
        ran = [k for k, out in enumerate(apart.to_list()) if not out]
        columns = ([column[k] for k in ran] for column in (one, other, seconds.to_list()))
        return fit_interference(*columns, ratio=ratio, never=never)


def _with_sub_batches(rows: Rows, models: pl.Series, beside: pl.Series) -> list[pl.Series]:
    """Return the kinds of jobs: the model, and its sub-batch where the table has several of the model."""
    batch, steps, *partner = (
        rows.number(name, least=1, whole=True, required=k < 2) for k, name in enumerate(SUB_BATCHES)
    )
    unknown = beside.is_not_null() & (partner[0].is_null() | partner[1].is_null())
    rows.reject(unknown, "beside_batch", "that of the partner")
    samples = [(size // parts).cast(pl.Int64) for size, parts in ((batch, steps), partner)]
    pairs = pl.DataFrame({"model": models, "samples": samples[0]}).unique()
    several = pairs.group_by("model").len().filter(pl.col("len") > 1)["model"].to_list()
    both = pl.DataFrame({"name": models, "other": beside, "size": samples[0], "others": samples[1]})
    known = [
        pl.when(pl.col(name).is_in(several)).then(pl.concat_str(name, pl.lit(AT), size)).otherwise(name)
        for name, size in (("name", "size"), ("other", "others"))
    ]
    return both.select(known).get_columns()


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
    columns["steps"] = rows.gang("steps") if "steps" in rows.columns else pl.repeat(1, rows.count, eager=True)
    rows.reject((columns["steps"] > 1) & (columns["gpus"] > 1), "steps", "1 for several GPUs")
    columns["seconds"] = _seconds(rows, columns["batch"])
    found = {}
    for (name,), part in pl.DataFrame(columns).sort("model").group_by("model", maintain_order=True):
        gpus, batch, nodes, steps, seconds = (part[each].to_list() for each in SCALED)
        with naming(f"{path}, {name}"):
            found[str(name)] = fit_scaling(gpus, batch, seconds, nodes=nodes, steps=steps)
    return found


def named_interference(asked: Asked, cluster: Cluster, *, say: Say | None = None) -> Interference:
    """Return the interference that a number, a text or a path describes; a .csv may hold measured pairs.

    Parameters
    ----------
    asked
        As in `optsched.speeds.interference_sources.interference`, or a table for `measured_interference`.
    cluster
        Cluster whose GPU type selects the rates of a file.
    say
        Called with a line about every change or assumption.
    """
    if isinstance(asked, str | os.PathLike) and Path(asked).suffix.lower() == ".csv" and Path(asked).is_file():
        head = read_bytes(asked)[:4096].decode("utf-8-sig", "replace").partition("\n")[0].replace(" ", "").strip()
        if {"model", "beside"} <= set(re.split("[,;\t]", head)):
            return measured_interference(asked).model
    return interference(asked, cluster, say=say)


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
