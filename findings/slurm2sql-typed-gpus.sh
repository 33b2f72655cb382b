#!/usr/bin/env bash
# slurm2sql: a job whose TRES list only typed GPUs has no GPUs in the database.
#
# library    slurm2sql 0.9.9
# behaviour  A cluster that accounts for gres/gpu:a100 and gres/gpu:v100, but not for gres/gpu, writes only typed counts. The columns
#            of the allocated and requested GPUs look for `gres/gpu=` alone and stay empty; the type is that of the first entry.
# seen       gres/gpu=8,gres/gpu:a100=6,gres/gpu:v100=2: 8 GPUs, type a100
#            gres/gpu:a100=6,gres/gpu:v100=2: no number of GPUs, type a100
# exit       0: as above; 1: slurm2sql now adds up typed GPUs
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check slurm2sql==0.9.9
cd "$folder"
env/bin/python - <<'PYTHON'
import sys

import slurm2sql

read = []
for gpus in ("gres/gpu=8,gres/gpu:a100=6,gres/gpu:v100=2", "gres/gpu:a100=6,gres/gpu:v100=2"):
    tres = f"billing=16,cpu=16,{gpus},mem=64G,node=2"
    row = {"AllocTRES": tres, "ReqTRES": tres}
    counted, asked, kind = (slurm2sql.COLUMNS[name].calc(row) for name in ("_NGpus", "_ReqGPUS", "_GpuType"))
    read.append((counted, asked, kind))
    print(f"{gpus}: {'no number of' if counted is None else f'{counted:.0f}'} GPUs, type {kind}")
sys.exit(read != [(8, 8, "a100"), (None, None, "a100")])
PYTHON
