"""Clusters: groups of alike nodes, each with GPUs of one type. A classical machine is a one-GPU node."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from optsched.errors import InputError, check_legal
from optsched.problem.arrays import frozen, is_number
from optsched.problem.documents import short_number

SPEC_LEGAL = "NODESxGPUS[:TYPE][+...], e.g. 8x8, 16x4:V100 or 8x1:V100+16x1:P100"
_SPEC_PART = re.compile(r"^\s*(\d+)\s*x\s*(\d+)\s*(?::\s*([A-Za-z0-9_.\- ]+?))?\s*$")
MAX_GPUS = 1_000_000  # and so nodes: some hundred bytes each; ten times the largest clusters that train

Places = tuple[tuple[int, int], ...]  # (node, GPUs there) of every node that a gang uses


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """``count`` alike nodes of ``gpus`` GPUs each.

    Units: ``gpu_memory`` in bytes per GPU (None: unlimited); ``nic_bandwidth`` of a node and ``intra_bandwidth``
    between its GPUs in bytes/s, ``storage_bandwidth`` at which a job there reads its checkpoint (None: not stated).
    """

    gpus: int
    count: int = 1
    gpu: str = "GPU"
    gpu_memory: float | None = None
    nic_bandwidth: float | None = None
    intra_bandwidth: float | None = None
    storage_bandwidth: float | None = None

    def __post_init__(self) -> None:
        for name in ("gpus", "count"):
            value = getattr(self, name)
            check_legal(type(value) is int and value >= 1, f"nodes.{name}", value, "an integer >= 1")
        for name in ("gpu_memory", "nic_bandwidth", "intra_bandwidth", "storage_bandwidth"):
            value = getattr(self, name)
            if value is not None and not (is_number(value) and math.isfinite(value) and value > 0):
                raise InputError("invalid", field=f"nodes.{name}", value=value, legal="a finite number > 0, or none")
        check_legal(isinstance(self.gpu, str) and self.gpu != "", "nodes.gpu", self.gpu, "the name of a GPU type")

    def suits(self, gpu_types: Iterable[str] | None, gpu_memory: float | None) -> bool:
        """Return True if a job with these allowed types and this need of memory may run on the group.

        Parameters
        ----------
        gpu_types
            GPU types that the job may use, whatever their case; None for all.
        gpu_memory
            Bytes that the job needs on each GPU; None for nothing stated.
        """
        if gpu_types is not None and self.gpu.casefold() not in {name.casefold() for name in gpu_types}:
            return False
        return gpu_memory is None or self.gpu_memory is None or gpu_memory <= self.gpu_memory

    def to_json(self) -> dict[str, Any]:
        """The group as it stands in an instance file; absent fields are left out."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: short_number(value) for name, value in values.items() if value is not None}


class NodeArrays:
    """Numbers that follow from the groups of N nodes; the arrays are read-only."""

    gpus: int  #: G, the GPUs of the whole cluster
    node_count: int  #: N, the nodes of the whole cluster
    #: the T different GPU types, in the order of their first nodes; names that differ in case only are one type
    gpu_types: tuple[str, ...]
    node_group: npt.NDArray[np.int64]  #: group index of every node, i64[N]
    node_gpus: npt.NDArray[np.int64]  #: GPUs of every node, i64[N]
    node_type: npt.NDArray[np.int64]  #: position in ``gpu_types`` of every node's type, i64[N]
    node_memory: npt.NDArray[np.float64]  #: bytes of one GPU of every node, f64[N]; inf where it is not limited


@dataclass(frozen=True)
class Cluster(NodeArrays):
    """Node groups in order; nodes and GPUs are numbered from 0 in that order."""

    nodes: tuple[NodeGroup, ...]

    def __post_init__(self) -> None:
        nodes = tuple(self.nodes)
        for group in nodes:
            check_legal(isinstance(group, NodeGroup), "nodes", group, "optsched.NodeGroup(...)")
        if not nodes:
            raise InputError("a cluster needs at least one node", field="nodes", legal="at least one node group")
        counts, sizes = ([getattr(group, name) for group in nodes] for name in ("count", "gpus"))
        gpus = sum(count * size for count, size in zip(counts, sizes, strict=True))
        if gpus > MAX_GPUS:
            raise InputError("the cluster is too large", field="gpus", value=gpus, legal=f"at most {MAX_GPUS}")
        types: dict[str, str] = {}
        for group in nodes:
            types.setdefault(group.gpu.casefold(), group.gpu)
        of_group = [list(types).index(group.gpu.casefold()) for group in nodes]
        memory = [math.inf if group.gpu_memory is None else group.gpu_memory for group in nodes]
        derived = {"nodes": nodes, "gpus": gpus, "node_count": sum(counts), "gpu_types": tuple(types.values())}
        arrays = {
            "node_group": np.repeat(np.arange(len(nodes), dtype=np.int64), counts),
            "node_gpus": np.repeat(np.array(sizes, dtype=np.int64), counts),
            "node_type": np.repeat(np.array(of_group, dtype=np.int64), counts),
            "node_memory": np.repeat(np.array(memory, dtype=np.float64), counts),
        }
        self.__dict__.update(derived, **{name: frozen(array) for name, array in arrays.items()})

    @cached_property
    def node_kind(self) -> npt.NDArray[np.int64]:
        """The kind of every node, i64[N]; nodes of one kind (GPU type, memory of a GPU) suit the same jobs."""
        kinds = np.column_stack([self.node_type, self.node_memory])
        return frozen(np.unique(kinds, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64))

    @classmethod
    def parse(cls, spec: str) -> Cluster:
        """Return the cluster that a text describes.

        Parameters
        ----------
        spec
            Text such as ``8x8``, ``16x4:V100`` or ``8x1:V100+16x1:P100`` (nodes x GPUs : type).
        """
        groups = []
        if not isinstance(spec, str):
            raise InputError("not a cluster", field="cluster", value=spec, legal=SPEC_LEGAL)
        for part in spec.split("+"):
            match = _SPEC_PART.match(part)
            if match is None or int(match[1]) < 1 or int(match[2]) < 1:
                raise InputError("not a cluster", field="cluster", value=spec, legal=SPEC_LEGAL)
            groups.append(NodeGroup(count=int(match[1]), gpus=int(match[2]), gpu=match[3] or "GPU"))
        return cls(tuple(groups))

    @classmethod
    def machines(cls, count: int) -> Cluster:
        """Return a cluster of identical classical machines: nodes of one GPU.

        Parameters
        ----------
        count
            Number of machines.
        """
        return cls((NodeGroup(count=count, gpus=1),))

    @property
    def spec(self) -> str:
        """Text that `parse` reads back (types and counts; memory and bandwidths are not part of it)."""
        return "+".join(f"{g.count}x{g.gpus}" + ("" if g.gpu == "GPU" else f":{g.gpu}") for g in self.nodes)

    def to_json(self) -> dict[str, Any]:
        """The cluster as it stands in an instance file."""
        return {"nodes": [group.to_json() for group in self.nodes]}
