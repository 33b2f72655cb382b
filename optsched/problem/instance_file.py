"""Instance files: JSON (``"format": "optsched-instance/1"``) read by pydantic, Parquet by polars.

Both hold the same parts: a job table, a cluster, and optionally name, objective, recipe and proven optimum.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import polars as pl
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from optsched.errors import InputError, RowErrors, RowProblem
from optsched.problem.cluster import MAX_GPUS, Cluster, NodeGroup
from optsched.problem.contention import Contention, IterationTasks
from optsched.problem.files import atomic_path, read_bytes, suffix_of, write_atomic
from optsched.problem.interference import Interference
from optsched.problem.job_table import COLUMNS
from optsched.problem.json_text import parse_json
from optsched.problem.objectives import OBJECTIVES
from optsched.problem.parquet import read_parquet
from optsched.problem.profile import Profile
from optsched.problem.scaling import Scaling
from optsched.problem.throughputs import Throughputs
from optsched.registry import near_matches

FORMAT = "optsched-instance/1"
_METADATA = "optsched-instance"

Number = Annotated[float, Field(allow_inf_nan=False)]  # strict: any number of JSON, but neither text nor a truth value
T = TypeVar("T")
MAX_INTEGER = 2**63 - 1
Integer = Annotated[int, Field(ge=-MAX_INTEGER, le=MAX_INTEGER)]
LARGEST = 1e300  # of an optimum: sums of legal times and weights are far below


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class NodeGroupDocument(_Document):
    """``count`` alike nodes; bytes and bytes/s."""

    gpus: int = Field(ge=1, le=MAX_INTEGER, description="GPUs per node")
    count: int = Field(1, ge=1, le=MAX_INTEGER, description="number of such nodes")
    gpu: str = Field("GPU", min_length=1, description="GPU type")
    gpu_memory: Number | None = Field(None, gt=0, description="bytes per GPU; absent: unlimited")
    nic_bandwidth: Number | None = Field(None, gt=0, description="bytes/s of a node's network interface")
    intra_bandwidth: Number | None = Field(None, gt=0, description="bytes/s between GPUs of a node")


class ClusterDocument(_Document):
    """Node groups in order; nodes and GPUs are numbered from 0 in that order."""

    nodes: list[NodeGroupDocument] = Field(min_length=1)


class JobDocument(_Document):
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


class StageDocument(_Document):
    """A pipeline stage: one GPU for each replica. Seconds and bytes an iteration."""

    replicas: int = Field(ge=1, le=MAX_GPUS)
    forward: Number = Field(ge=0, description="seconds of one replica for its share of the batch")
    backward: Number = Field(ge=0)
    parameters: Number = Field(0, ge=0, description="bytes, all-reduced among the replicas of the stage")
    activations: Number = Field(0, ge=0, description="bytes that leave the stage (as many gradients come back)")
    name: str = ""


class ThroughputDocument(_Document):
    """Iterations/s of a whole gang on GPUs of one type; 0: it does not fit there."""

    gpu: str = Field(min_length=1, description="GPU type")
    gpus: int = Field(ge=1, le=MAX_INTEGER, description="gang size")
    together: Number = Field(ge=0, description="all GPUs on one node")
    spread: Number | None = Field(None, ge=0, description="over several nodes; absent: as together")
    measured: bool = Field(True, description="false: scaled from other measurements")


class ProfileDocument(_Document):
    """What an iteration costs: a graph of stages; without edges a chain that carries the stages' activations."""

    stages: list[StageDocument] = Field(min_length=1)
    edges: list[tuple[Integer, Integer] | tuple[Integer, Integer, Number]] | None = Field(
        None, description="[from, to] or [from, to, bytes]; stages by position"
    )
    micro_batches: int | None = Field(
        None, ge=1, le=MAX_INTEGER, description="absent: filling the pipeline costs nothing"
    )


