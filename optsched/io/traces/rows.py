"""Checks on the columns of a text table; they find every bad row of a file, without a loop over rows.

A check returns the parsed column (null where the text is invalid) and remembers the rows that fail, with the first
problem of each field: line, field, value and legal values.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import polars as pl

from optsched.deadline import seconds_in
from optsched.errors import InputError, RowErrors, RowProblem
from optsched.io.traces.text_table import TextTable
from optsched.problem.cluster import Cluster

EXACT_INTEGERS = 2.0**53  # beyond this float64 does not separate neighbouring integers
SHOWN = 40  # characters of a column name in a message; in a file without header a name may be a whole command
DATE_TIME_LEGAL = "a date-time such as 2017-10-09 07:01:55"
_ZONE = r"(?i)(z|[+-]\d{2}:?\d{2})$"
_LIKE_A_DATE = r"\d\s*[-/]"  # in every date-time
_ZONED = r":\d{2}.*" + _ZONE


class Rows:
    """Rows of one file and their problems.

    ``columns``: names of those that the file has; ``line`` of every row; ``count`` of the rows read, good and bad; ``good``
    bool[rows]: those that have passed every check so far; ``absent`` bool[rows]: those that were left out or passed over;
    ``left_out``: how many of them for each reason; ``said``: what `say` noted, for people.
    """

    def __init__(self, table: TextTable) -> None:
        self.file, self.line, self.sha256 = table.file, table.line, table.sha256
        self.columns, self.count = table.fields.columns, len(table.line)
        self._fields = table.fields
        self._problems = list({problem.row: problem for problem in table.problems}.values())
        self.good = ~self.line.is_in([problem.row for problem in self._problems])
        self._read = self.good  # rows that have fields
        self._told: dict[str, pl.Series] = {}  # field -> the rows in which it is bad
        self._clock: tuple[bool, str] | None = None  # whether date-times have an offset, and the legal text then
        self._names: tuple[str, pl.Series] | None = None  # the field whose texts must be unique
        self.absent = ~self.good & False
        self.left_out: dict[str, int] = {}
        self.said: list[str] = []

    def require(self, wanted: Sequence[str], hint: str = "") -> None:
        """Check that all wanted columns exist.

        Parameters
        ----------
        wanted
            Names of the columns.
        hint
            Text to add to the error.

        Raises
        ------
        InputError
            If a column is missing; the message names the existing and the missing ones.
        """
        missing = [name for name in wanted if name not in self.columns]
        if missing:
            there = ", ".join(name if len(name) <= SHOWN else f"{name[:SHOWN]}..." for name in self.columns)
            said = f"wrong dialect? missing: {', '.join(missing)}; there are: {there}{hint}"
            raise InputError(said, file=self.file, field="columns", legal=f"a header with {', '.join(wanted)}")

    def reject(self, wrong: pl.Series, field: str, legal: str | pl.Series, message: str = "invalid") -> None:
        """Mark rows as bad.

        Nothing more is reported for a field that is bad already, nor where null may follow from another field that is bad.

        Parameters
        ----------
        wrong
            The bad rows, bool[rows]; null counts as wrong.
        field
            Name of the column.
        legal
            One text, or one for each row, that says which values are legal.
        message
            Message of the problem.
        """
        told = self._told.get(field, ~self._read)
        wrong = (wrong.fill_null(False) & self._read & ~told) | (wrong.is_null() & self.good)
        if not wrong.any():
            return
        self.good &= ~wrong
        self._told[field] = told | wrong
        texts = self._fields[field].filter(wrong) if field in self.columns else self.line.filter(wrong)
        hints = legal.filter(wrong) if isinstance(legal, pl.Series) else [legal] * len(texts)
        self._problems += [
            RowProblem(row, field, text, str(hint), message)
            for row, text, hint in zip(self.line.filter(wrong), texts, hints, strict=True)
        ]

    def leave_out(self, which: pl.Series, reason: str, count: int | None = None) -> None:
        """Leave rows out that are legal but are no jobs of the instance, such as jobs that never ran.

        They are counted by reason, not as bad rows. Later checks pass over them. A bad row stays bad, and a row that was
        left out before keeps its first reason.

        Parameters
        ----------
        which
            The rows, bool[rows]; null counts as not.
        reason
            Why, as a phrase that fits behind a number of rows: ``never ran``.
        count
            Number of jobs that the rows stand for; None: one each.
        """
        out = which.fill_null(False) & self.good
        if out.any():
            self.left_out[reason] = self.left_out.get(reason, 0) + (int(out.sum()) if count is None else count)
            self.pass_over(out)

    def pass_over(self, which: pl.Series) -> None:
        """Pass over rows that are parts of the job of another row; they are neither bad nor left out.

        Parameters
        ----------
        which
            The rows, bool[rows]; null counts as not.
        """
        out = which.fill_null(False) & self.good
        self.absent |= out
        self.good &= ~out
        self._read &= ~out

    def say(self, line: str) -> None:
        """Note a line about how the file was read, which is shown with every result.

        Parameters
        ----------
        line
            One sentence.
        """
        self.said.append(line)

    @property
    def reasons(self) -> dict[str, int]:
        """Number of bad rows by field and message, the most frequent first."""
        counts = Counter(f"{problem.field}: {problem.message}" for problem in self._problems)
        return dict(counts.most_common())

    def durations(self, field: str, *, above: float | None = None, required: bool = True) -> pl.Series:
        """Return seconds >= 0 of durations, f64[rows]; forms as in `seconds_of_durations`.

        Parameters
        ----------
        field
            Name of the column.
        above
            Legal durations are longer than this; None: 0 is legal, too.
        required
            Empty fields are bad.
        """
        text = self.text(field, required=required)
        seconds = seconds_of_durations(text)
        fine = seconds.is_finite() & ((seconds >= 0) if above is None else (seconds > above))
        legal = DURATIONS_LEGAL if above is None else f"a finite number of seconds > {above:g}, or {CLOCK_FORMS}"
        self.reject(text.is_not_null() & ~fine.fill_null(False), field, legal)
        return seconds.alias(field)

    def states_zone(self, field: str) -> bool:
        """Return True if the times of a field are Unix seconds or date-times with a UTC offset.

        Parameters
        ----------
        field
            Name of the column.
        """
        if self._clock is not None or field not in self.columns:
            return self._clock is None or self._clock[0]
        first = self._fields[field].filter(self.good).head(1)
        return not bool((first.str.contains(r"\d[-/]\d|\d:\d") & ~first.str.contains(_ZONED)).any())

    def place(self, field: str, position: int) -> str:
        """Return a value as in the file, and its row.

        Parameters
        ----------
        field
            Name of the column.
        position
            Position of the row among the rows read.
        """
        text = f"{self._fields[field][position]!r} " if field in self.columns else ""
        return f"{text}(row {self.line[position]})"

    def text(self, field: str, *, required: bool = True) -> pl.Series:
        """Return text without surrounding blanks; null where it is empty.

        Parameters
        ----------
        field
            Name of the column.
        required
            Empty fields are bad.
        """
        text = self._fields[field].str.strip_chars().to_frame()
        stripped = text.select(pl.when(pl.col(field) != "").then(pl.col(field)).alias(field))[field]
        if required:
            self.reject(stripped.is_null(), field, "a text that is not empty", "missing")
        return stripped

    def number(
        self,
        field: str,
        *,
        least: float | None = None,
        above: float | None = None,
        below: float | None = None,
        whole: bool = False,
        legal: str | pl.Series | None = None,
        required: bool = True,
    ) -> pl.Series:
        """Return finite numbers, f64[rows].

        Parameters
        ----------
        field
            Name of the column.
        least
            Least legal number.
        above
            Legal numbers are larger than this.
        below
            Legal numbers are smaller than this.
        whole
            Only integers below 2^53 are legal.
        legal
            One text, or one for each row, that says which values are legal; None: made from the limits.
        required
            Empty fields are bad.
        """
        kind = "an integer" if whole else "a finite number"
        bound = f" >= {least:g}" if least is not None else f" > {above:g}" if above is not None else ""
        expected = kind + bound if legal is None else legal
        text = self.text(field, required=False)
        if required:
            self.reject(text.is_null(), field, expected, "missing")
        number = text.cast(pl.Float64, strict=False)
        fine = number.is_finite()
        if least is not None:
            fine &= number >= least
        if above is not None:
            fine &= number > above
        if below is not None:
            fine &= number < below
        if whole:
            fine &= (number == number.floor()) & (number.abs() <= EXACT_INTEGERS)
        wrong = ~fine.fill_null(False) & text.is_not_null()
        self.reject(wrong, field, expected)
        return number.to_frame().select(pl.when(~wrong).then(pl.col(field)).alias(field))[field]

    def count_for_information(self, field: str) -> pl.Series:
        """Return finite numbers >= 0 that serve as information only, f64[rows]; 0 means unknown and becomes null.

        Parameters
        ----------
        field
            Name of the column.
        """
        number = self.number(field, least=0)
        return number.to_frame().select(pl.when(pl.col(field) > 0).then(pl.col(field)).alias(field))[field]

    def positive(self, field: str) -> pl.Series:
        """Return finite numbers > 0, f64[rows].

        Parameters
        ----------
        field
            Name of the column.
        """
        return self.number(field, above=0)

    def non_negative(self, field: str) -> pl.Series:
        """Return finite numbers >= 0, f64[rows].

        Parameters
        ----------
        field
            Name of the column.
        """
        return self.number(field, least=0)

    def gang(self, field: str) -> pl.Series:
        """Return integers >= 1, i64[rows].

        Parameters
        ----------
        field
            Name of the column.
        """
        return self.number(field, least=1, whole=True).cast(pl.Int64)

    def date_times(self, field: str, *, legal: str | pl.Series = DATE_TIME_LEGAL, required: bool = True) -> pl.Series:
        """Return ISO date-times as seconds since 1970, f64[rows]; an offset such as +02:00 or Z counts, none means UTC.

        All date-times of a file have an offset or none has: most of the first column that is read decide, the others
        are bad rows. A local clock without offset repeats or skips an hour when summer time changes; this cannot be
        detected.

        Parameters
        ----------
        field
            Name of the column.
        legal
            One text, or one for each row, that says which values are legal.
        required
            Empty fields are bad.
        """
        text = self.text(field, required=False)
        if required:
            self.reject(text.is_null(), field, legal, "missing")
        seconds = seconds_of_date_times(text)
        self.reject(seconds.is_null() & text.is_not_null(), field, legal)
        zoned, read = text.str.contains(_ZONED), seconds.is_not_null()
        if self._clock is None and read.any():
            most = 2 * int((zoned & read).sum()) > int(read.sum())
            first = int((read & (zoned == most)).arg_true()[0])
            kind = "with" if most else "without"
            like = f"as {field} of row {self.line[first]}, {text[first]!r}: one clock for the whole log"
            self._clock = most, f"a date-time {kind} a UTC offset, {like}"
        if self._clock is not None:
            self.reject(read & (zoned != self._clock[0]), field, self._clock[1])
        return seconds

    def unique(self, field: str) -> pl.Series:
        """Return names that are not empty, String[rows]; `reject_duplicates` checks them.

        Parameters
        ----------
        field
            Name of the column.
        """
        self._names = field, self.text(field)
        return self._names[1]

    def product(self, *fields: str) -> str:
        """Add a column that shows the product of columns as the file has it, ``2 x 4``, and return its name.

        Parameters
        ----------
        *fields
            Names of the columns.
        """
        name = " x ".join(fields)
        self._fields = self._fields.with_columns(pl.concat_str(fields, separator=" x ").alias(name))
        self.columns = self._fields.columns
        return name

    def named(self, names: pl.Series) -> pl.Series:
        """Return names that replace those of `unique` in the check for duplicates.

        Parameters
        ----------
        names
            A name for each row, String[rows].
        """
        field, _ = self._names or ("", names)
        self._names = field, names
        return names

    def reject_duplicates(self) -> None:
        """Reject later rows with a name of `unique` that a good row has.

        Call it last, because names of bad rows do not count.
        """
        field, names = self._names or ("", self.line)
        good = names.filter(self.good)
        if good.n_unique() < len(good):
            seen = pl.DataFrame([self.line.alias("line"), names.alias("name"), self.good.alias("good")])
            first = seen.select(pl.col("line").filter(pl.col("good")).min().over("name")).to_series()
            legal = pl.select(pl.format("a name that line {} does not have", first)).to_series()
            self.reject(self.line > first, field, legal, "duplicate id")

    def reject_wide(
        self,
        gpus: pl.Series,
        field: str,
        cluster: Cluster,
        where: pl.Series,
        memory: pl.Series | None = None,
        types: pl.Series | None = None,
    ) -> None:
        """Reject rows with gangs that the cluster can never hold.

        Parameters
        ----------
        gpus
            GPUs of every job, i64[rows].
        field
            Name of the column.
        cluster
            The cluster.
        where
            Rows to check, bool[rows].
        memory
            Bytes that every job needs on each GPU, f64[rows]; null: any GPU.
        types
            Names of the GPU types that every job may use, List(String)[rows]; null: any.
        """
        offered = offered_gpus(cluster, len(gpus), memory, types)
        most = pl.format(f"at most {{}}, the GPUs of {cluster.spec}", offered)
        wanted = [name for name, needs in (("enough memory", memory), ("its types", types)) if needs is not None]
        with_needs = pl.format(f"{{}} with {' and '.join(wanted)}", most) if wanted else most
        legal = pl.select(pl.when(offered < cluster.gpus).then(with_needs).otherwise(most)).to_series()
        wide = (gpus > offered).fill_null(False) & where
        self.reject(wide, field, legal, "the gang is larger than the cluster")

    def raise_problems(self) -> None:
        """Raise `RowErrors` with every bad row, in the order of the file, if there is one."""
        if self._problems:
            raise RowErrors(self.file, sorted(self._problems, key=lambda problem: problem.row), self.count)


CLOCK_FORMS = "HH:MM:SS, D-HH:MM:SS, or a number with a unit such as 90m"
DURATIONS_LEGAL = f"seconds, {CLOCK_FORMS}"
_CLOCK = re.compile(r"(?:(\d+)-)?(\d+):(\d\d):(\d\d(?:\.\d+)?)")


def seconds_of_durations(text: pl.Series) -> pl.Series:
    """Return seconds, f64; null where the text is no duration.

    Forms: a finite number of seconds, ``HH:MM:SS`` and ``D-HH:MM:SS`` (hours may exceed 23, seconds may have a fraction),
    and numbers with units (``90m``, ``1h30m``).

    Parameters
    ----------
    text
        The texts.
    """
    number = text.cast(pl.Float64, strict=False)
    others = text.filter(number.is_null() & text.is_not_null()).unique()
    if others.is_empty():
        return number
    known = pl.DataFrame({"text": others, "seconds": pl.Series(map(_seconds_of, others), dtype=pl.Float64)})
    rows = pl.DataFrame({"text": text, "number": number}).join(known, on="text", how="left", maintain_order="left")
    return rows.select(pl.coalesce("number", "seconds"))["number"]


def _seconds_of(text: str) -> float | None:
    clock = _CLOCK.fullmatch(text)
    if clock is not None:
        days, hours, minutes, seconds = (float(part or 0) for part in clock.groups())
        return ((days * 24 + hours) * 60 + minutes) * 60 + seconds if minutes < 60 and seconds < 60 else None
    try:
        return seconds_in(text, "duration")
    except InputError:
        return None


def pieces_of(start: pl.Series, end: pl.Series, gpus: pl.Series | None = None) -> pl.Series:
    """Return the column ``ran`` of jobs that ran in one piece; null where a start or an end is unknown.

    Parameters
    ----------
    start
        Starts in seconds, f64[rows].
    end
        Ends in seconds, f64[rows].
    gpus
        GPUs that each job held, i64[rows]; None: its gang.
    """
    columns = [start.cast(pl.Float64).alias("start"), end.cast(pl.Float64).alias("end")]
    if gpus is not None:
        columns.append(gpus.cast(pl.Float64).alias("gpus"))
    table = pl.DataFrame(columns)
    piece = pl.concat_list(pl.concat_list(table.columns).implode().over(pl.int_range(pl.len())))
    known = pl.all_horizontal(pl.col(name).is_not_null() for name in table.columns)
    return table.select(pl.when(known).then(piece).alias("ran"))["ran"]


def seconds_of_date_times(text: pl.Series) -> pl.Series:
    """Return seconds since 1970, f64; null where the text is no date-time (``YYYY-MM-DD[ T]hh:mm[:ss[.f]][Z|+hh:mm]``).

    ``YYYY/MM/DD`` is read, too: where the year stands first, the month comes next.

    Parameters
    ----------
    text
        The texts.
    """
    if not text.str.contains(_LIKE_A_DATE).any():  # numbers as a rule
        return pl.Series("seconds", [None], dtype=pl.Float64).new_from_index(0, len(text))
    plain = pl.col("text").str.replace("T", " ", literal=True).str.replace(r"^(\d{4})/(\d\d)/(\d\d)", "$1-$2-$3")
    frame = text.alias("text").to_frame().with_columns(plain)
    zone = pl.col("text").str.contains(_ZONED)
    moment = pl.when(zone).then(pl.col("text").str.replace(_ZONE, "")).otherwise(pl.col("text")).str.strip_chars()
    offset = pl.when(zone).then(pl.col("text").str.extract(_ZONE, 1).str.replace("(?i)z", "+0000").str.replace(":", ""))
    frame = frame.select(
        pl.coalesce(
            moment.str.to_datetime(form, strict=False, time_unit="us")
            for form in ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M", "%Y-%m-%d")
        ).alias("moment"),
        offset.str.slice(0, 3).cast(pl.Float64, strict=False).alias("hours"),
        (offset.str.slice(0, 1) + offset.str.slice(3, 2)).cast(pl.Float64, strict=False).alias("minutes"),
    )
    shift = pl.col("hours").fill_null(0.0) * 3600.0 + pl.col("minutes").fill_null(0.0) * 60.0
    return frame.select((pl.col("moment").dt.epoch("us") / 1e6 - shift).alias("seconds"))["seconds"]


def offered_gpus(
    cluster: Cluster, jobs: int, memory: pl.Series | None = None, types: pl.Series | None = None
) -> pl.Series:
    """Return the number of GPUs of the cluster that suit each job, i64.

    Parameters
    ----------
    cluster
        The cluster.
    jobs
        Number of jobs.
    memory
        Bytes that every job needs on each GPU; null: any GPU.
    types
        Names of the GPU types that every job may use, whatever their case; null: any.
    """
    whole = pl.Series("offered", [cluster.gpus], dtype=pl.Int64).new_from_index(0, jobs)
    for group in cluster.nodes:
        unfit = pl.Series([False]).new_from_index(0, jobs)
        if memory is not None and group.gpu_memory is not None:
            unfit |= (memory > group.gpu_memory).fill_null(False)
        if types is not None:
            like = pl.element().str.to_lowercase() == group.gpu.lower()
            unfit |= ~types.list.eval(like).list.any().fill_null(True)
        whole = whole - unfit.cast(pl.Int64) * (group.count * group.gpus)
    return whole
