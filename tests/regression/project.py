"""A project of somebody else: a policy, a scheduler that knows nothing of optsched, and tests of both."""

from __future__ import annotations

import sys

SCHEDULERS = """
import optsched as osd


class Shortest:
    name, knowledge = "shortest", "clairvoyant"

    def decide(self, view):
        for job in sorted(view.waiting, key=view.duration):
            if view.fits(job):
                yield osd.Start(job)
"""

# One job at a time; standard library alone. It is handed two files.
COMMAND = """
import json, sys

with open(sys.argv[1]) as file:
    instance = json.load(file)
now, starts = 0, {}
for job in sorted(instance["jobs"], key=lambda each: (each.get("arrival", 0), each["duration"])):
    starts[job["id"]] = now = max(now, job.get("arrival", 0))
    now += job["duration"]
with open(sys.argv[2], "w") as file:
    json.dump({"starts": starts}, file)
"""

TESTS = f"""
import sys

from schedulers import Shortest

SUITE = dict(suite="cases", objective="total_completion_time")
ALONE = [{sys.executable!r}, "-S", "alone.py", "{{instance}}", "{{schedule}}"]


def test_policy(competitive_ratio):
    competitive_ratio(Shortest(), **SUITE).at_most(2).no_worse_than_baseline()


def test_command(competitive_ratio):
    competitive_ratio(ALONE, name="alone", **SUITE).at_most(5).no_worse_than_baseline()
"""

FILES = {"schedulers.py": SCHEDULERS, "alone.py": COMMAND, "test_ratios.py": TESTS}

# what a slip of the pen makes of both
WORSE = {
    "schedulers.py": SCHEDULERS.replace("key=view.duration", "key=lambda job: -view.duration(job)"),
    "alone.py": COMMAND.replace("now += job", "now += 0.25 + job"),
}
