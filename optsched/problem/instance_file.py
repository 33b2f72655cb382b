"""Instance files: JSON (``"format": "optsched-instance/1"``) read by pydantic, Parquet by polars.

Both hold the same parts: a job table, a cluster, and optionally name, objective, recipe and proven optimum.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import polars as pl
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import PydanticCustomError

from optsched.errors import InputError, RowErrors, RowProblem, naming
from optsched.problem.atomic_files import read_bytes, suffix_of, write_atomic
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.contention import Contention
from optsched.problem.documents import (
    LARGEST,
    MAX_INTEGER,
    Document,
    Number,
    first_problem,
    parse_json,
    short_number,
    shown,
    told,
    where,
)
from optsched.problem.interference import Interference
from optsched.problem.job_lists import JobListReader
from optsched.problem.job_table import COLUMNS
from optsched.problem.objectives import OBJECTIVES
from optsched.problem.parquet import read_parquet, write_parquet
from optsched.problem.speed_model import SpeedModel, speed_models
from optsched.registry import near_matches

FORMAT = "optsched-instance/1"
_METADATA = "optsched-instance"

T = TypeVar("T")


class NodeGroupDocument(Document):
    """``count`` alike nodes; bytes and bytes/s."""

    gpus: int = Field(ge=1, le=MAX_INTEGER, description="GPUs per node")
    count: int = Field(1, ge=1, le=MAX_INTEGER, description="number of such nodes")
    gpu: str = Field("GPU", min_length=1, description="GPU type")
    gpu_memory: Number | None = Field(None, gt=0, description="bytes per GPU; absent: unlimited")
    nic_bandwidth: Number | None = Field(None, gt=0, description="bytes/s of a node's network interface")
    intra_bandwidth: Number | None = Field(None, gt=0, description="bytes/s between GPUs of a node")
    storage_bandwidth: Number | None = Field(None, gt=0, description="bytes/s at which a job reads its checkpoint")


class ClusterDocument(Document):
    """Node groups in order; nodes and GPUs are numbered from 0 in that order."""

    nodes: list[NodeGroupDocument] = Field(min_length=1)


class JobDocument(Document):
    """A job; only ``duration`` (or ``iterations`` with a ``profile``) is required. Seconds and bytes."""

    id: str | None = Field(None, min_length=1, description="unique name; absent: the job's position")
    arrival: Number = Field(0, ge=0, description="release date in seconds")
    gpus: int = Field(1, ge=1, le=MAX_INTEGER, description="gang size")
    duration: Number | None = Field(None, gt=0, description="seconds alone at full speed")
    iterations: Number | None = Field(None, gt=0)
    profile: str | None = Field(None, description="name of what gives the speed of an iteration")
    weight: Number = Field(1, ge=0)
    due: Number | None = Field(None, description="due date in seconds")
    user: str | None = None
    group: str | None = None
    model: str | None = None
    gpu_memory: Number | None = Field(None, ge=0, description="bytes on each GPU of the gang")
    gpu_types: list[str] | None = Field(None, description="GPU types it may use; absent: all")
    batch_size: int | None = Field(None, ge=1, le=MAX_INTEGER, description="samples of an iteration, over the gang")
    restart: Number | None = Field(
        None, ge=0, description="seconds that it costs to resume it; absent: by its checkpoint"
    )
    checkpoint: Number | None = Field(None, ge=0, description="bytes that it reads to resume")
    walltime: Number | None = Field(None, gt=0, description="the user's limit in seconds; absent: none")
    status: str | None = Field(None, description="final state in the words of the log")
    ran: list[list[Number]] | None = Field(
        None, description="pieces that ran, [start, end] or [start, end, gpus], on the clock of arrival"
    )


class ContentionDocument(Document):
    """k all-reduces at once on a network interface take a + k b M + (k - 1) eta M seconds each for M bytes."""

    seconds_per_byte: Number = Field(gt=0, description="b")
    penalty: Number = Field(0, description="eta, seconds per byte")
    latency: Number = Field(0, ge=0, description="a, seconds before bytes move")
    kinds: list[str] = Field(default_factory=list, description="names of profiles with measured ratios")
    ratios: list[list[Number]] = Field(
        default_factory=list, description="speed that a transfer of the row's kind keeps beside one of the column's"
    )


class InterferenceDocument(Document):
    """A job's iteration beside another job on its GPUs takes xi >= 1 times as long."""

    ratio: Number = Field(2, ge=1, description="xi of pairs that the table does not know")
    kinds: list[str] = Field(default_factory=list, description="names of profiles or models")
    ratios: list[list[Number | None]] = Field(
        default_factory=list, description="xi of the row's kind beside the column's; null: they never share a GPU"
    )
    source: str = ""


