"""What HadarE believes about the speed of a job on a node where it may not have run yet, and how it corrects itself."""

from __future__ import annotations

import numpy as np

from optsched.problem.arrays import Floats
from optsched.speeds.device_performance import performance_ratio
from optsched.speeds.group_rates import GroupRates

KINDS = ("true", "device", "noisy")
WEIGHT = 0.5  # of a measurement against what was believed


class ThroughputEstimates:
    """X f64[n, M]: units of work a second of a copy of job j on one node of group m; 0 where it may not run.

    ``kind`` says where it begins: ``true``, the real rates (everything was profiled beforehand); ``device``, the rate on the
    first node group that can host the job, times the ratio of the devices' peak performance; ``noisy``, the real rates
    times exp(``error`` z), z standard normal from ``seed``. After a round X <- 0.5 measured + 0.5 X.

    Raises `InputError` for ``device`` on GPU types of unknown performance.
    """

    def __init__(self, groups: GroupRates, kind: str = "true", error: float = 0.0, seed: int = 0) -> None:
        self._learns = kind != "true"
        if kind == "device":
            self.rates = _by_device(groups)
        else:
            self.rates = groups.rates
            if kind == "noisy":
                self.rates *= np.exp(error * np.random.default_rng(seed).standard_normal(self.rates.shape))

    def learn(self, job: int, group: int, measured: float) -> None:
        """A copy of ``job`` did ``measured`` units of work a second on a node of ``group``."""
        if self._learns:
            self.rates[job, group] = WEIGHT * measured + (1 - WEIGHT) * self.rates[job, group]


def _by_device(groups: GroupRates) -> Floats:
    gpus, hosts = groups.gpu, groups.hosts
    several = len({gpu.casefold() for gpu in gpus}) > 1
    found = np.zeros(hosts.shape)
    for j in np.flatnonzero(hosts.any(axis=1)).tolist():
        group, rate = groups.reference(j)
        found[j] = [rate * (performance_ratio(gpu, gpus[group]) if several else 1.0) for gpu in gpus]
    return np.where(hosts, found, 0.0)
