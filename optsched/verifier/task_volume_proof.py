"""Theorem task-volume, of the makespan of jobs with tasks: work between a release and a tail on one resource."""

from __future__ import annotations

from fractions import Fraction

from .certified_case import Proof
from .document_fields import Data, read_field, read_ratio, written
from .exact_numbers import integers
from .refusal import need
from .task_sharing_case import TaskSharingCase


def task_volume(case: TaskSharingCase, data: Data) -> Proof:
    """Prove the work of the jobs with no earlier release and no shorter tail than is stated, between the least of both.

    Parameters
    ----------
    case
        What the certificate is about.
    data
        Data of the certificate: ``resource``, ``release``, ``tail``.

    Returns
    -------
    tuple
        The value, and the data that the certificate must state.
    """
    name = read_field(str, data, "resource")
    release, tail = (read_ratio(data.get(part), f"data.{part}") for part in ("release", "tail"))
    part = case.needs.of.get(name)
    columns = () if part is None else zip(part.width, part.seconds, part.release, part.tail, strict=True)
    used = [row for row in columns if row[0] and row[1] and row[2] >= release and row[3] >= tail]
    need(used, "no job is left")
    first, last = Fraction(min(row[2] for row in used)), Fraction(min(row[3] for row in used))
    seconds, parts = integers([row[1] for row in used])
    work = sum([row[0] * x for row, x in zip(used, seconds, strict=True)])
    value = first + Fraction(work, parts * case.needs.of[name].capacity) + last
    return value, {"resource": name, "release": written(first), "tail": written(last)}
