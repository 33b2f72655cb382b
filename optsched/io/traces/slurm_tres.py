"""Texts of Slurm that hold lists: resources (TRES), node names, and elements of job arrays."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

import polars as pl

_COUNTS = {"gpu": "gres/gpu", "cpu": "cpu", "node": "node"}
LARGEST = 10**15
MOST_NODES = 20_000  # of one list


def held(text: pl.Series, unit: str) -> pl.Series:
    """Return how many GPUs, CPUs or nodes a list of resources has, i64; null where a number cannot be read.

    ``gres/gpu=4`` repeats its types (``gres/gpu:a100=4``); only without it their sum counts.

    Parameters
    ----------
    text
        Lists such as ``billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=64G,node=1``.
    unit
        ``gpu``, ``cpu`` or ``node``.
    """
    unique = text.fill_null("").unique()
    counts = pl.DataFrame({"text": unique, "held": [_held(each, unit) for each in unique]}, schema_overrides=_INTEGERS)
    joined = pl.DataFrame({"text": text.fill_null("")}).join(counts, on="text", how="left", maintain_order="left")
    return joined["held"]


_INTEGERS = {"held": pl.Int64}


def _held(text: str, unit: str) -> int | None:
    total = 0
    for part in text.split(","):
        name, _, count = part.partition("=")
        whole = name == _COUNTS[unit]
        if whole or (unit == "gpu" and name.startswith("gres/gpu:")):
            if not re.fullmatch(r"[0-9]{1,15}", count):
                return None
            if whole:
                return int(count)
            total += int(count)
    return total if total < LARGEST else None


def gpu_types(text: str) -> frozenset[str]:
    """Return the types of the GPUs in a list of resources; empty if it has none with a type.

    Parameters
    ----------
    text
        The list.
    """
    return frozenset(re.findall(r"(?:^|,)gres/gpu:([^=,]+)=0*[1-9]", text))


def nodes_of(text: str) -> tuple[str, ...]:
    """Return the names in a list of nodes such as ``node-[1,3-5],big07``; empty if it cannot be read.

    Parameters
    ----------
    text
        The list.
    """
    names: list[str] = []
    for part in re.findall(r"(?:[^,\[\]]|\[[^\[\]]*\])+", text):
        pieces = [list(_numbers(piece[1:-1])) if piece[0] == "[" else [piece] for piece in _PIECES.findall(part)]
        count = 1
        for piece in pieces:
            count *= len(piece)
        if not 0 < count <= MOST_NODES - len(names):
            return ()
        names += ["".join(name) for name in product(*pieces)]
    return tuple(names)


_PIECES = re.compile(r"\[[^\[\]]*\]|[^\[\]]+")


def _numbers(text: str) -> Iterator[str]:
    for part in text.split(","):
        found = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part)
        if found is None:
            return
        first, last = found[1], found[2] or found[1]
        if int(last) - int(first) > MOST_NODES:
            return
        yield from (str(number).zfill(len(first)) for number in range(int(first), int(last) + 1))


def elements_of(job: str) -> int:
    """Return how many elements of an array a waiting row stands for: ``9_[1,3,7-9%2]`` is 5.

    Parameters
    ----------
    job
        The id of the row.
    """
    listed = re.search(r"\[([^\]%]*)", job)
    if listed is None:
        return 1
    count = 0
    for part in listed[1].split(","):
        found = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", part)
        if found is not None:
            first, last, step = int(found[1]), int(found[2] or found[1]), int(found[3] or 1)
            count += max(last - first, 0) // max(step, 1) + 1
    return max(count, 1)


def elements_of_mask(mask: str) -> str:
    """Return the elements of an array that ``sacct --json`` writes as a mask: ``0x5400`` is ``10,12,14``.

    Parameters
    ----------
    mask
        The mask; any other text is returned unchanged.
    """
    if not re.fullmatch(r"0x[0-9a-fA-F]{1,1000000}", mask):
        return mask
    digits = bin(int(mask, 16))[:1:-1]
    return ",".join(str(k) for k, digit in enumerate(digits) if digit == "1")
