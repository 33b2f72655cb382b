"""Throughput tables: Gavel's JSON, the built-in table, and the rules that fill the gaps of a table.

**Rate model**: job j of a job type runs on its g_j GPUs of one type at the iterations/s of the table, ``together`` on
one node and ``spread`` over several; on mixed types at the rate of the slowest. Placement has no other effect.

**Rules for gaps** (`completed`), in this order for every job type, gang size and GPU type:

1. a row of the table is used, also a rate of zero: such a gang does not fit that GPU;
2. gang size N without a row: N / m times the rates of the smallest gang size m in the table for that GPU type, which is
   one GPU in all but odd tables: as if data parallelism cost nothing;
3. a GPU type without any row for the job type: the rates on the type of nearest performance (ratio of peaks) times that
   ratio. Types with a row for this very gang size go before those that need rule 2, then those that compare by tensor
   cores; of two equally near ones the faster. A rate of zero is not scaled: that a gang does not fit one type says nothing
   about another.

Source of the built-in table: simulation_throughputs.json of stanford-futuredata/gavel (MIT), D. Narayanan et al.,
"Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads", OSDI 2020, to two decimals, without
pairs. That file was read whole as published. Known oddities of these measurements: Recommendation is slower on V100
than on P100; V100 rates of 4 and 8 GPUs are noisy (LM: 4 below 2, 8 far above linear). ResNet-50 (batch size 128) does
not fit on several K80.

**Public specifications of GPU types** (`DEVICES`), which unknown throughputs are scaled by. Of one GPU as a scheduler
sees it (one GK210 of the two on a K80 board). ``fp32`` and ``tensor``: peak TFLOP/s in single precision, and of dense
FP16 products on tensor cores that accumulate in FP32, without sparsity; ``memory`` GB, ``bandwidth`` GB/s. Two types
that both state ``tensor`` compare by it, since training from Volta on runs there; any others by ``fp32``. A scaled
throughput is a guess: real ratios follow memory bandwidth, batch size and kernels, too (an H100 trains a V100's job
perhaps four times as fast, not eight).

**Sources**: NVIDIA's data sheets of K80, P100 (PCIe; ``fp32`` between PCIe and SXM2), V100 (SXM2, 16 GB), A100 (SXM,
80 GB), H100 (SXM: 1,979 TFLOP/s with sparsity, half of it dense), L40S, T4, T400, RTX A2000; of Titan RTX and RTX 3090
the product pages; of RTX 4090 the Ada architecture's whitepaper. T4, Titan RTX, RTX 3090 and RTX A2000 have tensor
cores whose peak is left out: HadarE's mixes are of such cards, and their rates are scaled by FP32.
"""

from __future__ import annotations

import ast
import csv
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from optsched.errors import InputError, check_legal, naming
from optsched.problem.atomic_files import read_bytes
from optsched.problem.documents import parse_json
from optsched.problem.throughputs import Gang, Key, PairKey, Throughput, Throughputs, legal_rate
from optsched.registry import check_known

SPREAD_SUFFIX = "_unconsolidated"
KEY_LEGAL = "\"('model (batch size n)', number of GPUs)\""
LONGEST_KEY = 300  # characters; a longer text is no key
NAMED = 6  # derived rates that a note names one by one

Say = Callable[[str], None]


def read_throughputs(path: str | os.PathLike[str]) -> Throughputs:
    """Read a throughput table in Gavel's form.

    ``{worker type: {key: {"null": rate alone, other key: [rate, rate of the other]}}}`` with keys ``"('model (batch
    size n)', number of GPUs)"``. The worker type ``v100_unconsolidated`` holds the rates of ``v100`` spread over
    nodes; if only those are given, they are also used for one node. Pairs spread over nodes are checked, not kept.

    Parameters
    ----------
    path
        Path of the file.

    Raises
    ------
    InputError
        The file is not such a document, a key is invalid, or a rate is negative, not finite or no number. The message
        states file, worker type, key, value and the legal values.

    Examples
    --------
    >>> import json, optsched as osd
    >>> with open("rates.json", "w") as file:
    ...     json.dump({"v100": {"('lm', 1)": {"null": 12.5}}}, file)
    >>> osd.read_throughputs("rates.json").job_types
    ('lm',)
    """
    document = parse_json(read_bytes(path), path, "Gavel's throughputs")
    if not isinstance(document, dict) or not document:
        raise InputError("not a table of throughputs", file=path, legal="an object of worker types")
    with naming(path):
        return _table(document)


