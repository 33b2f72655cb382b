"""Bandwidths between the GPUs of a cluster for one job: inside a node, and from node to node, in bytes a second.

A GPU's share of its node's network interface is constant, NIC bandwidth / GPUs of the node, so that the speed of a job
never depends on other jobs: the model of the theorems on A-SRPT. (`optsched.speeds.interface_sharing` adds contention,
if an instance states it.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from optsched.errors import InputError
from optsched.problem.arrays import Floats
from optsched.problem.cluster import Cluster


@dataclass(frozen=True, eq=False)
class Network:
    """Bandwidths of every node, in bytes a second.

    ``gpus`` i64[N]; ``intra`` f64[N] between the GPUs of a node (B_intra); ``cross`` f64[N] a GPU's part of the NIC.
    """

    gpus: npt.NDArray[np.int64]
    intra: Floats
    cross: Floats

    @classmethod
    def of(cls, cluster: Cluster) -> Network:
        """Return the network of a cluster.

        Parameters
        ----------
        cluster
            The cluster.

        Raises
        ------
        InputError
            A bandwidth is missing that traffic may need (nodes of several GPUs: inside; several nodes: the NIC), or a
            GPU's share of the NIC is faster than the links inside the node, against the model.
        """
        intra, cross = [], []
        for group in cluster.nodes:
            share = None if group.nic_bandwidth is None else group.nic_bandwidth / group.gpus
            inside = group.intra_bandwidth
            if share is None and cluster.node_count > 1:
                legal = "bytes/s of a node's network interface, > 0"
                why = "missing: jobs with profiles send data between nodes"
                raise InputError(why, field="nodes.nic_bandwidth", legal=legal)
            if inside is None and group.gpus > 1:
                legal = "bytes/s between the GPUs of a node, > 0"
                why = "missing: jobs with profiles send data inside a node"
                raise InputError(why, field="nodes.intra_bandwidth", legal=legal)
            inside = share if inside is None else inside  # a one-GPU node sends nothing inside
            share = inside if share is None else share  # nor a single node to others
            if inside is not None and share is not None and inside < share:
                legal = f"at least nic_bandwidth / gpus = {share:g}"
                why = "slower than a GPU's share of the network interface"
                raise InputError(why, field="nodes.intra_bandwidth", value=inside, legal=legal)
            intra += [inside or np.inf] * group.count
            cross += [share or np.inf] * group.count
        return cls(cluster.node_gpus, np.array(intra), np.array(cross))

    @cached_property
    def compute_time(self) -> Network:
        """The same network with infinitely fast interfaces."""
        return replace(self, cross=np.full(self.cross.size, np.inf))

    def bandwidth(self, m: int, n: int) -> float:
        """Return the bytes/s between two GPUs.

        Parameters
        ----------
        m, n
            Nodes of the two GPUs.
        """
        return float(self.intra[m]) if m == n else float(min(self.cross[m], self.cross[n]))

    @property
    def fastest(self) -> float:
        """Best bandwidth between any two GPUs."""
        shared = self.intra[self.gpus > 1]
        return max(float(shared.max()), self.fastest_cross) if shared.size else self.fastest_cross

    @property
    def fastest_cross(self) -> float:
        """Best bandwidth between GPUs of different nodes."""
        return float(np.sort(self.cross)[-2]) if self.cross.size > 1 else float(self.intra[0])

    @property
    def slowest(self) -> float:
        """Worst bandwidth between any two GPUs."""
        return float(self.cross.min()) if self.cross.size > 1 else float(self.intra[0])
