"""The folder of a class of schedules is imported only where its class is needed."""

from __future__ import annotations

import os
import subprocess
import sys

from sources import ROOT

RUN = """
import sys
import optsched as osd

osd.evaluate("rigid-06-1", ["fifo", "srtf"])
folders = "optsched.classes.task_sharing.", "optsched.classes.gpu_sharing."
print(*(name for name in sys.modules if name.startswith(folders)))
"""


def test_runs_of_gangs_import_no_class_whose_jobs_share_gpus() -> None:
    """Runs, bounds and theorems of gangs need neither tasks nor GPU sharing."""
    found = subprocess.run(
        [sys.executable, "-c", RUN],
        env={**os.environ, "PYTHONPATH": str(ROOT.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (found.returncode, found.stdout.split()) == (0, []), found.stderr
