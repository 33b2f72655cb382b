"""Sources of an `Interference`: the text of ``--interference``, measurements of pairs, resource vectors.

**Measured**, Gavel's co-located throughputs of two jobs on one GPU: xi_{A|B} = iterations/s of A alone / iterations/s
of A next to B, both on one GPU of one type. A pair in which either job has a rate of 0 does not run (memory): it is
never co-located. Ratios below 1 are noise and are set to 1. Only jobs of one GPU were measured: for gangs the ratio of
a pair is used on each GPU, whatever the gangs' sizes. Source of the built-in tables: simulation_throughputs.json of
stanford-futuredata/gavel (MIT), D. Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep
Learning Workloads", OSDI 2020; 26 job types on K80, P100 and V100, ratios to two decimals. Known oddities: 13 % of the
ratios on V100 are exactly 1, as if capped at the rate alone, and its large ones (up to 10.97) look noisy. P100 is the
table to prefer.

**Estimated** from the time for which a job keeps each resource busy in an iteration (a design of this project, not a
measurement): job A alone uses resource r for the share u_{A,r} = (time on r in an iteration) / (time of the
iteration). Jobs on one GPU share all resources, and the busiest decides:

    xi_{A|B} = max(1, max over r of (u_{A,r} + u_{B,r})),   the same for both.

Hence 1/xi + 1/xi < 1 only if the demand for a resource is more than twice its capacity. A share above 1 (vgg16: 117 ms
of input for an iteration of 107 ms) is kept as published. Built-in figures: the traces of Rivendile/Muri (Apache-2.0),
Y. Zhao et al., "Multi-Resource Interleaving for Deep Learning Training", SIGCOMM 2022; the same eight rows are in the
authors' public code of the paper on SJF-BSBF, Lai-JX/Scheduler (no licence: figures only). Columns resource_time_0, 1,
2 are read as input (CPU), GPU and network: an interpretation.
"""

from __future__ import annotations

import contextlib
import csv
import io
import math
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np

from optsched.errors import InputError, RowErrors, RowProblem, check_legal, naming
from optsched.problem.atomic_files import read_bytes
from optsched.problem.cluster import Cluster
from optsched.problem.documents import parse_json, read_document
from optsched.problem.instance import Instance
from optsched.problem.instance_file import InterferenceDocument
from optsched.problem.interference import TURNS, Interference
from optsched.problem.throughputs import Throughputs
from optsched.registry import near_matches
from optsched.speeds.throughput_sources import read_throughputs

BY_RESOURCES = "resources"
FILES = (".json", ".csv")
NAMED = 6  # models that a note names one by one
LEGAL = "a number >= 1, k80, p100, v100, resources, FILE.json or FILE.csv"

Say = Callable[[str], None]
OWN_FORM = '{"ratio": number >= 1, "kinds": [name, ...], "ratios": [[number >= 1 or null, ...], ...]}'
Asked = float | str | os.PathLike[str] | Interference


def interference(asked: Asked, cluster: Cluster, *, say: Say | None = None) -> Interference:
    """Return the interference that a number, a text or a path describes; an `Interference` is returned unchanged.

    ======================  ============================================================================================
    number or text          interference
    ======================  ============================================================================================
    ``1.3``                 the same ratio >= 1 for every pair
    ``p100``, k80, v100     measured on one such GPU, built in
    ``resources``           from built-in resource vectors
    ``FILE.json``           ``{"ratio": 2, "kinds": ["a", ...], "ratios": [[1.2, ...], ...]}`` with null where two kinds
                            never share a GPU; or throughputs of Gavel's form, those of the one GPU type of ``cluster``
    ``FILE.csv``            resource vectors of the one-GPU jobs in a trace of Muri's columns
    ======================  ============================================================================================

    One table is valid for all GPUs of a cluster, whatever their types.

    Parameters
    ----------
    asked
        A number, a text, a path or an `Interference`.
    cluster
        Cluster whose GPU type selects the rates of a file.
    say
        Called with a line about every change or assumption.

    Raises
    ------
    InputError
        For everything else, in one line.
    """
    if isinstance(asked, Interference):
        return asked
    if not isinstance(asked, str | os.PathLike):
        return Interference(asked)
    name = os.fspath(asked).strip()
    with contextlib.suppress(ValueError):
        asked = float(name)
    if isinstance(asked, float):
        return Interference(asked)
    if name.casefold() in (gpu.casefold() for gpu in measured_gpus()):
        return built_in_interference(name)
    if name.casefold() == BY_RESOURCES:
        return resource_interference(source="resource vectors of the Muri traces, a formula and no measurement")
    path = Path(name)
    if path.suffix.lower() not in FILES and not path.is_file():
        names = [*(gpu.casefold() for gpu in measured_gpus()), BY_RESOURCES]
        legal = f"{LEGAL}; {near_matches(name, names, kind='table')}"
        message = "neither a number, nor a known table, nor a file"
        raise InputError(message, field="interference", value=name, legal=legal)
    if path.suffix.lower() == ".csv":
        return resource_interference(read_resource_times(path), source=f"resource vectors of {path.name}")
    return read_interference(path, cluster, say=say)


