"""Index of the instance library, ``instances/index.csv``, and the archives of proofs next to it.

There is one row an instance: how it is made, the best known value and bound, and the methods that proved them. Most
instances are made again from recipe, seed and parameters, and identified by their digest; those with a ``file`` are stored,
too. The best schedule and the certificate of the bound are in ``instances/proofs/SUITE.zip``, as ``NAME.schedule.json`` (or
``.schedule.parquet``, a log of tasks) and ``NAME.certificate.json``.
"""

from __future__ import annotations

import csv
import importlib.resources
import io
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from importlib.resources.abc import Traversable
from pathlib import Path

import polars as pl

from optsched.errors import InputError, check_legal
from optsched.problem.atomic_files import write_atomic
from optsched.problem.documents import short_number
from optsched.registry import check_known

INDEX, PROOFS = "index.csv", "proofs"
SEPARATOR = "; "  # between parameters of a recipe, and between methods
FIXED = (1980, 1, 1, 0, 0, 0)  # date of every file in an archive, so that equal content gives equal bytes


@dataclass(frozen=True)
class LibraryEntry:
    """An instance of the library: a row of the index.

    Fields
    ------
    name, suite : its name, and the set of like instances that it belongs to.
    problem : in Graham's notation. ``jobs``, ``gpus``: its size.
    objective, schedule_class : the objective that is minimised (``total_utility``: maximised), and the class of schedules
        (column ``class``).
    value : of the best schedule known. ``bound``: the best proven bound; both rounded to the safe side. None: unknown.
    solved : whether they are the optimum, proved. ``proved_by``: the methods that proved it independently of each other, and
        the certificate if it closes the gap.
    found_by, bound_by : the method, policy or kind of certificate that value and bound come from.
    certified : the bound that the stored ``certificate`` (its kind) proves from the instance alone; it may be weaker than
        ``bound``, which a search by the method ``bound_by`` proved.
    seconds : CPU time of the proof, all methods together.
    recipe, seed, parameters : `optsched.generate` makes the instance from them; parameters as ``"key=value; ..."``.
    file : of a stored instance, else empty. ``digest``: of the instance (`Instance.digest`).
    """

    name: str
    suite: str
    problem: str
    jobs: int = 0
    gpus: int = 0
    objective: str = ""
    schedule_class: str = ""
    value: float | None = None
    bound: float | None = None
    solved: bool = False
    proved_by: tuple[str, ...] = ()
    found_by: str = ""
    bound_by: str = ""
    certified: float | None = None
    certificate: str = ""
    seconds: float | None = None
    recipe: str = ""
    seed: int = 0
    parameters: str = ""
    file: str = ""
    digest: str = ""

    @property
    def optimum(self) -> float | None:
        """Proven optimal value; None if it is not known."""
        return self.value if self.solved else None

    @property
    def known(self) -> str:
        """Short text on what is known of the optimum."""
        if self.optimum is not None:
            return f"optimum {self.optimum:.10g}"
        bound, value = ("unknown" if each is None else f"{each:.10g}" for each in (self.bound, self.value))
        return f"value {value}, bound {bound}"


COLUMNS = ["class" if each.name == "schedule_class" else each.name for each in fields(LibraryEntry)]
SCHEMA: dict[str, type[pl.DataType]] = dict.fromkeys(COLUMNS, pl.String) | {"solved": pl.Boolean}
SCHEMA |= dict.fromkeys(("jobs", "gpus", "seed"), pl.UInt32)
SCHEMA |= dict.fromkeys(("value", "bound", "certified", "seconds"), pl.Float64)
_REQUIRED = ("name", "suite", "problem", "objective", "class", "solved", "recipe", "digest")


def index() -> pl.DataFrame:
    """Return the index as a table, without rows if there is none; `InputError` if it is invalid."""
    return _read()[0]


def entries() -> tuple[LibraryEntry, ...]:
    """Return all instances of the library in the order of the index; `InputError` if it is invalid."""
    return _read()[1]


def shipped() -> list[LibraryEntry]:
    """Return the instances that are stored as files, in the order of the index: those of the suites with kept ratios."""
    return [each for each in entries() if each.file]


