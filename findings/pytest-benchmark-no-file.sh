#!/usr/bin/env bash
# pytest-benchmark: --benchmark-json next to pytest-xdist writes no file and the run succeeds.
#
# library    pytest-benchmark 5.3.1 with pytest 9.0.2 and pytest-xdist 3.8.0
# behaviour  Benchmarks are switched off under -n (with a warning) and by --benchmark-disable; the option that names the file is then
#            ignored. A gate that compares the file of this run reads the file of an older one.
# seen       alone: exit 0, a file
#            -n 1: exit 0, no file
#            --benchmark-disable: exit 0, no file
# exit       0: as above; 1: the file is now written, or the run fails
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check pytest-benchmark==5.3.1 pytest==9.0.2 pytest-xdist==3.8.0
cd "$folder"
env/bin/python - <<'PYTHON'
import subprocess
import sys
from pathlib import Path

Path("test_sum.py").write_text("def test_sum(benchmark):\n    benchmark(sum, [1])\n")
seen = []
for title, options in (("alone", []), ("-n 1", ["-n", "1"]), ("--benchmark-disable", ["--benchmark-disable"])):
    Path("times.json").unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", *options, "--benchmark-json=times.json"]
    run = subprocess.run(command, capture_output=True, check=False)
    file = Path("times.json")
    seen.append((run.returncode, file.exists() and file.stat().st_size > 0))
    print(f"{title}: exit {run.returncode}, {'a' if seen[-1][1] else 'no'} file")
sys.exit(seen != [(0, True), (0, False), (0, False)])
PYTHON