def _known_objective(name: str) -> str:
    if name not in OBJECTIVES:
        legal = near_matches(name, OBJECTIVES.names(), kind="objective")
        raise PydanticCustomError("objective", "{legal}", {"legal": legal})
    return name


class OptimumDocument(BaseModel):
    """A proven optimum of the instance."""

    model_config = ConfigDict(extra="allow", strict=True, populate_by_name=True)
    objective: Annotated[str, AfterValidator(_known_objective)]
    schedule_class: Literal["gang", "gang-nonpreemptive", "gpu-sharing", "kv-cache", "task-sharing"] = Field(
        "gang-nonpreemptive", alias="class"
    )
    # an optimum stays the integer it was proven to be
    value: Annotated[int | float, Field(allow_inf_nan=False, ge=-LARGEST, le=LARGEST)]
    proved_by: list[str] = Field(default_factory=list)


class InstanceDocument(Document):
    """An instance of optsched: jobs and a cluster."""

    format: Literal["optsched-instance/1"]
    name: str = ""
    objective: str | None = None
    cluster: ClusterDocument
    jobs: list[JobDocument]
    contention: ContentionDocument | None = Field(None, description="what transfers on one interface cost each other")
    interference: InterferenceDocument | None = Field(None, description="what jobs on one GPU cost each other")
    recipe: dict[str, Any] | None = Field(None, description="how the instance was made")
    optimum: OptimumDocument | None = None


def json_schema() -> dict[str, Any]:
    """The JSON Schema of an instance file, shipped as ``instances/schema.json``."""
    schema = _document_model(tuple(_written())).model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def document(parts: Mapping[str, Any], models: Iterable[SpeedModel]) -> dict[str, Any]:
    """Return the JSON document of an instance, without absent fields and without defaults other than ids.

    Parameters
    ----------
    parts
        Arguments of the constructor of the instance by name, as `read_parts` returns them: ``jobs`` is the table of its
        jobs. Those that the models of speeds hold are not needed.
    models
        Models of speeds of the instance, by rank.
    """
    silent: dict[str, Any] = {"weight": 1.0}
    rows = []
    for row in parts["jobs"].iter_rows(named=True):
        rows.append({k: short_number(v) for k, v in row.items() if v is not None and silent.get(k, ...) != v})
    return {"format": FORMAT, **_header(parts, models), "jobs": rows}


def _header(parts: Mapping[str, Any], models: Iterable[SpeedModel]) -> dict[str, Any]:
    """Return all parts of a document but the jobs."""
    contention, interference = parts["contention"], parts["interference"]
    documents = {
        "name": parts["name"],
        "objective": parts["objective"],
        "cluster": parts["cluster"].to_json(),
        **{model.name: model.to_json() for model in models},
        "contention": None if contention is None else contention.to_json(),
        "interference": None if interference is None else interference.to_json(),
        "recipe": parts["recipe"],
        "optimum": _plain(parts["optimum"]),
    }
    return {key: value for key, value in documents.items() if value not in (None, "", {})}


