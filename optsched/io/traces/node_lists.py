"""Clusters from lists of machines: ``--cluster philly-machines:PATH``, ``openb-nodes:PATH`` and ``spot-nodes:PATH``.

Each file is comma-separated with a header, a row a machine. Machines without GPUs are passed over; alike machines are one
group of nodes, in the order of the file. `LISTS` has the columns. Sources: ``cluster_machine_list`` of
msr-fiddle/philly-traces @29a1b87 (CC-BY-4.0); ``openb_node_list_*.csv`` (v2023) and ``node_info_df.csv`` (v2026, whose order
of columns is not that of its documentation) of alibaba/clusterdata @7a6c496.

``cluster_gpu_number.csv`` of Helios is no cluster: its GPUs change from day to day and its machines are not listed.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import polars as pl

from optsched.errors import InputError
from optsched.io.cluster_files import cluster_file
from optsched.io.traces.rows import Rows
from optsched.io.traces.text_table import read_text_table
from optsched.problem.cluster import MAX_GPUS, Cluster, NodeGroup

LISTS = {  # columns: GPUs of a machine, name of their type, and memory of one of them
    "philly-machines": {"gpus": "number of GPUs", "memory": "single GPU mem"},
    "openb-nodes": {"gpus": "gpu", "model": "model"},
    "spot-nodes": {"gpus": "gpu_capacity_num", "model": "gpu_model"},
}
_GIGABYTES = r"^(\d{1,6}(?:\.\d{1,3})?)\s*GB$"


def _cluster_of(columns_of: dict[str, str], path: Path) -> Cluster:
    gpus, model, memory = (columns_of.get(name, "") for name in ("gpus", "model", "memory"))
    rows = Rows(read_text_table(path))
    rows.require([name for name in (gpus, model, memory) if name])
    columns = {"gpus": rows.number(gpus, least=0, below=MAX_GPUS + 1, whole=True).cast(pl.Int64)}
    nothing = pl.Series([None], dtype=pl.String).new_from_index(0, rows.count)
    columns["model"] = rows.text(model, required=False) if model else nothing
    columns["memory"] = rows.text(memory, required=False).str.extract(_GIGABYTES) if memory else nothing
    if memory:
        rows.reject(columns["memory"].cast(pl.Float64).fill_null(0) <= 0, memory, "memory of a GPU such as 24GB")
    rows.raise_problems()
    table = pl.DataFrame([column.alias(name) for name, column in columns.items()]).filter(pl.col("gpus") > 0)
    kinds = table.group_by(table.columns, maintain_order=True).len()
    if kinds.is_empty():
        raise InputError("no machine has a GPU", file=path, field=gpus, legal="at least one machine with GPUs")
    groups = []
    for size, name, gigabytes, count in kinds.iter_rows():
        typed = {"gpu": name} if name else {}
        groups.append(NodeGroup(size, count, gpu_memory=float(gigabytes) * 1e9 if gigabytes else None, **typed))
    return Cluster(tuple(groups))


for _name, _columns in LISTS.items():
    cluster_file(_name)(partial(_cluster_of, _columns))
