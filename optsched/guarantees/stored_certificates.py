"""Proofs beside an instance file: ``NAME.certificate.json`` and ``NAME.schedule.json`` (or ``.parquet``) of ``NAME.json``.

A certificate is a lower bound on the optimum, a schedule an upper one; where the two meet, that is the optimum. Both are
read only after the referee has proved them anew from the instance, so that nobody has to be believed.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from optsched.bounds import Certificate
from optsched.check.referee import check_file, schedule_value
from optsched.errors import InputError
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule

CERTIFICATE, SCHEDULES = ".certificate.json", (".schedule.json", ".schedule.parquet")


@dataclass(frozen=True)
class StoredCertificates:
    """What holds: certificates, and schedules with the class that they belong to. ``refused``: why others do not."""

    certificates: tuple[Certificate, ...] = ()
    schedules: tuple[tuple[str, Schedule], ...] = ()
    refused: tuple[str, ...] = ()

    def values(self, objective: str, classes: tuple[str, ...]) -> list[Fraction]:
        """Values that schedules of these classes reach."""
        return [
            schedule_value(schedule.instance, schedule, objective)
            for schedule_class, schedule in self.schedules
            if schedule_class in classes
        ]


def stored_certificates_of(instance: Instance) -> StoredCertificates:
    """The proofs beside the file that ``instance`` was read from; none where it was not read from one."""
    if instance.file is None:
        return StoredCertificates()
    certificates, schedules, refused = list[Certificate](), list[tuple[str, Schedule]](), list[str]()
    for path in _beside(Path(instance.file)):
        try:
            verdict = check_file(path, instance, forking=False)
            if not verdict.holds:
                refused.append(f"{path}: {verdict.violations[0].rule}: {verdict.violations[0].message}")
            elif verdict.kind == "certificate":
                certificates.append(Certificate.load(path))
            else:
                schedules.append((_class_of(path, instance), Schedule.load(path, instance)))
        except InputError as error:
            refused.append(str(error))
    return StoredCertificates(tuple(certificates), tuple(schedules), tuple(refused))


def _beside(file: Path) -> list[Path]:
    names = [file.stem + suffix for suffix in (CERTIFICATE, *SCHEDULES)]
    return [path for path in (file.with_name(name) for name in names) if path.is_file()]


def _class_of(path: Path, instance: Instance) -> str:
    # Without preemption if it passes as such; schedules that share GPUs or resize gangs are of their own class.
    if instance.at_task_level:
        return "task-sharing"
    if instance.interference is not None:
        return "gpu-sharing"
    if instance.elastic:
        return "elastic"
    return "gang-nonpreemptive" if check_file(path, instance, preemptive=False, forking=False).holds else "gang"
