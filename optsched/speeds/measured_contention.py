"""Measured contention: a square table of the speed that each kind of job keeps beside each other kind.

The form is that of the DeepShare measurements (shared_thp_ratio.csv; isolated_thp.csv and total_samples_trained.csv go with
it): a first row of kinds, then one row a kind, ``ratio[i][j]`` in (0, 1] = throughput of kind i beside kind j / throughput
of i alone. It is not symmetric. A DeepShare kind is "model,GPUs,GPUs per node".

Only pairs were measured. Beside several others a job is taken to keep the **product** of its ratios (each slows it on its
own), or with ``worst_pair`` the least of them (an upper bound on the speed if more company never helps). Both are
assumptions.
"""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from optsched.errors import InputError, RowErrors, RowProblem
from optsched.problem.contention import Contention
from optsched.problem.files import read_bytes
from optsched.registry import near_matches

RATIO_LEGAL = "a number in (0, 1]"
POSITIVE = "a finite number > 0"


# --- files ------------------------------------------------------------------------------------------------------------


def read_ratio_matrix(path: str | os.PathLike[str], seconds_per_byte: float = 1.0) -> Contention:
    """The table of ratios in a csv file as a `Contention`; rows may stand in another order than the columns.

    ``seconds_per_byte``: b of a transfer alone, which the table does not know; 1 where work is counted in seconds.

    Raises
    ------
    InputError
        Every bad row with line, field, value and what is legal: a ratio that is missing or not in (0, 1], a row of
        another length than the header, a row's kind that the header does not have or that came before; a kind of the
        header without a row; a header without kinds or with one twice; no such file, not UTF-8.
    """
    kinds, values = _table(path, RATIO_LEGAL, at_most=1.0)
    missing = [kind for kind in kinds if kind not in values]
    unknown = [kind for kind in values if kind not in kinds]
    if missing or unknown:
        message = "not a square table: kinds without a row" if missing else "not a square table: a row without a column"
        raise InputError(
            message, file=path, field="kind", value=(missing or unknown)[0], legal="a row for every column"
        )
    return Contention(seconds_per_byte, kinds=kinds, ratios=tuple(values[kind] for kind in kinds))


def read_isolated_throughputs(path: str | os.PathLike[str]) -> dict[str, float]:
    """Samples/s of every kind alone (isolated_thp.csv). Errors as in `read_ratio_matrix`."""
    columns, values = _table(path, POSITIVE)
    if len(columns) != 1:
        raise InputError(
            "not a table of throughputs", file=path, row=1, value=len(columns), legal="one column of numbers"
        )
    return {kind: row[0] for kind, row in values.items()}


def read_total_samples(path: str | os.PathLike[str]) -> dict[tuple[str, int], float]:
    """Samples trained by (model, GPUs) (total_samples_trained.csv). Errors as in `read_ratio_matrix`.

    In the published file these are 3,600 s of the throughput alone: to 0.02 % for 2 GPUs, between the placements' for more.
    """
    columns, values = _table(path, POSITIVE)
    for column in columns:
        if not (column.isascii() and column.isdigit() and int(column) > 0):
            raise InputError("invalid", file=path, row=1, field="GPUs", value=column, legal="a whole number > 0")
    return {
        (model, int(column)): value for model, row in values.items() for column, value in zip(columns, row, strict=True)
    }


def _table(
    path: str | os.PathLike[str], legal: str, at_most: float = math.inf
) -> tuple[tuple[str, ...], dict[str, tuple[float, ...]]]:
    """Column names, and the numbers in (0, at_most] of every row by its first field."""
    lines = _lines(path)
    if not lines:
        raise InputError("the file is empty", file=path, legal="a header and one row a kind")
    header = tuple(field.strip() for field in lines[0][1][1:])
    if not header or "" in header or len(set(header)) < len(header):
        raise InputError("invalid", file=path, row=lines[0][0], field="header", legal="different names, one a column")
    values: dict[str, tuple[float, ...]] = {}
    problems: list[RowProblem] = []
    for line, (first, *fields) in lines[1:]:
        kind = first.strip()
        if not kind or kind in values:
            problems.append(RowProblem(line, "kind", kind, "a name that no row before has"))
        elif len(fields) != len(header):
            problems.append(RowProblem(line, kind, len(fields), f"{len(header)} numbers", "wrong number of fields"))
        else:
            row = tuple(_number(field, at_most) for field in fields)
            values[kind] = row
            wrong = [position for position, number in enumerate(row) if math.isnan(number)]
            problems += [RowProblem(line, f"{kind} beside {header[at]}", fields[at], legal) for at in wrong]
    if problems:
        raise RowErrors(path, problems, len(lines) - 1)
    return header, values


