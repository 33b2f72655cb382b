"""Reader of a SOURCE: an instance file, the name of a shipped instance, or ``DIALECT:PATH[#fragment]``.

All jobs come in through ``load``: `optsched.load` and every command that reads a SOURCE use it.
"""

from __future__ import annotations

import importlib.resources
import os
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from optsched.classes import CLASSES, usual_class
from optsched.errors import InputError, OptschedError, check_legal
from optsched.io.cluster_files import cluster_of
from optsched.io.index import LibraryEntry, entries, instances_folder, parameters_of
from optsched.io.measurements import named_interference, read_contention, read_profiles
from optsched.io.recognised import source_to_type
from optsched.io.traces.dialect import (
    CLUSTER_LEGAL,
    DIALECTS,
    OPTIONS,
    Dialect,
    TraceRead,
    whole_limit,
)
from optsched.io.traces.generate import generate, settings
from optsched.io.traces.log_reading import not_modelled, reading_notes, windowed
from optsched.io.traces.named_models import moved, with_scalings, with_speeds
from optsched.problem.cluster import Cluster
from optsched.problem.contention import Contention
from optsched.problem.instance import READERS, Instance
from optsched.problem.instance_file import naming_jobs
from optsched.problem.objectives import objective_of
from optsched.problem.scaling import Scaling
from optsched.problem.throughputs import Throughputs
from optsched.registry import near_matches
from optsched.speeds.interference_sources import Asked, Say, with_interference
from optsched.speeds.kinds.tasks import at_job_level
from optsched.speeds.scaling_files import read_scalings
from optsched.speeds.sub_batch_ratios import for_jobs
from optsched.speeds.throughput_sources import read_throughputs

INSTANCE_SUFFIXES = (".json", ".parquet")


@dataclass(frozen=True)
class Loaded:
    """An instance and the number of rows that were left out of it (only ever > 0 with ``skip_bad``)."""

    instance: Instance
    skipped_rows: int = 0


@dataclass(frozen=True)
class LoadRequest:
    """Options of `load`; without ``notes`` the caller itself shows how a log was read."""

    cluster: Cluster | str | None = None
    limit: int | None = None
    since: str | float | None = None
    until: str | float | None = None
    columns: Mapping[str, str] | None = None
    skip_bad: bool = False
    throughputs: str | os.PathLike[str] | Throughputs | None = None
    strict_throughputs: bool = False
    interference: Asked | None = None
    contention: str | os.PathLike[str] | Contention | None = None
    profiles: str | os.PathLike[str] | Mapping[str, Scaling] | None = None
    job_level: bool = False
    say: Callable[[str], None] | None = None
    unit: str = "gpu"
    release: str = "submit"
    walltimes: str = "keep"
    notes: bool = True


AS_IT_STANDS = LoadRequest()


