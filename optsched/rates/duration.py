"""The simplest rate model: a job with a ``duration`` runs at rate 1 on any allowed GPUs and placement."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from optsched.errors import InputError
from optsched.instance import Instance


def seconds_alone(instance: Instance) -> npt.NDArray[np.float64]:
    """Seconds every job needs alone at full speed, f64[n].

    Raises
    ------
    InputError
        For the first job that has only iterations of a profile: no rate model gives its speed yet.
    """
    unknown = np.flatnonzero(np.isnan(instance.duration))
    if unknown.size:
        job = instance.job(int(unknown[0]))
        raise InputError(
            f"job {job.id!r} ({unknown.size} of {instance.n} jobs) has iterations of the profile {job.profile!r}, "
            "no duration, and no rate model gives the profile's speed",
            field="duration",
            legal="instances whose jobs have durations",
        )
    return instance.duration
