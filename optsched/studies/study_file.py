"""`Study`: a paper's experiments, declared in a TOML file, that can be run again as one sweep.

summary = "..."                          # and title, paper, for pages
method = "..."                           # how the numbers come about; seeds: usual workloads of every kind
[words]                                  # $gpus in a text of this file means
gpus = "64"
[lists]                                  # what rows, shown and remarks may name
[policies]                               # label of a row = policy; a row without one is a policy itself
[workloads.usual]                        # recipe (or module:function) and parameters
[every]                                  # what all experiments have
[experiment.NAME]                        # fields of `optsched.studies.experiment.Experiment`, and
like = "OTHER"                           # what another one says, unless this one does
only = "small"                           # or "full": in this size only
measure = "..."                          # `optsched.sweeps.measurement`
workload = "usual"
with = { jobs = 640 }                    # parameters beside those of the workload
run = "{}+consolidated"                  # what is run of a row
axis = { parameter = "load", values = [0.5, 0.9], label = "load {:g}" }          # the columns, or by name:
columns."x 4" = { workload = "usual", nic_bandwidth = 1e9, policy = "{}+x" }     # also what a row's policy becomes; one of
                                         # the two takes the place of both in what is like, or in every
keep = ["x 4"]                           # the only columns
[[claim]]                                # `optsched.studies.experiment.Published`, the experiments it is measured in, and a
label = "..."                            # short for a line of the summary
[[figure]]                               # `optsched.studies.figures`
[cost]                                   # CPU seconds a cell, by experiment; others: usual
[small]                                  # laid over all this for a quick look
[trace]                                  # laid over it (not for that) where OPTSCHED_DATA has this file
file = "philly/philly.csv"
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from string import Template
from typing import Any

from optsched.errors import InputError, check_legal
from optsched.intervals import CONFIDENCE
from optsched.policies.simulate import specify
from optsched.problem.atomic_files import write_atomic
from optsched.registry import Registry
from optsched.studies.claims import Claim, claims, markdown
from optsched.studies.experiment import Experiment, Numbers, Published, RunOutcome, Workload
from optsched.studies.findings import REMARKS, findings
from optsched.sweeps.grid import Cell, Grid, check_recipe, read_toml
from optsched.sweeps.measurement import Measure, measurement_of
from optsched.sweeps.run_sweep import Cost, Heard, sweep
from optsched.sweeps.store import Store, settled

OBJECTIVE = "total_completion_time"
METHOD = (
    "Each seed is one workload, shared by all rows of a column. Intervals are 95 % intervals over the seeds on a log scale; "
    "fewer than three seeds, or equal numbers, have none. Rows are compared on the same workloads by the geometric mean of "
    "their ratios of mean JCT (sum C moves in the same direction) and its interval, without a correction for the number of "
    "comparisons. The referee accepted every schedule, and every bound was verified"
)


KEYS = "question across measure workload with run axis columns keep rows policies reference shown seeds short remarks"
KEYS += " like only"


@dataclass(frozen=True)
class Study:
    """Experiments that belong together: its name, and the document that declares them."""

    name: str
    document: Mapping[str, Any]

    @classmethod
    def read(cls, file: str | os.PathLike[str]) -> Study:
        """Read the study of a TOML file.

        Parameters
        ----------
        file
            Path of the file.

        Raises
        ------
        InputError
            If the file is not a study.
        """
        document = read_toml(file)
        missing = [key for key in ("summary", "experiment") if key not in document]
        if missing:
            raise InputError("not a study", file=file, field=missing[0], legal="summary, [experiment.NAME]")
        return cls(Path(file).stem, document)

    @classmethod
    def named(cls, name: str) -> Study:
        """Return the study with a name, or the study of a ``.toml`` file.

        Parameters
        ----------
        name
            Name of a study, or path of a file that ends with ``.toml``.

        Raises
        ------
        InputError
            If no such study exists.
        """
        return cls.read(name) if name.endswith(".toml") else STUDIES.get(name)

    @property
    def summary(self) -> str:
        """Summary of the study."""
        return str(self.document["summary"])

    def seeds(self, small: bool = False) -> int:
        """Return the usual number of workloads of every kind.

        Parameters
        ----------
        small
            Whether the study runs in its small size.
        """
        return int((self.document.get("small", {}) if small else {}).get("seeds", self.document.get("seeds", 5)))

    def sized(self, small: bool) -> dict[str, Any]:
        """Return the document of a size, with its words substituted; the small one never reads a trace.

        Parameters
        ----------
        small
            Whether the study runs in its small size.

        Raises
        ------
        InputError
            If the document uses a word that it does not define.
        """
        document = dict(self.document)
        if small:
            document = _over(document, document.get("small", {}))
        elif self.reads_trace(small):
            document = _over(document, document["trace"])
        try:
            return dict(_worded(document, document.get("words", {})))
        except KeyError as error:
            raise InputError("is not there", file=self.name, field="words", value=error.args[0]) from None

    def reads_trace(self, small: bool = False) -> bool:
        """Return whether the workloads come from a trace whose file is under ``OPTSCHED_DATA``.

        Parameters
        ----------
        small
            Whether the study runs in its small size, which never reads a trace.
        """
        if small or "trace" not in self.document:
            return False
        return Path(os.environ.get("OPTSCHED_DATA", ""), self.document["trace"]["file"]).is_file()

    def left_out(self, small: bool = False) -> str:
        """Return one line on the experiments that are left out without the file of the trace; empty if there are none.

        Parameters
        ----------
        small
            Whether the study runs in its small size.
        """
        own = self.document.get("trace", {}).get("experiment", {})
        names = [name for name in own if name not in self.document["experiment"]]
        if not names or self.reads_trace(small):
            return ""
        file = self.document["trace"]["file"]
        why = "the small size reads no trace" if small else f"the folder OPTSCHED_DATA has no {file}"
        return f"left out: {', '.join(names)}; {why}"

    def on_trace(self, read: bool) -> Study:
        """Return the study with a fixed source of workloads, whether or not the file of the trace exists.

        Parameters
        ----------
        read
            True: workloads from the trace; False: generated workloads.
        """
        document = _over(self.document, self.document.get("trace", {})) if read else dict(self.document)
        document.pop("trace", None)
        return Study(self.name, document)

    def declare(self, small: bool = False, seeds: int | None = None) -> tuple[Experiment, ...]:
        """Return the experiments of a size.

        An experiment's own number of seeds applies only to the full size, and only if ``seeds`` is None.

        Parameters
        ----------
        small
            Whether the study runs in its small size.
        seeds
            Number of seeds of all experiments; None: the usual ones.
        """
        document, size = self.sized(small), "small" if small else "full"
        tables = document["experiment"].items()
        made = [_declared(self.name, document, name) for name, own in tables if own.get("only", size) == size]
        return tuple(replace(each, seeds=None) for each in made) if small or seeds is not None else tuple(made)

    def run(
        self,
        seeds: int | None = None,
        *,
        small: bool = False,
        store: str | os.PathLike[str] | None = None,
        backend: str = "loky",
        address: str | None = None,
        workers: int | None = None,
        heard: Heard | None = None,
    ) -> Reproduction:
        """Run all cells that are not in the store yet, of all experiments.

        The numbers depend neither on the time, nor on the backend, nor on the number of workers.

        Parameters
        ----------
        seeds
            Run the seeds 1..``seeds``; None: the usual number, or the experiment's own.
        small
            Whether the study runs in its small size.
        store
            File of the results; without it, nothing is kept.
        backend
            ``loky``, ``dask`` or ``ray``, as in `optsched.sweeps.run_sweep.sweep`.
        address
            Address of a running cluster of Dask or Ray.
        workers
            Number of processes.
        heard
            Function called with (result, settled cells, all cells) after each cell.

        Raises
        ------
        InputError
            If ``seeds`` or ``workers`` is below 1, or a policy or a recipe is wrong; it is raised before anything
            runs.
        """
        experiments, named = self.declare(small, seeds), self.seeds_named(seeds, small)
        numbers = run_all(
            experiments, named, store=store, backend=backend, address=address, workers=workers, heard=heard
        )
        return Reproduction(self, small, named, outcomes(experiments, named, numbers))

    def seeds_named(self, seeds: int | None, small: bool = False) -> tuple[int, ...]:
        """Return the seeds 1..``seeds``, or the usual ones.

        Parameters
        ----------
        seeds
            Number of seeds; None: the usual number.
        small
            Whether the study runs in its small size.

        Raises
        ------
        InputError
            If the number is below 1.
        """
        check_legal(seeds is None or seeds >= 1, "seeds", seeds, "an integer >= 1")
        return tuple(range(1, (self.seeds(small) if seeds is None else seeds) + 1))

    def so_far(self, store: str | os.PathLike[str], seeds: int | None = None, *, small: bool = False) -> Reproduction:
        """Return the outcomes of the experiments of which every cell is in a store.

        Parameters
        ----------
        store
            File of the results.
        seeds
            Number of seeds; None: the usual number.
        small
            Whether the study runs in its small size.
        """
        experiments, named = self.declare(small, seeds), self.seeds_named(seeds, small)
        made = outcomes(experiments, named, _numbers(store, cells(experiments, named)))
        return Reproduction(self, small, named, tuple(each for each in made if each.complete))

    def cost(self, store: str | os.PathLike[str], seeds: int | None = None, *, small: bool = False) -> Cost:
        """Estimate the cost of `run` from the CPU seconds that the study states for each experiment.

        Parameters
        ----------
        store
            File of the results; cells in it cost nothing. The cells of the study are entered there.
        seeds
            Number of seeds; None: the usual number.
        small
            Whether the study runs in its small size.

        Returns
        -------
        Cost
            The number of cells, the number of those still to run, and their CPU seconds.
        """
        every = cells(self.declare(small, seeds), self.seeds_named(seeds, small))
        with Store(store) as kept:
            left = {cell.key for cell in kept.enter(Grid(self.name, tuple(every)))}
        known = (self.document.get("small", {}) if small else self.document).get("cost", {})
        seconds = sum(known.get(name, known.get("usual", 0.0)) for cell, name in every.items() if cell.key in left)
        return Cost(len(every), len(left), seconds)


@dataclass(frozen=True)
class Reproduction:
    """The outcomes of a study, with the settings that gave them."""

    study: Study
    small: bool
    seeds: tuple[int, ...]
    outcomes: tuple[RunOutcome, ...]

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that a reader needs to get the same numbers."""
        return {
            "size": "small" if self.small else "default",
            "seeds": list(self.seeds),
            "objective": OBJECTIVE,
            "confidence": CONFIDENCE,
            "method": self.study.document.get("method", METHOD),
        }

    @property
    def measures(self) -> dict[str, Measure]:
        """All measures of the experiments by name."""
        return {name: m for each in self.outcomes for name, m in each.experiment.measurement.measures.items()}

    @property
    def claims(self) -> list[Claim]:
        """Claims of the study: the published statement, the measurement and the explanation."""
        return claims(self.study.sized(self.small).get("claim", []), self.outcomes)

    def write(self, folder: Path) -> list[Path]:
        """Draw the figures into a folder, write the claims there as ``claims.md``, and return the files.

        Parameters
        ----------
        folder
            The folder.
        """
        from optsched.studies.figures import draw  # slow to import

        page = folder / "claims.md"
        write_atomic(page, markdown(self.study.name, self.claims))
        return [*draw(self.figures, self.outcomes, folder), page]

    @property
    def figures(self) -> list[Mapping[str, Any]]:
        """The ``[[figure]]`` tables of the size."""
        return list(self.study.sized(self.small).get("figure", []))

    def to_json(self) -> dict[str, Any]:
        """The document of ``reproduce --json``."""
        return {
            "study": self.study.name,
            "summary": self.study.summary,
            "settings": self.settings,
            "measures": {name: {"unit": m.unit, "meaning": m.meaning} for name, m in self.measures.items()},
            "experiments": [{**each.to_json(), "findings": findings(each)} for each in self.outcomes],
            "claims": [asdict(each) for each in self.claims],
        }


