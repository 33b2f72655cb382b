"""Traces: the JSON is read again by the Trace Event Format alone, and compared with the segments of the schedule."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import one_line

import optsched as osd
from optsched.plot import plot_file, save_trace
from optsched.plot.trace_events import lanes_of
from optsched.problem.instance import Instance, Job
from optsched.problem.schedule import Schedule

Slices = dict[tuple[str, str], list[tuple[int, int, str]]]  # by process and thread: from, to, name


def read(path: Path) -> tuple[Slices, dict[str, list[tuple[int, float]]], list[dict[str, Any]]]:
    """Slices, counters, and the events themselves; every field that the format requires is there."""
    document = json.loads(path.read_text())
    assert set(document) == {"traceEvents", "displayTimeUnit", "otherData"}
    events = document["traceEvents"]
    names: dict[tuple[str, int, int | None], str] = {}
    slices, counters = defaultdict(list), defaultdict(list)
    for event in events:
        assert {type(event[key]) for key in ("ts", "dur", "pid", "tid") if key in event} == {int}
        assert type(event["name"]) is str
        if event["ph"] == "M" and "name" in event["args"]:
            key = event["name"], event["pid"], event.get("tid")
            assert key not in names
            names[key] = event["args"]["name"]
        elif event["ph"] == "X":
            assert event["dur"] >= 0
            place = names["process_name", event["pid"], None], names["thread_name", event["pid"], event["tid"]]
            slices[place].append((event["ts"], event["ts"] + event["dur"], event["name"]))
        elif event["ph"] == "C":
            ((unit, value),) = event["args"].items()
            counters[f"{event['name']} {unit}"].append((event["ts"], value))
    for rows in slices.values():
        rows.sort()
        assert all(b[0] >= a[1] for a, b in pairwise(rows))  # nothing overlaps on a thread
    return slices, counters, events


def test_a_trace_has_every_job_on_every_gpu_of_its_gang(gangs: Schedule, tmp_path: Path) -> None:
    save_trace(gangs, tmp_path / "x.trace.json")
    slices, counters, events = read(tmp_path / "x.trace.json")
    a, b = (0, 100_000_000, "a"), (10_000_000, 50_000_000, "b")
    late, c = (80_000_000, 105_000_000, "b"), (50_000_000, 80_000_000, "c")
    assert slices == {
        **{("node 0 V100", f"GPU {i}"): [a] for i in (0, 1, 3)},
        ("node 1 V100", "GPU 2"): [a],
        ("node 1 V100", "GPU 0"): [b, late],
        ("node 1 V100", "GPU 1"): [b, c, late],
    }
    seconds = {name: [(ts / 1e6, value) for ts, value in rows] for name, rows in counters.items()}
    assert seconds["busy GPUs"] == [(0, 4), (10, 6), (50, 5), (80, 6), (100, 2), (105, 0)]
    assert seconds["queued jobs"] == [(20, 1), (50, 1), (80, 0)]  # c, then b
    facts = [event["args"] for event in events if event["ph"] == "X" and event["ts"] == 80_000_000]
    assert facts == [{"gpus": 2, "part": "2 of 2", "restart_s": 5.0, "arrival_s": 10.0}] * 2


def test_jobs_that_share_a_gpu_are_on_threads_of_their_own(tmp_path: Path) -> None:
    run = osd.simulate(osd.generate("sharing-vectors", seed=1, jobs=20), "sjf-bsbf")
    save_trace(run, tmp_path / "x.trace.json")
    slices, counters, _ = read(tmp_path / "x.trace.json")
    assert any(thread.endswith(", job 2") for _, thread in slices)
    held = sum(end - start for rows in slices.values() for start, end, _ in rows)
    exact = sum((s.end - s.start) * len(s.gpus) for s in run.schedule.segments())
    assert held / 1e6 == pytest.approx(exact, rel=1e-6)
    assert max(value for _, value in counters["busy GPUs"]) <= run.instance.cluster.gpus


def test_lanes_are_the_first_free_ones() -> None:
    begin, finish = np.array([0, 0, 5, 10, 10]), np.array([10, 5, 20, 12, 11])
    assert lanes_of(np.zeros(5, dtype=int), begin, finish).tolist() == [1, 0, 0, 2, 1]
    assert lanes_of(np.arange(5), begin, finish).tolist() == [0] * 5


def test_a_file_becomes_a_trace_and_a_window_cuts_it(gangs: Schedule, tmp_path: Path) -> None:
    gangs.save(tmp_path / "s.json")
    out = tmp_path / "x.trace.json"
    plot_file(tmp_path / "s.json", out)  # without the instance there are no arrivals, and nobody waits
    slices, counters, _ = read(out)
    assert (sum(map(len, slices.values())), set(counters)) == (9, {"busy GPUs"})
    plot_file(tmp_path / "s.json", out, gangs.instance, start=60, end=90)
    slices, counters, _ = read(out)
    assert slices["node 1 V100", "GPU 1"] == [(60_000_000, 80_000_000, "c"), (80_000_000, 90_000_000, "b")]
    assert counters["busy GPUs"] == [(60_000_000, 5), (80_000_000, 6), (90_000_000, 0)]


def test_the_clock_of_a_log_keeps_its_microseconds(tmp_path: Path) -> None:
    instance = Instance([Job("a", arrival=1.7e9 + 0.25, duration=0.5)], "1x1")
    save_trace(osd.simulate(instance, "fifo"), tmp_path / "x.trace.json")
    slices, _, _ = read(tmp_path / "x.trace.json")
    assert slices["node 0", "GPU 0"] == [(1_700_000_000_250_000, 1_700_000_000_750_000, "a")]


def test_what_is_no_schedule_has_no_trace(tmp_path: Path, written: Any) -> None:
    result = written({"objective": "makespan", "runs": []})
    with one_line(match="there is no such trace of the result", begins=tmp_path / "x.trace.json"):
        plot_file(result, tmp_path / "x.trace.json")
