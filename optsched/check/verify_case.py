"""What a certificate file and its instance file say, read without optsched: the part of verify_certificate.py that reads.

`Case` is an instance as its file states it, exactly: floats are integers over powers of two, times of jobs integers of
1 / `Case.unit` seconds, weights of 1 / `Case.shares`. `Machine`: what gangs of one threshold are on one machine. `Refused`:
what is not so, by rule.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct
import sys
from collections.abc import Callable, Iterable
from fractions import Fraction
from operator import mul
from typing import Any, NamedTuple

MOST_BYTES, MOST_JOBS, MOST_STEPS, MOST_ROWS, MOST_LEVELS = 1 << 24, 100_000, 10**7, 1000, 16
MOST_GPUS, FILLED, EXPONENT, WIDEST = 10**6, 1 << 16, 2200, 1 << 512  # more GPUs than FILLED: U = G
EXACT, KEPT_BITS = 64, 32  # more interrupted jobs: their mean busy times are rounded down to 2^-32 ticks
GAIN_BITS = 100  # of utility: terms are rounded up to multiples of 2^-100
NUMBERS = ("arrival", "duration", "iterations", "weight", "due", "gpu_memory", "restart", "checkpoint")  # as digested
USUAL = {"arrival": 0.0, "weight": 1.0}
JOB = {*NUMBERS, "id", "gpus", "profile", "gpu_types", "user", "group", "model", "batch_size"}
VALUE, DUAL, INSTANCE, KIND = "value", "dual-feasibility", "instance", "kind"  # what a refusal says is broken
UNJUDGED = "unjudged"  # or this: it may hold
Data = dict[str, Any]
Few = Callable[[int, int, str], None]  # (how many, the most, of what)


class Refused(Exception):
    """A certificate does not hold, and ``rule`` is what is broken; or it cannot be judged here."""

    def __init__(self, text: str, rule: str) -> None:
        super().__init__(text)
        self.rule = rule


def need(legal: object, text: str, rule: str = VALUE) -> None:
    """Go on only where something is legal."""
    if not legal:
        raise Refused(text, rule)


def shown(value: Any) -> str:
    """A value in a message: short, in one line."""
    return ascii(value if not isinstance(value, int) or abs(value) < WIDEST else "a huge number")[:80]


# --- reading --------------------------------------------------------------------------------------------------------------


def read(path: str, form: str) -> Data:
    """The JSON object in a file of a format; an object that has a key twice is read as False."""
    try:
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
        content = content if len(content) <= MOST_BYTES else b""
        document = json.loads(content, object_pairs_hook=lambda x: len(dict(x)) == len(x) and dict(x))
    except (OSError, ValueError, RecursionError) as error:
        raise Refused(
            f"{path}: no JSON document of at most {MOST_BYTES} bytes ({shown(str(error))})", UNJUDGED
        ) from None
    need(type(document) is dict and document.get("format") == form, f"{path}: not of the format {form}", UNJUDGED)
    return dict(document)


def the(
    kind: Any, part: Data, name: str, rule: str = VALUE, usual: Any = None, least: Any = 0, most: Any = WIDEST
) -> Any:
    """A field of a type, in a range if it is a number; the usual one where there is none. Integers are floats, too."""
    value: Any = part.get(name) if type(part) is dict else None
    value = usual if value is None else value
    legal = type(value) is kind or (kind is float and type(value) is int)
    legal = legal and (value is usual or kind not in (int, float) or least <= value <= most)
    need(legal, f"{name}: {shown(value)} is no legal {kind.__name__}", rule)
    return float(value) + 0.0 if kind is float else value  # there is one zero only


def column(jobs: list[Data], name: str, least: float) -> list[float]:
    """A number of every job; NaN where there is none."""
    usual = USUAL.get(name, math.nan)
    values = [job.get(name) for job in jobs]
    for x in values:
        legal = x is None or (type(x) in (float, int) and least <= x <= 2.0**512)
        need(legal, f"{name}: {shown(x)} is no legal number of a job", UNJUDGED)
    return [usual if x is None else float(x) + 0.0 for x in values]


def ratio(text: Any, name: str, longest: int = 4000) -> Fraction:
    """The fraction written p/q."""
    legal = type(text) is str and len(text) < longest and re.fullmatch("-?[0-9]+(/0*[1-9][0-9]*)?", text)
    need(legal, f"{name} must be a fraction written 'p/q', not {shown(text)}")
    return Fraction(text)


def written(value: Fraction) -> str:
    """A fraction as p/q."""
    return f"{value.numerator}/{value.denominator}"


def integers(values: Iterable[Any]) -> tuple[list[int], int]:
    """Floats, or fractions over powers of two, as integers over one power of two."""
    ratios = [x.as_integer_ratio() for x in values]
    unit = max((q for _, q in ratios), default=1)
    return [p * (unit // q) for p, q in ratios], unit


def floors(values: Iterable[int], unit: int, exponent: int) -> list[int]:
    """Integers over ``unit``, times 2^exponent, rounded down."""
    up, down = max(exponent, 0), unit << max(-exponent, 0)
    return [(x << up) // down for x in values]


def below(value: Fraction) -> float:
    """The largest float64 that is not above."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def epoch_of(arrivals: list[float], due: list[float]) -> float:
    """The moment from which optsched counts: the first arrival, or one before it, where that costs no digit of a time."""
    first = min(arrivals, default=0.0)
    span = max([first, *arrivals, *due]) - min([first, *due])
    grid = 2.0 ** math.ceil(math.log2(span)) if span else 1.0
    for moment in (first, math.floor(first / grid) * grid):
        if all(Fraction(x - moment) == Fraction(x) - Fraction(moment) for x in (*arrivals, *due)):
            return moment
    return 0.0


