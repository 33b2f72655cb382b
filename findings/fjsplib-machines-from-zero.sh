#!/usr/bin/env bash
# fjsplib: a file that numbers its machines from 0 is read with machine -1 and without a warning.
#
# library    fjsplib 0.0.2
# behaviour  Collections of flexible job shops number machines from 1 (with an average number of machines as third number of the
#            first line) or from 0 (without it). Every number is reduced by one, so machine 0 becomes -1: as an index of a list in
#            Python that is the last machine, and all others are off by one.
# seen       two machines, from 0: the first operation can run on machine -1 or 0
#            two machines, from 1: the first operation can run on machine 0 or 1
# exit       0: as above; 1: fjsplib now reads or refuses such a file
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check fjsplib==0.0.2
cd "$folder"
env/bin/python - <<'PYTHON'
import sys
from pathlib import Path

import fjsplib

# one job of one operation, which takes 3 on one machine and 5 on the other
texts = {0: "1 2\n1 2 0 3 1 5\n", 1: "1 2 2\n1 2 1 3 2 5\n"}
read = {}
for first, text in texts.items():
    Path("shop.fjs").write_text(text)
    read[first] = [machine for machine, _ in fjsplib.read(Path("shop.fjs")).jobs[0][0]]
    print(f"two machines, from {first}: the first operation can run on machine {read[first][0]} or {read[first][1]}")
sys.exit(read != {0: [-1, 0], 1: [0, 1]})
PYTHON
