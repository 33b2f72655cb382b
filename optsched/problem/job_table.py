"""`Job`, the table of the jobs of an instance, its checks, and which nodes may serve a job."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, Protocol

import numpy as np
import polars as pl

from optsched.errors import InputError, RowProblem
from optsched.problem.arrays import Bools, Ints, is_number, is_whole
from optsched.problem.cluster import Cluster
from optsched.problem.documents import MAX_INTEGER
from optsched.problem.table import is_pandas, polars_of_pandas
from optsched.registry import near_matches


@dataclass(frozen=True, slots=True)
class Job:
    """One job. Seconds and bytes; ``duration`` = seconds alone at full speed on its whole gang.

    Either ``duration`` or ``iterations`` with the name of a ``profile``: a stage profile of the instance, a job type of
    its throughput table, or the tasks of an iteration.
    ``batch_size``: samples of an iteration over the whole gang, for jobs whose ``profile`` is a scaling profile.
    ``gpus`` is the gang size g_j, ``weight`` w_j, ``due`` d_j (None: no due date), ``gpu_memory`` bytes on each GPU,
    ``gpu_types`` the GPU types it may use (None: all; names match case-insensitively).
    ``restart``: seconds that it costs to resume it after it was stopped, or ``checkpoint`` bytes that are then read at the
    cluster's storage bandwidth (None: what the policy says).
    ``walltime``: the limit in seconds that the user stated at submission (None: no limit). It changes no value and no
    bound; policies that backfill may know it.
    ``status``: final state of the job in the words of its log.
    ``ran``: what really ran, as the log says: a piece ``(start, end)`` or ``(start, end, gpus)`` for every time that the job
    held GPUs, in order, in seconds on the clock of ``arrival``; without ``gpus`` a piece held the whole gang.
    """

    id: str
    arrival: float = 0
    gpus: int = 1
    duration: float | None = None
    iterations: float | None = None
    profile: str | None = None
    weight: float = 1
    due: float | None = None
    user: str | None = None
    group: str | None = None
    model: str | None = None
    gpu_memory: float | None = None
    gpu_types: tuple[str, ...] | None = None
    batch_size: int | None = None
    restart: float | None = None
    checkpoint: float | None = None
    walltime: float | None = None
    status: str | None = None
    ran: tuple[tuple[float, ...], ...] | None = None


# by the annotations of `Job`
_TYPES = {
    "str": pl.String(),
    "int": pl.Int64(),
    "float": pl.Float64(),
    "tuple[str, ...]": pl.List(pl.String),
    "tuple[tuple[float, ...], ...]": pl.List(pl.List(pl.Float64)),
}
COLUMNS: dict[str, pl.DataType] = {each.name: _TYPES[str(each.type).removesuffix(" | None")] for each in fields(Job)}
_DEFAULTS = {each.name: each.default for each in fields(Job) if each.default not in (MISSING, None)}
_NOTHING = {name: pl.Series(name, [None], dtype=dtype) for name, dtype in COLUMNS.items()}
_STATED = {"arrival": "a finite number of seconds >= 0", "gpus": "an integer >= 1"}  # wherever there is such a column
# Seconds, and weights in the same range: beyond it sums of weighted times overflow, or a duration is lost beside an
# arrival. A picosecond and thirty billion years are enough for any cluster.
SHORTEST, LONGEST = 1e-12, 1e18
MOST_SAMPLES = 10**12  # of an iteration
DUPLICATE = "duplicate id"
REPORTED = 1000  # problems collected a rule; counting on is no use to a reader


def table_of(jobs: Any) -> pl.DataFrame:
    """Return jobs as a polars table.

    Parameters
    ----------
    jobs
        List of `Job`, or a polars or pandas table.

    Raises
    ------
    InputError
        If the jobs are none of these, or a field has the wrong type.
    """
    if is_pandas(jobs):
        return polars_of_pandas(jobs)
    if isinstance(jobs, pl.DataFrame):
        return jobs
    if isinstance(jobs, str) or not isinstance(jobs, Iterable):
        legal = "a list of optsched.Job(...), or a polars or pandas table with their columns"
        raise InputError("no jobs", field="jobs", value=jobs, legal=legal)
    rows = list(jobs)
    for position, job in enumerate(rows):
        if not isinstance(job, Job):
            raise InputError("not a job", row=position + 1, value=job, legal="optsched.Job(...)")
    columns: dict[str, list[Any]] = {name: [getattr(job, name) for job in rows] for name in COLUMNS}
    for name, dtype in COLUMNS.items():
        columns[name] = [_legal(value, name, dtype, j + 1) for j, value in enumerate(columns[name])]
    return pl.DataFrame(columns, schema=COLUMNS, strict=True)


def _legal(value: Any, field: str, dtype: pl.DataType, row: int) -> Any:
    # A field of a Job as the table holds it; polars would accept True for 1 and cut a list of types out of a text.
    if value is None:
        return None
    if dtype == pl.Float64:
        legal = "a number"
        if is_number(value) and (not isinstance(value, int) or abs(value) <= sys.float_info.max):
            return float(value)
    elif dtype == pl.Int64:
        legal = "an integer"
        if is_whole(value) and abs(int(value)) <= MAX_INTEGER:
            return int(value)
    elif dtype == pl.String:
        legal = "text"
        if isinstance(value, str):
            return value
    elif field == "ran":
        legal = "pieces that ran, e.g. ((60, 3660), (7200, 9000, 4)): start, end and GPUs"
        if isinstance(value, tuple | list) and all(
            isinstance(piece, tuple | list) and all(is_number(number) for number in piece) for piece in value
        ):
            return [[float(number) for number in piece] for piece in value]
    else:
        legal = "names of GPU types, e.g. ('V100',)"
        if isinstance(value, tuple | list) and all(isinstance(name, str) for name in value):
            return list(value)
    raise InputError("invalid", row=row, field=field, value=value, legal=legal)


def normal_table(table: pl.DataFrame, file: str | os.PathLike[str] | None = None) -> pl.DataFrame:
    """Return a table with exactly the canonical columns and types, defaults filled in (see `missing_values`).

    Parameters
    ----------
    table
        Table of jobs; without an ``id`` column jobs are numbered from 1.
    file
        File that the table comes from, for the error.

    Raises
    ------
    InputError
        If a column is unknown or has the wrong type.
    """
    names = table.columns
    unknown = [name for name in names if name not in COLUMNS]
    if unknown:
        raise InputError("unknown job column", file=file, field=unknown[0], legal=", ".join(COLUMNS))
    columns = []
    for name, dtype in COLUMNS.items():
        if name not in names and name == "id":
            column = pl.int_range(1, table.height + 1, eager=True).alias("id")
        elif name not in names or _is_silent(table[name], dtype):  # memory that nobody touches takes no room
            column = _NOTHING[name].new_from_index(0, table.height)
            if name not in _DEFAULTS:
                columns.append(column)
                continue
        else:
            column = table[name].rechunk()  # else every change of one column copies the others
        if column.dtype.is_temporal():  # polars would make numbers of them, in a unit nobody asked for
            legal = "seconds counted from some moment, as numbers"
            raise InputError("wrong type of column", file=file, field=name, value=column.dtype, legal=legal)
        if dtype == pl.Int64 and column.dtype.is_float():
            # A cast would cut 2.5 to 2 without a word.
            broken = ((column != column.floor()) | ~column.is_finite()).fill_null(False).arg_true()
            if len(broken):
                row = int(broken[0])
                raise InputError(
                    "invalid", file=file, row=row + 1, field=column.name, value=column[row], legal="an integer"
                )
        try:
            column = column.cast(dtype, strict=True)
        except pl.exceptions.PolarsError:
            raise InputError("wrong type of column", file=file, field=name, legal=str(dtype)) from None
        if dtype == pl.Float64 and column.null_count() < table.height:
            column = column.set(column == 0, 0.0)  # one zero only: -0.0 and 0 are the same time
        columns.append(column.fill_null(_DEFAULTS[name]) if name in _DEFAULTS and column.null_count() else column)
    return pl.DataFrame(columns)


def _is_silent(column: pl.Series, dtype: pl.DataType) -> bool:
    return column.null_count() == len(column) and column.dtype in (dtype, pl.Null)


def missing_values(table: pl.DataFrame) -> list[RowProblem]:
    """Return the jobs without arrival or gang size in a table that has such a column.

    Only an absent column takes the default.

    Parameters
    ----------
    table
        Table of jobs as given.
    """
    return [
        RowProblem(row + 1, field, None, legal, "missing")
        for field, legal in _STATED.items()
        if field in table.columns and table[field].null_count()
        for row in table[field].is_null().arg_true().head(REPORTED).to_list()
    ]


def pieces_earlier(seconds: float) -> pl.Expr:
    """Return the column ``ran`` with all starts and ends earlier by some seconds.

    Parameters
    ----------
    seconds
        The seconds to subtract.
    """
    piece = pl.element()
    moved = pl.concat_list(piece.list.head(2).list.eval(pl.element() - seconds), piece.list.slice(2))
    return pl.col("ran").list.eval(moved)


class ProfileRules(Protocol):
    """The part of an `optsched.problem.speed_model.SpeedModel` that decides which jobs are valid and where they may run."""

    @property
    def name(self) -> str:
        """Name of the model."""

    @property
    def names(self) -> Collection[str]:
        """Profiles whose speed the model gives."""

    @property
    def closed(self) -> bool:
        """True if a profile that no model knows is an error."""

    @property
    def limits_types(self) -> bool:
        """True if some profiles do not run on every GPU type."""

    def gang(self, name: str, /) -> int | None:
        """Return the gang size that a profile needs, or None for any.

        Parameters
        ----------
        name
            Name of the profile.
        """

    def runs_on(self, name: str, gpu: str, gang: int, /) -> bool:
        """Return True if a gang of that size and profile runs on GPUs of a type.

        Parameters
        ----------
        name
            Name of the profile.
        gpu
            GPU type.
        gang
            Gang size.
        """

    def applies_to(self, table: pl.DataFrame, /) -> Bools:
        """Return which jobs of a valid table have their speed from the model, bool[n].

        Parameters
        ----------
        table
            Normal table of jobs.
        """


def job_problems(table: pl.DataFrame, cluster: Cluster, models: Sequence[ProfileRules]) -> list[RowProblem]:
    """Return every invalid value of a normal table on a cluster, by row (1-based position).

    Legal values: arrivals from 0 to 1e18 seconds, durations from 1e-12 to 1e18, due dates from -1e18 to 1e18;
    weights 0 or from 1e-18 to 1e18; iterations at most 1e18.

    Parameters
    ----------
    table
        Normal table of jobs.
    cluster
        Cluster that the jobs must fit on.
    models
        Models of speeds of the instance.
    """
    # One look at the table says which rules are broken at all; only for those rows are collected. A rule of an optional
    # field is not looked at where no job has the field, and the rows with the same id only where some are the same.
    unique = table["id"].n_unique() == table.height
    stated = {name for name in COLUMNS if name in _NEEDED or table[name].null_count() < table.height}
    asked = [k for k, rule in enumerate(RULES) if rule[0] in stated and not (unique and rule[3] == DUPLICATE)]
    broken = table.select_seq(_BROKEN[k] for k in asked).row(0)
    numbered = table.with_row_index("__row")
    problems: list[RowProblem] = []
    for k, found in zip(asked, broken, strict=True):
        if found:
            field, wrong, legal, message = RULES[k]
            problems += rows_that_are(wrong, numbered, field, legal, message)
    profiled = pl.col("duration").is_null() & pl.col("iterations").is_not_null() & pl.col("profile").is_not_null()
    gangs = {name: gang for model in models for name in model.names if (gang := model.gang(name)) is not None}
    if gangs:  # one GPU for each replica of the profile
        needs = pl.col("profile").replace_strict(gangs, default=None, return_dtype=pl.Int64)
        rows = numbered.filter(profiled & (needs != pl.col("gpus"))).head(REPORTED).select("__row", "gpus", "profile")
        problems += [
            RowProblem(row + 1, "gpus", gpus, f"{gangs[profile]}, the replicas of the profile {profile!r}")
            for row, gpus, profile in rows.iter_rows()
        ]
    if any(model.closed and model.names for model in models):  # a name that nobody knows is a typing error
        known = [name for model in sorted(models, key=lambda model: model.closed) for name in model.names]
        rows = numbered.filter(profiled & ~pl.col("profile").is_in(known)).head(REPORTED).select("__row", "profile")
        problems += [
            RowProblem(row + 1, "profile", name, near_matches(name, known, kind="model"), "unknown model")
            for row, name in rows.iter_rows()
        ]
    return problems + _too_wide(table, cluster, models)


def rows_that_are(wrong: pl.Expr, numbered: pl.DataFrame, field: str, legal: str, message: str) -> list[RowProblem]:
    """Return the problems of a field in the rows that are wrong.

    Parameters
    ----------
    wrong
        Expression that is true in those rows.
    numbered
        Table of jobs with their 0-based positions in ``__row``.
    field
        Name of the field.
    legal
        Description of legal values.
    message
        Problem in words.
    """
    rows = numbered.filter(wrong).head(REPORTED).select("__row", field).iter_rows()
    return [RowProblem(row + 1, field, value, legal, message) for row, value in rows]


def _rules() -> list[tuple[str, pl.Expr, str, str]]:
    """(field, which rows are wrong, what is legal, what is the matter) of every rule that looks at one row at a time."""

    def not_finite(field: str) -> pl.Expr:
        return pl.col(field).is_not_null() & ~pl.col(field).is_finite()

    def beyond(field: str) -> pl.Expr:
        return pl.col(field).is_finite() & (pl.col(field).abs() > LONGEST)

    duplicate = pl.col("id").is_duplicated() & ~pl.col("id").is_first_distinct()
    short = (pl.col("duration") > 0) & (pl.col("duration") < SHORTEST)
    unknown = pl.col("duration").is_null() & (pl.col("iterations").is_null() | pl.col("profile").is_null())
    tiny = (pl.col("weight") > 0) & (pl.col("weight") < 1 / LONGEST)
    at_most, wrong = f"at most {LONGEST:g}", "invalid"
    return [
        ("id", pl.col("id").is_null() | (pl.col("id") == ""), "a name", wrong),
        ("id", duplicate, "unique ids", DUPLICATE),
        ("arrival", not_finite("arrival") | (pl.col("arrival") < 0), _STATED["arrival"], wrong),
        ("arrival", beyond("arrival"), f"{at_most} seconds", "too late"),
        ("gpus", pl.col("gpus") < 1, _STATED["gpus"], wrong),
        ("duration", not_finite("duration") | (pl.col("duration") <= 0), "a finite number of seconds > 0", wrong),
        ("duration", beyond("duration"), f"{at_most} seconds", "too long"),
        ("duration", short, f"at least {SHORTEST:g} seconds", "too short"),
        ("iterations", beyond("iterations"), at_most, "too many"),
        ("iterations", not_finite("iterations") | (pl.col("iterations") <= 0), "a finite number > 0", wrong),
        ("duration", unknown, "a duration, or iterations with a profile", "missing"),
        ("weight", not_finite("weight") | (pl.col("weight") < 0), "a finite number >= 0", wrong),
        ("weight", beyond("weight"), at_most, "too large"),
        ("weight", tiny, f"0, or at least {1 / LONGEST:g}", "too small"),
        ("due", not_finite("due"), "a finite number of seconds", wrong),
        ("due", beyond("due"), f"within {LONGEST:g} seconds of 0", "too far"),
        ("batch_size", pl.col("batch_size") < 1, "an integer >= 1", wrong),
        ("batch_size", pl.col("batch_size") > MOST_SAMPLES, f"at most {MOST_SAMPLES:g}", "too large"),
        ("gpu_memory", not_finite("gpu_memory") | (pl.col("gpu_memory") < 0), "a finite number of bytes >= 0", wrong),
        ("restart", not_finite("restart") | (pl.col("restart") < 0), "a finite number of seconds >= 0", wrong),
        ("restart", beyond("restart"), f"{at_most} seconds", "too long"),
        ("checkpoint", not_finite("checkpoint") | (pl.col("checkpoint") < 0), "a finite number of bytes >= 0", wrong),
        ("checkpoint", beyond("checkpoint"), f"{at_most} bytes", "too large"),
        ("walltime", not_finite("walltime") | (pl.col("walltime") <= 0), "a finite number of seconds > 0", wrong),
        ("walltime", beyond("walltime"), f"{at_most} seconds", "too long"),
        ("ran", _bad_pieces(), f"pieces [start, end] or [start, end, gpus], start <= end, within {LONGEST:g} s", wrong),
    ]


def _bad_pieces() -> pl.Expr:
    # Pieces may overlap and may begin before the arrival: a log may say so, and the referee lists it.
    piece = pl.element()
    start, end, gpus = (piece.list.get(k, null_on_oob=True) for k in range(3))
    count = piece.list.len().is_in([2, 3])
    finite = start.is_finite() & end.is_finite() & (start.abs() <= LONGEST) & (end.abs() <= LONGEST)
    held = gpus.is_null() | (gpus.is_finite() & (gpus >= 1) & (gpus == gpus.floor()))
    fine = (count & finite & (start <= end) & held & ((piece.list.len() < 3) | gpus.is_not_null())).fill_null(False)
    return pl.col("ran").is_not_null() & pl.col("ran").list.eval(~fine).list.any().fill_null(False)


RULES = _rules()
_BROKEN = [wrong.any().alias(str(k)) for k, (_, wrong, _, _) in enumerate(RULES)]  # is a rule broken somewhere?
_NEEDED = ("id", "duration")  # that a job has none is what rules of these fields find


def _too_wide(table: pl.DataFrame, cluster: Cluster, models: Sequence[ProfileRules]) -> list[RowProblem]:
    # A gang must fit on the GPUs that suit it; a job at the speeds of a table must run at all somewhere.
    pattern, suits = suited_groups(table, cluster, models)
    offered = suits @ np.array([group.count * group.gpus for group in cluster.nodes], dtype=np.int64)
    gpus = table["gpus"].to_numpy()
    short = gpus > (offered[pattern] if pattern.size else np.zeros(0, dtype=np.int64))
    first = np.flatnonzero(short)[:REPORTED].tolist()
    return [_too_little(table, cluster, models, j, int(offered[pattern[j]])) for j in first]


def _too_little(
    table: pl.DataFrame, cluster: Cluster, models: Sequence[ProfileRules], j: int, offered: int
) -> RowProblem:
    row = table.row(j, named=True)
    gpus, profile = row["gpus"], row["profile"]
    limited = row["duration"] is None and any(model.limits_types and profile in model.names for model in models)
    if limited and not offered:
        types = ", ".join(dict.fromkeys(group.gpu for group in cluster.nodes))
        legal = f"a rate > 0 for a gang of {gpus} on a GPU type it may use (the cluster has {types})"
        return RowProblem(j + 1, "profile", profile, legal, "throughput of zero, or unknown, for every GPU type")
    suiting = "" if offered == cluster.gpus else " that its types, memory and throughputs allow"
    legal = f"at most {offered}, the GPUs of the cluster {cluster.spec}{suiting}"
    return RowProblem(j + 1, "gpus", gpus, legal, "the gang is larger than the cluster")


def suited_groups(table: pl.DataFrame, cluster: Cluster, models: Sequence[ProfileRules]) -> tuple[Ints, Bools]:
    """Return the pattern of every job, i64[n], and the node groups that suit each pattern, bool[K, groups].

    A job may use a type only if the model that gives its speed states that its gang runs there, on one node and
    spread: the placement of a gang must not decide whether it runs at all. Jobs with the same pattern may use
    the same nodes.

    Parameters
    ----------
    table
        Normal table of jobs.
    cluster
        Cluster.
    models
        Models of speeds of the instance.

    Notes
    -----
    O(n) in polars, and one check for each distinct combination.
    """
    model_of = {name: model for model in models if model.limits_types for name in model.names}
    if not model_of and table["gpu_types"].null_count() == table["gpu_memory"].null_count() == table.height:
        return np.zeros(table.height, dtype=np.int64), np.ones((1, len(cluster.nodes)), dtype=bool)
    profile: pl.Expr = pl.lit(None, dtype=pl.String)
    if model_of:
        limited = pl.col("duration").is_null() & pl.col("profile").is_in(list(model_of))
        profile = pl.when(limited).then(pl.col("profile"))
    gang = pl.when(profile.is_not_null()).then(pl.col("gpus"))
    rows = table.select("gpu_types", "gpu_memory", profile=profile, gang=gang)
    limits = rows.unique(maintain_order=True)
    masks = np.array(
        [
            [
                group.suits(types, memory) and (profile is None or model_of[profile].runs_on(profile, group.gpu, gang))
                for group in cluster.nodes
            ]
            for types, memory, profile, gang in limits.iter_rows()
        ],
        dtype=bool,
    ).reshape(limits.height, len(cluster.nodes))
    patterns, pattern_of = np.unique(masks, axis=0, return_inverse=True)
    numbered = limits.with_columns(pattern=pl.Series(pattern_of.reshape(-1).astype(np.int64)))
    found = rows.join(numbered, on=rows.columns, how="left", nulls_equal=True, maintain_order="left")["pattern"]
    return found.to_numpy().astype(np.int64), patterns