class TasksDocument(_Document):
    """One iteration, task by task: forward and backward on each GPU, then an all-reduce. Seconds and bytes."""

    forward: Number = Field(ge=0, description="seconds on each GPU")
    backward: Number = Field(ge=0)
    message: Number | None = Field(None, gt=0, description="bytes that are all-reduced; absent: nothing is")


class ContentionDocument(_Document):
    """k all-reduces at once on a network interface take a + k b M + (k - 1) eta M seconds each for M bytes."""

    seconds_per_byte: Number = Field(gt=0, description="b")
    penalty: Number = Field(0, description="eta, seconds per byte")
    latency: Number = Field(0, ge=0, description="a, seconds before bytes move")
    kinds: list[str] = Field(default_factory=list, description="names of profiles with measured ratios")
    ratios: list[list[Number]] = Field(
        default_factory=list, description="speed that a transfer of the row's kind keeps beside one of the column's"
    )


class MeasuredStepsDocument(_Document):
    """Measured seconds of a step, of which synchronisation."""

    placements: list[tuple[Integer, Number, Number, Number]] = Field(
        default_factory=list, description="[placement, local batch, step, sync]"
    )
    scalability: list[tuple[Integer, Integer, Number, Number, Number]] = Field(
        default_factory=list, description="[nodes, replicas, local batch, step, sync]"
    )


class ScalingDocument(_Document):
    """How long an iteration takes by sub-batch, replicas and placement. Seconds, bytes, samples."""

    compute: Number = Field(ge=0, description="seconds of a step whatever the batch")
    per_sample: Number = Field(ge=0, description="seconds a sample")
    within: Number = Field(0, ge=0, description="seconds of communication of 2 replicas on one node")
    within_growth: Number = Field(0, ge=0, description="and for every further replica")
    across: Number = Field(0, ge=0, description="the same over several nodes")
    across_growth: Number = Field(0, ge=0)
    overlap: Number = Field(
        1, ge=1, description="1: computing and communication follow each other; larger: they overlap"
    )
    most_local: int | None = Field(None, ge=1, le=MAX_INTEGER, description="largest sub-batch of a GPU")
    memory: Number = Field(0, ge=0, description="bytes on each GPU")
    memory_per_sample: Number = Field(0, ge=0, description="bytes for a sample of the sub-batch")
    iterations: list[tuple[Integer, Number]] = Field(
        default_factory=list, description="[total batch, iterations to completion]"
    )
    measured: MeasuredStepsDocument | None = None


class InterferenceDocument(_Document):
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
    schedule_class: Literal["gang", "gang-nonpreemptive", "gpu-sharing", "task-sharing"] = Field(
        "gang-nonpreemptive", alias="class"
    )
    # an optimum stays the integer it was proven to be
    value: Annotated[int | float, Field(allow_inf_nan=False, ge=-LARGEST, le=LARGEST)]
    proved_by: list[str] = Field(default_factory=list)


class InstanceDocument(_Document):
    """An instance of optsched: jobs and a cluster."""

    format: Literal["optsched-instance/1"]
    name: str = ""
    objective: str | None = None
    cluster: ClusterDocument
    jobs: list[JobDocument]
    profiles: dict[str, ProfileDocument] = Field(default_factory=dict, description="what an iteration costs, by name")
    throughputs: dict[str, list[ThroughputDocument]] = Field(
        default_factory=dict, description="speeds by job type and GPU type"
    )
    tasks: dict[str, TasksDocument] = Field(
        default_factory=dict, description="what an iteration is made of, by name, for jobs simulated task by task"
    )
    contention: ContentionDocument | None = Field(None, description="what transfers on one interface cost each other")
    scalings: dict[str, ScalingDocument] = Field(
        default_factory=dict, description="seconds of an iteration by batch, replicas and placement, by profile"
    )
    interference: InterferenceDocument | None = Field(None, description="what jobs on one GPU cost each other")
    recipe: dict[str, Any] | None = Field(None, description="how the instance was made")
    optimum: OptimumDocument | None = None


