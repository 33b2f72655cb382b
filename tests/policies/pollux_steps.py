"""Jobs of a Pollux workload for `tiresias_ticks`, straight from the files: nothing of optsched is used."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from functools import cache
from pathlib import Path

import numpy as np
from scipy.interpolate import LinearNDInterpolator

from policies.tiresias_ticks import TickJob

# the largest sub-batch of every application
MOST_LOCAL = {"bert": 12, "cifar10": 1024, "deepspeech2": 80, "imagenet": 200, "ncf": 32768, "yolov3": 8}


@cache
def steps_of(folder: Path, application: str) -> Steps:
    """Read and triangulated once."""
    return Steps(folder, application)


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


class Steps:
    """Measured step and sync seconds of an application."""

    def __init__(self, folder: Path, application: str) -> None:
        self.placed: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
        cells = defaultdict(list)
        for row in _rows(folder / f"traces__{application}__placements.csv"):
            name, local = row["placement"], float(row["local_bsz"])
            times = float(row["step_time"]), float(row["sync_time"])
            self.placed[name].append((local, *times))
            cells[len(name), sum(map(int, name)), local].append(times)
        points = [(*key, *np.mean(cells[key], axis=0)) for key in sorted(cells)]
        fields = ("num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time")
        points += [
            tuple(float(row[f]) for f in fields) for row in _rows(folder / f"traces__{application}__scalability.csv")
        ]
        grid = np.array(points)
        self.between = LinearNDInterpolator(grid[:, :3], grid[:, 3:])

    @cache  # noqa: B019  (a few objects, for one test)
    def of(self, placement: tuple[int, ...], local: int) -> tuple[float, float]:
        text = "".join(map(str, placement))
        name = min(text[k:] + text[:k] for k in range(len(text)))
        if name in self.placed:
            grid = np.array(self.placed[name])
            if not grid[0, 0] <= local <= grid[-1, 0]:
                return math.nan, math.nan  # the artifact stops here
            return float(np.interp(local, grid[:, 0], grid[:, 1])), float(np.interp(local, grid[:, 0], grid[:, 2]))
        step, sync = self.between([min(len(placement), 16), sum(placement), local])[0]
        return float(step), float(sync)


def jobs_of(folder: Path, workload: Path) -> list[TickJob]:
    """The jobs of a workload; a gang that has more samples than a GPU takes accumulates gradients."""
    iterations: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in _rows(folder / "iterations.csv"):
        iterations[row["application"]].append((float(row["batch_size"]), float(row["iterations"])))
    steps = {name: steps_of(folder, name) for name in MOST_LOCAL}
    jobs = []
    for row in _rows(workload):
        name, gpus, batch = row["application"], int(row["num_replicas"]), int(row["batch_size"])
        local = math.ceil(batch / gpus)
        parts = math.ceil(local / MOST_LOCAL[name])
        size = math.ceil(local / parts)
        work = float(np.interp(batch, *zip(*sorted(iterations[name]), strict=True)))

        def seconds(placement: tuple[int, ...], name: str = name, size: int = size, parts: int = parts) -> float:
            step, sync = steps[name].of(placement, size)
            return step + (parts - 1) * (step - sync)

        jobs.append(TickJob(row["name"], float(row["time"]), gpus, work, seconds))
    return jobs