# --- the instance ---------------------------------------------------------------------------------------------------------


class Machine(NamedTuple):
    """One machine of ``capacity`` units: a job is ``work`` from its ``release`` on, in ticks, ``second`` of them a second.

    ``stated``: what files say of it. A job ends ``tail`` seconds or more after its work (None: 0) and half of ``reach`` or
    more after the mean moment of that (None: of what it takes alone).
    """

    release: list[int]
    work: list[int]
    capacity: int
    second: Fraction
    stated: Data
    tail: list[Fraction] | None = None
    reach: list[Fraction] | None = None


def machine(release: list[int], work: list[int], capacity: int, exponent: int, stated: Data, *beside: Any) -> Machine:
    """On a grid of 2^exponent steps a second: ``release`` in steps, ``work`` in units and steps."""
    second = Fraction(2) ** exponent * capacity
    stated = {**stated, "grid_exponent": exponent, "capacity": capacity, "tick": written(1 / second)}
    return Machine([capacity * r for r in release], work, capacity, second, stated, *beside)


class Case:
    """What a certificate is about: lists by job; times count from the epoch on.

    ``release``, ``length`` r_j and p_j, ``moment`` c_j, ``due`` (None: none), ``alone``: what j costs a unit of weight where
    it never waits; integers of 1 / ``unit`` seconds. ``weight``: integers of 1 / ``shares``. ``least``: the objective where
    nobody waits. ``stated``: what files say of it. ``vouched``: somebody has read the instance who takes any size of it.
    """

    parts = frozenset({"format", "name", "objective", "cluster", "jobs", "recipe", "optimum"})
    vouched = False
    most_steps = MOST_STEPS

    def __init__(self, document: Data, claimed: str, schedule_class: str, epoch: Fraction) -> None:
        self.document, self.claimed, self.schedule_class = document, claimed, schedule_class
        self.read_instance(document, epoch)
        lengths: list[float] = self.seconds()
        need(self.digest is None or self.claimed == self.digest.hexdigest(), "it is of another instance", INSTANCE)
        n, dates = len(self.ids), self.column["due"]
        times, self.unit = integers([*self.column["arrival"], *lengths, *(0.0 if x != x else x for x in dates), epoch])
        self.release, self.length = [x - times[-1] for x in times[:n]], times[n : 2 * n]
        self.due = [None if x != x else t - times[-1] for x, t in zip(dates, times[2 * n : 3 * n], strict=True)]

    def ask(self, kind: str, objective: str) -> None:
        """The certificate is of this kind, and for this objective."""
        self.kind, self.objective = kind, objective
        self.late, self.flow = objective == "total_weighted_tardiness", "flow" in objective
        weigh = "weighted" in objective or objective == "total_utility"
        self.weight, self.shares = integers(self.column["weight"] if weigh else [1.0] * len(self.ids))
        if self.late:
            self.weight = [0 if d is None else w for w, d in zip(self.weight, self.due, strict=True)]
        dates = [d or 0 for d in self.due] if self.late else [0] * len(self.ids)
        self.moment = self.release if self.flow else dates
        ends = zip(self.release, self.length, self.moment, strict=True)
        self.alone = [max(r + p - c, 0) for r, p, c in ends]
        self.least = Fraction(sum(map(mul, self.weight, self.alone)), self.shares * self.unit)
        constant = Fraction(sum(map(mul, self.weight, self.moment)), self.shares * self.unit)
        self.stated: Data = {"flow_constant": written(constant)} if self.flow and "total" in objective else {}

    def read_instance(self, document: Data, epoch: Fraction) -> None:
        """Nodes and jobs, and their digest."""
        groups, jobs = (
            the(list, the(dict, document, "cluster", UNJUDGED), "nodes", UNJUDGED),
            the(list, document, "jobs", UNJUDGED),
        )
        need(all(type(each) is dict for each in (*groups, *jobs)), "no legal instance", UNJUDGED)
        self.few(len(jobs), MOST_JOBS, "jobs")
        known = document.keys() <= self.parts and all(job.keys() <= JOB for job in jobs)
        need(known, "the instance has parts that are not known here: use optsched verify", UNJUDGED)
        self.jobs, self.nodes = jobs, list[Data]()
        for group in groups:
            counts = {x: the(int, group, x, UNJUDGED, usual=1, least=1, most=MOST_GPUS) for x in ("count", "gpus")}
            sizes = {x: the(float, group, x, UNJUDGED) for x in group.keys() - {"gpu", *counts} if group[x] is not None}
            whole = {x: int(size) if size.is_integer() else size for x, size in sizes.items()}
            self.nodes.append({"gpu": group.get("gpu", "GPU"), **counts, **whole})
        self.total = sum(node["gpus"] * node["count"] for node in self.nodes)
        self.few(self.total, MOST_GPUS, "GPUs")
        least = {"arrival": float(epoch), "duration": 1e-12, "due": -(2.0**512)}
        self.column = {name: column(jobs, name, least.get(name, 0.0)) for name in NUMBERS}
        self.ids = [job["id"] if job.get("id") is not None else str(j) for j, job in enumerate(jobs, 1)]
        self.gpus = [the(int, job, "gpus", UNJUDGED, usual=1, least=1, most=self.total) for job in jobs]
        head = json.dumps({"nodes": self.nodes}, sort_keys=True) + json.dumps(self.ids)
        self.digest: Any = hashlib.sha256(b"optsched-instance/1\n" + head.encode())
        for name in [x for x in NUMBERS if x in NUMBERS[:6] or any(y == y for y in self.column[x])]:
            self.digest.update(name.encode() + struct.pack(f"<{len(jobs)}d", *self.column[name]))
        self.digest.update(b"gpus" + struct.pack(f"<{len(jobs)}q", *self.gpus))
        for texts in ([job.get(name) for job in jobs] for name in ("profile", "gpu_types")):
            self.digest.update(json.dumps(texts).encode() if any(text is not None for text in texts) else b"")

    def few(self, count: int, most: int, what: str) -> None:
        """Nobody vouches for a file: of some things it may have only so many."""
        need(self.vouched or count <= most, f"{count} {what}, more than {most}: use optsched verify", UNJUDGED)

    def seconds(self) -> list[float]:
        """What every job takes at least; the digest learns what decides it."""
        need(
            all(x == x for x in self.column["duration"]),
            "there are jobs without a duration: use optsched verify",
            UNJUDGED,
        )
        return self.column["duration"]

    def works(self) -> list[float]:
        """What every job has to do, which utility counts."""
        return self.column["duration"]

    def machine(self, data: Data) -> Machine:
        """By a threshold of gangs."""
        threshold, total = the(int, data, "threshold", DUAL, least=1, most=(self.total + 1) // 2), self.total
        exponent = the(int, data, "grid_exponent", least=-EXPONENT, most=EXPONENT)
        middle = [g for g in self.gpus if threshold <= g <= total - threshold]
        capacity = fill(middle, total) if middle else 1
        width = {g: capacity if g > total - threshold else g if g >= threshold else 0 for g in set(self.gpus)}
        work = [width[g] * p for g, p in zip(self.gpus, floors(self.length, self.unit, exponent), strict=True)]
        return machine(floors(self.release, self.unit, exponent), work, capacity, exponent, {"threshold": threshold})


def fill(gangs: list[int], total: int) -> int:
    """The most of ``total`` GPUs that gangs have together."""
    filled, most = 1, (2 << total) - 1  # bit b: some of them have b GPUs
    for size in gangs if total <= FILLED else ():
        filled |= (filled << size) & most
        if filled >> total:
            return total
    return filled.bit_length() - 1 if total <= FILLED else total


def most_together(paid: list[tuple[int, int]], total: int) -> int:
    """The most that gangs (GPUs, price) pay which have no more than ``total`` GPUs together: by the GPUs filled."""
    if sum(gang for gang, _ in paid) <= total:
        return sum(price for _, price in paid)
    step = math.gcd(*(gang for gang, _ in paid))
    best = [0] * (total // step + 1)
    for size, price in ((gang // step, price) for gang, price in paid if price):
        best[size:] = map(max, best[size:], [more + price for more in best[: len(best) - size]])
    return best[-1]


def by_cell(own: list[tuple[int, list[int]]], gangs: list[int], cells: int) -> list[list[tuple[int, int]]]:
    """(GPUs, price) of the jobs that pay in every cell, of which each has prices from some cell on."""
    paid: list[list[tuple[int, int]]] = [[] for _ in range(cells)]
    for (first, row), gang in zip(own, gangs, strict=False):
        for k, price in enumerate(row, start=first):
            paid[k] += [(gang, price)] if price else []
    return paid


def main(name: str, judge: Callable[[Data, Data], str]) -> None:
    """The command: judge the two files, print one line, and end the program with the exit code."""
    try:
        need(len(sys.argv) == 3, f"usage: python {name} CERTIFICATE INSTANCE (two JSON files)", UNJUDGED)
        print("holds:", judge(read(sys.argv[1], "optsched-certificate/1"), read(sys.argv[2], "optsched-instance/1")))
    except Refused as refused:
        unjudged = refused.rule == UNJUDGED
        print("cannot be judged:" if unjudged else "does not hold:", refused, file=sys.stderr)
        raise SystemExit(2 if unjudged else 1) from None
