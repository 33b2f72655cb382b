"""What ``run -o DIR`` writes: result.json, a schedule a policy, certificate.json."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

from optsched.errors import InputError
from optsched.problem.files import write_atomic
from optsched.problem.task_log import TaskSchedule
from optsched.report.comparison import Report

PARQUET_ABOVE = 10_000  # jobs
# what a schedule file says of its class; task-sharing and gpu-sharing are told apart by the instance
FLAGS = {"forking": "forking", "gpu-sharing": "sharing", "task-sharing": "sharing", "elastic": "elastic"}


_OURS = re.compile(r"(result\.json|certificate[^/]*\.json|(schedule|tasks)-\d\d+-[^/]*\.(json|parquet))")


def prepare_folder(folder: str | os.PathLike[str], policies: Sequence[str] = (), *, force: bool = False) -> None:
    """Make the folder (its parent must exist); `InputError` when it cannot be, before anything long is run.

    A folder may hold a run of which ``policies`` replace every schedule. One that holds other schedules is refused: files
    of two runs would stand beside each other. With ``force`` it is taken, and `save_report` removes those files.
    """
    place = make_folder(folder)
    replaced = {_stem(position, policy) for position, policy in enumerate(policies, 1)}
    schedules = [
        path.stem.partition("-") for path in _files_of_a_run(place) if path.stem.startswith(("schedule-", "tasks-"))
    ]
    if not force and not {stem for _, _, stem in schedules} <= replaced:
        raise InputError(
            f"the folder holds another run ({_told(place)})",
            file=place,
            legal="another folder, or --force, which removes that run",
        )


def make_folder(folder: str | os.PathLike[str]) -> Path:
    """The folder, made where it is not there (its parent must be); `InputError` when it cannot be, or not written into."""
    place = Path(folder)
    try:
        place.mkdir(exist_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(
            f"cannot make the folder: {reason}", file=place, legal="a folder that can be written"
        ) from None
    if not os.access(place, os.W_OK):
        raise InputError("cannot write into the folder", file=place, legal="a folder that can be written")
    return place


def _files_of_a_run(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if _OURS.fullmatch(path.name))


def _stem(position: int, policy: str) -> str:
    """What the files of a policy are called, behind ``schedule-`` or ``tasks-``."""
    return f"{position:02d}-{re.sub(r'[^A-Za-z0-9._=-]+', '-', policy).strip('-')}"


def _told(folder: Path) -> str:
    # Which run it is, where it says so.
    try:
        document = json.loads((folder / "result.json").read_bytes())
        policies = ", ".join(str(run["policy"]) for run in document["runs"])
        return f"{policies} on {document['instance']['name'] or 'an instance'}"
    except (OSError, ValueError, TypeError, KeyError):
        return ", ".join(path.name for path in _files_of_a_run(folder)[:3])


def save_report(report: Report, folder: str | os.PathLike[str]) -> list[Path]:
    """Write ``result.json``, ``schedule-NN-<name>.json`` (``.parquet`` above 10,000 jobs) and ``certificate.json``.

    NN is the position of the policy. Where jobs have tasks, ``tasks-NN-<name>.parquet`` holds all of them. Bounds for
    other classes of schedules than that of ``certificate.json`` are in ``certificate-<class>.json``.
    ``result.json`` comes last: where it stands, everything else does. Files of another run are removed first.
    """
    place = Path(folder)
    others = _files_of_a_run(place)
    for path in sorted(others, key=lambda path: path.name != "result.json"):
        path.unlink()
    written = []
    suffix = "parquet" if report.instance.n > PARQUET_ABOVE else "json"
    for position, line in enumerate(report.lines, 1):
        stem = _stem(position, line.run.policy)
        path = place / f"schedule-{stem}.{suffix}"
        stated = {"objective": report.objective, "value": line.value, "preemptive": line.run.preemptive}
        kind = {FLAGS[each]: True for each in [line.run.schedule_class] if each in FLAGS}
        line.run.schedule.save(path, **kind, **({} if line.run.unfinished else stated))
        written.append(path)
        if isinstance(line.run.schedule, TaskSchedule) and line.run.schedule.tasks is not None:
            written.append(place / f"tasks-{stem}.parquet")
            line.run.schedule.save_tasks(written[-1])
    if report.certificate is not None:
        written.append(place / "certificate.json")
        report.certificate.save(written[-1])
    for certificate in report.other_certificates:
        written.append(place / f"certificate-{certificate.schedule_class}.json")
        certificate.save(written[-1])
    written.append(place / "result.json")
    write_atomic(written[-1], json.dumps(report.to_json(), allow_nan=False, indent=1) + "\n")
    return written
