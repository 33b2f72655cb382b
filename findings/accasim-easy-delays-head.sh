#!/usr/bin/env bash
# AccaSim: `EASYBackfilling` lets a long job overtake the job that holds the reservation.
#
# library    AccaSim 1.1.3 (its imports need Python 3.9, or one name put back, as here)
# behaviour  The reservation is computed and then not passed on: backfilled jobs are checked against an empty list of reserved
#            nodes, so a job of any length may take idle processors that the first waiting job needs at its reserved time.
# seen       job 2 can start at 100, when job 1 ends; it starts at 1002, when job 3 ends
# exit       0: as above; 1: AccaSim now keeps the reservation
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check accasim==1.1.3 numpy==2.2.6 matplotlib==3.10.3 psutil==7.0.0
cd "$folder"
env/bin/python - <<'PYTHON'
import collections
import collections.abc
import json
import re
import sys
from datetime import datetime
from pathlib import Path

collections.Mapping = collections.abc.Mapping  # Python 3.10 removed the name that AccaSim imports
from accasim.base.allocator_class import FirstFit
from accasim.base.scheduler_class import EASYBackfilling
from accasim.base.simulator_class import Simulator

# job, submission, run = limit, processors: 1 leaves one of four idle, 2 needs all, 3 fits on the idle one for 1,000 s
jobs = [(1, 0, 100, 3), (2, 1, 50, 4), (3, 2, 1000, 1)]
rows = [f"{job} {at} -1 {run} {width} -1 -1 {width} {run} -1 1 1 1 -1 -1 -1 -1 -1" for job, at, run, width in jobs]
Path("log.swf").write_text("; MaxProcs: 4\n; UnixStartTime: 0\n" + "\n".join(rows) + "\n")
Path("system.json").write_text(json.dumps({"groups": {"node": {"core": 4}}, "resources": {"node": 1}, "equivalence": {}}))
easy = EASYBackfilling(FirstFit())
Simulator("log.swf", "system.json", easy, RESULTS_FOLDER_PATH="out", LOG_LEVEL="ERROR").start_simulation()
starts = {}
for line in Path("out/sched-log.swf").read_text().splitlines():
    found = re.match(r"(\d+);.*__([-\d: ]+);", line)
    if found:
        begin = datetime.strptime(found[2].split(";")[0], "%Y-%m-%d %H:%M:%S")
        starts[int(found[1])] = int((begin - datetime(1970, 1, 1)).total_seconds())
print("starts by job:", starts)
sys.exit(starts != {1: 0, 3: 2, 2: 1002})
PYTHON
