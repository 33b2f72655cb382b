"""The files of ``run -o DIR`` (result.json, one schedule a policy, certificate.json) and of ``ratio -o DIR``."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched.classes import CLASSES
from optsched.errors import InputError
from optsched.evaluation.report import Report
from optsched.problem.atomic_files import atomic_folder, file_name, sources, write_atomic

if TYPE_CHECKING:
    from optsched.evaluation.robustness import Robustness
    from optsched.evaluation.suite_ratios import RatioTable
    from optsched.evaluation.suites import Suite

PARQUET_ABOVE = 10_000  # jobs
# the flag by which a schedule file states its class; the instance decides between task-sharing and gpu-sharing
_OURS = re.compile(r"(result\.json|certificate[^/]*\.json|(schedule|tasks)-\d\d+-[^/]*\.(json|parquet))")
_RATIOS = re.compile(r"(ratios\.json|robustness\.json|worst-[^/]*\.json)")
# a folder with such a suffix is a mistake: a picture, a page or a table was meant
FILE_SUFFIXES = {
    ".html",
    ".htm",
    ".png",
    ".svg",
    ".pdf",
    ".gif",
    ".jpg",
    ".jpeg",
    ".tex",
    ".md",
    ".txt",
    ".log",
    ".csv",
}
FILE_SUFFIXES |= {".tsv", ".xls", ".xlsx", ".json", ".jsonl", ".parquet", ".sqlite", ".toml", ".yaml", ".yml", ".swf"}
FILE_SUFFIXES |= {".trace", ".gz", ".zip"}
WHOLE = ".optsched-run"  # a folder in the folder: a complete run that is being moved in
REPLACED = "replaced.json"  # in it: the result whose files are removed


def prepare_folder(
    folder: str | os.PathLike[str], policies: Sequence[str] = (), instance: str = "", *, force: bool = False
) -> None:
    """Make the folder of a run before the run begins.

    The folder may hold an earlier run of the same policies on the same instance, which the new run replaces. A folder with
    other schedules, or with files of such names that no run lists, is refused unless ``force`` is set; `save_report` then
    removes the files that the old run lists. A folder in which the run would replace a file that it has read is always
    refused.

    Parameters
    ----------
    folder
        The folder; its parent must exist.
    policies
        The policies of the run, as they are written.
    instance
        Digest of the instance; "" stands for any.
    force
        True to replace another run.

    Raises
    ------
    InputError
        The folder cannot be made or written, or is refused.
    """
    place = make_folder(folder, _OURS)
    _move_in(place)
    replaced = {_stem(position, policy) for position, policy in enumerate(policies, 1)}
    listed = _listed(place / "result.json")
    schedules = [Path(name).stem.partition("-")[2] for name in listed if name.startswith(("schedule-", "tasks-"))]
    strangers = sorted(path.name for path in place.iterdir() if _OURS.fullmatch(path.name) and path.name not in listed)
    other = bool(listed and instance) and _document(place / "result.json").get("digest") != instance
    if not force and (strangers or other or not set(schedules) <= replaced):
        raise InputError(
            f"the folder holds another run ({_title(place) or ', '.join(strangers[:3])})",
            file=place,
            legal="another folder, or --force to replace that run",
        )


def make_folder(folder: str | os.PathLike[str], written: re.Pattern[str] | None = None) -> Path:
    """Return the folder; make it if it does not exist.

    A new folder must not have the suffix of a file (`FILE_SUFFIXES`). In an existing folder no file whose name matches
    ``written`` may be a source of the running command (`optsched.problem.atomic_files.sources`). Case is ignored,
    because on some machines names that differ in case are the same file.

    Parameters
    ----------
    folder
        The folder; its parent must exist.
    written
        Names of the files that will be written.

    Raises
    ------
    InputError
        The folder cannot be made or written, or a source of the command would be replaced.
    """
    place, legal = Path(folder), "a folder that can be written"
    if place.suffix.lower() in FILE_SUFFIXES and not place.is_dir():
        message = f"-o takes a folder here, and this is the name of a {place.suffix} file"
        raise InputError(
            message, file=place, legal="a folder; optsched plot draws pictures, pages and traces from the files in it"
        )
    if written is not None and place.is_dir():
        for source in sorted(sources()):
            if re.fullmatch(written.pattern, source.name, re.IGNORECASE) and source.parent.samefile(place):
                message = f"would replace its own source, {source.name} in this folder"
                raise InputError(message, file=place, legal="another folder")
    try:
        place.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder: {error.strerror or error}", file=place, legal=legal) from None
    if not os.access(place, os.W_OK):
        raise InputError("cannot write into the folder", file=place, legal=legal)
    return place


def make_ratios_folder(folder: str | os.PathLike[str]) -> Path:
    """Return the folder for `save_ratios`; make it if it does not exist (see `make_folder`).

    Parameters
    ----------
    folder
        The folder; its parent must exist.
    """
    return make_folder(folder, _RATIOS)


def _document(result: Path) -> dict[str, Any]:
    """Return the document of a result; empty if the file is not a result."""
    try:
        document = json.loads(result.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _listed(result: Path) -> list[str]:
    """Return the files that a result lists; none if the file is not a result."""
    names = _document(result).get("files")
    listed = names if isinstance(names, list) else []
    return [name for name in listed if isinstance(name, str) and _OURS.fullmatch(name)]


def _stem(position: int, policy: str) -> str:
    """Return the name of a policy's files after ``schedule-`` or ``tasks-``."""
    return f"{position:02d}-{file_name(policy)}"