def _lines(path: str | os.PathLike[str]) -> list[tuple[int, list[str]]]:
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("not UTF-8", file=path, value=f"byte {error.start}", legal="UTF-8 text") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        return [(reader.line_num, row) for row in reader if any(field.strip() for field in row)]
    except csv.Error as error:
        raise InputError(f"not csv: {error}", file=path, row=reader.line_num, legal='fields, "..." closed') from None


def _number(text: str, at_most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if 0 < value <= at_most and math.isfinite(value) else math.nan


# --- speeds -----------------------------------------------------------------------------------------------------------


def kept_speed(contention: Contention, kind: str, beside: Iterable[str], *, worst_pair: bool = False) -> float:
    """Share in (0, 1] of its speed alone that a job of ``kind`` keeps beside jobs of kinds ``beside``; 1 beside none.

    The product of the measured ratios, or with ``worst_pair`` the least (see the module: both are assumptions, and the
    product is never larger). O(len(beside)) after an index of the kinds.

    Raises
    ------
    InputError
        A kind that the table does not have; a contention without a table.
    """
    index = _index(contention)
    row = contention.ratios[_of(index, kind)]
    ratios = [row[_of(index, other)] for other in beside]
    return min(ratios, default=1.0) if worst_pair else math.prod(ratios)


@dataclass(frozen=True, slots=True)
class ImpliedPenalty:
    """What a kind beside its own twin says about the linear model: see `implied_penalties`."""

    kind: str
    ratio: float
    eta_over_b: float

    @property
    def negative(self) -> bool:
        """Would eta be < 0: does the pair lose less than sharing a link without loss costs?"""
        return self.eta_over_b < 0

    @property
    def fits(self) -> bool:
        """Is there a legal `Contention` with this penalty, eta > -b? Not if the twins do not slow each other at all."""
        return self.eta_over_b > -1

    @property
    def least_network_share(self) -> float:
        """Share of the time alone on the network that explains the ratio with eta = 0: 1/ratio - 1; above 1, eta > 0."""
        return 1 / self.ratio - 1


def implied_penalties(contention: Contention, network_share: float = 1.0) -> Mapping[str, ImpliedPenalty]:
    """eta / b that the diagonal of a measured table implies, by kind.

    A job beside its own twin, both all the time on the link, has 1 / ratio = T(2) / T(1) = 2 + eta/b. If only the share f
    = ``network_share`` of its time alone is on the network and the rest is not slowed, 1 / ratio = 1 + f (1 + eta/b), so
    eta / b = (1 / ratio - 1) / f - 1. With f = 1 a ratio above 1/2 implies eta < 0: **either** contention makes the link
    faster **or** the job is not bound by the network; one number cannot tell which. Only the diagonal is used: beside
    another kind the two have different shares and sizes, and the equation has two unknowns.
    """
    if not 0 < network_share <= 1:
        raise InputError("invalid", field="network_share", value=network_share, legal=RATIO_LEGAL)
    _index(contention)
    return {
        kind: ImpliedPenalty(kind, row[i], (1 / row[i] - 1) / network_share - 1)
        for i, (kind, row) in enumerate(zip(contention.kinds, contention.ratios, strict=True))
    }


def _index(contention: Contention) -> dict[str, int]:
    if not contention.measured:
        raise InputError(
            "no measured ratios", field="contention.kinds", legal="kinds and ratios, as of read_ratio_matrix"
        )
    return {kind: position for position, kind in enumerate(contention.kinds)}


def _of(index: Mapping[str, int], kind: str) -> int:
    if kind not in index:
        legal = near_matches(kind, list(index), kind="kind")
        raise InputError("the table does not have this kind", field="kind", value=kind, legal=legal)
    return index[kind]
