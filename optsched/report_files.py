"""What ``run -o DIR`` writes: result.json, a schedule a policy, certificate.json."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from optsched.errors import InputError
from optsched.files import write_atomic
from optsched.report import Report
from optsched.task_log import TaskSchedule

PARQUET_ABOVE = 10_000  # jobs


def prepare_folder(folder: str | os.PathLike[str]) -> None:
    """Make the folder (its parent must exist); `InputError` when it cannot be, before anything long is run."""
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


def save_report(report: Report, folder: str | os.PathLike[str]) -> list[Path]:
    """Write ``result.json``, ``schedule-NN-<name>.json`` (``.parquet`` above 10,000 jobs) and ``certificate.json``.

    NN is the position of the policy. Where jobs have tasks, ``tasks-NN-<name>.parquet`` holds all of them.
    ``result.json`` comes last: where it stands, everything else does.
    """
    place = Path(folder)
    written = []
    suffix = "parquet" if report.instance.n > PARQUET_ABOVE else "json"
    for position, line in enumerate(report.lines, 1):
        name = re.sub(r"[^A-Za-z0-9._=-]+", "-", line.run.policy).strip("-")
        path = place / f"schedule-{position:02d}-{name}.{suffix}"
        stated = {"objective": report.objective, "value": line.value, "preemptive": line.run.preemptive}
        kind = {key: True for key in ("forking", "sharing", "elastic") if line.run.schedule_class == key}
        line.run.schedule.save(path, **kind, **({} if line.run.unfinished else stated))
        written.append(path)
        if isinstance(line.run.schedule, TaskSchedule) and line.run.schedule.tasks is not None:
            written.append(place / f"tasks-{position:02d}-{name}.parquet")
            line.run.schedule.save_tasks(written[-1])
    if report.certificate is not None:
        written.append(place / "certificate.json")
        report.certificate.save(written[-1])
    written.append(place / "result.json")
    write_atomic(written[-1], json.dumps(report.to_json(), allow_nan=False, indent=1) + "\n")
    return written