def read_interference(path: str | os.PathLike[str], cluster: Cluster, *, say: Say | None = None) -> Interference:
    """Read a JSON file: our own form, or Gavel's co-located throughputs on the GPU type of a cluster.

    Parameters
    ----------
    path
        Path of the file.
    cluster
        Cluster whose GPU type selects the rates.
    say
        Called with a line about every change or assumption.

    Raises
    ------
    InputError
        No such file, no JSON, an invalid field, a table that is not square, a ratio below 1 or not a number; for
        Gavel's form also a cluster of several GPU types, or of one without pairs in the table.
    """
    content = read_bytes(path)
    document = parse_json(content, path, LEGAL)
    with naming(path):
        if isinstance(document, dict) and document.keys() & InterferenceDocument.model_fields.keys():
            own = read_document(InterferenceDocument, content, path, OWN_FORM)
            return Interference.from_json(own.model_dump())
        if document == {}:
            legal = f"{OWN_FORM}, or Gavel's table of co-located throughputs"
            raise InputError("says nothing of interference", field="interference", value=document, legal=legal)
        throughputs = read_throughputs(path)
        types = cluster.gpu_types
        if len(types) > 1:
            legal = "a cluster of one GPU type; or k80, p100, v100, a number"
            raise InputError("rates of which GPU type?", field="interference", value=", ".join(types), legal=legal)
        return interference_of(throughputs, types[0], say=say)


def with_interference(instance: Instance, asked: Asked | None, *, say: Say | None = None) -> Instance:
    """Return an instance with another interference; a proven optimum is then dropped.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    asked
        Description as in `interference`; None keeps the present one.
    say
        Called with a line about every change or assumption, and about models that the table does not contain.
    """
    if asked is not None:
        instance = instance.replace(interference=interference(asked, instance.cluster, say=say))
    note = unmeasured_note(instance)
    if say is not None and note is not None:
        say(note)
    return instance


def unmeasured_note(instance: Instance) -> str | None:
    """Return a note on the models that the table of interference lacks, with their ratio; None if it has all.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    """
    table = instance.interference
    if table is None or not table.kinds or None not in instance.kinds:
        return None
    rows = zip(instance.kinds, instance.table["profile"].to_list(), instance.table["model"].to_list(), strict=True)
    names = list(dict.fromkeys(profile or model or "jobs without a model" for kind, profile, model in rows if not kind))
    listed = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
    return f"interference: no measurements of {listed}: next to other jobs they run {table.ratio:g} x as long"


def random_interference(kinds: Sequence[str], mean: float = 0.5, seed: int = 0) -> Interference:
    """Return xi = 1 + Exp(``mean``), drawn for each ordered pair of kinds in the order of the table; 2 for other kinds.

    The same kinds, mean and seed give the same table with the same numpy.

    Parameters
    ----------
    kinds
        Kinds of jobs.
    mean
        Mean of xi - 1.
    seed
        Seed of the random numbers.

    Raises
    ------
    InputError
        ``mean`` is not a finite number >= 0.
    """
    check_legal(0 <= mean < np.inf, "mean", mean, "a finite number >= 0")
    draw = np.random.Generator(np.random.PCG64(seed))
    ratios = 1 + draw.exponential(mean, (len(kinds), len(kinds)))
    table = tuple(tuple(row) for row in ratios.tolist())
    return Interference(TURNS, tuple(kinds), table, f"drawn: 1 + Exp({mean:g}), seed {seed}")


