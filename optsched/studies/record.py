"""Record of a study: the numbers of every run, from which tables, findings, claims and figures are made.

`write_record` stores them in a JSON document, ``optsched-study/1``, with version, day, size and seeds; `read_record`
returns the `Reproduction` that was written. Results computed from the numbers are not stored, so a page made from a record
always agrees with the study.
"""

from __future__ import annotations

import datetime
import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optsched import __version__
from optsched.errors import InputError
from optsched.problem.atomic_files import write_atomic
from optsched.studies.experiment import Experiment, Workload
from optsched.studies.study_file import Reproduction, Study, outcomes

FORMAT = "optsched-study/1"
DIGITS = 9  # that are kept of a number: more than any table shows, and less than differs from one processor to another
ALWAYS = ("kept", "ratio", "guarantee")  # measures that findings ask for, whatever a table shows


@dataclass(frozen=True)
class StudyRecord:
    """Content of a record: the reproduction, with the version and the day of its measurement."""

    reproduction: Reproduction
    version: str
    date: str

    @property
    def runs(self) -> int:
        """Number of simulations in the record."""
        return len(self.reproduction.outcomes[0].numbers) if self.reproduction.outcomes else 0


def write_record(done: Reproduction, seeds: int | None, file: str | os.PathLike[str]) -> None:
    """Write the numbers of a study, with today's date.

    Parameters
    ----------
    done
        The reproduction.
    seeds
        Number of seeds, as for `Study.run`.
    file
        File to write.
    """
    rows: dict[str, dict[tuple[int, int, str], list[float | None]]] = {}
    workloads: dict[Workload, int] = {}
    heads = {name: used(done, name) for name in dict.fromkeys(e.measurement.name for e in _experiments(done))}
    for outcome in done.outcomes:
        e = outcome.experiment
        for row in e.rows:
            for column, workload in e.columns.items():
                at, policy = workloads.setdefault(workload, len(workloads)), e.policy(row, column)
                for seed in outcome.seeds:
                    found = outcome.numbers[workload, seed, policy]
                    values = [_rounded(found.get(name, math.nan)) for name in heads[e.measurement.name]]
                    rows.setdefault(e.measurement.name, {})[at, seed, policy] = values
    document = {
        "format": FORMAT,
        "study": done.study.name,
        "version": __version__,
        "date": datetime.date.today().isoformat(),
        "size": "small" if done.small else "default",
        "seeds": seeds,
        "trace": done.study.reads_trace(done.small),
        "workloads": [workload.to_json() for workload in workloads],
        "measures": heads,
        "runs": {name: [[*place, *values] for place, values in found.items()] for name, found in rows.items()},
    }
    write_atomic(file, _a_run_a_line(document))


def read_record(file: str | os.PathLike[str], study: Study | None = None) -> StudyRecord:
    """Read a record.

    Parameters
    ----------
    file
        The file.
    study
        Declaration of the study; default: the one with its name.

    Raises
    ------
    InputError
        If the document is not a record, or the study now needs runs that the record does not have.
    """
    document = _document(file)
    declared = (Study.named(document["study"]) if study is None else study).on_trace(document["trace"])
    small, seeds = document["size"] == "small", document["seeds"]
    workloads = [Workload.of(each["recipe"], **each["parameters"]) for each in document["workloads"]]
    numbers: dict[tuple[Workload, int, str], dict[str, float]] = {}
    for measurement, rows in document["runs"].items():
        heads = document["measures"][measurement]
        for at, seed, policy, *values in rows:
            known = {name: math.nan if v is None else v for name, v in zip(heads, values, strict=True)}
            numbers.setdefault((workloads[at], seed, policy), {}).update(known)
    named = declared.seeds_named(seeds, small)
    made = outcomes(declared.declare(small, seeds), named, numbers)
    for each in made:
        if not each.complete:
            raise InputError(
                "the study has changed since: a run that it asks for is not in the record",
                file=file,
                field=f"experiment.{each.experiment.name}",
                legal="a record made by `optsched reproduce` of this version of the study",
            )
    return StudyRecord(Reproduction(declared, small, named, made), document["version"], document["date"])


def used(done: Reproduction, measurement: str) -> list[str]:
    """Return the measures of a measurement that the study shows in a table, finding, claim or figure, in their order.

    Parameters
    ----------
    done
        The reproduction.
    measurement
        Name of the measurement.
    """
    mine = [e for e in _experiments(done) if e.measurement.name == measurement]
    asked = {*ALWAYS, *(name for e in mine for name in e.shown)}
    for e in mine:
        asked |= {e.measurement.compared, *(p.measure for p in e.published)}
        asked |= {p.most[1] for p in e.published if p.most is not None}
    asked |= {str(figure["y"]) for figure in done.figures if "y" in figure}
    return [name for name in mine[0].measurement.measures if name in asked] + ["kept"]


def _experiments(done: Reproduction) -> list[Experiment]:
    return [outcome.experiment for outcome in done.outcomes]


def _rounded(value: float) -> float | None:
    return None if math.isnan(value) else float(f"{value:.{DIGITS}g}")


def _a_run_a_line(document: dict[str, Any]) -> str:
    """JSON with a line for every workload and every run, so that two records can be compared."""
    runs = document.pop("runs")
    head = json.dumps({**document, "workloads": []}, indent=1)
    lines = ",\n  ".join(json.dumps(each, separators=(",", ":")) for each in document["workloads"])
    tables = ",\n".join(
        f' "{name}": [\n  ' + ",\n  ".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n ]"
        for name, rows in runs.items()
    )
    head = head.replace('"workloads": []', f'"workloads": [\n  {lines}\n ]')
    return head.removesuffix("\n}") + f',\n "runs": {{\n{tables}\n }}\n}}\n'


def _document(file: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        document = json.loads(Path(file).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError("no such file", file=file) from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {error}", file=file) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError("not the record of a study", file=file, field="format", legal=FORMAT)
    return document
