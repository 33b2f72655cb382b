"""An instance as its file states it: node groups and jobs, read by columns, and the digest of both.

The digest is the sha256 of what decides feasibility and value, as optsched computes it.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from .document_fields import Data, read_field
from .exact_numbers import integers
from .refusal import UNJUDGED, WIDEST, Few, Refused, need, shown

MOST_JOBS, MOST_GPUS = 100_000, 10**6
LARGEST = 2.0**512  # of a number of a job
NUMBERS = ("arrival", "duration", "iterations", "weight", "due", "gpu_memory", "restart", "checkpoint")  # as digested
ALWAYS = NUMBERS[:6]  # in the digest even if no job states them
LABELS = ("profile", "gpu_types", "model", "batch_size")
USUAL = {"arrival": 0.0, "weight": 1.0}
FIELDS = {*NUMBERS, *LABELS, "id", "gpus", "user", "group"}


@dataclass
class StatedJobs:
    """The jobs of an instance, a list a field.

    ``ids`` are names, ``gpus`` widths of gangs. ``numbers`` has the floats of all jobs for each of `NUMBERS`, NaN where a
    job states none, in seconds, bytes and iterations; None if no job states one. ``labels`` has a list for each of
    `LABELS`, None where a job states none.
    """

    ids: list[Any]
    gpus: list[int]
    numbers: dict[str, Sequence[float] | None]
    labels: dict[str, list[Any]]

    def stated(self, name: str) -> Sequence[float]:
        """Return the numbers of a field that some job states.

        Parameters
        ----------
        name
            One of `NUMBERS`.

        Raises
        ------
        Refused
            No job states it.
        """
        column = self.numbers[name]
        if column is None:
            need(not self.ids, f"no job states its {name}", UNJUDGED)
        return column or []


def read_jobs(rows: list[Data], total: int, earliest: float) -> StatedJobs:
    """Return the jobs of an instance file by columns.

    Parameters
    ----------
    rows
        JSON objects of the jobs.
    total
        GPUs of the cluster.
    earliest
        Earliest legal arrival, in seconds.

    Raises
    ------
    Refused
        If a number is out of range or of another type.
    """
    least, stated = {"arrival": earliest, "duration": 1e-12, "due": -LARGEST}, set[str]().union(*rows)

    def values(name: str) -> list[Any]:
        return [row.get(name) for row in rows] if name in stated else [None] * len(rows)

    numbers: dict[str, Sequence[float] | None] = {
        name: _numbers(values(name), name, least.get(name, 0.0)) for name in NUMBERS
    }
    ids = [str(k) if name is None else name for k, name in enumerate(values("id"), 1)]
    gpus = [1 if width is None else width for width in values("gpus")]
    if not set(map(type, gpus)) <= {int} or not all(1 <= width <= total for width in gpus):
        for row in rows:  # the first illegal one is named
            read_field(int, row, "gpus", UNJUDGED, usual=1, least=1, most=total)
    return StatedJobs(ids, gpus, numbers, {name: values(name) for name in LABELS})


def _numbers(values: list[Any], name: str, least: float) -> list[float] | None:
    usual, types = USUAL.get(name, math.nan), set(map(type, values))
    if types <= {type(None)}:
        return [usual] * len(values) if name in USUAL else None
    stated = values if type(None) not in types else [x for x in values if x is not None]
    if not types <= {int, float, type(None)} or not all(least <= x <= LARGEST for x in stated):
        for x in stated:
            if type(x) not in (int, float) or not least <= x <= LARGEST:
                raise Refused(f"{name}: {shown(x)} is no legal number of a job", UNJUDGED)
    if types == {float}:
        return [x + 0.0 for x in values]  # -0.0 becomes 0.0
    return [usual if x is None else float(x) + 0.0 for x in values]


def read_nodes(groups: list[Data]) -> list[Data]:
    """Return the node groups of a cluster, as the digest has them.

    Parameters
    ----------
    groups
        JSON objects of the node groups.
    """
    nodes = []
    for group in groups:
        counts = {
            name: read_field(int, group, name, UNJUDGED, usual=1, least=1, most=MOST_GPUS) for name in ("count", "gpus")
        }
        stated = {name for name in group.keys() - {"gpu", *counts} if group[name] is not None}
        sizes = {name: read_field(float, group, name, UNJUDGED) for name in stated}
        short = {name: int(size) if size.is_integer() else size for name, size in sizes.items()}
        nodes.append({"gpu": group.get("gpu", "GPU"), **counts, **short})
    return nodes


def digest_of(nodes: list[Data], jobs: StatedJobs) -> Any:
    """Return the hash of cluster and jobs, to which speeds are still to be added.

    Parameters
    ----------
    nodes
        Node groups.
    jobs
        Jobs.
    """
    head = json.dumps({"nodes": nodes}, sort_keys=True) + as_json(jobs.ids)
    digest = hashlib.sha256(b"optsched-instance/1\n" + head.encode())
    for name in NUMBERS:
        column = jobs.numbers[name]
        if column is not None or name in ALWAYS:
            digest.update(name.encode())
            digest.update(_little_endian("d", array("d", [math.nan]) * len(jobs.ids) if column is None else column))
    digest.update(b"gpus")
    digest.update(_little_endian("q", jobs.gpus))
    for name in ("profile", "gpu_types"):
        labels = jobs.labels[name]
        digest.update(json.dumps(labels).encode() if labels.count(None) < len(labels) else b"")
    return digest


def as_json(names: list[Any]) -> str:
    """Return a list of names as ``json.dumps`` writes it, in a fifth of the time if no name needs an escape.

    Parameters
    ----------
    names
        Names, texts as a rule.
    """
    joined = '", "'.join(names) if set(map(type, names)) == {str} else '"'
    plain = joined.isascii() and joined.isprintable() and "\\" not in joined
    return f'["{joined}"]' if plain and joined.count('"') == 2 * len(names) - 2 else json.dumps(names)


def _little_endian(code: str, values: Sequence[Any]) -> array[Any]:
    words = values if isinstance(values, array) else array(code, values)
    if sys.byteorder == "big":
        words = words[:]
        words.byteswap()
    return words


def read_link(given: Data) -> Data:
    """Return the contention on a network interface, as optsched writes it.

    Parameters
    ----------
    given
        JSON object of the contention: ``seconds_per_byte`` b, ``penalty`` eta, ``latency`` a, and measured ratios.
    """
    b = read_field(float, given, "seconds_per_byte", UNJUDGED)
    eta = read_field(float, given, "penalty", UNJUDGED, 0.0, -WIDEST)
    need(b > 0 and b + eta > 0, "this is no contention", UNJUDGED)
    more = {"penalty": eta, "latency": read_field(float, given, "latency", UNJUDGED, 0.0)}
    link = {"seconds_per_byte": b, **{name: number for name, number in more.items() if number}}
    if not given.get("kinds"):
        return link
    return {**link, "kinds": given["kinds"], "ratios": [[float(x) for x in row] for row in given["ratios"]]}


def epoch_of(arrivals: Sequence[float], dues: Sequence[float]) -> float:
    """Return the moment from which optsched counts time.

    That is the first arrival, or a round number before it, if the differences to it are exact; else 0.

    Parameters
    ----------
    arrivals
        Arrivals in seconds.
    dues
        Due dates in seconds, without those that are absent.
    """
    first, times = min(arrivals, default=0.0), [*arrivals, *dues]
    span = max([first, *times]) - min([first, *dues])
    grid = 2.0 ** math.ceil(math.log2(span)) if span else 1.0
    for moment in (first, math.floor(first / grid) * grid):
        if exact_differences(times, moment):
            return moment
    return 0.0


def exact_differences(times: list[float], moment: float) -> bool:
    """Return True if the differences of floats from a moment are floats.

    Parameters
    ----------
    times
        Times in seconds.
    moment
        Moment in seconds.
    """
    numbers, _ = integers([moment, *times, *(x - moment for x in times)])
    origin, n = numbers[0], len(times)
    return all(x - origin == gap for x, gap in zip(numbers[1 : n + 1], numbers[n + 1 :], strict=True))


def stated_parts(document: Data, parts: Iterable[str], few: Few) -> tuple[list[Data], list[Data]]:
    """Return the node groups and the jobs of an instance file.

    Parameters
    ----------
    document
        JSON object of the instance.
    parts
        Known fields of the document.
    few
        Check of counts.

    Raises
    ------
    Refused
        If it is no instance, or has fields that are not known.
    """
    groups = read_field(list, read_field(dict, document, "cluster", UNJUDGED), "nodes", UNJUDGED)
    jobs = read_field(list, document, "jobs", UNJUDGED)
    need(set(map(type, chain(groups, jobs))) <= {dict}, "no legal instance", UNJUDGED)
    few(len(jobs), MOST_JOBS, "jobs")
    known = document.keys() <= set(parts) and set[str]().union(*jobs) <= FIELDS
    need(known, "the instance has parts that are not known here: use optsched verify", UNJUDGED)
    return groups, jobs