# --- measured -----------------------------------------------------------------------------------------------------------


def interference_of(
    throughputs: Throughputs, gpu: str, *, ratio: float = TURNS, say: Say | None = None
) -> Interference:
    """Return xi of the job types whose pairs a throughput table holds for one GPU of a type.

    The kinds of the result are the job types that run alone on one such GPU and are in some pair there, in the order
    of the table. Complexity O(K^2) for K job types.

    Parameters
    ----------
    throughputs
        Table with pairs, as `optsched.speeds.throughput_sources.read_throughputs` returns it.
    gpu
        GPU type, in any case.
    ratio
        xi of pairs that the table does not hold, and of other kinds.
    say
        Called with the number of ratios below 1 that were set to 1, and the number of pairs that take ``ratio``.

    Raises
    ------
    InputError
        The table has no pairs on such a GPU.
    """
    named = {gang[0] for where, *pair in throughputs.pairs if where.casefold() == gpu.casefold() for gang in pair}
    entries = ((kind, throughputs.get(kind, gpu, 1)) for kind in throughputs.job_types if kind in named)
    alone = {kind: entry.together for kind, entry in entries if entry is not None and entry.together > 0}
    xi: dict[tuple[str, str], float | None] = {}  # None: not in the table; inf: the pair does not run
    for a in alone:
        for b in alone:
            rates = throughputs.together_with(gpu, (a, 1), (b, 1))
            xi[a, b] = None if rates is None else alone[a] / rates[0] if min(rates) > 0 else math.inf
    if not any(xi.values()):
        with_pairs = {where.casefold() for where, _, _ in throughputs.pairs}
        types = ", ".join(name for name in throughputs.gpu_types if name.casefold() in with_pairs) or "none"
        message = f"no rates of two jobs on one {gpu}"
        raise InputError(message, field="interference", legal=f"a table with pairs; those of this one are on {types}")
    below = sum(value is not None and value < 1 for value in xi.values())
    missing = sum(value is None for value in xi.values())
    if say is not None and below:
        say(f"interference: {below} of {len(xi)} ratios are below 1 and taken as 1")
    if say is not None and missing:
        say(f"interference: {missing} of {len(xi)} pairs were not measured and run {ratio:g} x as long")
    ratios = tuple(
        tuple(None if math.inf in (xi[a, b], xi[b, a]) else max(xi[a, b] or ratio, 1.0) for b in alone) for a in alone
    )
    clipped = f", {below} ratios below 1 taken as 1" if below else ""
    return Interference(ratio, tuple(alone), ratios, f"co-located throughputs on one {gpu}{clipped}")


@cache
def _built_in() -> dict[str, Interference]:
    text = (resources.files("optsched.speeds") / "gavel_colocation.csv").read_text(encoding="utf-8")
    head, *rows = csv.reader(line for line in text.splitlines() if not line.startswith("#"))
    kinds = tuple(head[2:])
    tables = {}
    for gpu in dict.fromkeys(row[0] for row in rows):
        table = {row[1]: tuple(float(cell) if cell else None for cell in row[2:]) for row in rows if row[0] == gpu}
        source = f"stanford-futuredata/gavel (MIT), co-located on one {gpu}"
        tables[gpu] = Interference(kinds=kinds, ratios=tuple(table[kind] for kind in kinds), source=source)
    return tables


def measured_gpus() -> tuple[str, ...]:
    """Return the GPU types with a built-in table: K80, P100, V100."""
    return tuple(_built_in())


def built_in_interference(gpu: str) -> Interference:
    """Return the built-in table of a GPU type; its kinds are the job types of the built-in throughput table.

    Pairs of other kinds run 2 times as long. See the module for the source.

    Parameters
    ----------
    gpu
        GPU type, in any case.

    Raises
    ------
    InputError
        There is no table of this GPU type.
    """
    for name, table in _built_in().items():
        if name.casefold() == gpu.casefold():
            return table
    legal = near_matches(gpu, list(_built_in()), kind="GPU type")
    raise InputError("no measured interference on that GPU type", field="interference", value=gpu, legal=legal)