def load(
    source: str | os.PathLike[str],
    *,
    cluster: Cluster | str | None = None,
    limit: int | None = None,
    since: str | float | None = None,
    until: str | float | None = None,
    columns: Mapping[str, str] | str | None = None,
    skip_bad: bool = False,
    throughputs: str | os.PathLike[str] | Throughputs | None = None,
    strict_throughputs: bool = False,
    interference: Asked | None = None,
    contention: str | os.PathLike[str] | Contention | None = None,
    profiles: str | os.PathLike[str] | Mapping[str, Scaling] | None = None,
    job_level: bool = False,
    say: Callable[[str], None] | None = None,
    unit: str = "gpu",
    release: str = "submit",
    walltimes: str = "keep",
) -> Instance:
    r"""Return the instance that ``source`` names.

    Parameters
    ----------
    source
        An instance file (``.json``, ``.parquet``), the name of a shipped instance, or ``DIALECT:PATH``, with
        ``#fragment`` for dialects that hold many instances in a file.
    cluster
        Cluster on which the jobs run, ``8x8`` or a file that says (`optsched.io.cluster_files`); required for a trace
        that neither brings a cluster nor says when its jobs ran. It replaces the cluster of an instance file or a
        classical instance, whose proven optimum is then dropped.
    limit
        Only the first jobs by (arrival, position).
    since, until
        Only jobs submitted from ``since`` to before ``until``: a date on the clock of the log (``"2026-03-01"``), or a time
        after the first submission in seconds or as ``"7d"``. Jobs that ran or waited at the start are left out and counted.
    columns
        Columns of a log of your own (dialect ``csv``) by field: ``{"arrival": "submitted", ...}``, or as text,
        ``"arrival=submitted,..."``.
    skip_bad
        Leave out rows of a trace that are invalid. An instance file is read completely or not at all.
    throughputs
        Iterations/s by model, GPU type and gang size, for a trace that names models: a table, or a file of Gavel's
        form. Default: the built-in table if it applies.
    strict_throughputs
        Reject rates that are not in the table.
    interference
        Slow-down of two jobs on one GPU: a number >= 1, the name of a table or a file
        (`optsched.speeds.interference_sources`), or the object itself. It replaces that of an instance file, whose
        proven optimum is then dropped. Default: that of the source.
    contention
        Slow-down of simultaneous all-reduces on a network interface: a file that ``optsched fit contention`` wrote,
        or the object itself. It replaces that of the source, as ``interference`` does.
    profiles
        Scaling of iterations, for a trace of the dialect ``pollux``: a folder of its measurements, a file that
        ``optsched fit scaling`` wrote, or scaling profiles by application. Default: the built-in ones. They replace
        those of an instance file that have the same names.
    job_level
        Turn jobs with tasks into whole jobs (`optsched.at_job_level`), for policies that do not support tasks.
    say
        Function that gets a line about every rule by which a rate was derived, about models whose interference was
        not measured, and about how a log was read; a property of its jobs that an instance cannot have is a warning
        without ``say``.
    unit
        What a gang counts, for logs that know more than GPUs: ``gpu``, ``cpu`` or ``node``.
    release
        When a job arrives, for logs that know both: ``submit``, or ``eligible`` (after dependencies, holds and limits).
    walltimes
        For logs with walltimes: ``keep`` runs that are longer, or ``cut`` them, and their ``ran``, at the walltime.

    Raises
    ------
    RowErrors
        With all bad rows of the file.
    InputError
        If there is no such file, name or dialect (with near matches), no cluster, or an option does not apply.

    Examples
    --------
    >>> import optsched as osd
    >>> osd.load("rigid-10-1")
    Instance('rigid-10-1', 10 jobs, 1x8)
    >>> osd.load("cluster-week", limit=100, cluster="4x8")
    Instance('cluster-week', 100 jobs, 4x8)
    >>> with open("log.csv", "w") as log:
    ...     _ = log.write("submitted,gpus,seconds\n0,4,60\n5,1,30\n")
    >>> osd.load("csv:log.csv", cluster="1x4", columns={"arrival": "submitted", "gpus": "gpus", "duration": "seconds"}).ids
    ('1', '2')
    """
    speeds = (throughputs, strict_throughputs, interference, contention, profiles)
    if isinstance(columns, str):
        columns = settings(columns.split(","), option="columns")
    fine = isinstance(columns, Mapping) and all(isinstance(name, str) for pair in columns.items() for name in pair)
    legal = "{'arrival': 'submitted', ...}, or the text 'arrival=submitted,...'"
    check_legal(columns is None or fine, "columns", columns, legal)
    request = LoadRequest(
        cluster, limit, since, until, columns, skip_bad, *speeds, job_level, say, unit, release, walltimes
    )
    instance = load_counted(source, request).instance
    for line in not_modelled(instance) if say is None else ():
        warnings.warn(f"{source}: {line}", UserWarning, stacklevel=2)
    return instance


READERS.register("load")(load)


def load_counted(source: str | os.PathLike[str], request: LoadRequest = AS_IT_STANDS) -> Loaded:
    """Load an instance as `load` does, and count the rows that were left out.

    Parameters
    ----------
    source
        The source.
    request
        Options of `load`.
    """
    if request.since is None and request.until is None:
        loaded = _load(source, request)
    else:
        loaded = _load(source, replace(request, limit=None))
        window = windowed(loaded.instance, request.since, request.until)
        loaded = replace(loaded, instance=_limited(window, whole_limit(request.limit)))
    if request.say is not None:
        for line in (reading_notes if request.notes else not_modelled)(loaded.instance):
            request.say(f"{os.fspath(source)}: {line}")
    return loaded


