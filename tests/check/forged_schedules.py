"""Random schedules of every speed model and class that are legal, and ways to forge them: for `test_forged`.

A schedule is drawn first, and the jobs ask for exactly what its segments are worth; so it holds by construction. Then
somebody touches it: infinite speed, segments by the hundred, GPUs of others, earlier ends.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from check.exact_referee import XI, Model, World
from optsched.problem.instance import Cluster, Instance, Job, NodeGroup
from optsched.problem.interference import Interference
from optsched.problem.profile import Profile, Stage
from optsched.problem.scaling import Scaling
from optsched.problem.throughputs import Throughput, Throughputs

Document = dict[str, Any]
CLASSES = ("gang", "gang-nonpreemptive", "forking", "sharing", "sharing-nonpreemptive", "elastic")
KINDS = ("duration", "table", "stage", "scaling")
EPOCHS = (0.0, 0.0, 1e6, 1.7e9, 1e12)
NODES = [("V100", 2, 32.0), ("V100", 2, 32.0), ("K80", 2, 12.0), ("T4", 1, 16.0)]
# 0: it does not fit; no row: nobody knows
RATES: dict[tuple[str, str, int], tuple[float, float]] = {
    ("picky", "V100", 1): (2.5, 2.5),
    ("picky", "V100", 2): (4.0, 3.3),
    ("picky", "K80", 1): (0.0, 0.0),
    ("picky", "K80", 2): (0.0, 0.0),
    ("plain", "V100", 1): (3.7, 3.7),
    ("plain", "V100", 2): (8.0, 8.0),
    ("plain", "K80", 1): (0.9, 0.9),
    ("plain", "K80", 2): (1.5, 1.0),
    ("plain", "T4", 1): (2.0, 2.0),
}
ENGINE = World(NODES, RATES)
LINKS = {"nic_bandwidth": 1e9, "intra_bandwidth": 1e11}
CLUSTER = Cluster(tuple(NodeGroup(gpus=count, gpu=kind, gpu_memory=memory, **LINKS) for kind, count, memory in NODES))
ALL_GPUS = [[n, i] for n, (_, count, _) in enumerate(NODES) for i in range(count)]
SCALING = Scaling(0.05, 0.01, within=0.02, within_growth=0.01, across=0.07, across_growth=0.03)


class Case:
    """An instance, its jobs as plain dicts with their models, and a schedule document that holds."""

    def __init__(self, rng: np.random.Generator, schedule_class: str) -> None:
        self.schedule_class, self.shares = schedule_class, schedule_class.startswith("sharing")
        self.epoch = float(rng.choice(EPOCHS))
        self.models = [_model(rng) for _ in range(int(rng.integers(2, 5)))]
        says = rng.random() < 0.5  # do jobs say what it costs to resume them?
        self.jobs: list[Document] = []
        segments: list[Document] = []
        grid = float(rng.choice([1.0, 0.25, 0.1]))
        free = {tuple(gpu): self.epoch for gpu in ALL_GPUS}
        for j, model in enumerate(self.models):
            job, own = self._run(rng, j, model, free, grid, grid * int(rng.integers(0, 6)) if says else 0.0)
            self.jobs.append(job)
            segments += own
        rng.shuffle(segments)  # type: ignore[arg-type]
        if self.shares:
            _fill_shared(self.jobs, self.models, segments)
        self.instance = _instance(self.jobs, self.models)
        self.document: Document = {
            "format": "optsched-schedule/1",
            "instance": self.instance.digest,
            "policy": "drawn",
            "segments": segments,
            **({"preemptive": False} if schedule_class.endswith("nonpreemptive") else {}),
            **({schedule_class: True} if schedule_class in ("forking", "elastic") else {}),
            **({"sharing": True} if self.shares else {}),
        }

    def _run(
        self,
        rng: np.random.Generator,
        j: int,
        model: Model,
        free: dict[tuple[int, int], float],
        grid: float,
        restart: float,
    ) -> tuple[Document, list[Document]]:
        pieces = 1 if self.schedule_class.endswith("nonpreemptive") else int(rng.integers(1, 4))
        segments: list[Document] = []
        need = Fraction(0)
        arrival = self.epoch + grid * int(rng.integers(0, 20))
        now = arrival
        memory = float(rng.choice([0.0, 10.0, 14.0]))
        for _ in range(pieces):
            gpus = _gang(rng, model, memory, self.schedule_class == "elastic")
            begin = max([now, *(free[tuple(gpu)] for gpu in gpus)])
            if self.shares and rng.random() < 0.5:
                begin = now  # perhaps beside another
            start = begin + grid * int(rng.integers(0, 3))
            end = start + grid * int(rng.integers(1, 40))
            pace = ENGINE.pace(model, gpus, self.schedule_class == "elastic")
            assert pace is not None
            row = {"job": f"j{j}", "gpus": gpus, "start": start, "end": end}
            row["work"] = float(_at_work(row, segments, restart) / pace)
            need += Fraction(row["work"])
            segments.append(row)
            now = start if self.schedule_class == "forking" and rng.random() < 0.6 else end
            for gpu in gpus:
                free[tuple(gpu)] = max(free[tuple(gpu)], end)
        types = [] if rng.random() < 0.7 else sorted({NODES[n][0] for row in segments for n, _ in row["gpus"]})
        if sum(count for kind, count, room in NODES if kind in types and room >= memory) < model.gang:
            types = []  # an elastic job ran narrower than its gang, which these types have no room for
        job = {"id": f"j{j}", "arrival": arrival, "need": float(need), "memory": memory, "types": types}
        return {**job, "restart": restart}, segments


def _at_work(row: Document, before: list[Document], restart: float) -> Fraction:
    """Seconds of a segment that are left for work after ``before``, those of its job that begin no later."""
    goes_on = any(each["end"] == row["start"] and _held(each) == _held(row) for each in before)
    resumes = any(each["start"] < row["start"] for each in before) and not goes_on
    return max(Fraction(row["end"]) - Fraction(row["start"]) - (Fraction(restart) if resumes else 0), Fraction(0))


def _model(rng: np.random.Generator) -> Model:
    kind = str(rng.choice(KINDS))
    gang = int(rng.integers(1, 3))
    name = str(rng.choice(["picky", "plain"])) if kind == "table" else f"{kind}{gang}" if kind == "stage" else kind
    return Model(kind, gang, int(rng.choice([3, 8])) if kind == "scaling" else 0, name)


def _gang(rng: np.random.Generator, model: Model, memory: float, elastic: bool) -> list[list[int]]:
    while True:
        width = int(rng.integers(1, 4)) if elastic and model.kind == "scaling" else model.gang
        chosen = [ALL_GPUS[k] for k in rng.choice(len(ALL_GPUS), width, replace=False)]
        if all(NODES[n][2] >= memory for n, _ in chosen) and ENGINE.pace(model, chosen, elastic) is not None:
            return [list(gpu) for gpu in chosen]


def _fill_shared(jobs: list[Document], models: list[Model], segments: list[Document]) -> None:
    """Who would be a third, or has no room, runs after all others; then the work is what the partners leave."""
    kept: list[Document] = []
    last = max(row["end"] for row in segments)
    for row in sorted(segments, key=lambda each: each["start"]):
        meets = [o for o in kept if _seconds_together(o, row)]
        memory = {job["id"]: job["memory"] for job in jobs}
        tight = any(
            memory[o["job"]] + memory[row["job"]] > NODES[n][2] for o in meets for n, _ in _held(row) & _held(o)
        )
        if len(meets) > 1 or tight or any(_seconds_together(o, p) for o in meets for p in kept if p is not o):
            length = row["end"] - row["start"]
            row["start"], row["end"] = last, last + length
            last = row["end"]
        kept.append(row)
    for job in jobs:
        job["need"] = 0.0
    for row in segments:
        j = int(row["job"][1:])
        own = [o for o in segments if o is not row and o["job"] == row["job"] and o["start"] <= row["start"]]
        at_work = _at_work(row, own, jobs[j]["restart"])
        since = Fraction(row["end"]) - at_work
        both = sum((_seconds_together(o, row, since) for o in segments if o is not row), Fraction(0))
        seconds = at_work - both + both / XI
        pace = ENGINE.pace(models[j], row["gpus"], False)
        assert pace is not None
        row["work"] = float(seconds / pace)
        jobs[j]["need"] = float(Fraction(jobs[j]["need"]) + Fraction(row["work"]))


def _held(row: Document) -> set[tuple[int, ...]]:
    return {tuple(gpu) for gpu in row["gpus"]}


def _seconds_together(one: Document, other: Document, since: Fraction = Fraction(0)) -> Fraction:
    """How long two segments share a GPU from a moment on."""
    begin, until = max(one["start"], other["start"]), min(one["end"], other["end"])
    if until <= max(begin, since) or not _held(one) & _held(other):
        return Fraction(0)
    return Fraction(until) - max(Fraction(begin), since)


def _instance(jobs: list[Document], models: list[Model]) -> Instance:
    made = [
        Job(
            job["id"],
            arrival=job["arrival"],
            gpus=model.gang,
            duration=job["need"] if model.kind == "duration" else None,
            iterations=None if model.kind == "duration" else job["need"],
            profile=None if model.kind == "duration" else model.name,
            gpu_memory=job["memory"],
            restart=job["restart"] or None,
            gpu_types=tuple(job["types"]) or None,
            batch_size=model.batch or None,
        )
        for job, model in zip(jobs, models, strict=True)
    ]
    rates = {key: Throughput(near, None if near == far else far) for key, (near, far) in RATES.items()}
    used = {model.name for model in models if model.kind == "table"}
    return Instance(
        made,
        CLUSTER,
        profiles={f"stage{g}": Profile((Stage(g, 0.1, 0.25),)) for g in (1, 2)},
        throughputs=Throughputs(rates) if used else None,
        scalings={"scaling": SCALING},
        interference=Interference(float(XI)),
    )


# --- forging -------------------------------------------------------------------------------------------------------------


def forged(rng: np.random.Generator, case: Case) -> Document:
    """The document of a case after one to three forgeries."""
    document = copy.deepcopy(case.document)
    for _ in range(int(rng.integers(1, 4))):
        if document["segments"]:
            WAYS[int(rng.integers(0, len(WAYS)))](rng, case, document)
    return document


def _any(rng: np.random.Generator, document: Document) -> Document:
    return document["segments"][int(rng.integers(0, len(document["segments"])))]


def _elsewhere(rng: np.random.Generator, case: Case, document: Document) -> None:
    """GPUs of any type: where the job has no speed, no memory, or others already are."""
    row = _any(rng, document)
    row["gpus"] = [list(ALL_GPUS[k]) for k in rng.choice(len(ALL_GPUS), len(row["gpus"]) or 1, replace=False)]


def _at_once(rng: np.random.Generator, case: Case, document: Document) -> None:
    row = _any(rng, document)
    row["end"] = row["start"] + float(rng.choice([0.0, 1e-3, 1e-9])) * (row["end"] - row["start"])


def _no_speed(rng: np.random.Generator, case: Case, document: Document) -> None:
    """All of a job in a moment on GPUs for which its table says zero, or nothing."""
    row = _any(rng, document)
    width = max(len(row["gpus"]), 1)
    row["gpus"] = [[2, 0], [2, 1], [3, 0], [0, 0], [1, 1], [1, 0], [0, 1]][:width] if rng.random() < 0.7 else [[3, 0]]
    row["end"] = row["start"] + float(rng.choice([0.0, 1e-3]))


def _scale(name: str) -> Callable[[np.random.Generator, Case, Document], None]:
    def change(rng: np.random.Generator, case: Case, document: Document) -> None:
        row = _any(rng, document)
        row[name] *= 1 + float(rng.choice([-1, 1])) * 10.0 ** -int(rng.integers(0, 17))

    return change


def _shift(rng: np.random.Generator, case: Case, document: Document) -> None:
    row = _any(rng, document)
    tick = math.ulp(max(abs(row["end"]), 1.0))
    by = float(rng.choice([-1, 1])) * float(rng.choice([tick, 4 * tick, 1e3 * tick, 1e-6, 0.01, 1, 10]))
    row["start"] += by
    row["end"] += by


def _odd(rng: np.random.Generator, case: Case, document: Document) -> None:
    name = str(rng.choice(["start", "end", "work"]))
    _any(rng, document)[name] = float(rng.choice([math.nan, math.inf, -math.inf, 0.0, -1.0, 1e308, -1e308, 5e-324]))


def _crumbs(rng: np.random.Generator, case: Case, document: Document) -> None:
    """The work of a segment in many empty or tiny segments, each with a little more than its length is worth."""
    row = _any(rng, document)
    if not math.isfinite(row["end"]) or not row["work"] > 0 or not math.isfinite(row["work"]):
        return
    document["segments"].remove(row)
    count = int(rng.choice([2, 10, 100]))
    tick = math.ulp(max(abs(row["start"]), 1e-6)) * int(rng.choice([0, 1, 8, 100]))
    each = row["work"] / count if rng.random() < 0.5 else row["work"] / count * float(rng.choice([0.5, 1 / 3]))
    now = row["start"]
    for _ in range(count):
        document["segments"].append({**row, "start": now, "end": now + tick, "work": each})
        now += tick
    if rng.random() < 0.5:
        document["segments"].append({**row, "work": max(row["work"] - each * count, 0.0), "start": now})


def _shave(rng: np.random.Generator, case: Case, document: Document) -> None:
    """A segment in many, each overdrawn by some ulp, so that the job ends earlier."""
    row = _any(rng, document)
    if not math.isfinite(row["end"]) or not row["end"] > row["start"]:
        return
    document["segments"].remove(row)
    count, ulps = int(rng.choice([3, 30, 150])), float(rng.choice([0.5, 1, 4, 7.5]))
    length, tick = (row["end"] - row["start"]) / count, math.ulp(abs(row["end"]))
    now = row["start"]
    for _ in range(count):
        document["segments"].append(
            {**row, "start": now, "end": max(now, now + length - ulps * tick), "work": row["work"] / count}
        )
        now = document["segments"][-1]["end"]


def _interleave(rng: np.random.Generator, case: Case, document: Document) -> None:
    """Two jobs on the same GPUs in turns that overlap by a little."""
    one, other = _any(rng, document), _any(rng, document)
    if one is other or not math.isfinite(one["end"]) or not one["end"] > one["start"] or len(document["segments"]) > 60:
        return
    document["segments"] = [row for row in document["segments"] if row is not one and row is not other]
    count, length = 20, (one["end"] - one["start"]) / 20
    for k in range(count):
        start = one["start"] + k * length
        for row in (one, other):
            document["segments"].append(
                {**row, "gpus": one["gpus"], "start": start, "end": start + length, "work": row["work"] / count}
            )


def _widths(rng: np.random.Generator, case: Case, document: Document) -> None:
    row = _any(rng, document)
    choice = int(rng.integers(0, 4))
    if choice == 0 and row["gpus"]:
        row["gpus"] = row["gpus"][:-1]
    elif choice == 1:
        row["gpus"] = [*row["gpus"], list(ALL_GPUS[int(rng.integers(0, len(ALL_GPUS)))])]
    elif choice == 2 and row["gpus"]:
        row["gpus"] = [*row["gpus"][:-1], [int(rng.integers(-1, 6)), int(rng.integers(-1, 4))]]
    elif row["gpus"]:
        row["gpus"] = [row["gpus"][0]] * len(row["gpus"])


def _whose(rng: np.random.Generator, case: Case, document: Document) -> None:
    choice = rng.random()
    if choice < 0.4:
        _any(rng, document)["job"] = _any(rng, document)["job"]
    elif choice < 0.6:
        _any(rng, document)["job"] = "stranger"
    elif choice < 0.8:
        document["segments"].remove(_any(rng, document))
    else:
        document["segments"].append(copy.deepcopy(_any(rng, document)))


def _flags(rng: np.random.Generator, case: Case, document: Document) -> None:
    document[str(rng.choice(["preemptive", "forking", "sharing", "elastic"]))] = bool(rng.random() < 0.5)


def _early(rng: np.random.Generator, case: Case, document: Document) -> None:
    """Everything of a job as early as its arrival, or earlier."""
    row = _any(rng, document)
    job = next((job for job in case.jobs if job["id"] == row["job"]), case.jobs[0])
    length = row["end"] - row["start"]
    row["start"] = job["arrival"] - float(rng.choice([0.0, 0.0, math.ulp(job["arrival"] or 1e-9), 1e-3, 5.0]))
    row["end"] = row["start"] + length


def _idle(rng: np.random.Generator, case: Case, document: Document) -> None:
    """Harmless: it ends later."""
    row = max(document["segments"], key=lambda each: each["end"])
    row["end"] += float(rng.choice([1.0, 0.5]))


def _unpaid(rng: np.random.Generator, case: Case, document: Document) -> None:
    """The end as early, or the start as late, as if resuming the job cost nothing, or less than it does."""
    row = _any(rng, document)
    cost = next((job["restart"] for job in case.jobs if job["id"] == row["job"]), 0.0)
    less = cost * float(rng.choice([1.0, 0.5, 1e-3]))
    name, by = ("end", -less) if rng.random() < 0.7 else ("start", less)
    row[name] += by


def _stop(rng: np.random.Generator, case: Case, document: Document) -> None:
    """A stop in the middle of a segment: on other GPUs, or where it was after a gap of any length, or of none."""
    row = _any(rng, document)
    length = row["end"] - row["start"]
    if not math.isfinite(length) or length <= 0:
        return
    gap = float(rng.choice([0.0, 0.0, 1e-12, 1e-3, 0.25])) * length
    cut, half = row["start"] + length / 2, row["work"] / 2
    after = {**row, "start": cut + gap, "work": half}
    row["end"], row["work"] = cut, half
    document["segments"].append(after)
    if rng.random() < 0.3:
        _elsewhere(rng, case, {"segments": [after]})


def _steps(rng: np.random.Generator, case: Case, document: Document) -> None:
    _any(rng, document)["steps"] = int(rng.choice([-1, 0, 1, 7]))  # 7: no split of any batch here


WAYS = [
    *(_elsewhere, _elsewhere, _at_once, _no_speed, _no_speed, _scale("end"), _scale("start"), _scale("work")),
    *(
        _shift,
        _shift,
        _odd,
        _crumbs,
        _crumbs,
        _shave,
        _shave,
        _interleave,
        _widths,
        _whose,
        _flags,
        _early,
        _idle,
        _steps,
        _unpaid,
        _unpaid,
        _stop,
    ),
]


def cases(seed: int, count: int, forgeries: int) -> Iterator[tuple[Case, list[Document]]]:
    """``count`` cases, the classes in turn, with so many forged documents each."""
    for k in range(count):
        rng = np.random.default_rng([seed, k])
        case = Case(rng, CLASSES[k % len(CLASSES)])
        yield case, [forged(rng, case) for _ in range(forgeries)]