def _read() -> tuple[pl.DataFrame, tuple[LibraryEntry, ...]]:
    file = instances_folder().joinpath(INDEX)
    return _parsed(file.read_bytes(), str(file)) if file.is_file() else (pl.DataFrame(schema=SCHEMA), ())


@lru_cache(maxsize=2)
def _parsed(content: bytes, file: str) -> tuple[pl.DataFrame, tuple[LibraryEntry, ...]]:
    # cached, because it is read with every instance of a suite
    if content.partition(b"\n")[0].rstrip() != ",".join(COLUMNS).encode():
        raise InputError("wrong columns", file=file, row=1, legal=",".join(COLUMNS))
    try:
        frame = pl.read_csv(content, schema=SCHEMA).with_columns(pl.col(pl.String).fill_null(""))
    except pl.exceptions.PolarsError as error:
        why = str(error).partition("\n")[0]
        raise InputError(f"invalid: {why}", file=file, legal="an index of instances") from None
    for field in _REQUIRED:
        wrong = [row for row, value in enumerate(frame[field], 2) if value in (None, "")]
        if wrong:
            raise InputError("missing", file=file, row=wrong[0], field=field)
    if frame["name"].is_duplicated().any():
        twice = frame["name"].filter(frame["name"].is_duplicated())[0]
        raise InputError("used twice", file=file, field="name", value=twice, legal="unique")
    made = []
    for row in frame.rename({"class": "schedule_class"}).iter_rows(named=True):
        proved_by = tuple(filter(None, row["proved_by"].split(SEPARATOR)))
        made.append(LibraryEntry(**row | {"proved_by": proved_by}))
    return frame, tuple(made)


def entry(name: str) -> LibraryEntry:
    """Return the entry of an instance.

    Parameters
    ----------
    name
        Name of the instance.

    Raises
    ------
    InputError
        If the library has no such instance; the message has near matches.
    """
    check_legal(isinstance(name, str), "instance", name, "a name")
    every = {each.name: each for each in entries()}
    check_known(name, every, "instance", "there is no instance of this name in the library", value=name)
    return every[name]


def parameters_of(text: str) -> dict[str, str]:
    """Return ``"key=value; ..."`` as a mapping.

    Parameters
    ----------
    text
        The text.
    """
    pairs = (each.partition("=") for each in text.split(SEPARATOR) if each)
    return {key: value for key, _, value in pairs}


def write_index(rows: Iterable[LibraryEntry], folder: Path) -> None:
    """Write the index, completely or not at all.

    Parameters
    ----------
    rows
        The entries.
    folder
        Folder of the index.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for each in rows:
        values = asdict(each) | {"proved_by": SEPARATOR.join(each.proved_by), "solved": str(each.solved).lower()}
        writer.writerow(map(short_number, values.values()))
    write_atomic(folder / INDEX, out.getvalue())


def extracted(each: LibraryEntry, folder: Path) -> list[Path]:
    """Copy the files of proofs of one instance into a folder, and return them.

    Parameters
    ----------
    each
        Entry of the instance.
    folder
        The folder.
    """
    archive = instances_folder().joinpath(PROOFS, f"{each.suite}.zip")
    if not archive.is_file():
        return []
    with archive.open("rb") as file, zipfile.ZipFile(file) as opened:
        names = [name for name in opened.namelist() if name.startswith(f"{each.name}.")]
        return [Path(opened.extract(name, folder)) for name in names]


def write_proofs(suite: str, files: Mapping[str, bytes], folder: Path) -> None:
    """Write the archive of a suite, completely or not at all; equal files give equal bytes.

    Parameters
    ----------
    suite
        Name of the suite.
    files
        Content of every file, by name.
    folder
        Folder of the index.
    """
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in sorted(files):
            # two thirds of what other ways take
            archive.writestr(zipfile.ZipInfo(name, FIXED), files[name], zipfile.ZIP_LZMA)
    (folder / PROOFS).mkdir(exist_ok=True)
    write_atomic(folder / PROOFS / f"{suite}.zip", out.getvalue())


def instances_folder() -> Traversable:
    """Return the folder of instances: inside the package in a wheel, next to it in a checkout.

    pyproject.toml maps one to the other.
    """
    inside = importlib.resources.files("optsched").joinpath("_instances")
    return inside if inside.is_dir() else Path(__file__).resolve().parents[2] / "instances"
