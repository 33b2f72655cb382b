"""Where an `Interference` comes from, by the text that names it (``--interference``)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from optsched.errors import InputError, check_legal, naming
from optsched.problem.cluster import Cluster
from optsched.problem.documents import parse_json
from optsched.problem.files import read_bytes
from optsched.problem.instance import Instance
from optsched.problem.instance_file import InterferenceDocument
from optsched.problem.interference import TURNS, Interference
from optsched.registry import near_matches
from optsched.speeds.colocation import built_in_interference, interference_of, measured_gpus
from optsched.speeds.resource_vectors import read_resource_times, resource_interference
from optsched.speeds.throughput_table import read_throughputs

BY_RESOURCES = "resources"
FILES = (".json", ".csv")
NAMED = 6  # models that a note names one by one
LEGAL = "a number >= 1, k80, p100, v100, resources, FILE.json or FILE.csv"

Say = Callable[[str], None]
OWN_FORM = '{"ratio": number >= 1, "kinds": [name, ...], "ratios": [[number >= 1 or null, ...], ...]}'
Asked = float | str | os.PathLike[str] | Interference


def interference(asked: Asked, cluster: Cluster, *, say: Say | None = None) -> Interference:
    """What is asked for: a number, a text or a path; an `Interference` is what it is.

    ======================  ============================================================================================
    number or text          interference
    ======================  ============================================================================================
    ``1.3``                 the same ratio >= 1 for every pair
    ``p100``, k80, v100     measured on one such GPU, built in (`optsched.speeds.colocation`)
    ``resources``           from built-in resource vectors (`optsched.speeds.resource_vectors`)
    ``FILE.json``           ``{"ratio": 2, "kinds": ["a", ...], "ratios": [[1.2, ...], ...]}`` with null where two kinds
                            never share a GPU; or throughputs of Gavel's form, those of the one GPU type of ``cluster``
    ``FILE.csv``            resource vectors of the one-GPU jobs in a trace of Muri's columns
    ======================  ============================================================================================

    One table holds for all GPUs of a cluster, whatever their types. ``say`` hears what had to be changed or assumed.
    `InputError`, one line, for everything else.
    """
    if isinstance(asked, Interference):
        return asked
    if not isinstance(asked, str | os.PathLike):
        return Interference(asked)
    name = os.fspath(asked).strip()
    try:
        number = float(name)
    except ValueError:
        return _table(name, cluster, say)
    return Interference(number)


def _table(name: str, cluster: Cluster, say: Say | None) -> Interference:
    if name.casefold() in (gpu.casefold() for gpu in measured_gpus()):
        return built_in_interference(name)
    if name.casefold() == BY_RESOURCES:
        return resource_interference(source="resource vectors of the Muri traces, a formula and no measurement")
    path = Path(name)
    if path.suffix.lower() not in FILES and not path.is_file():
        known = [*(gpu.casefold() for gpu in measured_gpus()), BY_RESOURCES]
        legal = f"{LEGAL}; {near_matches(name, known, kind='table')}"
        message = "neither a number, nor a known table, nor a file"
        raise InputError(message, field="interference", value=name, legal=legal)
    if path.suffix.lower() == ".csv":
        return resource_interference(read_resource_times(path), source=f"resource vectors of {path.name}")
    return read_interference(path, cluster, say=say)


def read_interference(path: str | os.PathLike[str], cluster: Cluster, *, say: Say | None = None) -> Interference:
    """The table in a JSON file of our own form, or Gavel's co-located throughputs on the GPU type of ``cluster``.

    Raises
    ------
    InputError
        No such file, no JSON, a field that is invalid, a table that is not square, a ratio below 1 or not a number;
        Gavel's form and a cluster of several GPU types, or of one without pairs in the table.
    """
    content = read_bytes(path)
    document = parse_json(content, path, LEGAL)
    with naming(path):
        if isinstance(document, dict) and document.keys() & InterferenceDocument.model_fields.keys():
            return _own_form(content)
        if document == {}:
            legal = f"{OWN_FORM}, or Gavel's table of co-located throughputs"
            raise InputError("says nothing of interference", field="interference", value=document, legal=legal)
        throughputs = read_throughputs(path)
        types = cluster.gpu_types
        if len(types) > 1:
            legal = "a cluster of one GPU type; or k80, p100, v100, a number"
            raise InputError("rates of which GPU type?", field="interference", value=", ".join(types), legal=legal)
        return interference_of(throughputs, types[0], say=say)


def _own_form(content: bytes) -> Interference:
    try:
        document = InterferenceDocument.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        field = ".".join(["interference", *(str(part) for part in first["loc"])])
        value = first["input"] if isinstance(first["input"], str | float | int | None) else ...
        raise InputError(first["msg"], field=field, value=value, legal=OWN_FORM) from None
    return Interference.from_json(document.model_dump())


def with_interference(instance: Instance, asked: Asked | None, *, say: Say | None = None) -> Instance:
    """``instance`` with the interference that was asked for instead of what it states (a proven optimum is then dropped).

    None leaves it as it is. ``say`` hears, too, which models the table does not know.
    """
    if asked is not None:
        instance = instance.replace(interference=interference(asked, instance.cluster, say=say))
    note = unmeasured_note(instance)
    if say is not None and note is not None:
        say(note)
    return instance


def unmeasured_note(instance: Instance) -> str | None:
    """Which models the table of interference does not know, and what they run at; None where it knows all."""
    table = instance.interference
    if table is None or not table.kinds or None not in instance.kinds:
        return None
    rows = zip(instance.kinds, instance.table["profile"].to_list(), instance.table["model"].to_list(), strict=True)
    names = list(dict.fromkeys(profile or model or "jobs without a model" for kind, profile, model in rows if not kind))
    listed = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
    return f"interference: no measurements of {listed}: beside others they run {table.ratio:g} x as long"


def random_interference(kinds: Sequence[str], mean: float = 0.5, seed: int = 0) -> Interference:
    """xi = 1 + Exp(``mean``), drawn for each ordered pair of ``kinds`` in the order of the table; 2 for others.

    The same kinds, mean and seed give the same table with the same numpy. `InputError` for no finite mean >= 0.
    """
    check_legal(0 <= mean < np.inf, "mean", mean, "a finite number >= 0")
    draw = np.random.Generator(np.random.PCG64(seed))
    ratios = 1 + draw.exponential(mean, (len(kinds), len(kinds)))
    table = tuple(tuple(row) for row in ratios.tolist())
    return Interference(TURNS, tuple(kinds), table, f"drawn: 1 + Exp({mean:g}), seed {seed}")
