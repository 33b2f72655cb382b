"""Check a lower bound without optsched: a certificate file against its instance file, by the standard library alone.

    python verify_certificate.py CERTIFICATE INSTANCE

Copy this one file (Python 3.11 or newer). It shares no code with what finds the bounds, and computes them anew, in
fractions. Exit code 0: that is what the file says; 1: it is not; 2: it cannot be judged here.

**Problem**: jobs with releases r_j, durations p_j, weights w_j, due dates d_j, each on g_j of G GPUs at once, preemptive or
not (classes gang, gang-nonpreemptive); C_max; max (C_j - r_j); sum w_j max(C_j - c_j, 0), c_j = 0, r_j or d_j.
**Theorems** (proofs: optsched/bounds): release-plus-duration, critical-job: C_j >= r_j + p_j. On one machine of capacity U
a job is an amount u_j p_j of work: u_j = 0 for gangs below a threshold e, U for those above G - e, else g_j; U: the most
GPUs that these fill; times are rounded down. volume: what comes at t or later is done after t. first-come: no order has a
smaller largest flow time. (srpt-)due-dates, srpt: SRPT has the earliest k-th completion for every k; weights are cut into
levels. (mean-, split-)busy-time: C_j >= M_j + p_j / 2, and preemptive WSPT has the least sum of u_j M_j over mean busy
times M_j for any 0 <= u_j <= w_j. lp-dual: prices on cells of time; what jobs cost and pay at least, less what GPUs earn.
**Limits** for files that nobody vouches for: 16 MiB, 100,000 jobs, 10^7 steps of prices, numbers of some 1000 bits. **Not
known here**: speeds by type or placement, shared GPUs, tasks: copy verify_on_clusters.py, too, or use optsched verify.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import math
import re
import struct
import sys
from fractions import Fraction
from operator import mul
from typing import Any

MOST_BYTES, MOST_JOBS, MOST_STEPS, MOST_ROWS, MOST_LEVELS = 1 << 24, 100_000, 10**7, 1000, 16
MOST_GPUS, FILLED, EXPONENT, WIDEST = 10**6, 1 << 16, 2200, 1 << 512  # more GPUs than FILLED: U = G
EXACT, KEPT_BITS = 64, 32  # more interrupted jobs: their mean busy times are rounded down to 2^-32 ticks
NUMBERS = ("arrival", "duration", "iterations", "weight", "due", "gpu_memory", "restart", "checkpoint")  # as digested
JOB = {*NUMBERS, "id", "gpus", "profile", "gpu_types", "user", "group", "model", "batch_size"}
Data = dict[str, Any]


def need(legal: object, text: str, code: int = 1) -> None:
    """Go on only where something is legal; else the program ends with 1, it does not hold, or 2, it cannot be judged."""
    if not legal:
        print("does not hold:" if code == 1 else "cannot be judged:", text, file=sys.stderr)
        raise SystemExit(code)


def read(path: str, form: str) -> Data:
    """The JSON object in a file of a format; an object that has a key twice is read as False."""
    try:
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
        content = content if len(content) <= MOST_BYTES else b""
        document = json.loads(content, object_pairs_hook=lambda x: len(dict(x)) == len(x) and dict(x))
    except (OSError, ValueError, RecursionError) as error:
        need(False, f"{path}: no JSON document of at most {MOST_BYTES} bytes can be read ({ascii(str(error))[:80]})", 2)
    need(type(document) is dict and document.get("format") == form, f"{path}: not of the format {form}", 2)
    return dict(document)


def the(kind: Any, part: Data, name: str, code: int = 1, usual: Any = None, least: Any = 0, most: Any = WIDEST) -> Any:
    """A field of a type, in a range if it is a number; the usual one where there is none. Integers are floats, too."""
    value: Any = part.get(name) if type(part) is dict else None
    value = usual if value is None else value
    legal = type(value) is kind or (kind is float and type(value) is int)
    legal = legal and (value is usual or kind not in (int, float) or least <= value <= most)
    need(legal, f"{name}: {ascii(value)[:80]} is no legal {kind.__name__}", code)
    return float(value) + 0.0 if kind is float else value  # there is one zero only


def ratio(text: Any, name: str, longest: int = 4000) -> Fraction:
    """The fraction written p/q."""
    legal = type(text) is str and len(text) < longest and re.fullmatch("-?[0-9]+(/0*[1-9][0-9]*)?", text)
    need(legal, f"{name} must be a fraction written 'p/q', not {ascii(text)[:80]}")
    return Fraction(text)


class Case:
    """What a certificate is about: lists by job, times from the epoch on; moment c_j; alone: the cost of who never waits."""

    parts = frozenset({"format", "name", "objective", "cluster", "jobs", "recipe", "optimum"})

    def __init__(self, document: Data, names: list[str], epoch: Fraction) -> None:
        self.document, (self.claimed, self.kind, self.objective, self.schedule_class) = document, names
        groups, jobs = the(list, the(dict, document, "cluster", 2), "nodes", 2), the(list, document, "jobs", 2)
        need(len(jobs) <= MOST_JOBS and all(type(each) is dict for each in (*groups, *jobs)), "no legal instance", 2)
        known = document.keys() <= self.parts and all(job.keys() <= JOB for job in jobs)
        need(known, "the instance has parts that are not known here: use optsched verify", 2)
        self.jobs, self.nodes = jobs, list[Data]()
        for group in groups:
            counts = {x: the(int, group, x, 2, usual=1, least=1, most=MOST_GPUS) for x in ("count", "gpus")}
            sizes = {x: the(float, group, x, 2) for x in group.keys() - {"gpu", *counts} if group[x] is not None}
            whole = {x: int(size) if size.is_integer() else size for x, size in sizes.items()}
            self.nodes.append({"gpu": group.get("gpu", "GPU"), **counts, **whole})
        self.total = sum(node["gpus"] * node["count"] for node in self.nodes)
        need(self.total <= MOST_GPUS, f"{self.total} GPUs, more than {MOST_GPUS}", 2)
        usual, least = {"arrival": 0.0, "weight": 1.0}, {"arrival": float(epoch), "duration": 1e-12, "due": -WIDEST}
        self.column = {x: [the(float, j, x, 2, usual.get(x, math.nan), least.get(x, 0)) for j in jobs] for x in NUMBERS}
        self.ids = [job["id"] if job.get("id") is not None else str(j) for j, job in enumerate(jobs, 1)]
        self.gpus = [the(int, job, "gpus", 2, usual=1, least=1, most=self.total) for job in jobs]
        head = json.dumps({"nodes": self.nodes}, sort_keys=True) + json.dumps(self.ids)
        self.digest = hashlib.sha256(b"optsched-instance/1\n" + head.encode())
        for name in [x for x in NUMBERS if x in NUMBERS[:6] or any(y == y for y in self.column[x])]:
            self.digest.update(name.encode() + struct.pack(f"<{len(jobs)}d", *self.column[name]))
        self.digest.update(b"gpus" + struct.pack(f"<{len(jobs)}q", *self.gpus))
        for texts in ([job.get(name) for job in jobs] for name in ("profile", "gpu_types")):
            self.digest.update(json.dumps(texts).encode() if any(text is not None for text in texts) else b"")
        self.release = [Fraction(x) - epoch for x in self.column["arrival"]]
        self.length = self.seconds()
        self.late, self.flow = self.objective == "total_weighted_tardiness", "flow" in self.objective
        self.due = [None if x != x else Fraction(x) - epoch for x in self.column["due"]]
        weigh = [x if "weighted" in self.objective else 1 for x in self.column["weight"]]
        self.weight = [Fraction(0 if self.late and d is None else x) for x, d in zip(weigh, self.due, strict=True)]
        dates = zip(self.release, self.due, strict=True)
        self.moment = [d if self.late and d else r if self.flow else Fraction(0) for r, d in dates]
        self.alone = [max(r + p - c, 0 * p) for r, p, c in zip(self.release, self.length, self.moment, strict=True)]
        self.least = Fraction(sum(map(mul, self.weight, self.alone)))
        constant = "{}/{}".format(*Fraction(sum(map(mul, self.weight, self.moment))).as_integer_ratio())
        self.stated: Data = {"flow_constant": constant} if self.flow else {}

    def seconds(self) -> list[Fraction]:
        """What every job takes at least; the digest learns what decides it."""
        need(all(x == x for x in self.column["duration"]), "there are jobs without a duration: use optsched verify", 2)
        return [Fraction(x) for x in self.column["duration"]]

    def machine(self, data: Data) -> tuple[list[int], list[int], Fraction, Fraction, Data]:
        """Releases and works in ticks, ticks of a step of the grid and of a second, what files state."""
        threshold, total = the(int, data, "threshold", least=1, most=(self.total + 1) // 2), self.total
        scale = Fraction(2) ** the(int, data, "grid_exponent", least=-EXPONENT, most=EXPONENT)
        middle = [g for g in self.gpus if threshold <= g <= total - threshold]
        filled = 1  # bit b: some of these gangs have b GPUs together
        for size in middle if total <= FILLED else ():
            filled |= (filled << size) & ((2 << total) - 1)
        capacity = 1 if not middle else filled.bit_length() - 1 if total <= FILLED else total
        width = [capacity if g > total - threshold else g if g >= threshold else 0 for g in self.gpus]
        release = [capacity * math.floor(r * scale) for r in self.release]
        work = [u * math.floor(p * scale) for u, p in zip(width, self.length, strict=True)]
        stated, second = {"threshold": threshold, "grid_exponent": data["grid_exponent"]}, scale * capacity
        stated |= {"capacity": capacity, "tick": "{1}/{0}".format(*second.as_integer_ratio())}
        return release, work, Fraction(capacity), second, stated


def served(chosen: list[int], release: list[int], work: list[int], rank: Any = None) -> dict[int, tuple[int, int, int]]:
    """Of every job (start, end, sum of b^2 - a^2 over pieces [a, b)): the least rank, or the least work left, is served."""
    left, order, waiting, now = {j: work[j] for j in chosen}, sorted(chosen, key=lambda j: -release[j]), list[Any](), 0
    pieces: dict[int, tuple[int, int, int]] = {}
    while order or waiting:
        now = now if waiting else max(now, release[order[-1]])
        while order and release[order[-1]] <= now:
            heapq.heappush(waiting, ((rank or left)[order[-1]], order.pop()))
        j = heapq.heappop(waiting)[1]
        end = min([now + left[j], *(release[k] for k in order[-1:])])
        first, _, squares = pieces.get(j, (now, now, 0))
        pieces[j] = first, end, squares + end * end - now * now
        left[j], now = left[j] - (end - now), end
        if left[j]:
            heapq.heappush(waiting, ((rank or left)[j], j))
    return pieces


def alone(case: Case, data: Data) -> tuple[Fraction, Data]:
    """Nobody ever waits; of a maximum the one job that is named."""
    if "total" in case.objective:
        return case.least, case.stated
    named = [end for name, end in zip(case.ids, case.alone, strict=True) if name == data.get("job")]
    need(named or not case.ids, "there is no such job")
    return max(named, default=Fraction(0)), {"job": data.get("job")}


def volume(case: Case, data: Data) -> tuple[Fraction, Data]:
    """The end of the last busy period or, of flow times, how long after r_j one ends where the least r_j is served first."""
    release, work, step, second, stated = case.machine(data)
    dues = [math.ceil(c / step * second) * step for c in case.moment]
    pieces = served([j for j, amount in enumerate(work) if amount], release, work, dues)
    latest: list[Any] = release if case.objective == "makespan" else []  # without work, too
    return max([0, *latest, *(end - dues[j] for j, (_, end, _) in pieces.items())]) / second, stated


def srpt(case: Case, data: Data) -> tuple[Fraction, Data]:
    """Completions of SRPT, against due dates in order, level by level of weight."""
    release, work, step, second, stated = case.machine(data)
    levels = [ratio(text, "levels") for text in the(list, data, "levels")[: MOST_LEVELS + 1]]
    below, value = Fraction(0), case.least
    for level in levels:
        need(below < level and len(levels) <= MOST_LEVELS, "the levels must be few, and ascend from above 0")
        chosen = [j for j, w in enumerate(case.weight) if w >= level and work[j] > 0]
        ends = sorted(end for _, end, _ in served(chosen, release, work).values())
        dues = sorted(math.ceil(case.moment[j] / step * second) * step if case.late else 0 for j in chosen)
        late = sum(max(end - due, 0) for end, due in zip(ends, dues, strict=True))
        never = sum(case.alone[j] + (case.moment[j] if case.flow else 0) for j in chosen)
        value, below = value + (level - below) * (late / second - never), level
    return value, {**case.stated, **stated, "levels": ["{}/{}".format(*level.as_integer_ratio()) for level in levels]}


def busy(case: Case, data: Data) -> tuple[Fraction, Data]:
    """Least mean busy times, for the multipliers that are stated or for the weights."""
    release, work, _, second, stated = case.machine(data)
    exponent = the(int, data, "multiplier_exponent", least=-EXPONENT, most=EXPONENT)
    unit, most = Fraction(2) ** -exponent, [w if amount else 0 for w, amount in zip(case.weight, work, strict=True)]
    u = the(list, data, "multipliers", usual=[w // unit for w in most])
    legal = len(u) == len(most) and all(type(x) is int and 0 <= x * unit <= w for x, w in zip(u, most, strict=True))
    need(legal, "the multipliers are not one for every job, from 0 to its weight, 0 without work")
    used = [j for j, x in enumerate(u) if x]
    pieces = served(used, release, work, {j: (Fraction(work[j], u[j]), release[j]) for j in used})
    mean = [Fraction(pieces[j][2], 2 * work[j]) for j in used]  # the pieces: twice work x mean busy time
    kept = KEPT_BITS if sum(pieces[j][1] - pieces[j][0] > work[j] for j in used) > EXACT else None
    mean = mean if kept is None else [Fraction(math.floor(m * 2**kept), 2**kept) for m in mean]
    # M_j + p_j / 2 - c_j a unit of u_j, and what j costs alone for the rest of its weight
    more = [m / second + case.length[j] / 2 - case.moment[j] - case.alone[j] for j, m in zip(used, mean, strict=True)]
    stated |= {**case.stated, "multiplier_exponent": exponent, "held_up_bits": kept}
    stated |= {"multipliers": u} if case.kind != "mean-busy-time" else {}
    return case.least + unit * sum(map(mul, more, (u[j] for j in used))), stated


def prices(case: Case, data: Data) -> tuple[Fraction, Data]:
    """The values stated of jobs, none more than the least that the job costs and pays, less what the GPUs earn."""
    origin, unit = (ratio(data.get(name), name, 300) for name in ("origin", "unit"))
    rows, claims = list[Any](), [ratio(text, "jobs") for text in the(list, data, "jobs")]
    legal = unit > 0 and all(origin <= r for r in case.release) and len(claims) == len(case.ids)
    need(legal, "these are no cells of time from the first arrival on, or no value for every job")
    for row in the(list, data, "rows")[:MOST_ROWS]:  # fewer prices are prices, too
        price, width = the(list, row, "price"), case.gpus if row.get("width") == "gpus" else the(list, row, "width")
        legal = len(width) == len(case.ids) and all(type(x) is int and 0 <= x < WIDEST for x in (*width, *price))
        need(legal, "widths and prices must be integers >= 0, and widths one for every job")
        rows.append((width, price, width != case.gpus))
    value, size = Fraction(0), the(int, data, "denominator", least=1)
    cells = max((len(price) for _, price, _ in rows), default=0)
    steps = cells * (len(rows) + 2) + sum(own for *_, own in rows) * case.total
    need(steps * (len(case.ids) + 1) <= MOST_STEPS, f"more than {MOST_STEPS} steps of prices: use optsched verify", 2)
    for width, price, own in rows:
        most = [0] * (case.total + 1) if own else [case.total]  # the largest width of gangs, by the GPUs that they have
        for u, g in zip(width, case.gpus, strict=True) if own else ():
            most[g:] = [max(kept, more + u) for kept, more in zip(most[g:], most, strict=False)]
        value -= Fraction(most[-1] * sum(price), size)
    for j, (claim, w, c) in enumerate(zip(claims, case.weight, case.moment, strict=True)):
        rate = [sum(width[j] * price[k] for width, price, _ in rows if k < len(price)) for k in range(cells)]
        times = unit, case.release[j] - origin, case.length[j], (c if case.late else 0) - origin
        least = cheapest(rate, size, w, times, case.schedule_class == "gang") - (w * c if case.flow else 0)
        value += claim
        need(claim <= least and value.denominator < WIDEST**8, f"data.jobs[{j}]: it costs and pays less")
    if data.get("rounded") is True:  # integer times: schedules in one piece, moved to the left, are integers
        legal = all(x is None or x.denominator == 1 for x in (*case.release, *case.length, *case.weight, *case.due))
        need(legal and case.schedule_class == "gang-nonpreemptive", "only integers, without preemption, are rounded up")
        value = Fraction(math.ceil(value))
    return value, data


def cheapest(rate: list[int], size: int, slope: Fraction, times: tuple[Fraction, ...], pieces: bool) -> Fraction:
    """min of slope max(C - kink, 0) + the price, in 1 / size, of p // unit whole cells; times: unit, r, p, kink."""
    fine = math.lcm(*(t.denominator for t in times))
    unit, r, p, kink = (int(t * fine) for t in times)
    rate, kink, r = rate[r // unit :], kink - r // unit * unit, r % unit  # cells count from that of r
    count = min(p // unit, len(rate))  # more than these are surely free cells
    shift = (p // unit - count) * unit if pieces else p - count * unit  # the window of cells ends so long before C
    first, charged, window = r + p - shift, [0], list[tuple[int, int]]()
    for k, x in enumerate(rate + [0] * count):  # it drops its dearest cell or, in one piece, its first
        heapq.heappush(window, (-x if pieces else k, x))
        charged.append(charged[-1] + x - (heapq.heappop(window)[1] if len(window) > count else 0))
    last = len(charged) - 1

    def cost(x: int) -> int:
        k, part = divmod(min(x, last * unit), unit)
        paid = (unit - part) * charged[k] + part * charged[min(k + 1, last)]
        return slope.numerator * max(x + shift - kink, 0) * unit * size + slope.denominator * fine * paid

    points = (first, kink - shift, last * unit, *range(-(-first // unit) * unit, last * unit, unit))
    return Fraction(min(cost(max(x, first)) for x in points), slope.denominator * fine * unit * size)


BOTH = {"release-plus-duration": alone, "split-busy-time": busy, "lp-dual": prices}
GANGS = {f"total_{name}_time": {"srpt": srpt, "mean-busy-time": busy, **BOTH} for name in ("completion", "flow")}
GANGS |= {name.replace("total", "total_weighted"): kinds for name, kinds in GANGS.items()}
GANGS["makespan"], GANGS["max_flow_time"] = ({"critical-job": alone, x: volume} for x in ("volume", "first-come"))
GANGS["total_weighted_tardiness"] = {"srpt-due-dates": srpt, **BOTH}
KINDS = {"gang": GANGS, "gang-nonpreemptive": GANGS}  # theorems by class, objective and kind


def verify(certificate: Data, instance: Data, case: type[Case] = Case, kinds: Data = KINDS) -> str:
    """What is proved, on the log's own clock, in one line; ends the program when it does not follow."""
    names = [the(str, certificate, name, 2) for name in ("instance", "kind", "objective", "class")]
    (digest, kind, objective, schedule_class), data = names, the(dict, certificate, "data", 2)
    known = any(kind in theorems for theorems in kinds.get(schedule_class, {}).values())
    need(known, f"kind {ascii(kind)[:80]} for {ascii(schedule_class)[:80]} is not known here: use optsched verify", 2)
    need(kind in kinds[schedule_class].get(objective, ()), f"{kind} is no bound on {ascii(objective)[:80]}")
    claimed, epoch = ratio(certificate.get("value"), "value"), Fraction(the(float, certificate, "epoch", 2, 0.0))
    proof = case(instance, names, epoch)
    need(digest == proof.digest.hexdigest(), "the certificate is of another instance")
    value, proved = kinds[schedule_class][objective][kind](proof, data)
    value += epoch * (sum(proof.weight) if "completion" in objective else objective == "makespan" and bool(proof.ids))
    legal = claimed == value or (claimed < value and kind == "lp-dual")
    need(legal, f"it claims {'more' if claimed > value else 'less'} than its data prove")
    wrong = [n for n in {*proved, *data} if json.dumps(data.get(n, "absent")) != json.dumps(proved.get(n, "absent"))]
    need(not wrong, f"data.{ascii(wrong[:1])[:80]} is not what the proof gives")
    return f"{objective} >= {certificate['value']} for the class {schedule_class}, by {kind}"


if __name__ == "__main__":
    need(len(sys.argv) == 3, "usage: python verify_certificate.py CERTIFICATE INSTANCE (two JSON files)", 2)
    print("holds:", verify(read(sys.argv[1], "optsched-certificate/1"), read(sys.argv[2], "optsched-instance/1")))
