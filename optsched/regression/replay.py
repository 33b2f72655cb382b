"""An instance on which a test of ratios failed: written out, with the commands that repeat the run."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from optsched.problem.instance import Instance
from optsched.regression.contestant import Contestant


@dataclass(frozen=True)
class Replay:
    """Of the runs of one contestant in one test."""

    contestant: Contestant
    objective: str | None
    test: str
    folder: Path

    def told(self, name: str, instance: Instance) -> list[str]:
        """Write the instance into the folder; lines that say where it is and how to repeat the run.

        The same failure gives the same file; several processes may write it at once.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        stem = re.sub(r"[^A-Za-z0-9._=-]+", "-", f"{self.contestant.text}-{Path(name).stem}").strip("-")
        path = self.folder / f"{stem[:80]}-{instance.digest[:8]}.json"
        instance.save(path)
        lines = [f"instance {name}, {instance.n} jobs on {instance.cluster.gpus} GPUs, written to {path}"]
        if self.test:
            lines.append(f"replay: pytest {shlex.quote(self.test)} --ratio-instance={shlex.quote(name)}")
        goal = self.objective or instance.objective or "total_flow_time"
        again = self.contestant.repeated(path, goal)
        return lines + ([f"or: {again}"] if again else [])
