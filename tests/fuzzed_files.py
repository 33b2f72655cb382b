"""Files of every kind that optsched reads, and ways to spoil them: for `test_fuzzed_files`."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from check.forged_schedules import CLASSES, Case

from optsched.bounds import BOUNDS
from optsched.check.referee import check_file, check_schedule
from optsched.classes import classes_of
from optsched.errors import OptschedError
from optsched.io.recognised import source_to_type
from optsched.io.sources import LoadRequest, load_counted
from optsched.io.traces.compressed import zstd
from optsched.policies.simulate import simulate
from optsched.problem.cluster import Cluster, NodeGroup
from optsched.problem.contention import IterationTasks
from optsched.problem.instance import Instance, Job
from optsched.problem.schedule import Schedule

ODD = (
    *("NaN", "Infinity", "-Infinity", "1e999", "-0.0", "1e-320", "9" * 400, "9" * 5000, str(2**63), str(-(2**63) - 1)),
    *(
        "null",
        "true",
        '""',
        "[]",
        "{}",
        "[" * 3000,
        '{"a":' * 300,
        '"\\ud800"',
        '"\\u0000"',
        "\x00",
        "\r",
        "\n",
        ",",
        '"',
    ),
    *("1" + "0" * 30, "10000000", "-1", "0.5", "1e18", "1e300", "e", "/", "1/0", "; DROP", "é", "\ufeff", "'", "\t"),
)
VALUES: tuple[Any, ...] = (
    *(None, True, "", "x", -1, 0, 0.5, 1e18, 1e300, 5e-324, float("nan"), float("inf"), 2**31, 2**63, -(2**63), 10**30),
    *(10**400, [], {}, [[]], [None], [1, 2], "1/3", "-1/1", "9" * 4000 + "/7", "1/" + "7" * 4000, 10_000_000, 10**12),
)
LOGS: dict[str, tuple[str, str]] = {  # dialect: suffix of the source, text
    "philly": ("", "timestamp,duration,num_gpus,gpu_time,cluster\n" + "2017-10-09 07:01:55,66.0,1,66.0,11cb48\n" * 3),
    "tiresias": (
        "",
        "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"
        "j0,1,0,606,vgg19,164,30\nj1,8,30,133,vgg11,147,23\n",
    ),
    "gavel": (
        "",
        "ResNet-18 (batch size 128)\tpython3 main.py\tcv\t--num_steps\t1\t925982\t4\t1\t-1.000000\t0\n"
        "LM (batch size 80)\tpython3 main.py\tlm\t--steps\t1\t12345\t1\t1\t-1.000000\t60.5\n",
    ),
    "muri": (
        "",
        "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,"
        "resource_time_0,resource_time_1,resource_time_2,priority\n0,8,0,10956,gpt2,4,5095000,91000,437,0.6,419,49,0\n",
    ),
    "orlib-wt": ("#1,n=3", "26 24 79\n1 10 9\n1588 1620 1731\n"),
    "classic": (
        "#C",
        json.dumps(
            [
                {"id": "C", "problem": "P|r_j,size_j|sumC", "machines": 8, "p": [4, 26], "r": [3, 1], "w": [1, 1]}
                | {"size": [2, 8], "optimum": 37, "proved_by": ["two"]}
            ]
        ),
    ),
    "swf": (
        "",
        "; MaxProcs: 128 (120,8)\n; UnixStartTime: 843480031\n; Note: one\n;       goes on\n"
        "1 0 964 97 56 -1 -1 56 210000 -1 1 1 1 -1 -1 -1 -1 -1\n2 5 9 70 4 -1 -1 4 90 -1 0 1 1 1 1 1 1 -1\n"
        "2 5 2 43 4 -1 -1 4 90 -1 2 1 1 1 1 1 -1 -1\n2 -1 7 27 4 -1 -1 4 90 -1 4 1 1 1 1 1 -1 -1 {1,2} q\n"
        "; a comment\n3 1.5 0 -1 -1 -1 -1 8 -1 -1 5 1 1 1 1 1 -1 -1\n",
    ),
    "batsim": (
        "",
        "job_id,workload_name,submission_time,requested_number_of_resources,requested_time,success,final_state,"
        "starting_time,execution_time,finish_time,allocated_resources\nw0!5,w0,63.25,4,149.0,0,"
        "COMPLETED_WALLTIME_REACHED,66.375,149.0,215.375,0-1 3 5\nw0!4,w0,63.25,4,149.0,0,REJECTED,,,,\n"
        "w0!6,w0,123.5,4,-1,1,COMPLETED_SUCCESSFULLY,123.5,1e-06,123.500001,0-1 3 5\n",
    ),
    "csv-ran": (
        "",
        "id,submitted,n,began,ended,secs,limit,state\na_1,2026/03/02 09:00:00,1,2026/03/02 09:00:05,2026/03/02 10:00:00,"
        "1:00:00,90m,OK\nb,2026/03/02 09:00:01,2,,2026/03/02 10:00:00,,,\nc,2026/03/02 09:00:02,3,2026/03/02 09:00:08,"
        "2026/03/03 09:00:38,1-00:00:30,2-00:00:00,FAILED\n",
    ),
    "csv": ("", 'id,submitted,n,"secs"\na,0,1,10\nb,5,2,3.5\n"c,d",6,1,4\n'),
}


@dataclass(frozen=True)
class Base:
    """A file that is read without complaint: its bytes, and what reads it."""

    kind: str
    suffix: str
    content: bytes
    read: Callable[[Path], int]  # jobs in it, or -1 where it holds none


def bases(folder: Path) -> list[Base]:
    """Instances, schedules, certificates, logs of tasks and traces, as JSON, Parquet and text."""
    found = []
    for k, schedule_class in enumerate(CLASSES):
        case = Case(np.random.default_rng([7, k]), schedule_class)
        case.instance.save(folder / "i.json")
        found.append(Base("instance", ".json", (folder / "i.json").read_bytes(), _instance))
        case.instance.save(folder / "i.parquet")
        found.append(Base("instance", ".parquet", (folder / "i.parquet").read_bytes(), _instance))
        found.append(Base("schedule", ".json", json.dumps(case.document).encode(), _judge(case.instance)))
    plain, shared, tasks = _plain(), _plain(interference=1.5), _tasks()
    tasks.save(folder / "t.json")
    found.append(Base("instance", ".json", (folder / "t.json").read_bytes(), _instance))
    run = simulate(plain, "srtf").schedule
    run.save(folder / "s.parquet", value=1.0)
    found.append(Base("schedule", ".parquet", (folder / "s.parquet").read_bytes(), _judge(plain)))
    logged = simulate(tasks, "srsf").schedule
    logged.save(folder / "l.json", sharing=True)
    found.append(Base("schedule", ".json", (folder / "l.json").read_bytes(), _judge(tasks)))
    logged.save_tasks(folder / "l.parquet")
    found.append(Base("tasks", ".parquet", (folder / "l.parquet").read_bytes(), _judge(tasks)))
    for instance in (plain, shared, tasks):
        found += [Base("certificate", ".json", doc, _judge(instance)) for doc in _certificates(instance)]
    for dialect, (fragment, text) in LOGS.items():
        found.append(Base(dialect, ".log", text.encode(), _trace(dialect, fragment)))
    for packed in (gzip.compress, zstd.compress):
        found.append(Base("compressed", ".log", packed(LOGS["swf"][1].encode()), _trace("swf", "")))
    return found


def _plain(**more: Any) -> Instance:
    nodes = (NodeGroup(gpus=4, gpu="V100"), NodeGroup(gpus=2, gpu="K80"))
    rows = [(0.0, 2, 6.0, 2.0, 7.0), (0.5, 1, 1.0, 1.0, 1.0), (1.0, 5, 2.0, 3.0, 2.0), (2.0, 1, 4.1, 2.0, 5.0)]
    jobs = [Job(f"j{k}", r, g, d, weight=w, due=due) for k, (r, g, d, w, due) in enumerate(rows)]
    return Instance(jobs, Cluster(nodes), **more)


def _tasks() -> Instance:
    jobs = [Job(name, k * 0.5, 1 + k % 2, iterations=3 + k, profile="t") for k, name in enumerate("abc")]
    return Instance(jobs, "1x2", tasks={"t": IterationTasks(0.25, 0.5)})


def _certificates(instance: Instance) -> list[bytes]:
    found = []
    for name in BOUNDS.names():
        bound = BOUNDS.get(name)
        if bound.strong:  # its files are long, and tests of its own touch them
            continue
        for schedule_class in set(bound.classes) & set(classes_of(instance)):
            objective = sorted(bound.objectives)[0]
            certificate = bound.build(instance, objective, schedule_class)
            if certificate is not None:
                found.append(json.dumps(certificate.to_json()).encode())
    data = {"formulation": "any", "origin": "0", "unit": "1/2", "denominator": 8, "jobs": ["0"] * instance.n}
    data |= {
        "rows": [{"width": "gpus", "price": [1, 2, 1]}, {"width": [1] * instance.n, "price": [3]}],
        "rounded": False,
    }
    head = {"format": "optsched-certificate/1", "instance": instance.digest, "objective": "total_completion_time"}
    for schedule_class in ("gang", "gang-nonpreemptive"):
        document = {**head, "class": schedule_class, "kind": "lp-dual", "value": "-99/1", "data": data}
        found.append(json.dumps(document).encode())
    return found


def _instance(path: Path) -> int:
    instance = load_counted(path).instance
    check_schedule(instance, Schedule.from_segments(instance, [], ""))
    return instance.n


def _judge(instance: Instance) -> Callable[[Path], int]:
    def read(path: Path) -> int:
        check_file(path, instance)
        return -1

    return read


def _trace(name: str, fragment: str) -> Callable[[Path], int]:
    dialect = "csv" if name == "csv-ran" else name
    columns = {"arrival": "submitted", "gpus": "n", "duration": "secs", "id": "id"} if dialect == "csv" else None
    if columns and name == "csv-ran":
        columns |= {"start": "began", "end": "ended", "walltime": "limit", "status": "state"}

    def read(path: Path) -> int:
        source_to_type(path)
        brings = dialect in ("orlib-wt", "classic")
        request = LoadRequest(cluster=None if brings else "16x8:V100", columns=columns, walltimes="cut")
        loaded = load_counted(f"{dialect}:{path}{fragment}", request)
        return loaded.instance.n

    return read


def read_spoiled(base: Base, content: bytes, folder: Path) -> int | None:
    """Reads it as the command line does: the number of jobs, -1, or None where it is refused in so many words."""
    path = folder / f"file{base.suffix}"
    path.write_bytes(content)
    try:
        return base.read(path)
    except OptschedError as error:
        lines = str(error).split("\n")
        str(error).encode()  # it can be printed
        if not lines[0] or len(lines) > 22 or max(map(len, lines)) > 20_000:
            raise AssertionError(f"not a clear line: {str(error)[:300]}") from error
        return None


# --- spoiling ------------------------------------------------------------------------------------------------------------


def any_of(rng: np.random.Generator, originals: list[Base]) -> Base:
    """One of them, every kind as likely as any other."""
    kinds = sorted({(base.kind, base.suffix) for base in originals})
    kind = kinds[int(rng.integers(0, len(kinds)))]
    alike = [base for base in originals if (base.kind, base.suffix) == kind]
    return alike[int(rng.integers(0, len(alike)))]


def spoiled(rng: np.random.Generator, content: bytes, suffix: str) -> bytes:
    """The content with one to four changes: of bytes, of text, or of values in the document."""
    if suffix == ".json" and rng.random() < 0.6:
        document = json.loads(content)
        for _ in range(int(rng.integers(1, 4))):
            _change_value(rng, document)
        content = json.dumps(document).encode()
        if rng.random() < 0.8:
            return content
    for _ in range(int(rng.integers(1, 5))):
        content = _change_bytes(rng, content, text=suffix != ".parquet")
    return content


def _change_value(rng: np.random.Generator, document: Any) -> None:
    place = document
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = keys[int(rng.integers(0, len(keys)))]
        inside = place[key]
        if isinstance(inside, dict | list) and inside and rng.random() < 0.85:
            place = inside
            continue
        choice = rng.random()
        if choice < 0.7:
            place[key] = copy.deepcopy(VALUES[int(rng.integers(0, len(VALUES)))])
        elif choice < 0.8 and isinstance(place, list):
            place.extend(copy.deepcopy([inside] * int(rng.choice([1, 3, 3000]))))
        elif choice < 0.9:
            del place[key]
        elif isinstance(inside, int | float) and abs(inside) < 1e300:
            place[key] = inside * float(rng.choice([-1, 1e-9, 1e9, 0.5, 1 + 1e-15]))
        return


def _change_bytes(rng: np.random.Generator, content: bytes, text: bool) -> bytes:
    at, to = sorted(int(x) for x in rng.integers(0, len(content) + 1, 2))
    choice = rng.random()
    if choice < 0.35 and at < len(content):
        return content[:at] + bytes([int(rng.integers(0, 256))]) + content[at + 1 :]
    if choice < 0.45:
        return content[:at]
    if choice < 0.55:
        return content[:at] + content[min(to, at + 40) :]
    if choice < 0.65:
        return content[:to] + content[at:to] + content[to:]
    if text:
        token = ODD[int(rng.integers(0, len(ODD)))].encode(errors="surrogatepass")
        return content[:at] + token + content[at + int(rng.choice([0, 1, 3])) :]
    return content[:at] + rng.bytes(int(rng.integers(1, 9))) + content[at:]
