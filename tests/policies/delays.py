"""How long a policy lets a job wait that is alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optsched.policies.simulate import specify


def delay_alone(spec: str, seconds: float, gpus: int, cluster_gpus: int) -> float:
    """Of a job of so many seconds, until a machine alongside has done its part, or the clock shows its duration."""
    policy: Any = specify(spec).policy
    on_one_machine = seconds * gpus / cluster_gpus
    if policy.name == "a-srpt":
        return 0.0 if policy.overtake == math.inf else float(policy.beta * on_one_machine)
    if policy.name == "random-alpha-points":  # the first draw, by inversion
        share = 1.0 - float(np.random.Generator(np.random.PCG64(policy.seed)).random())
        return math.log1p(share * math.expm1(policy.largest)) * on_one_machine
    if policy.name == "alpha-points":
        return float(policy.alpha * on_one_machine)
    return seconds if policy.name == "delayed-spt" else 0.0