def _title(folder: Path) -> str:
    # Policies and instance of the run, if result.json states them.
    try:
        document = _document(folder / "result.json")
        policies = ", ".join(str(run["policy"]) for run in document["runs"])
        return f"{policies} on {document['instance']['name'] or 'an instance'}"
    except (TypeError, KeyError):
        return ""


def save_report(report: Report, folder: str | os.PathLike[str]) -> list[Path]:
    """Write ``result.json``, ``schedule-NN-<name>.json`` (``.parquet`` above 10,000 jobs) and ``certificate.json``.

    NN is the position of the policy. If jobs have tasks, ``tasks-NN-<name>.parquet`` holds all of them. Bounds for other
    classes of schedules than that of ``certificate.json`` are in ``certificate-<class>.json``. ``result.json`` also lists
    the ``files`` and the ``digest`` of the instance. It is written last: if it exists, every file that it lists exists.

    The new run is written to a temporary folder and then replaces the run that the old ``result.json`` lists; other files
    stay. If the process is killed at any time, the old run or the new one is complete. The new one may then be in the folder
    ``.optsched-run``, from which the next run into this folder moves it.

    Parameters
    ----------
    report
        The report of the run.
    folder
        The folder, prepared by `prepare_folder`.

    Returns
    -------
    list of Path
        The files that were written.

    Raises
    ------
    InputError
        A file cannot be written.
    """
    place = Path(folder)
    _move_in(place)
    try:
        with atomic_folder(place) as beside:
            new = beside / WHOLE
            new.mkdir()
            names = [*_write_run(report, new), "result.json"]
            document = {**report.to_json(), "digest": report.instance.digest, "files": names}
            write_atomic(new / "result.json", json.dumps(document, allow_nan=False, indent=1) + "\n")
            new.rename(place / WHOLE)
    except OSError as error:
        raise InputError(f"cannot write: {error.strerror or error}", file=place) from None
    _move_in(place)
    return [place / name for name in names]


def _write_run(report: Report, place: Path) -> list[str]:
    """Write schedules, tasks and certificates; return their names."""
    written = []
    suffix = "parquet" if report.instance.n > PARQUET_ABOVE else "json"
    for position, line in enumerate(report.lines, 1):
        stem = _stem(position, line.run.policy)
        path = place / f"schedule-{stem}.{suffix}"
        stated = {"objective": report.objective, "value": line.value, "preemptive": line.run.preemptive}
        flag = CLASSES.get(line.run.schedule_class).flag
        kind = {flag: True} if flag else {}
        line.run.schedule.save(path, **kind, **({} if line.run.unfinished else stated))
        written.append(path)
        written += line.run.schedule.save_details(place, stem)
    if report.certificate is not None:
        written.append(place / "certificate.json")
        report.certificate.save(written[-1])
    for certificate in report.other_certificates:
        written.append(place / f"certificate-{certificate.schedule_class}.json")
        certificate.save(written[-1])
    return [path.name for path in written]


def _move_in(place: Path) -> None:
    """Replace the old run by the complete run in `WHOLE`; resume if that was interrupted."""
    new, result = place / WHOLE, place / "result.json"
    if not new.is_dir() or new.is_symlink():
        return
    try:
        if (new / "result.json").exists():
            if result.exists():
                result.replace(new / REPLACED)
            names = _listed(new / "result.json")
            for name in names[:-1]:
                if (new / name).exists():
                    (new / name).replace(place / name)
            for name in set(_listed(new / REPLACED)) - {*names, "result.json"}:
                (place / name).unlink(missing_ok=True)
            (new / REPLACED).unlink(missing_ok=True)
            (new / "result.json").replace(result)
        new.rmdir()
    except OSError as error:
        raise InputError(f"cannot move the run out of it: {error.strerror or error}", file=new) from None


def save_ratios(table: RatioTable, suite: Suite, folder: Path, curves: Robustness | None = None) -> list[str]:
    """Write the table and, for every policy with a ratio, its worst instance. Files of the same names are replaced.

    Parameters
    ----------
    table
        The ratios.
    suite
        The suite on which they were measured.
    folder
        The folder, made by `make_ratios_folder`.
    curves
        If given, robustness.json is written, too.

    Returns
    -------
    list of str
        For every worst instance a line for people, with the command that repeats the measurement.
    """
    for name, document in (("ratios.json", table), ("robustness.json", curves)):
        if document is not None:
            write_atomic(folder / name, json.dumps(document.to_json(), indent=1) + "\n")
    instances = dict(suite.instances())
    lines = []
    for row in table.policies if curves is None else [curve.worst_row for curve in curves.curves]:
        if row.worst_instance is None:
            continue
        path = folder / f"worst-{file_name(row.policy)}.json"
        instances[row.worst_instance].save(path)
        again = f"optsched ratio {path} -p {row.policy}" + (f" --speed {table.speed}" if table.speed else "")
        lines.append(f"{row.policy}: worst on {row.worst_instance}; to repeat: {again}")
    return lines
