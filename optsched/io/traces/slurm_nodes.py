"""Cluster file ``slurm-nodes``: nodes with GPUs from ``scontrol show nodes``, or ``sinfo -N`` with a column GRES.

Shapes come from ``Gres=``, which has the types of the GPUs also where the accounting has none. A node that is listed for
several partitions counts once. A node with GPUs of two types becomes two nodes. Nodes without GPUs are passed over; nodes
that are down count. Also `guessed_nodes`: the nodes that a log shows in use.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from optsched.errors import InputError
from optsched.io.cluster_files import cluster_file
from optsched.io.traces.slurm_tres import nodes_of
from optsched.io.traces.text_table import read_utf8
from optsched.problem.cluster import MAX_GPUS, Cluster, NodeGroup

LEGAL = "the output of: scontrol show nodes, or sinfo -N -o '%N|%G'"
Shape = tuple[int, str]  # GPUs, type


@cluster_file("slurm-nodes")
def read(path: Path) -> Cluster:
    """Return the cluster that ``scontrol show nodes`` or ``sinfo -N`` describes.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    InputError
        If the file is neither, or has no node with a GPU.
    """
    text, _ = read_utf8(path)
    listed = list(_of_scontrol(text) if re.search(r"^\s*NodeName=", text, re.MULTILINE) else _of_sinfo(path, text))
    shapes = {name: _shapes(gres) for names, gres in listed for name in nodes_of(names) or (names,)}
    groups = [shape for shapes_of_node in shapes.values() for shape in shapes_of_node]
    if not groups:
        why = "no node has a GPU" if shapes else "no node"
        raise InputError(why, file=path, field="Gres", legal=f"Gres=gpu:a100:4 or the like: {LEGAL}")
    if sum(gpus for gpus, _ in groups) > MAX_GPUS:
        raise InputError("the cluster is too large", file=path, field="Gres", legal=f"at most {MAX_GPUS} GPUs")
    return Cluster(tuple(NodeGroup(gpus, len(list(alike)), kind) for (gpus, kind), alike in groupby(groups)))


def _of_scontrol(text: str) -> Iterable[tuple[str, str]]:
    for entry in re.split(r"(?<!\S)NodeName=", text)[1:]:
        name, gres = re.match(r"\S*", entry), re.search(r"\sGres=(\S+)", entry)
        yield name[0] if name else "", gres[1] if gres else ""


def _of_sinfo(path: Path, text: str) -> Iterable[tuple[str, str]]:
    lines = [line for line in text.split("\n") if line.strip() and not line[0].isspace()]
    separator = "|" if lines and "|" in lines[0] else None
    header = [word.strip() for word in lines[0].split(separator)] if lines else []
    if not {"NODELIST", "GRES"} <= set(header):
        raise InputError("which nodes have which GPUs?", file=path, row=1, legal=LEGAL)
    name, gres = header.index("NODELIST"), header.index("GRES")
    for line in lines[1:]:
        fields = line.split(separator)
        if len(fields) == len(header):
            yield fields[name].strip(), fields[gres].strip()


def _shapes(gres: str) -> list[Shape]:
    found: Counter[str] = Counter()
    for part in re.sub(r"\([^()]*\)", "", gres).split(","):
        kind, *rest = (word for word in part.split(":") if word != "no_consume")
        if kind == "gpu":
            number = re.fullmatch(r"\d{1,7}", rest[-1]) if rest else None
            found[rest[0] if len(rest) > (number is not None) else "GPU"] += int(number[0]) if number else 1
    return [(count, kind) for kind, count in found.items() if count]


def guessed_nodes(holds: Iterable[tuple[float, float, int, str]]) -> Cluster | None:
    """Return nodes with as many GPUs as a log shows in use on each at once; None if it does not say.

    A job of several nodes counts with an equal share on each, and not together with others: Slurm does not say how it was
    divided.

    Parameters
    ----------
    holds
        Start and end in seconds (infinite: it still runs), GPUs, and the list of nodes of every run.
    """
    changes: dict[str, Counter[float]] = defaultdict(Counter)
    most: dict[str, int] = {}
    for start, end, gpus, listed in holds:
        nodes = nodes_of(listed)
        if not nodes or len(most) > MAX_GPUS:
            return None
        for node in nodes:
            most[node] = max(most.get(node, 0), math.ceil(gpus / len(nodes)))
        if len(nodes) == 1:
            changes[nodes[0]][start] += gpus
            changes[nodes[0]][end] -= gpus
    for node, of_node in changes.items():
        in_use = 0
        for moment in sorted(of_node):
            in_use += of_node[moment]
            most[node] = max(most[node], in_use)
    sizes = Counter(most.values())
    if not sizes or sum(size * count for size, count in sizes.items()) > MAX_GPUS:
        return None
    return Cluster(tuple(NodeGroup(size, sizes[size]) for size in sorted(sizes, reverse=True)))