# --- by resources -------------------------------------------------------------------------------------------------------

# model: iteration, input (CPU), GPU, network; milliseconds on one GPU
RESOURCE_TIMES: dict[str, tuple[float, ...]] = {
    "resnet18": (779, 711, 110, 0),
    "shufflenet_v2_x1_0": (798, 706, 59, 0),
    "vgg16": (107, 117, 68, 0),
    "vgg19": (109, 114, 80, 0),
    "bert": (178, 0.5, 160, 0),
    "gpt2": (426, 0.6, 410, 0),
    "a2c": (517, 514, 14, 0),
    "dqn": (490, 446, 8, 0),
}
MODEL, GANG, ITERATION = "model_name", "num_gpu", "iteration_time"
TIMES = (ITERATION, "resource_time_0", "resource_time_1", "resource_time_2")
LEGAL_TIME = "a finite time: > 0 of the iteration, >= 0 of a resource"


def resource_interference(
    times: Mapping[str, Sequence[float]] = RESOURCE_TIMES, source: str = "resource vectors"
) -> Interference:
    """Return xi of every pair of models by the formula of the module. O(K^2 R).

    xi is 2 next to models that are not in ``times``.

    Parameters
    ----------
    times
        (iteration, resource 1, resource 2, ...) of each model alone on one GPU, in any one unit, with equally many
        resources for all.
    source
        Text on the source of the times.

    Raises
    ------
    InputError
        The times are invalid.
    """
    width = {len(row) for row in times.values()}
    if len(width) > 1 or (width and min(width) < 2):
        legal = "for all models the time of an iteration, then those of the same resources"
        raise InputError("not a table", field="times", legal=legal)
    shares: dict[str, list[float]] = {}
    for model, (iteration, *used) in times.items():
        finite = 0 < iteration < math.inf and all(0 <= seconds < math.inf for seconds in used)
        legal = "an iteration > 0 and resources >= 0, all finite"
        check_legal(finite, f"times.{model}", (iteration, *used), legal)
        shares[model] = [seconds / iteration for seconds in used]
    ratios = [
        [max(1.0, *(u + v for u, v in zip(own_shares, its, strict=True))) for its in shares.values()]
        for own_shares in shares.values()
    ]
    return Interference(TURNS, tuple(shares), tuple(map(tuple, ratios)), source)


def read_resource_times(path: str | os.PathLike[str]) -> dict[str, tuple[float, ...]]:
    """Read the times of the models in a trace of Muri's columns: means over their jobs of one GPU.

    Parameters
    ----------
    path
        Path of the trace.

    Raises
    ------
    RowErrors
        Rows of jobs of one GPU whose times are no numbers, or invalid.
    InputError
        No such file, missing columns, no job of one GPU.
    """
    rows = csv.DictReader(io.StringIO(read_bytes(path).decode("utf-8-sig", "replace")), skipinitialspace=True)
    named = [name for name in (MODEL, GANG, *TIMES) if name not in (rows.fieldnames or ())]
    if named:
        raise InputError(f"no column {named[0]}", file=path, legal=f"the columns {', '.join((MODEL, GANG, *TIMES))}")
    measured: dict[str, list[list[float]]] = {}
    problems, read = [], 0
    for read, row in enumerate(rows, 1):  # noqa: B007 (their number is reported below)
        if (row[GANG] or "").strip() != "1":
            continue
        wrong = [name for name in TIMES if not _legal(row[name], name == ITERATION)]
        problems += [RowProblem(rows.line_num, name, row[name], LEGAL_TIME) for name in wrong]
        if not wrong:
            measured.setdefault(row[MODEL].strip(), []).append([float(row[name]) for name in TIMES])
    if problems:
        raise RowErrors(path, problems, read)
    if not measured:
        raise InputError("no job of one GPU", file=path, field=GANG, legal="at least one, for its times alone")
    return {
        model: tuple(sum(column) / len(column) for column in zip(*times, strict=True))
        for model, times in measured.items()
    }


def _legal(text: str | None, positive: bool) -> bool:
    try:
        value = float(text or "")
    except ValueError:
        return False
    return 0 <= value < math.inf and (value > 0 or not positive)
