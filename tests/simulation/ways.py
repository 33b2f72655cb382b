"""One program run by machine code, by functions that are not compiled yet, and without numba: what it prints."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

# way: what comes before the program, the program's manager, what is true of it at the end
WAYS = {
    "compiled": ("", "compiled.without_interpreting()", "any(f.signatures for f in compiled.FUNCTIONS)"),
    "interpreted": (
        "compiled.PRICE = float('inf')",
        "contextlib.nullcontext()",
        "compiled.FUNCTIONS and not any(f.signatures for f in compiled.FUNCTIONS)",
    ),
    "without numba": ("", "contextlib.nullcontext()", "not compiled.FUNCTIONS"),
}


def printed(program: str, folder: Path) -> dict[str, str]:
    """By way; that the program ran in that way is made sure of. Modules of the tests can be imported."""
    here = Path(__file__).parent.parent
    found = {}
    for way, (before, manager, after) in WAYS.items():
        head = f"import contextlib\nimport optsched.compiled.function as compiled\n{before}\nwith {manager}:\n"
        script = folder / f"{way.replace(' ', '_')}.py"
        script.write_text(f"{head}{textwrap.indent(program, '    ')}\nassert {after}\n")
        environment = {
            **os.environ,
            "NUMBA_DISABLE_JIT": "1" if way == "without numba" else "0",
            "PYTHONPATH": f"{here}:{here.parent}",
            "PYTHONWARNINGS": "ignore",  # numpy warns that random numbers overflow, as they must
        }
        done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{way}: {done.stderr}"
        found[way] = done.stdout
    return found
