"""Unrelated machines: how long every one-GPU job takes on every GPU alone, in exact numbers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optsched.errors import check_legal
from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance
from optsched.speeds.type_speeds import type_speeds


@dataclass(frozen=True, eq=False)
class UnrelatedMachines:
    """``release``, ``weight`` f64[n]; ``work`` f64[n] units and ``rate`` f64[m, n] units a second: p_ij = work / rate.

    A rate of 0: the machine is not for that job.
    """

    release: Floats
    weight: Floats
    work: Floats
    rate: Floats

    @classmethod
    def of(cls, instance: Instance) -> UnrelatedMachines:
        """One machine for every GPU, in the order of nodes, for jobs of one GPU; counted from the first arrival."""
        instance, cluster = instance.relative, instance.cluster
        check_legal(bool((instance.gpus == 1).all()), "gpus", "gangs", "jobs of one GPU")
        node = np.repeat(np.arange(cluster.node_count), cluster.node_gpus)
        by_type = type_speeds(instance).together[:, cluster.node_type[node]]
        suits = instance.class_eligible[instance.job_class][:, node]
        return cls(instance.arrival, instance.weight, instance.work, np.where(suits, by_type, 0.0).T)

    def seconds(self, i: int, j: int) -> Fraction | None:
        """p_ij, exact; None where j may not run."""
        rate = Fraction(float(self.rate[i, j]))
        return Fraction(float(self.work[j])) / rate if rate else None