def run_all(
    experiments: Iterable[Experiment], seeds: Iterable[int], *, store: str | os.PathLike[str] | None = None, **how: Any
) -> Numbers:
    """Run all cells of experiments and return their numbers.

    Parameters
    ----------
    experiments
        The experiments.
    seeds
        Seeds of the experiments without a number of their own.
    store
        File of the results; without it, nothing is kept.
    **how
        Parameters of `optsched.sweeps.run_sweep.sweep`.
    """
    asked = cells(experiments, seeds)
    for policy in {cell.policy for cell in asked}:
        specify(policy)
    for where in {cell.where for cell in asked}:
        check_recipe(dict(where))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "cells.sqlite") if store is None else Path(store)
        sweep(Grid("study", tuple(asked)), file, **how)
        return _numbers(file, asked)


def cells(experiments: Iterable[Experiment], seeds: Iterable[int]) -> dict[Cell, str]:
    """Return every cell once, with the first experiment that uses it.

    Cells of a workload come together. Workloads come in descending order of jobs times cells.

    Parameters
    ----------
    experiments
        The experiments.
    seeds
        Seeds of the experiments without a number of their own.
    """
    usual, found = tuple(seeds), dict[Cell, str]()
    for each in experiments:
        for column in each.columns:
            for seed in each.seeds_of(usual):
                for row in each.rows:
                    found.setdefault(each.cell(row, column, seed), each.name)
    count: dict[tuple[Any, ...], int] = {}
    for cell in found:
        count[cell.where, cell.seed] = count.get((cell.where, cell.seed), 0) + 1

    def size(cell: Cell) -> tuple[Any, ...]:
        where = dict(cell.where)
        jobs = int(where.get("jobs", 1)) * int(where.get("scale", 1))
        return -jobs * count[cell.where, cell.seed], str(cell.where), cell.seed, cell.measure

    return dict(sorted(found.items(), key=lambda item: size(item[0])))


