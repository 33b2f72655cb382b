"""`Throughputs`: iterations a second by job type, GPU type and gang size, measured or derived.

A row is the rate of a WHOLE gang of g GPUs of one type, ``together`` on one node and ``spread`` over several. GPU types
match case-insensitively; job types are matched as they are written. The table is validated here and only here. Jobs run by
it as `optsched.speeds.kinds.throughput_speeds` says; `optsched.speeds.throughput_sources` reads tables and fills gaps.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from optsched.errors import InputError, check_legal

Key = tuple[str, str, int]  # job type, GPU type, gang size
Gang = tuple[str, int]  # job type, gang size
PairKey = tuple[str, Gang, Gang]  # GPU type, one gang, the gang on the same GPUs

RATE_LEGAL = "a finite number of iterations/s >= 0"


@dataclass(frozen=True, slots=True)
class Throughput:
    """Iterations/s of a whole gang: ``together`` consolidated on one node, ``spread`` over several (None: the same).

    0: the gang does not fit such GPUs (memory). ``measured``: False where a rule derived the rates.
    """

    together: float
    spread: float | None = None
    measured: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "together", legal_rate(self.together, "together"))
        if self.spread is not None:
            object.__setattr__(self, "spread", legal_rate(self.spread, "spread"))
        check_legal(isinstance(self.measured, bool), "measured", self.measured, "true or false")

    @property
    def over_nodes(self) -> float:
        """Iterations/s when the gang's GPUs are on several nodes."""
        return self.together if self.spread is None else self.spread

    @property
    def fits(self) -> bool:
        """True if the gang runs on such GPUs in some placement."""
        return self.together > 0 or self.over_nodes > 0


class Rates:
    """Data that follow from the rows of a table; their names of GPU types have no case."""

    job_types: tuple[str, ...]  #: distinct job types in the order of their first rows
    gpu_types: tuple[str, ...]  #: distinct GPU types in the order of their first rows, as those rows spell them
    _rates: dict[Key, Throughput]
    _beside: dict[PairKey, tuple[float, float]]
    _gangs: dict[tuple[str, str], list[int]]  # sizes by job type and GPU type, rising