def _table(document: dict[str, Any]) -> Throughputs:
    alone: dict[str, dict[Key, float]] = {"": {}, SPREAD_SUFFIX: {}}
    pairs: dict[PairKey, tuple[float, float]] = {}
    for worker, rows in document.items():
        suffix = SPREAD_SUFFIX if worker.endswith(SPREAD_SUFFIX) else ""
        gpu = worker.removesuffix(suffix)
        if not gpu or not isinstance(rows, dict):
            raise InputError("not a worker type", field=worker or "''", legal="a GPU type with an object of job types")
        for text, row in rows.items():
            job_type, gpus = _gang(text, worker)
            check_legal(isinstance(row, dict), f"{worker}.{text}", row, '{"null": rate, ...}')
            for other, value in row.items():
                field = f"{worker}.{text}.{other}"
                if other == "null":
                    alone[suffix][job_type, gpu, gpus] = legal_rate(value, field)
                    continue
                two = isinstance(value, list) and len(value) == 2
                check_legal(two, field, value, "two numbers, the rates of the two jobs")
                rates = legal_rate(value[0], field), legal_rate(value[1], field)
                if not suffix:
                    pairs[gpu, (job_type, gpus), _gang(other, f"{worker}.{text}")] = rates
    consolidated, spread = alone[""], alone[SPREAD_SUFFIX]
    entries = {}
    for key in consolidated | spread:
        together = consolidated.get(key, spread.get(key, 0.0))
        entries[key] = Throughput(together, spread.get(key) if key[2] > 1 else None)
    return Throughputs(entries, pairs)


def _gang(text: str, where: str) -> Gang:
    try:
        job_type, gpus = ast.literal_eval(text) if len(text) <= LONGEST_KEY else (None, None)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        job_type, gpus = None, None
    if not isinstance(job_type, str) or not job_type or type(gpus) is not int or gpus < 1:
        shown = text if len(text) <= LONGEST_KEY else text[:LONGEST_KEY] + "..."
        raise InputError("not a key", field=where, value=shown, legal=KEY_LEGAL)
    return job_type, gpus