def _load(source: str | os.PathLike[str], request: LoadRequest) -> Loaded:
    cluster, limit, say = request.cluster, whole_limit(request.limit), request.say
    interference, throughputs = request.interference, request.throughputs
    where = cluster_of(cluster) if isinstance(cluster, str) else cluster
    text = os.fspath(source)
    table = throughputs if isinstance(throughputs, Throughputs | None) else read_throughputs(throughputs)
    if interference is not None and where is not None:  # an error is reported before a long trace is read
        interference = named_interference(interference, where, say=say)
    network = request.contention
    network = network if isinstance(network, Contention | None) else read_contention(network)
    prefix, colon, place = text.partition(":")
    prefix = DIALECTS.canonical(prefix) if colon else prefix
    if colon and prefix in DIALECTS:
        loaded = _load_trace(DIALECTS.get(prefix), place, where, request, table)
        instance = loaded.instance if network is None else loaded.instance.replace(contention=network)
        return replace(loaded, instance=_sharing(instance, interference, say))
    if request.columns:
        raise InputError("columns can only be named for a log of your own", field="columns", legal="csv:PATH")
    for name, legal in OPTIONS.items():
        if getattr(request, name) != legal[0]:
            value = getattr(request, name)
            raise InputError("a choice for logs alone", field=name, value=value, legal="with DIALECT:PATH")
    instance = _instance_of(text)
    if request.profiles is not None:
        instance = _rescaled(instance, _profiles(request.profiles) or {})
    if network is not None:
        instance = instance.replace(contention=network)
    instance = _limited(instance, limit)
    shares = not usual_class(instance).alone or interference is not None
    if where is not None and where != instance.cluster and shares:
        where = _with_memory(where, instance, say)
    if table is not None:  # an instance file whose models get the speeds of another table
        read = TraceRead(instance.table, instance.name, cluster=where or instance.cluster)
        strict, others = request.strict_throughputs, instance.profiles
        # with a limit, positions differ from those of the file
        with naming_jobs(text) if limit is None else nullcontext():
            read = with_speeds(read, table, text, strict=strict, say=say, others=others, field="profile")
        if read.throughputs is None:
            raise InputError("no job of this instance runs at the speeds of a table", file=text, field="throughputs")
        instance = instance.replace(cluster=read.cluster, throughputs=read.throughputs)
    elif where is not None and where != instance.cluster:
        instance = moved(instance, where, strict=request.strict_throughputs, say=say)
    if request.strict_throughputs:
        _require_measured(instance, text)
    if request.job_level:
        instance = at_job_level(instance)
    return Loaded(_sharing(instance, interference, say))


def _sharing(instance: Instance, asked: Asked | None, say: Say | None) -> Instance:
    named = None if asked is None else for_jobs(named_interference(asked, instance.cluster, say=say), instance, say)
    return with_interference(instance, named, say=say)


def _limited(instance: Instance, limit: int | None) -> Instance:
    if limit is None or limit >= instance.n:
        return instance
    recipe = {**instance.recipe, "limit": limit} if instance.recipe else None
    return instance.head(limit).replace(recipe=recipe)


def _with_memory(cluster: Cluster, instance: Instance, say: Callable[[str], None] | None) -> Cluster:
    # Text for a cluster has no memory, and if jobs share GPUs only memory limits their number.
    known = {group.gpu_memory for group in instance.cluster.nodes}
    if known == {None} or all(group.gpu_memory is not None for group in cluster.nodes):
        return cluster
    if len(known) > 1:
        why = "what memory its GPUs have is not known: those of the instance differ"
        legal = "an instance file whose nodes state gpu_memory"
        raise InputError(why, field="cluster", value=cluster.spec, legal=legal)
    memory = known.pop()
    if say is not None:
        say(f"GPUs of {cluster.spec} have the memory of those of the instance, {memory:g} bytes")
    return Cluster(tuple(replace(each, gpu_memory=each.gpu_memory or memory) for each in cluster.nodes))


def _require_measured(instance: Instance, file: str) -> None:
    # The jobs of an instance file may run at rates that were derived when the file was made.
    for name, rows in (instance.throughputs.to_json() if instance.throughputs else {}).items():
        for row in rows:
            if row.get("measured") is False:
                where = {"file": file, "field": "throughputs", "value": f"{name} on {row['gpus']} {row['gpu']}"}
                raise InputError("a rate that was not measured", **where, legal="measured rates only (strict)")


def _load_trace(
    dialect: Dialect, place: str, cluster: Cluster | None, request: LoadRequest, table: Throughputs | None
) -> Loaded:
    path, fragment = place, None
    if dialect.fragment and "#" in place:
        path, _, fragment = place.rpartition("#")
    if not path:
        raise InputError("which file?", field="source", value=f"{dialect.name}:", legal=f"{dialect.name}:PATH")
    no_cluster = InputError(f"a {dialect.name} trace needs a cluster", file=path, field="cluster", legal=CLUSTER_LEGAL)
    if cluster is None and not (dialect.brings_cluster or dialect.guesses_cluster) and Path(path).is_file():
        raise no_cluster
    skip_bad = request.skip_bad
    asked = {name: getattr(request, name) for name in ("columns", "skip_bad", "limit", *OPTIONS)}
    read = dialect.read(path, cluster=cluster, fragment=fragment, **asked)
    read.require_durations()
    if read.cluster is None:  # it may be guessed, but no job says when it ran
        raise no_cluster
    strict, say = request.strict_throughputs, request.say
    # jobs that state a batch size run at scaling profiles, unless a table of throughputs was requested
    if request.profiles is not None or table is None:
        read = with_scalings(read, _profiles(request.profiles), path, say=say)
    read = with_speeds(read, table, path, strict=strict, say=say, skip_bad=skip_bad)
    instance = read.instance()
    if strict:
        _require_measured(instance, path)
    return Loaded(instance, read.skipped_rows)