def json_schema() -> dict[str, Any]:
    """The JSON Schema of an instance file, shipped as ``instances/schema.json``."""
    schema = InstanceDocument.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def short_number(value: Any) -> Any:
    """An integer-valued float as int, so that files and people see ``3`` and not ``3.0``."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def document(jobs: pl.DataFrame, **parts: Any) -> dict[str, Any]:
    """The JSON document of an instance; absent fields and defaults other than ids are left out. ``parts`` as `_header`."""
    silent: dict[str, Any] = {"weight": 1.0}
    rows = []
    for row in jobs.iter_rows(named=True):
        rows.append({k: short_number(v) for k, v in row.items() if v is not None and silent.get(k, ...) != v})
    return {"format": FORMAT, **_header(**parts), "jobs": rows}


def _header(
    cluster: Cluster,
    name: str,
    objective: str | None,
    recipe: Mapping[str, Any] | None,
    optimum: Mapping[str, Any] | None,
    profiles: Mapping[str, Profile],
    throughputs: Throughputs | None = None,
    tasks: Mapping[str, IterationTasks] | None = None,
    contention: Contention | None = None,
    scalings: Mapping[str, Scaling] | None = None,
    interference: Interference | None = None,
) -> dict[str, Any]:
    """All parts but the jobs, as they stand in a document."""
    parts = {
        "name": name,
        "objective": objective,
        "cluster": cluster.to_json(),
        "profiles": {key: profile.to_json() for key, profile in profiles.items()},
        "throughputs": None if throughputs is None else throughputs.to_json(),
        "tasks": {key: each.to_json() for key, each in (tasks or {}).items()},
        "contention": None if contention is None else contention.to_json(),
        "scalings": {key: each.to_json() for key, each in (scalings or {}).items()},
        "interference": None if interference is None else interference.to_json(),
        "recipe": recipe,
        "optimum": optimum,
    }
    return {key: value for key, value in parts.items() if value not in (None, "", {})}


def write_parts(path: str | os.PathLike[str], **parts: Any) -> None:
    """Write an instance to ``.json`` or ``.parquet``, whole or not at all."""
    suffix = suffix_of(path)
    if suffix == ".json":
        doc = document(**parts)
        lines = ",\n".join("  " + json.dumps(row) for row in doc.pop("jobs"))
        head = _text(doc, path, indent=1)[:-2]  # one line a job: diffs and people can read it
        write_atomic(path, f'{head},\n "jobs": [\n{lines}\n ]\n}}\n')
    elif suffix == ".parquet":
        table: pl.DataFrame = parts.pop("jobs")
        header = _text({"format": FORMAT, **_header(**parts)}, path)
        with atomic_path(path) as temporary:
            table.write_parquet(temporary, metadata={_METADATA: header})
    else:
        raise InputError("cannot tell the format of an instance from its name", file=path, legal=".json or .parquet")


def _text(doc: Mapping[str, Any], path: str | os.PathLike[str], indent: int | None = None) -> str:
    try:
        return json.dumps(doc, indent=indent, allow_nan=False)
    except (TypeError, ValueError) as error:  # only these two hold what a caller made freely
        raise InputError(
            f"the recipe or the optimum cannot be written: {error}", file=path, legal="JSON values"
        ) from None


def read_parts(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The constructor arguments of the instance in a file; `InputError` when it is not one."""
    suffix = Path(path).suffix.lower()
    if suffix == ".parquet":
        return _read_parquet(path)
    if suffix == ".json":
        return _read_json(path)
    raise InputError("cannot tell the format of an instance from its name", file=path, legal=".json or .parquet")


def _read_json(path: str | os.PathLike[str]) -> dict[str, Any]:
    content = read_bytes(path)
    parse_json(content, path, f"format {FORMAT}")  # what the reader of documents would pass over in silence
    try:
        doc = InstanceDocument.model_validate_json(content)
    except ValidationError as error:
        raise _as_input_error(error, path) from None
    jobs = [job.model_dump() for job in doc.jobs]
    for position, job in enumerate(jobs, 1):
        job["id"] = str(position) if job["id"] is None else job["id"]
    table = pl.DataFrame(jobs, schema=COLUMNS)
    return _parts(doc, table, path)