def outcomes(experiments: Iterable[Experiment], seeds: tuple[int, ...], numbers: Numbers) -> tuple[RunOutcome, ...]:
    """Return the tables of experiments with their numbers.

    Parameters
    ----------
    experiments
        The experiments.
    seeds
        Seeds of the experiments without a number of their own.
    numbers
        Numbers of the cells.
    """
    return tuple(RunOutcome(each, each.seeds_of(seeds), numbers) for each in experiments)


def _numbers(store: str | os.PathLike[str], asked: Iterable[Cell]) -> Numbers:
    numbers: dict[tuple[Workload, int, str], dict[str, float]] = {}
    found = settled(store)
    for cell in asked:
        if cell.key in found:  # another experiment may measure something else of the same run
            where = dict(cell.where)
            workload = Workload.of(where.pop("recipe"), **where)
            numbers.setdefault((workload, cell.seed or 0, cell.policy), {}).update(found[cell.key])
    return numbers


def _over(document: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """``more`` laid over a document, table by table."""
    found = dict(document)
    for key, value in more.items():
        below = found.get(key)
        found[key] = _over(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return found


def _worded(value: Any, words: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        return Template(value).substitute(words)
    if isinstance(value, Mapping):
        return {Template(key).substitute(words): _worded(each, words) for key, each in value.items()}
    return [_worded(each, words) for each in value] if isinstance(value, list) else value


def _table(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """All that an experiment says, with what it takes over from another one and from all."""
    own = document["experiment"][name]
    above = _table(document, own["like"]) if "like" in own else document.get("every", {})
    dropped = {"only"}
    if ("axis" in own) != ("columns" in own):  # its columns take the place of those above
        dropped.add("columns" if "axis" in own else "axis")
    return _over({key: value for key, value in above.items() if key not in dropped}, own)


def _declared(study: str, document: Mapping[str, Any], name: str) -> Experiment:
    where = f"{study}: experiment.{name}"
    unknown = [key for key in document["experiment"][name] if key not in KEYS.split()]
    if unknown:
        raise InputError("unknown key", field=where, value=unknown[0], legal=", ".join(KEYS.split()))
    try:
        return _experiment(document, name)
    except KeyError as error:
        raise InputError("is not there", field=where, value=error.args[0]) from None
    except (InputError, ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{where}: {error}") from None


def _experiment(document: Mapping[str, Any], name: str) -> Experiment:
    table, lists, policies = _table(document, name), document.get("lists", {}), document.get("policies", {})
    policies = {**policies, **table.get("policies", {})}

    def listed(key: str) -> list[Any]:
        value = table.get(key, [])
        return list(lists[value] if isinstance(value, str) else value)

    measured, run = measurement_of(table["measure"]), table.get("run", "{}")
    rows = {label: run.replace("{}", policies.get(label, label)) for label in listed("rows")}
    columns = _columns(table)
    workloads, within = {}, {}
    for label, more in columns.items():
        given = {**document["workloads"][more.pop("workload", table.get("workload"))], **table.get("with", {}), **more}
        if "policy" in given:
            within[label] = given.pop("policy")
        workloads[label] = Workload.of(given.pop("recipe"), **given)
    return Experiment(
        name,
        table["question"],
        table["across"],
        workloads,
        rows,
        table["reference"],
        tuple(listed("shown")),
        measured,
        tuple(_published(claim, rows) for claim in document.get("claim", []) if name in claim.get("experiments", [])),
        within,
        table.get("seeds"),
        table.get("short", False),
        tuple(REMARKS[kind](*labels) for kind, *labels in listed("remarks")),
    )


def _columns(table: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    columns = {label: dict(more) for label, more in table.get("columns", {}).items()}
    if "axis" in table:
        axis = table["axis"]
        unit = axis.get("unit")  # what a label counts in
        shown = {value: value if unit is None else value / unit for value in axis["values"]}
        columns |= {axis["label"].format(shown[value]): {axis["parameter"]: value} for value in axis["values"]}
    return {label: columns[label] for label in table.get("keep", columns)}


def _published(claim: Mapping[str, Any], rows: Mapping[str, str]) -> Published:
    given = {key: claim[key] for key in ("what", "measure", "row", "ratio", "gain", "note") if key in claim}
    if "less" in claim:
        given["ratio"] = 1 / (1 - claim["less"])
    against = tuple(label for label in claim["against"] if label in rows)
    return Published(**given, against=against, most=tuple(claim["most"]) if "most" in claim else None)


STUDIES: Registry[Study] = Registry("study")
for _file in sorted(Path(__file__).parent.glob("*.toml")):
    STUDIES.register(_file.stem)(Study.read(_file))