def _profiles(asked: str | os.PathLike[str] | Mapping[str, Scaling] | None) -> Mapping[str, Scaling] | None:
    if isinstance(asked, Mapping | None):
        return asked
    return read_profiles(asked) if Path(asked).suffix.lower() == ".json" else read_scalings(asked)


def _rescaled(instance: Instance, profiles: Mapping[str, Scaling]) -> Instance:
    # The given profiles are measurements, which may have no data for the other fields of the instance's profiles.
    own: Mapping[str, Scaling] = instance.scalings
    if not own.keys() & profiles.keys():
        legal = f"profiles of its names: {', '.join(sorted(own)[:10])}" if own else "jobs that run at scaling profiles"
        raise InputError("the profiles know no job of this instance", field="profiles", legal=legal)
    rest = ("most_local", "memory", "memory_per_sample", "iterations")
    found = {}
    for name in own.keys() & profiles.keys():
        kept: dict[str, Any] = {each: getattr(profiles[name], each) or getattr(own[name], each) for each in rest}
        found[name] = replace(profiles[name], **kept)
    return instance.replace(scalings={**own, **found})


def _instance_of(text: str) -> Instance:
    if not text.strip():
        legal = "FILE.json, FILE.parquet, DIALECT:PATH, a name"
        raise InputError("which source?", field="source", value=text, legal=legal)
    path = Path(text)
    if path.suffix.lower() in INSTANCE_SUFFIXES and (":" not in text or path.is_file()):
        return _instance_file(path)
    names = {each.name: each for each in entries()}
    known = names.get(text, names.get(text.lower()))
    if known is None:
        raise _not_a_source(text, list(names))
    # The instance is stored as a file, or made again; then it must have the digest of the one that was proved.
    if known.file:
        with importlib.resources.as_file(instances_folder().joinpath(known.file)) as file:
            return Instance.load(file)
    instance = made(known)
    if instance.digest != known.digest:
        why = f"the recipe {known.recipe} makes another instance here than the one of the library"
        raise OptschedError(f"{text}: {why}")
    if not (known.solved and known.schedule_class in CLASSES):
        return instance
    about = {"objective": known.objective, "class": known.schedule_class, "value": known.value}
    return instance.replace(optimum=about | {"proved_by": list(known.proved_by)})


def _instance_file(path: Path) -> Instance:
    try:
        return Instance.load(path)
    except OptschedError:
        legal = source_to_type(path) if path.is_file() else ""
        if legal:  # a trace in JSON
            raise InputError("a trace is named with its dialect", file=path, legal=legal) from None
        raise


def check_there(source: str) -> None:
    """Check that a source is a file or folder that exists, or a shipped instance, without reading it.

    Parameters
    ----------
    source
        The source.

    Raises
    ------
    InputError
        If the source does not exist.
    """
    prefix, colon, place = source.partition(":")
    if colon and DIALECTS.canonical(prefix) in DIALECTS:
        there = any(Path(path).exists() for path in (place, place.rpartition("#")[0]) if path)
        check_legal(there, "source", source, "a file that exists")
    elif not Path(source).exists() and all(each.name != source.lower() for each in entries()):
        _instance_of(source)  # raises an error with the legal values


def made(known: LibraryEntry) -> Instance:
    """Return an instance of the library made from its recipe, seed and parameters, without its known optimum.

    Parameters
    ----------
    known
        Entry of the instance.
    """
    instance = generate(known.recipe, known.seed, **parameters_of(known.parameters))
    return instance.replace(name=known.name, objective=objective_of(instance, known.objective or None).name)


def _not_a_source(text: str, names: list[str]) -> InputError:
    path = Path(text)
    prefix, colon, _ = text.partition(":")
    if path.is_file():
        legal = source_to_type(path)
        if legal:
            return InputError("a trace is named with its dialect", file=text, legal=legal)
        legal = f"{' or '.join(INSTANCE_SUFFIXES)}, or DIALECT:{text} with DIALECT one of {', '.join(DIALECTS.names())}"
        return InputError("not an instance file; a trace is named with its dialect", file=text, legal=legal)
    if path.is_dir():
        return InputError("this is a folder", file=text, legal="a file")
    if colon and prefix and os.sep not in prefix:
        legal = near_matches(prefix, DIALECTS.names(), kind="dialect")
        return InputError(f"there is no dialect named {prefix!r}", field="source", value=text, legal=legal)
    if path.suffix or os.sep in text:
        return InputError("no such file", file=text, legal="an instance file, DIALECT:PATH, or a shipped instance")
    legal = f"FILE.json, FILE.parquet, DIALECT:PATH; {near_matches(text, names, kind='shipped instance')}"
    return InputError("neither a file nor the name of a shipped instance", field="source", value=text, legal=legal)
