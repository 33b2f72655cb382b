"""Columns of the tables of requests, and the notes under them."""

from __future__ import annotations

from optsched.classes.kv_cache.problem.requests import requests_of
from optsched.cli.run_table import COLUMNS, NOTES, Columns
from optsched.cli.wording import duration
from optsched.problem.instance import Instance
from optsched.rounding import number
from optsched.simulation.run import Run

HEADS = ("mean latency", "p99 latency", "mean TTFT", "p95 TTFT", "cells in use", "makespan", "thrown out")
TIMES = ("mean_jct", "p99_jct", "mean_ttft", "p95_ttft")


def _request_cells(run: Run) -> tuple[str, ...]:
    metrics, write = run.metrics, duration if requests_of(run.instance).affine else number
    times = ["-" if metrics["unfinished"] or metrics.get(name) is None else write(metrics[name]) for name in TIMES]
    makespan = "-" if metrics["unfinished"] else write(metrics["makespan"])
    return (*times, f"{100 * metrics['utilization']:.1f} %", makespan, f"{run.preemptions:,}")


def _request_notes(instance: Instance) -> list[str]:
    requests = requests_of(instance)
    times = "rounds have affine length" if requests.affine else "times count rounds"
    return [f"a cache of {requests.cells:,} cells; {times}; TTFT: time to the first token"]


COLUMNS.register("kv-cache", Columns(HEADS, _request_cells, queued=False))
NOTES.register("kv-cache", _request_notes)
