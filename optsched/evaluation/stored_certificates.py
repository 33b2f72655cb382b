"""Proofs stored next to an instance file: ``NAME.certificate.json`` and ``NAME.schedule.json`` (or ``.parquet``).

A certificate is a lower bound on the optimum of ``NAME.json``, a schedule an upper bound. Where the two meet, that is the
optimum. Both are used only after the referee has verified them from the instance.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from optsched.bounds import Certificate
from optsched.check.referee import check_file
from optsched.classes import NONPREEMPTIVE, PREEMPTIVE, offered
from optsched.errors import InputError
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule

NO_COPIES = ("forking",)  # classes of which no schedule is stored
CERTIFICATE, SCHEDULES = ".certificate.json", (".schedule.json", ".schedule.parquet")


@dataclass(frozen=True)
class StoredCertificates:
    """Verified certificates and schedules from the files next to an instance file.

    Parameters
    ----------
    certificates
        Verified certificates.
    schedules
        (class of schedules, schedule) of every verified schedule.
    refused
        One line for every file that does not hold, with the reason.
    """

    certificates: tuple[Certificate, ...] = ()
    schedules: tuple[tuple[str, Schedule], ...] = ()
    refused: tuple[str, ...] = ()


def stored_certificates_of(instance: Instance) -> StoredCertificates:
    """Return the verified proofs next to the file from which an instance was read.

    Parameters
    ----------
    instance
        The instance; one that was not read from a file has no stored proofs.
    """
    if instance.file is None:
        return StoredCertificates()
    certificates, schedules, refused = list[Certificate](), list[tuple[str, Schedule]](), list[str]()
    file = Path(instance.file)
    for path in (file.with_name(file.stem + suffix) for suffix in (CERTIFICATE, *SCHEDULES)):
        if not path.is_file():
            continue
        try:
            verdict = check_file(path, instance, refused=NO_COPIES)
            if not verdict.holds:
                refused.append(f"{path}: {verdict.violations[0].rule}: {verdict.violations[0].message}")
            elif verdict.kind == "certificate":
                certificates.append(Certificate.load(path))
            else:
                schedules.append((_class_of(path, instance), Schedule.load(path, instance)))
        except InputError as error:
            refused.append(str(error))
    return StoredCertificates(tuple(certificates), tuple(schedules), tuple(refused))


def _class_of(path: Path, instance: Instance) -> str:
    # Without preemption if it passes as such; schedules that share GPUs or resize gangs are of their own class.
    larger = [made for made in offered(instance) if made.usual or made.widths]
    if larger:
        return larger[0].name
    return NONPREEMPTIVE if check_file(path, instance, preemptive=False, refused=NO_COPIES).holds else PREEMPTIVE
