"""Interference that was measured: Gavel's co-located throughputs of two jobs on one GPU.

**Model**: xi_{A|B} = iterations/s of A alone / iterations/s of A beside B, both on one GPU of one type. A pair in which
either job has a rate of 0 does not run (memory): it is never co-located. Ratios below 1 are noise and taken as 1. Only jobs
of one GPU were measured: for gangs the ratio of a pair is used on each GPU, whatever the gangs' sizes.

Source of the built-in tables: simulation_throughputs.json of stanford-futuredata/gavel (MIT), D. Narayanan et al.,
"Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads", OSDI 2020; 26 job types on K80, P100 and V100,
ratios to two decimals. Known oddities: 13 % of the ratios on V100 are exactly 1, as if capped at the rate alone, and its
large ones (up to 10.97) look noisy. P100 is the table to prefer.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import cache
from importlib import resources

from optsched.errors import InputError
from optsched.problem.interference import TURNS, Interference
from optsched.problem.throughputs import Throughputs
from optsched.registry import near_matches

NEVER = -1.0  # in place of a ratio: the pair does not run

Say = Callable[[str], None]


def interference_of(
    throughputs: Throughputs, gpu: str, *, ratio: float = TURNS, say: Say | None = None
) -> Interference:
    """xi of the job types whose pairs a throughput table holds for one GPU of type ``gpu`` (any case).

    Parameters
    ----------
    throughputs : with pairs, as `optsched.speeds.throughput_table.read_throughputs` gives it. Kinds of the result are the
        job types that run alone on one such GPU and are in some pair there, in the order of the table.
    ratio : xi of pairs that the table does not hold, and of kinds that it does not know.
    say : hears how many ratios below 1 were taken as 1, and how many pairs take ``ratio``.

    Raises
    ------
    InputError
        The table has no pairs on such a GPU.

    Complexity: O(K^2) for K job types.
    """
    named = {gang[0] for where, *pair in throughputs.pairs if where.casefold() == gpu.casefold() for gang in pair}
    entries = ((kind, throughputs.get(kind, gpu, 1)) for kind in throughputs.job_types if kind in named)
    alone = {kind: entry.together for kind, entry in entries if entry is not None and entry.together > 0}
    found = {(a, b): _measured(throughputs, gpu, alone[a], a, b) for a in alone for b in alone}
    if not any(found.values()):
        with_pairs = {where.casefold() for where, _, _ in throughputs.pairs}
        types = ", ".join(name for name in throughputs.gpu_types if name.casefold() in with_pairs) or "none"
        message = f"no rates of two jobs on one {gpu}"
        raise InputError(message, field="interference", legal=f"a table with pairs; those of this one are on {types}")
    below = sum(value is not None and 0 <= value < 1 for value in found.values())
    missing = sum(value is None for value in found.values())
    if say is not None and below:
        say(f"interference: {below} of {len(found)} ratios are below 1 and taken as 1")
    if say is not None and missing:
        say(f"interference: {missing} of {len(found)} pairs were not measured and run {ratio:g} x as long")
    ratios = tuple(tuple(_legal(found[a, b], found[b, a], ratio) for b in alone) for a in alone)
    clipped = f", {below} ratios below 1 taken as 1" if below else ""
    return Interference(ratio, tuple(alone), ratios, f"co-located throughputs on one {gpu}{clipped}")


def _measured(throughputs: Throughputs, gpu: str, alone: float, one: str, other: str) -> float | None:
    # None: the table does not say
    rates = throughputs.together_with(gpu, (one, 1), (other, 1))
    if rates is None:
        return None
    return alone / rates[0] if min(rates) > 0 else NEVER


def _legal(own: float | None, other: float | None, ratio: float) -> float | None:
    if NEVER in (own, other):
        return None
    return ratio if own is None else max(own, 1.0)


@cache
def _built_in() -> dict[str, Interference]:
    text = (resources.files("optsched.speeds") / "gavel_colocation.csv").read_text(encoding="utf-8")
    head, *rows = csv.reader(line for line in text.splitlines() if not line.startswith("#"))
    kinds = tuple(head[2:])
    found = {}
    for gpu in dict.fromkeys(row[0] for row in rows):
        table = {row[1]: tuple(float(cell) if cell else None for cell in row[2:]) for row in rows if row[0] == gpu}
        source = f"stanford-futuredata/gavel (MIT), co-located on one {gpu}"
        found[gpu] = Interference(kinds=kinds, ratios=tuple(table[kind] for kind in kinds), source=source)
    return found


def measured_gpus() -> tuple[str, ...]:
    """GPU types with a built-in table: K80, P100, V100."""
    return tuple(_built_in())


def built_in_interference(gpu: str) -> Interference:
    """The built-in table of a GPU type (any case); kinds are the job types of the built-in throughput table.

    Pairs of other kinds run 2 times as long. `InputError` for a GPU type without a table. See the module for the source.
    """
    for name, found in _built_in().items():
        if name.casefold() == gpu.casefold():
            return found
    legal = near_matches(gpu, list(_built_in()), kind="GPU type")
    raise InputError("no measured interference on that GPU type", field="interference", value=gpu, legal=legal)
