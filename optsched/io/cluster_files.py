"""Files that describe a cluster: ``--cluster NAME:PATH``, where NAME is one of `CLUSTER_FILES`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from optsched.problem.cluster import Cluster
from optsched.registry import Registry

ClusterReader = Callable[[Path], Cluster]
CLUSTER_FILES: Registry[ClusterReader] = Registry("cluster file", package="optsched.io.traces")


def cluster_file(name: str) -> Callable[[ClusterReader], ClusterReader]:
    """Decorate a function that reads a cluster from a file, to register it under ``name``.

    Parameters
    ----------
    name
        Name before the colon, such as ``slurm-nodes``.
    """

    def add(reader: ClusterReader) -> ClusterReader:
        CLUSTER_FILES.register(name)(reader)
        return reader

    return add


def cluster_of(text: str) -> Cluster:
    """Return the cluster that a text describes: ``8x8``, ``4x8:V100+2x4:P100``, or ``NAME:PATH`` of a file.

    Parameters
    ----------
    text
        The text.

    Raises
    ------
    InputError
        If the text is neither, or the file cannot be read.
    """
    name, colon, path = text.partition(":")
    if colon and CLUSTER_FILES.canonical(name) in CLUSTER_FILES:
        return CLUSTER_FILES.get(name)(Path(path))
    return Cluster.parse(text)
