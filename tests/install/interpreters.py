"""Interpreters of this machine: one that is newer than the one that runs the tests, where there is one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

NEWEST = 14  # 3.NEWEST is the newest minor version that is looked for


def newer() -> Path | None:
    """The newest Python 3 above this one that starts: on the path, or among the versions of pyenv."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for minor in range(NEWEST, sys.version_info.minor, -1):
        name = f"python3.{minor}"
        places = [Path(folder) for folder in os.get_exec_path()] + [each / "bin" for each in kept.glob(f"3.{minor}.*")]
        for python in (place / name for place in places if (place / name).is_file()):
            # a shim of pyenv is there for versions that are not switched on, too
            if subprocess.run([python, "-c", "import venv, ssl"], capture_output=True).returncode == 0:
                return python
    return None