def _plain(optimum: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    # On a clock that starts at 0 its value is a fraction.
    if optimum is None or not isinstance(optimum.get("value"), Fraction):
        return optimum
    value = optimum["value"]
    return {**optimum, "value": int(value) if value.denominator == 1 else float(value)}


def write_parts(path: str | os.PathLike[str], parts: Mapping[str, Any], models: Iterable[SpeedModel]) -> None:
    """Write an instance to ``.json`` or ``.parquet``, whole or not at all.

    Parameters
    ----------
    path
        File to write; its suffix decides the format.
    parts
        Arguments of the constructor of the instance, as for `document`.
    models
        Models of speeds of the instance, by rank.
    """
    if suffix_of(path, "an instance") == ".json":
        doc = document(parts, models)
        lines = ",\n".join("  " + json.dumps(row) for row in doc.pop("jobs"))
        head = _text(doc, path, indent=1)[:-2]  # one line a job: diffs and people can read it
        write_atomic(path, f'{head},\n "jobs": [\n{lines}\n ]\n}}\n')
    else:
        header = _text({"format": FORMAT, **_header(parts, models)}, path)
        write_parquet(_stating(parts["jobs"]), path, {_METADATA: header})


def _stating(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table of jobs without the columns that state nothing, which a reader fills in."""
    silent = [column.name for column in table if column.null_count() == table.height]
    return table.drop(silent, *["weight"] * bool((table["weight"] == 1.0).all())) if table.height else table


def _text(doc: Mapping[str, Any], path: str | os.PathLike[str], indent: int | None = None) -> str:
    try:
        return json.dumps(doc, indent=indent, allow_nan=False)
    except (TypeError, ValueError) as error:  # only these two hold what a caller made freely
        raise InputError(
            f"the recipe or the optimum cannot be written: {error}", file=path, legal="JSON values"
        ) from None


def read_parts(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the arguments of the constructor of the instance in a file.

    Parameters
    ----------
    path
        File to read, ``.json`` or ``.parquet``.

    Raises
    ------
    InputError
        If the file is not an instance file.
    RowErrors
        If jobs have illegal fields.
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".parquet":
        metadata, table = read_parquet(path, path, f"a table written as {FORMAT}")
        if _METADATA not in metadata:
            raise InputError(f"a Parquet table without the key {_METADATA!r}", file=path, legal=f"format {FORMAT}")
        header = parse_json(
            metadata[_METADATA].encode(), path, f"format {FORMAT}", f"a JSON object under {_METADATA!r}"
        )
        if not isinstance(header, dict):
            raise InputError(f"the key {_METADATA!r} is not a JSON object", file=path, legal=f"format {FORMAT}")
        return _parts(_validated(json.dumps({**header, "jobs": []}), path), table, path)
    if suffix == ".json":
        content = read_bytes(path)
        doc, table = _by_columns(content, path) or _whole(content, path)
        return _parts(doc, table, path)
    raise InputError("cannot tell the format of an instance from its name", file=path, legal=".json or .parquet")


def _by_columns(content: bytes, path: str | os.PathLike[str]) -> tuple[Any, pl.DataFrame] | None:
    """Return a document without jobs and their table; None if there is a problem, which `_whole` names."""
    split = _job_reader().split(content)
    with suppress(InputError):
        return None if split is None else (_validated(split[0], path), split[1])
    return None


def _whole(content: bytes, path: str | os.PathLike[str]) -> tuple[Any, pl.DataFrame]:
    parse_json(content, path, f"format {FORMAT}")  # what the reader of documents would pass over in silence
    doc = _validated(content, path)
    table = _table_of(doc.jobs)
    doc.jobs.clear()  # they take much memory
    return doc, table


@cache
def _job_reader() -> JobListReader:
    return JobListReader(JobDocument)


def _table_of(jobs: Sequence[JobDocument]) -> pl.DataFrame:
    """Return the table of jobs of a document; a job without an id is called by its position."""
    columns = []
    for name, dtype in COLUMNS.items():
        values = [getattr(job, name) for job in jobs]
        if name == "id" and None in values:
            values = [str(position) if value is None else value for position, value in enumerate(values, 1)]
        columns.append(pl.Series(name, values, dtype=dtype, strict=False))  # validated; defaults are whole numbers
    return pl.DataFrame(columns)


def _validated(content: bytes | str, path: str | os.PathLike[str]) -> Any:
    try:
        return _document_model(tuple(_written())).model_validate_json(content)
    except ValidationError as error:
        raise _as_input_error(error, path) from None


def _parts(doc: Any, table: pl.DataFrame, path: str | os.PathLike[str]) -> dict[str, Any]:
    def made(make: Callable[[Any], T], document: Any, field: str | None = None) -> T:
        with naming(path, field):
            return make(document)

    return {
        "jobs": table,
        "cluster": Cluster(tuple(NodeGroup(**group.model_dump()) for group in doc.cluster.nodes)),
        "name": doc.name,
        "objective": doc.objective,
        "recipe": doc.recipe,
        "optimum": doc.optimum.model_dump(by_alias=True) if doc.optimum else None,
        **{model.name: model.from_json(getattr(doc, model.name), made) for model in _written()},
        "contention": made(Contention.from_json, doc.contention.model_dump()) if doc.contention else None,
        "interference": made(Interference.from_json, doc.interference.model_dump()) if doc.interference else None,
    }


def _written() -> list[type[SpeedModel]]:
    return [model for model in speed_models() if model.document is not None]


@cache
def _document_model(models: tuple[type[SpeedModel], ...]) -> type[BaseModel]:
    """The model of whole documents: `InstanceDocument` with a part for each of the registered models of speeds."""
    parts: dict[str, Any] = {
        model.name: (model.document, Field(default_factory=dict, description=model.description)) for model in models
    }
    return create_model("InstanceDocument", __base__=InstanceDocument, __doc__=InstanceDocument.__doc__, **parts)


@contextmanager
def naming_jobs(path: str | os.PathLike[str]) -> Iterator[None]:
    """Make `RowErrors` about the jobs of a JSON file name them: by number, id and line.

    Parameters
    ----------
    path
        File that is being read.

    Raises
    ------
    RowErrors
        The errors of the body, with those names.
    """
    try:
        yield
    except RowErrors as error:
        if Path(path).suffix.lower() != ".json":
            raise
        jobs = _jobs_in(read_bytes(path).decode(errors="replace"))

        def job(number: int) -> str:
            if number > len(jobs):
                return f"job {number}"
            line, document = jobs[number - 1]
            name = document.get("id") if isinstance(document, dict) else None
            return f"job {number} ({f'{shown(name)!r}, ' * isinstance(name, str)}line {line})"

        raise RowErrors(path, error.problems, len(jobs), job) from None


def _jobs_in(text: str) -> list[tuple[int, Any]]:
    """(line on which it begins, document) of every job of a document that is JSON."""
    read, found, line, counted = json.JSONDecoder().raw_decode, list[tuple[int, Any]](), 1, 0

    def after(at: int) -> int:
        gap = _GAP.match(text, at)
        return at if gap is None else gap.end()

    at = after(text.index("{") + 1)
    while text[at] != "}":
        key, at = read(text, at)
        at = after(at)
        if key != "jobs" or text[at] != "[":
            _, at = read(text, at)
        else:
            at = after(at + 1)
            while text[at] != "]":
                line, counted = line + text.count("\n", counted, at), at
                document, at = read(text, at)
                found.append((line, document))
                at = after(at)
            at += 1
        at = after(at)
    return found


_GAP = re.compile(r"[\s,:]*")  # between two values


def _as_input_error(error: ValidationError, path: str | os.PathLike[str]) -> InputError:
    # Problems of jobs are rows, reported all at once; a problem of the document is one line.
    problems: list[RowProblem] = []
    for item in error.errors(include_url=False, include_context=False):
        location = where(item)
        if not (len(location) >= 3 and location[0] == "jobs" and isinstance(location[1], int)):
            return first_problem(item, path, FORMAT)
        field = ".".join(str(part) for part in location[2:])
        message, legal = told(item, JobDocument.model_fields if len(location) == 3 else ())
        problem = RowProblem(location[1] + 1, field, shown(item["input"]), legal, message)
        if not problems or (problems[-1].row, problems[-1].field) != (problem.row, problem.field):
            problems.append(problem)
    return RowErrors(path, problems, 0)
