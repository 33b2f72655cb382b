#!/usr/bin/env bash
# PyJobShop: a task that belongs to no job is scheduled, but counts for nothing in the objectives of jobs.
#
# library    PyJobShop 0.0.9 with OR-Tools 9.12.4544
# behaviour  `add_task` takes its job as an option. A model of tasks alone is accepted with `weight_total_flow_time` (or tardiness),
#            and every schedule of it is "optimal" with objective 0, although no task was given a completion time of 0.
# seen       with a job: OPTIMAL, objective 5, the task ends at 5
#            without a job: OPTIMAL, objective 0, the task ends at 5
# exit       0: as above; 1: such a task now counts or is refused
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check pyjobshop==0.0.9 ortools==9.12.4544
cd "$folder"
env/bin/python - <<'PYTHON'
import sys

from pyjobshop import Model


def solved(with_job):
    model = Model()
    machine = model.add_machine()
    task = model.add_task(job=model.add_job() if with_job else None)
    model.add_mode(task, machine, 5)
    model.set_objective(weight_total_flow_time=1)
    result = model.solve(display=False)
    end = result.best.tasks[0].end
    print(f"{'with' if with_job else 'without'} a job: {result.status.name}, objective {result.objective:.0f}, the task ends at {end}")
    return result.status.name, result.objective, end


sys.exit([solved(True), solved(False)] != [("OPTIMAL", 5, 5), ("OPTIMAL", 0, 5)])
PYTHON
