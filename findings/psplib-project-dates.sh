#!/usr/bin/env bash
# psplib: the release date of a project in a PSPLIB file is read as 0, and its due date is dropped.
#
# library    psplib 0.4.0
# behaviour  The section PROJECT INFORMATION states rel.date, duedate and tardcost. The parser skips the section and gives the project
#            the release date 0, although its class has a field for it.
# seen       release date in the file: 7, as read: 0
# exit       0: as above; 1: psplib now reads the section
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check psplib==0.4.0
cd "$folder"
env/bin/python - <<'PYTHON'
import sys
from pathlib import Path

import psplib

line = "*" * 72
Path("made.sm").write_text(
    f"""{line}
file with basedata            : made.bas
initial value random generator: 1
{line}
projects                      :  1
jobs (incl. supersource/sink ):  4
horizon                       :  9
RESOURCES
  - renewable                 :  1   R
  - nonrenewable              :  0   N
  - doubly constrained        :  0   D
{line}
PROJECT INFORMATION:
pronr.  #jobs rel.date duedate tardcost  MPM-Time
    1      2      7      20        3       5
{line}
PRECEDENCE RELATIONS:
jobnr.    #modes  #successors   successors
   1        1          2           2   3
   2        1          1           4
   3        1          1           4
   4        1          0
{line}
REQUESTS/DURATIONS:
jobnr. mode duration  R 1
{"-" * 72}
  1      1     0       0
  2      1     5       2
  3      1     4       1
  4      1     0       0
{line}
RESOURCEAVAILABILITIES:
  R 1
   3
{line}
"""
)
project = psplib.parse("made.sm").projects[0]
print(f"release date in the file: 7, as read: {project.release_date}")
sys.exit(project.release_date != 0 or hasattr(project, "due_date"))
PYTHON