@cache
def built_in() -> Throughputs:
    """Return the built-in table: 26 job types on K80, P100 and V100, gangs of 1, 2, 4 and 8 GPUs.

    The module states its source and oddities.
    """
    text = (resources.files("optsched.speeds") / "gavel_throughputs.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    entries = {}
    for row in rows:
        spread = float(row["spread"]) if row["spread"] else None
        entries[row["job_type"], row["gpu"], int(row["gpus"])] = Throughput(float(row["together"]), spread)
    return Throughputs(entries)


def completed(
    table: Throughputs,
    wanted: Iterable[Gang],
    gpu_types: Sequence[str],
    *,
    strict: bool = False,
    say: Say | None = None,
) -> Throughputs:
    """Return a table with a row for every wanted gang on every GPU type, gaps filled by the rules of this module.

    Parameters
    ----------
    table
        Throughputs; its rows are kept.
    wanted
        (job type, gang size) of the jobs; repeated ones count once.
    gpu_types
        GPU types of the cluster.
    strict
        Refuse to derive anything.
    say
        Called with a line for every rule used, which lists the derived rows.

    Returns
    -------
    Throughputs
        The rows of ``table`` and the derived ones (``measured`` False).

    Raises
    ------
    InputError
        A job type that is not in the table; a GPU type whose performance is needed and not known; a gang
        whose throughput is zero on every GPU type; with ``strict`` the first row that is missing.
    """
    gaps = _Gaps(table, strict)
    types = tuple({gpu.casefold(): gpu for gpu in gpu_types}.values())
    entries = dict(table.entries)
    for job_type, gpus in dict.fromkeys(wanted):
        known, message = sorted(table.job_types), "the throughput table has no such job type"
        check_known(job_type, known, "job type", message, field="profile", value=job_type)
        rates = {gpu: gaps.rate(job_type, gpu, gpus) for gpu in types}
        if not any(rate.fits for rate in rates.values()):
            message = f"throughput of zero for every type of the cluster ({', '.join(types)})"
            legal = f"a GPU type that {'one GPU' if gpus == 1 else f'{gpus} GPUs'} of this job type fit on"
            raise InputError(message, field="profile", value=job_type, legal=legal)
        for gpu, rate in rates.items():
            if table.get(job_type, gpu, gpus) is None:
                entries[job_type, gpu, gpus] = rate
    if say is not None:
        for note in gaps.notes():
            say(note)
    return Throughputs(entries, table.pairs)


class _Gaps:
    # Rules 1 to 3 for one table, and what they derived.
    def __init__(self, table: Throughputs, strict: bool) -> None:
        self._table = table
        self._strict = strict
        self._sizes: list[tuple[str, str, int]] = []  # rule 2
        self._types: dict[tuple[str, str], list[Gang]] = {}  # rule 3: (GPU type, type from which it is scaled)

    def rate(self, job_type: str, gpu: str, gpus: int) -> Throughput:
        known = self._table.get(job_type, gpu, gpus)
        if known is not None:
            return known
        if self._strict:
            row = f"{job_type} on {gpus} {gpu}"
            legal = "a measured row for every job type, gang size and GPU type (strict)"
            raise InputError("the throughput table has no such row", field="throughputs", value=row, legal=legal)
        grown = self._grown(job_type, gpu, gpus)
        if grown is not None:
            self._sizes.append((job_type, gpu, gpus))
            return grown
        performance_ratio(gpu)  # raises if the type is not known
        rates: dict[str, Throughput] = {}
        ranked: list[tuple[bool, bool, float, float, str]] = []
        unknown: str | None = None
        for other in self._table.gpu_types:
            exact = self._table.get(job_type, other, gpus)
            rate = exact or self._grown(job_type, other, gpus)
            if rate is None or not rate.fits:
                continue
            if not is_known(other):  # a table may hold types without known performance, which cannot be scaled from
                unknown = other
                continue
            rates[other], ratio = rate, performance_ratio(gpu, other)
            ranked.append((exact is None, not compares_by_tensor(gpu, other), abs(math.log(ratio)), ratio, other))
        if not ranked:  # the gang fits no GPU type of the table
            if unknown is not None:
                performance_ratio(unknown)
            return Throughput(0.0, measured=False)
        *_, ratio, reference = min(ranked)
        self._types.setdefault((gpu, reference), []).append((job_type, gpus))
        return _times(rates[reference], ratio)

    def _grown(self, job_type: str, gpu: str, gpus: int) -> Throughput | None:
        # None: the table has no row of the job type for that GPU type
        sizes = self._table.gang_sizes(job_type, gpu)
        row = self._table.get(job_type, gpu, sizes[0]) if sizes else None
        return None if row is None else _times(row, gpus / sizes[0])

    def notes(self) -> list[str]:
        lines = []
        if self._sizes:
            named = _some([f"{job_type} on {gpus} {gpu}" for job_type, gpu, gpus in self._sizes])
            lines.append(f"throughputs: gang sizes not in the table run at N times the one-GPU rate: {named}")
        if self._types:
            scaled = []
            for (gpu, other), gangs in self._types.items():
                ratio = performance_ratio(gpu, other)
                named = _some([f"{job_type} on {gpus}" for job_type, gpus in gangs])
                peak = "FP16 tensor" if compares_by_tensor(gpu, other) else "FP32"
                scaled.append(f"{gpu} = {ratio:.3g} x {other} ({peak}) for {named}")
            lines.append(f"throughputs: GPU types not in the table are scaled by peak speed: {'; '.join(scaled)}")
        return lines


def _times(rate: Throughput, factor: float) -> Throughput:
    spread = None if rate.spread is None else rate.spread * factor
    return Throughput(rate.together * factor, spread, measured=False)


def _some(names: list[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")


# --- how fast GPU types are -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Device:
    """Specification of one GPU, as in the module; ``tensor`` 0: none, or left out."""

    fp32: float
    memory: float
    bandwidth: float
    tensor: float = 0.0

    def __str__(self) -> str:
        products = f", FP16 tensor {self.tensor:g}" if self.tensor else ""
        return f"FP32 {self.fp32:g}{products} TFLOP/s, {self.memory:g} GB at {self.bandwidth:g} GB/s"


DEVICES: Mapping[str, Device] = {
    "K80": Device(4.1, 12, 240),
    "P100": Device(9.5, 16, 732),
    "V100": Device(15.7, 16, 900, 125),  # SXM2; 14 on PCIe
    "A100": Device(19.5, 80, 2039, 312),  # 40 GB at 1555 GB/s: the same peaks
    "H100": Device(67, 80, 3350, 989),
    "L40S": Device(91.6, 48, 864, 362),
    "RTX 4090": Device(82.6, 24, 1008, 165),
    "T4": Device(8.1, 16, 300),
    "T400": Device(1.1, 2, 80),
    "Titan RTX": Device(16.3, 24, 672),
    "RTX 3090": Device(35.6, 24, 936),
    "RTX A2000": Device(8.0, 6, 288),
}


def _plain(gpu: str) -> str:
    return "".join(letter for letter in gpu.casefold() if letter.isalnum())


_BY_PLAIN_NAME = {_plain(gpu): device for gpu, device in DEVICES.items()}


def is_known(gpu: str) -> bool:
    """Return True if a GPU type is in the list; case, blanks, ``-`` and ``_`` are ignored.

    Parameters
    ----------
    gpu
        GPU type.
    """
    return _plain(gpu) in _BY_PLAIN_NAME


def _device(gpu: str) -> Device:
    if not is_known(gpu):
        check_known(gpu, DEVICES, "GPU type", "the performance of this GPU type is not known", field="gpu", value=gpu)
    return _BY_PLAIN_NAME[_plain(gpu)]


def compares_by_tensor(gpu: str, other: str) -> bool:
    """Return True if both GPU types state the peak of their tensor cores.

    Parameters
    ----------
    gpu, other
        GPU types.
    """
    return _device(gpu).tensor > 0 and _device(other).tensor > 0


def performance_ratio(gpu: str, other: str = "V100") -> float:
    """Return the peak speed of a GPU type divided by that of another.

    Parameters
    ----------
    gpu, other
        GPU types.

    Raises
    ------
    InputError
        A type is not in the list.
    """
    one, two = _device(gpu), _device(other)
    return one.tensor / two.tensor if compares_by_tensor(gpu, other) else one.fp32 / two.fp32
