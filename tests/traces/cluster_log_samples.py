"""A small file in the form of each log of a GPU cluster, with the oddities of the real ones; made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from optsched.io.traces import acme, dlrm, helios, openb, pai, spot

PAI_JOBS = (
    "j0,i0,u0,Terminated,100.0,400.0\nj1,i1,u1,Failed,110.0,300.0\nj2,i2,u0,Waiting,120.0,\nj3,i3,u2,Running,130.0,\n"
    "j4,i4,u2,Terminated,140.0,150.0\nj5,i5,u2,Terminated,150.0,160.0\n"
)
PAI_TASKS = (
    "j0,ps,1.0,Terminated,101.0,400.0,600.0,29.3,,CPU\nj0,worker,4.0,Terminated,101.0,400.0,600.0,29.3,50.0,T4\n"
    "j1,tf,1.0,Failed,111.0,300.0,600.0,29.3,25.0,T4\nj2,tf,,Waiting,,,600.0,29.3,100.0,T4\n"
    "j3,tf,1.0,Running,131.0,,600.0,29.3,200.0,V100\nj4,tf,3.0,Terminated,141.0,150.0,600.0,29.3,50.0,\n"
    "j5,tf,1.0,Terminated,0.0,160.0,600.0,29.3,0.0,CPU\n"
)
PAI_RUNS = (
    "j0,ps,a,b,i0,Terminated,90.0,450.0,m0\nj0,worker,c,d,i0,Terminated,105.0,390.0,m0\n"
    "j0,worker,e,f,i0,Terminated,107.0,395.0,m1\nj1,tf,g,h,i1,Failed,112.0,300.0,m1\nj3,tf,i,j,i3,Running,132.0,,m2\n"
    "j4,tf,k,l,i4,Terminated,142.0,150.0,m0\nj5,tf,m,n,i5,Terminated,0.0,0.0,m0\n"
)


def attempt(start: str | None, end: str | None, *gpus: int) -> dict[str, Any]:
    """An attempt of a Philly job, with the number of GPUs on each machine."""
    detail = [{"ip": f"m{k}", "gpus": [f"gpu{g}" for g in range(count)]} for k, count in enumerate(gpus)]
    day = "2017-10-09 "
    return {"start_time": start and day + start, "end_time": end and day + end, "detail": detail}


def job(name: str, *attempts: dict[str, Any]) -> dict[str, Any]:
    """A job of Philly."""
    return {"status": "Pass", "vc": "vc1", "jobid": name, "attempts": list(attempts)} | {
        "submitted_time": "2017-10-09 00:00:10",
        "user": "u1",
    }


PHILLY = [
    job("late", attempt("00:01:00", "00:02:00", 8, 8), attempt("00:10:00", "00:11:30", 1)) | {"status": "Killed"},
    job("early", attempt("00:00:10", "00:00:30", 2)) | {"submitted_time": "2017-10-09 00:00:00"},
    job("none"),
    job("runs", attempt("00:00:10", None, 2)),
    job("text", attempt(None, "00:10:00", 2) | {"start_time": "None"}),
    job("bare", attempt("00:00:10", "00:10:00")),
    job("short", attempt("00:00:10", "00:00:10", 1)),
]


def workload(name: str, *conditions: tuple[str, str, str], gpus: Any = "8", **status: Any) -> dict[str, Any]:
    """A Kueue Workload with two pods, their GPUs each, and conditions (type, status, time of the day)."""
    resources = {"resources": {"requests": {"nvidia.com/gpu": gpus, "cpu": "1500m"}}}
    pods = [{"name": "main", "count": 2, "template": {"spec": {"containers": [resources]}}}]
    stated = [
        {"type": kind, "status": truth, "reason": f"{kind}Reason", "lastTransitionTime": f"2026-05-04T{at}Z"}
        for kind, truth, at in conditions
    ]
    meta = {"name": name, "namespace": "team", "creationTimestamp": "2026-05-04T01:00:00Z"}
    spec = {"queueName": "q", "podSets": pods}
    return {"kind": "Workload", "metadata": meta, "spec": spec, "status": {"conditions": stated, **status}}


FINISHED = (("Admitted", "True", "01:00:10"), ("Finished", "True", "02:00:10"))
KUEUE = {
    "kind": "List",
    "items": [
        workload("spec", *FINISHED),
        workload(
            "total",
            *FINISHED,
            admission={"podSetAssignments": [{"name": "main", "resourceUsage": {"nvidia.com/gpu": "12"}}]},
            accumulatedPastExecutionTimeSeconds=60,
        ),
        workload("waits", ("Admitted", "False", "01:00:10")),
        workload("runs", ("Admitted", "True", "01:00:10")),
        workload("off", ("Evicted", "True", "01:00:10")) | {"spec": {**workload("off")["spec"], "active": False}},
        workload("cpu", *FINISHED, gpus="0"),
    ],
}
POD = (
    "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, creationTimestamp: '2026-05-04T01:00:0{k}Z', labels: "
    "{{runai/queue: old}}, annotations: {notes}}}\nspec: {{containers: [{{name: a, resources: {{limits: "
    "{{nvidia.com/gpu: {gpus}}}}}}}, {{name: b}}]}}\n"
)
ENDED = (
    "status:\n  phase: Succeeded\n  conditions: [{type: PodScheduled, status: 'True', lastTransitionTime: "
    "'2026-05-04T01:01:00Z'}]\n  containerStatuses:\n  - state: {terminated: {startedAt: '2026-05-04T01:01:05Z', "
    "finishedAt: '2026-05-04T01:02:00Z'}}\n  - state: {terminated: {finishedAt: '2026-05-04T01:03:00Z'}}\n"
)
KAI = "---\n".join(
    (
        POD.format(name="half", k=0, notes="{gpu-fraction: '0.5'}", gpus=0) + ENDED,
        POD.format(name="whole", k=1, notes="{}", gpus='"4"') + ENDED,
        POD.format(name="runs", k=2, notes="{}", gpus=2),
        POD.format(name="memory", k=3, notes="{gpu-memory: '2000'}", gpus=0) + ENDED,
    )
)
TASK = (
    "  - {{name: {name}, replicas: {count}, "
    "template: {{spec: {{containers: [{{resources: {{limits: {{{gpus}}}}}}}]}}}}}}\n"
)
PARTS = TASK.format(name="t", count=1, gpus="volcano.sh/vgpu-number: 2")
VOLCANO = (
    "kind: Job\nmetadata: {name: gang, creationTimestamp: '2026-05-03T20:01:59Z'}\nspec:\n  queue: q\n  minAvailable: 3\n"
    f"  tasks:\n{TASK.format(name='m', count=1, gpus='cpu: 1')}{TASK.format(name='w', count=4, gpus='nvidia.com/gpu: 2')}"
    f"---\nkind: Job\nmetadata: {{name: parts}}\nspec:\n  tasks:\n{PARTS}"
)


TEXTS = {
    "helios": f"{','.join(helios.HEADER)}\n"
    "7,u1,vc1,8,32,1,COMPLETED,2020-06-09 10:00:00,2020-06-09 10:00:10,2020-06-09 10:10:10,600,10\n"
    "8,u2,vc2,0,4,1,COMPLETED,2020-06-09 10:00:00,2020-06-09 10:00:00,2020-06-09 11:00:00,3600,0\n"
    "9,u2,vc2,1,4,1,RUNNING,2020-06-09 10:00:00,2020-06-09 10:00:00,2020-06-09 11:00:00,3600,0\n"
    "10,u2,vc2,4,16,2,FAILED,2020-06-09 09:59:00,2020-06-09 10:00:00,2020-06-09 10:00:30,30,60\n",
    "acme": f"{','.join(acme.HEADER)}\n"
    "a,u1,8,64,960,SFT,FAILED,2023-05-17 11:00:58+00:00,2023-05-17 11:01:08+00:00,2023-05-17 11:01:16+00:00,18,10.0,1152\n"
    "b,u2,1,1,15,Eval,CANCELLED,2023-05-17 11:00:00+00:00,,2023-05-17 11:01:16+00:00,76,,76\n"
    "c,u2,1,8,15,Eval,COMPLETED,2023-05-17 19:01:00+08:00,2023-05-17 11:01:10+00:00,2023-05-17 11:02:10+00:00,60,10,480\n",
    "openb": f"{','.join(openb.HEADER)}\n"
    "p0,12000,16384,2,1000,V100M16|T4,LS,Running,100,400,150\np1,12000,16384,1,460,,BE,Failed,100,400,150\n"
    "p2,12000,16384,1,1000,,BE,Pending,100,400,\np3,12000,16384,0,0,,BE,Failed,100,400,150\n"
    "p4,12000,16384,8,1000,,LS,Running,50,12902960,60\n",
    "dlrm": f"{','.join(dlrm.HEADER)}\n"
    + "".join(
        f"{name},HN,app_{name},12,12,{gpus},{gpus},25,25,120.0,120.0,680.0,800.0,{most},{times}\n"
        for name, gpus, most, times in (
            ("a", 1, 2, "50.0000002,57.0,117.0"),
            ("b", 2, -1, "0.0,0.0,60.5"),
            ("c", 0, -1, "5,5,9"),
            ("d", 0, -1, ",,9"),
            ("e", 1, 8, "5,5,"),
            ("f", 1, 8, ",,"),
        )
    ),
    "spot": f"{','.join(spot.HEADER)}\n239255,0,H800,15,2,4,500,59,Spot\n239256,1,A10,20,1,1,599,15897000,HP\n",
    "philly": json.dumps(PHILLY),
    "kueue": json.dumps(KUEUE),
    "kai": KAI,
    "volcano": VOLCANO,
}
SUFFIXES = {"philly": ".json", "kueue": ".json", "kai": ".yaml", "volcano": ".yaml"}
PAI = dict(zip(pai.TABLES, (PAI_JOBS, PAI_TASKS, PAI_RUNS), strict=True))


def write_pai(folder: Path, **changed: bytes) -> Path:
    """Write the three tables into a folder; some of them with other contents."""
    folder.mkdir(exist_ok=True)
    for table, text in PAI.items():
        (folder / f"pai_{table}_table.csv").write_bytes(changed.get(table, text.encode()))
    return folder
