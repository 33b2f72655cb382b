"""Draw how each benchmark's ratio to its floor has changed: one page from the files that `make bench` keeps.

``python -m benchmarks.history [FOLDER] [PAGE]`` reads every JSON file of pytest-benchmark below FOLDER (``.benchmarks``)
and writes PAGE (``build/benchmarks.html``), one small chart a benchmark, oldest measurement first.
"""

from __future__ import annotations

import base64
import io
import json
import sys
from collections import defaultdict
from dataclasses import dataclass
from html import escape
from pathlib import Path

from matplotlib.figure import Figure

STYLE = (
    "body{font:16px sans-serif;margin:2em auto;max-width:72em;padding:0 1em}figure{display:inline-block;margin:.5em}"
)


@dataclass(frozen=True)
class Measurement:
    """One benchmark in one kept file: its ratio to the floor measured in the same process, the commit and the machine."""

    when: str
    commit: str
    machine: str
    ratio: float


def measurements(folder: Path) -> dict[str, list[Measurement]]:
    """The measurements of every benchmark by name, oldest first. Benchmarks without a ratio are left out."""
    history: defaultdict[str, list[Measurement]] = defaultdict(list)
    for file in folder.rglob("*.json"):
        document = json.loads(file.read_text(encoding="utf-8"))
        machine = document["machine_info"]["cpu"].get("brand_raw", document["machine_info"]["machine"])
        commit = (document["commit_info"].get("id") or "unknown")[:8]
        for benchmark in document["benchmarks"]:
            if "ratio" in benchmark["extra_info"]:
                ratio = float(benchmark["extra_info"]["ratio"])
                history[benchmark["name"]].append(Measurement(document["datetime"], commit, machine, ratio))
    return {name: sorted(points, key=lambda point: point.when) for name, points in sorted(history.items())}


def chart(name: str, points: list[Measurement]) -> str:
    """An HTML figure with the ratios of one benchmark, a colour a machine."""
    figure = Figure(figsize=(4.4, 2.4), layout="constrained")
    axes = figure.subplots()
    for machine in dict.fromkeys(point.machine for point in points):
        own = [(k, point.ratio) for k, point in enumerate(points) if point.machine == machine]
        axes.plot(*zip(*own, strict=True), marker="o", label=machine)
    axes.set_xticks(range(len(points)), [point.commit for point in points], rotation=60, fontsize=7)
    axes.set_ylim(0, 1.15 * max(point.ratio for point in points))
    axes.set_title(name, fontsize=9)
    axes.set_ylabel("ratio to the floor", fontsize=8)
    axes.legend(fontsize=6)
    picture = io.BytesIO()
    figure.savefig(picture, format="svg")
    data = base64.b64encode(picture.getvalue()).decode()
    return f'<figure><img alt="{escape(name)}" src="data:image/svg+xml;base64,{data}"></figure>'


def page(history: dict[str, list[Measurement]]) -> str:
    """The whole page as HTML."""
    charts = "\n".join(chart(name, points) for name, points in history.items()) or "<p>Nothing was measured yet.</p>"
    text = "Each value is a time divided by that of a bare loop in the same process: lower is faster."
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Benchmarks of optsched</title>'
        f"<style>{STYLE}</style><h1>Benchmarks</h1><p>{text}</p>\n{charts}\n</html>\n"
    )


def main(folder: str = ".benchmarks", target: str = "build/benchmarks.html") -> None:
    """Write the page."""
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    Path(target).write_text(page(measurements(Path(folder))), encoding="utf-8")
    print(f"history: {target}")


if __name__ == "__main__":
    main(*sys.argv[1:])
