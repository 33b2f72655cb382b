"""What A-SRPT knows of a job from its arrival on."""

from __future__ import annotations

import math
from dataclasses import dataclass

Kind = tuple[int, float, float]  # jobs of one kind are offered the same GPUs at the same pace


@dataclass(slots=True)
class VirtualJob:
    """A job and its copy on the virtual machine."""

    gpus: int
    predicted: float  # units of work
    idle: float  # seconds a unit of work on the GPUs that it would get in an idle cluster
    kind: Kind
    length: float  # p_j, virtual seconds
    eligible: float = math.nan  # B_j
    patience: float = 0.0  # idle seconds for which it may still wait at the head of the queue
    limit: float = math.inf  # of the charges of jobs that overtake it
    started: bool = False