@dataclass(frozen=True)
class Throughputs(Rates):
    """A table of rates. Two tables are equal when their rows are, GPU types by their name without case.

    Parameters
    ----------
    entries : (job type, GPU type, gang size) to the rates of the gang alone on its GPUs.
    pairs : (GPU type, (job type, gang size), (other type, gang size)) to the two rates while both gangs run on the same
        GPUs of one node.

    Raises `InputError`: a key that is none, a negative rate or one that is no number, a row given twice.
    """

    entries: Mapping[Key, Throughput]
    pairs: Mapping[PairKey, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        entries, pairs, rates, types = dict(self.entries), dict(self.pairs), dict[Key, Throughput](), dict[str, str]()
        gangs: dict[tuple[str, str], list[int]] = {}
        for key, entry in entries.items():
            known = _is_named(key, 3) and isinstance(key[1], str) and key[1] != ""
            check_legal(known, "throughputs", key, "(job type, GPU type, gang size)")
            legal_gang(key[2], _name(*key))
            check_legal(isinstance(entry, Throughput), _name(*key), entry, "optsched.Throughput(...)")
        for pair, both in pairs.items():
            legal = "(GPU type, (job type, gang size), (job type, gang size)) with two rates"
            fine = _is_named(pair, 3) and all(_is_named(gang, 2) for gang in pair[1:])
            check_legal(fine, "pairs", pair, legal)
            for job_type, gpus in pair[1:]:
                legal_gang(gpus, f"pairs.{job_type}")
            check_legal(isinstance(both, tuple) and len(both) == 2, f"pairs.{pair}", both, "two rates")
            for rate in both:
                legal_rate(rate, f"pairs.{pair}")
        for (job_type, gpu, gpus), entry in entries.items():
            row = job_type, gpu.casefold(), gpus
            if row in rates:
                raise InputError("given twice", field=_name(*row), legal="each row once; GPU types match without case")
            rates[row] = entry
            types.setdefault(row[1], gpu)
            gangs.setdefault(row[:2], []).append(gpus)
        for sizes in gangs.values():
            sizes.sort()
        beside = {(gpu.casefold(), one, other): both for (gpu, one, other), both in pairs.items()}
        job_types = tuple(dict.fromkeys(job_type for job_type, _, _ in entries))
        self.__dict__.update(entries=entries, pairs=pairs, job_types=job_types, gpu_types=tuple(types.values()))
        self.__dict__.update(_rates=rates, _beside=beside, _gangs=gangs)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Throughputs):
            return NotImplemented
        return self._rates == other._rates and self._beside == other._beside

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Throughputs({len(self.job_types)} job types on {', '.join(self.gpu_types)}; {len(self.entries)} rows)"

    def get(self, job_type: str, gpu: str, gpus: int) -> Throughput | None:
        """Return the rates of a gang on a GPU type, or None if the table does not state them.

        Parameters
        ----------
        job_type
            Job type, as the table spells it.
        gpu
            GPU type, whatever its case.
        gpus
            Gang size.
        """
        return self._rates.get((job_type, gpu.casefold(), gpus))

    def gang_sizes(self, job_type: str, gpu: str) -> tuple[int, ...]:
        """Return the gang sizes whose rates on a GPU type are in the table, ascending.

        Parameters
        ----------
        job_type
            Job type.
        gpu
            GPU type.
        """
        return tuple(self._gangs.get((job_type, gpu.casefold()), ()))

    def together_with(self, gpu: str, one: Gang, other: Gang) -> tuple[float, float] | None:
        """Return the rates of two gangs that run on the same GPUs, or None if the table does not state them.

        Parameters
        ----------
        gpu
            GPU type.
        one
            Job type and gang size of the first gang.
        other
            Job type and gang size of the second gang.

        Returns
        -------
        tuple[float, float] | None
            Iterations a second of ``one`` and of ``other``.
        """
        rates = self._beside.get((gpu.casefold(), one, other))
        if rates is not None:
            return rates
        turned = self._beside.get((gpu.casefold(), other, one))
        return None if turned is None else (turned[1], turned[0])

    def restricted(self, job_types: Collection[str]) -> Throughputs:
        """Return a table with the rows and the pairs of some job types only.

        Parameters
        ----------
        job_types
            Job types that stay.
        """
        kept = frozenset(job_types)
        return Throughputs(
            {key: entry for key, entry in self.entries.items() if key[0] in kept},
            {key: rates for key, rates in self.pairs.items() if key[1][0] in kept and key[2][0] in kept},
        )

    @property
    def numbers(self) -> list[list[Any]]:
        """Numbers that decide speeds, sorted: [job type, GPU type, gang size, together, spread] of every row."""
        return sorted([*key, entry.together, entry.over_nodes] for key, entry in self._rates.items())

    def to_json(self) -> dict[str, list[dict[str, Any]]]:
        """Job type to rows, as it stands in an instance file; absent fields, ``"measured": true`` and pairs are left out."""
        document: dict[str, list[dict[str, Any]]] = {job_type: [] for job_type in self.job_types}
        for (job_type, gpu, gpus), entry in self.entries.items():
            row: dict[str, Any] = {"gpu": gpu, "gpus": gpus, "together": entry.together}
            if entry.spread is not None:
                row["spread"] = entry.spread
            if not entry.measured:
                row["measured"] = False
            document[job_type].append(row)
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Sequence[Mapping[str, Any]]]) -> Throughputs:
        """Return the table that a part of an instance file describes.

        Parameters
        ----------
        document
            Part of the file, as `to_json` returns it.

        Raises
        ------
        InputError
            If a row is given twice; the error names it.
        """
        entries: dict[Key, Throughput] = {}
        for job_type, rows in document.items():
            for position, row in enumerate(rows):
                key = job_type, row["gpu"], row["gpus"]
                if key in entries:
                    twice = InputError("given twice", field="gpu", value=key[1], legal="each (gpu, gpus) once")
                    raise InputError(str(twice), field=f"throughputs.{job_type}.{position}")
                entries[key] = Throughput(row["together"], row.get("spread"), row.get("measured", True))
        return cls(entries)


def legal_rate(value: Any, name: str) -> float:
    """Return a value as iterations a second.

    Parameters
    ----------
    value
        Value of the field.
    name
        Name of the field, for the error.

    Raises
    ------
    InputError
        If the value is negative, not finite or no number.
    """
    try:
        if not isinstance(value, bool) and isinstance(value, int | float) and 0 <= float(value) < math.inf:
            return float(value)
    except OverflowError:  # an integer beyond all floats
        value = ...
    raise InputError("invalid", field=name, value=value, legal=RATE_LEGAL)


def legal_gang(value: Any, name: str = "gpus") -> None:
    """Check that a value is a gang size.

    Parameters
    ----------
    value
        Value of the field.
    name
        Name of the field, for the error.

    Raises
    ------
    InputError
        If the value is no integer >= 1.
    """
    check_legal(type(value) is int and value >= 1, name, value, "an integer >= 1")


def _is_named(key: Any, length: int) -> bool:
    return isinstance(key, tuple) and len(key) == length and isinstance(key[0], str) and key[0] != ""


def _name(job_type: str, gpu: str, gpus: int) -> str:
    return f"throughputs.{job_type} on {gpus} {gpu}"