def _read_parquet(path: str | os.PathLike[str]) -> dict[str, Any]:
    metadata, table = read_parquet(path, path, f"a table written as {FORMAT}")
    if _METADATA not in metadata:
        raise InputError(f"a Parquet table without the key {_METADATA!r}", file=path, legal=f"format {FORMAT}")
    header = parse_json(metadata[_METADATA].encode(), path, f"format {FORMAT}", f"a JSON object under {_METADATA!r}")
    if not isinstance(header, dict):
        raise InputError(f"the key {_METADATA!r} is not a JSON object", file=path, legal=f"format {FORMAT}")
    try:
        doc = InstanceDocument.model_validate_json(json.dumps({**header, "jobs": []}))
    except ValidationError as error:
        raise _as_input_error(error, path) from None
    return _parts(doc, table, path)


def _parts(doc: InstanceDocument, table: pl.DataFrame, path: str | os.PathLike[str]) -> dict[str, Any]:
    def made(make: Callable[[Any], T], document: BaseModel, field: str | None = None) -> T:
        return _made(make, document.model_dump(), path, field)

    def named(field: str, make: Callable[[Any], T], documents: Mapping[str, BaseModel]) -> dict[str, T]:
        return {key: made(make, each, f"{field}.{key}") for key, each in documents.items()}

    rates = {key: [row.model_dump() for row in rows] for key, rows in doc.throughputs.items()}
    return {
        "jobs": table,
        "cluster": Cluster(tuple(NodeGroup(**group.model_dump()) for group in doc.cluster.nodes)),
        "name": doc.name,
        "objective": doc.objective,
        "recipe": doc.recipe,
        "optimum": doc.optimum.model_dump(by_alias=True) if doc.optimum else None,
        "profiles": named("profiles", Profile.from_json, doc.profiles),
        "throughputs": _made(Throughputs.from_json, rates, path, "throughputs") if rates else None,
        "tasks": named("tasks", lambda each: IterationTasks(**each), doc.tasks),
        "contention": made(Contention.from_json, doc.contention) if doc.contention else None,
        "scalings": named("scalings", Scaling.from_json, doc.scalings),
        "interference": made(Interference.from_json, doc.interference) if doc.interference else None,
    }


def _made(make: Callable[[Any], T], document: Any, path: str | os.PathLike[str], field: str | None) -> T:
    """What a part of the document describes; an `InputError` also names the file, and where the part stands."""
    try:
        return make(document)
    except InputError as error:
        raise InputError(str(error), file=path, field=field) from None


def _as_input_error(error: ValidationError, path: str | os.PathLike[str]) -> InputError:
    # Problems of jobs are rows, reported all at once; a problem of the document is one line.
    problems: list[RowProblem] = []
    for item in error.errors(include_url=False, include_context=False):
        location = [part for part in item["loc"] if part not in ("int", "float")]
        value = item["input"] if isinstance(item["input"], (str, int, float, bool, type(None))) else ...
        if isinstance(value, int) and abs(value) > LARGEST:
            value = ...  # hundreds of digits help nobody
        if len(location) >= 3 and location[0] == "jobs" and isinstance(location[1], int):
            field = ".".join(str(part) for part in location[2:])
            problem = RowProblem(location[1] + 1, field, value, item["msg"])
            if not problems or (problems[-1].row, problems[-1].field) != (problem.row, problem.field):
                problems.append(problem)
            continue
        if item["type"] == "json_invalid":
            return InputError("not a JSON document, or a truncated one", file=path, legal=f"format {FORMAT}")
        field = ".".join(str(part) for part in location)
        return InputError("not legal", file=path, field=field or "document", value=value, legal=item["msg"])
    return RowErrors(path, problems, 0)
