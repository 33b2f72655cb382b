#!/usr/bin/env bash
# evalys: `Workload.from_csv` reads a log in the Standard Workload Format without its first job and its cancelled jobs.
#
# library    evalys 4.0.7 with pandas 2.2.3
# behaviour  The names of the columns are given and header=0 as well, so pandas takes the first job for a header. Rows with a
#            status above 1 (cancelled, or parts of a job) are left out, also those that ran and held processors.
# seen       jobs in the file: 1 2 3 4
#            jobs that evalys reads: 2 3
# exit       0: as above; 1: evalys now reads otherwise
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check evalys==4.0.7 pandas==2.2.3 numpy==1.26.4 matplotlib==3.9.2
cat > "$folder/log.swf" <<'SWF'
; Version: 2.2
; MaxProcs: 8
; UnixStartTime: 0
1 0 0 10 2 -1 -1 2 20 -1 1 1 1 -1 -1 -1 -1 -1
2 5 5 20 4 -1 -1 4 40 -1 1 1 1 -1 -1 -1 -1 -1
3 6 4 30 1 -1 -1 1 60 -1 0 2 1 -1 -1 -1 -1 -1
4 9 1 15 1 -1 -1 1 60 -1 5 2 1 -1 -1 -1 -1 -1
SWF
"$folder/env/bin/python" - "$folder/log.swf" <<'PYTHON'
import sys

from evalys.workload import Workload

with open(sys.argv[1], encoding="utf-8") as log:
    jobs = [int(line.split()[0]) for line in log if not line.startswith(";")]
read = Workload.from_csv(sys.argv[1]).df["jobID"].tolist()
print("jobs in the file:", *jobs)
print("jobs that evalys reads:", *read)
sys.exit((jobs, read) != ([1, 2, 3, 4], [2, 3]))
PYTHON
