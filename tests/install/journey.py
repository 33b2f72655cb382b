"""What an installed optsched must do, run by the interpreter it is installed for: ``python journey.py FOLDER``.

FOLDER is where the package must come from; it must not be writable, unless ``--writable`` is said (editable installs). What
was found is printed as one JSON document. Nothing is imported but the standard library and what optsched depends on.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any


def command(*arguments: str) -> Any:
    """What a command prints with ``--json``."""
    from optsched.cli import main

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            main([*arguments, "--json"])
        except SystemExit as end:
            if end.code:
                raise AssertionError(f"optsched {' '.join(arguments)}: exit code {end.code}") from end
    return json.loads(printed.getvalue())


def writable(folder: Path) -> bool:
    try:
        (folder / "written").touch()
    except OSError:
        return False
    (folder / "written").unlink()
    return True


def main() -> None:
    import optsched
    import optsched.models

    place = Path(sys.argv[1]).resolve()
    package = Path(optsched.__file__).resolve().parent
    assert package == place / "optsched", f"optsched is imported from {package}"
    assert "--writable" in sys.argv or not writable(package), f"{package} can be written"
    schedule = "schedule.json"
    found = {
        "version": [optsched.__version__, version("optsched")],
        "models": sorted(optsched.models.FORMULATIONS.names()),
        "instances": [row["name"] for row in command("list", "instances")["instances"]],
        "optimum": command("solve", "rigid-06-1", "--limit", "3", "-o", schedule)["value"],
        "holds": command("verify", schedule, "--instance", "rigid-06-1", "--limit", "3")["holds"],
        "fifo": command("run", "rigid-06-1", "-p", "fifo")["runs"][0]["value"],
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
