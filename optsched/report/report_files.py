"""What ``run -o DIR`` writes: result.json, a schedule a policy, certificate.json; and what ``ratio -o DIR`` does."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optsched.classes import CLASSES
from optsched.errors import InputError
from optsched.problem.files import file_name, sources, write_atomic
from optsched.report.comparison import Report

if TYPE_CHECKING:
    from optsched.guarantees.evaluate import RatioTable
    from optsched.guarantees.robustness import Robustness
    from optsched.guarantees.suites import Suite

PARQUET_ABOVE = 10_000  # jobs
# what a schedule file says of its class; the instance says whether it is task-sharing or gpu-sharing
_OURS = re.compile(r"(result\.json|certificate[^/]*\.json|(schedule|tasks)-\d\d+-[^/]*\.(json|parquet))")
_RATIOS = re.compile(r"(ratios\.json|robustness\.json|worst-[^/]*\.json)")
# a folder of such a name is a slip: a picture, a page or a table was meant
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
WHOLE = ".optsched-run"  # a folder in the folder: a run that is written, and on its way
REPLACED = "replaced.json"  # in it: the result whose files make place


def prepare_folder(
    folder: str | os.PathLike[str], policies: Sequence[str] = (), instance: str = "", *, force: bool = False
) -> None:
    """Make the folder (its parent must exist); `InputError` when it cannot be, before anything long is run.

    A folder may hold a run of which ``policies`` replace every schedule, on the instance of that digest ("": any). One that
    holds other schedules, or files of such names that no run lists, is refused. With ``force`` it is taken, and what the old
    run lists is removed by `save_report`. Never taken is a folder in which the run would replace what it has read.
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
            f"the folder holds another run ({_told(place) or ', '.join(strangers[:3])})",
            file=place,
            legal="another folder, or --force, which replaces that run",
        )


def make_folder(folder: str | os.PathLike[str], written: re.Pattern[str] | None = None) -> Path:
    """The folder, made where it is not there (its parent must be); `InputError` when it cannot be, or not written into.

    A new one must not have the name of a file (`FILE_SUFFIXES`). In one that is there no file with the name of what will be
    ``written`` may be a source of the running command (`optsched.problem.files.sources`), whatever its case: on some
    machines that is the same file.
    """
    place, legal = Path(folder), "a folder that can be written"
    if place.suffix.lower() in FILE_SUFFIXES and not place.is_dir():
        message = f"-o names a folder here, and this is the name of a {place.suffix} file"
        raise InputError(
            message, file=place, legal="a folder; optsched plot draws pictures and pages of the files in it"
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
    """`make_folder` of what `save_ratios` writes."""
    return make_folder(folder, _RATIOS)


def _document(result: Path) -> dict[str, Any]:
    """What a result says; nothing where it is no result."""
    try:
        document = json.loads(result.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _listed(result: Path) -> list[str]:
    """The files that a result names as those of its run; none where it is no result."""
    names = _document(result).get("files")
    every = names if isinstance(names, list) else []
    return [name for name in every if isinstance(name, str) and _OURS.fullmatch(name)]


def _stem(position: int, policy: str) -> str:
    """What the files of a policy are called, behind ``schedule-`` or ``tasks-``."""
    return f"{position:02d}-{file_name(policy)}"


def _told(folder: Path) -> str:
    # Which run it is, where it says so.
    try:
        document = _document(folder / "result.json")
        policies = ", ".join(str(run["policy"]) for run in document["runs"])
        return f"{policies} on {document['instance']['name'] or 'an instance'}"
    except (TypeError, KeyError):
        return ""


def save_report(report: Report, folder: str | os.PathLike[str]) -> list[Path]:
    """Write ``result.json``, ``schedule-NN-<name>.json`` (``.parquet`` above 10,000 jobs) and ``certificate.json``.

    NN is the position of the policy. Where jobs have tasks, ``tasks-NN-<name>.parquet`` holds all of them. Bounds for
    other classes of schedules than that of ``certificate.json`` are in ``certificate-<class>.json``. ``result.json`` also
    lists the ``files``, and has the instance's ``digest``; it comes last: where it exists, everything that it lists does.

    Everything is written beside, then takes the place of the run that the old ``result.json`` lists; other files stay.
    Whenever the process is killed, the old run or the new one is whole, the latter perhaps in the folder ``.optsched-run``,
    from which the next run into this folder takes it.
    """
    place = Path(folder)
    _move_in(place)
    try:
        with tempfile.TemporaryDirectory(prefix=".optsched-", dir=place) as beside:
            new = Path(beside) / WHOLE
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
    """Schedules, tasks and certificates; returns their names."""
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
    """A run that stands whole in `WHOLE` takes the place of the old one; again from wherever it was interrupted."""
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
    """Write the table and, for every policy with a ratio, its worst instance; a line on each of these for people.

    With ``curves`` also robustness.json. Files of the same names are replaced.
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
        lines.append(f"{row.policy}: worst on {row.worst_instance}; again: {again}")
    return lines
