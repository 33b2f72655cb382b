"""Study ``sjf-bsbf``: two jobs on a GPU, and what it costs them: SJF-BSBF beside its rivals as interference grows.

**Fixed before anything was measured**: the workloads are those of the seeds 1 to 20 of the recipes named in the tables,
with the parameters there; the policies have their default settings unless their row says otherwise.

* ``sharing-cluster``, the Pollux mix: 240 jobs on 16 nodes of four GPUs in 8 hours, and 480 in the same 8 hours; the testbed
  mix: 30 jobs on four nodes with 11 GB a GPU, at an offered load of 2. These sizes are generally attributed to the paper
  (not confirmed); its job files, its interference ratios and its result tables are not public.
* ``sharing-gavel``: interference that was measured, on one GPU each of three types; ``sharing-vectors``: a formula.

**Rivals.** Exclusive policies (``sjf``, ``fifo``, ``tiresias``, ``srtf``) keep a gang on one node where it fits; ``sjf-ffs``
shares wherever there is room. Preemptive ones pay 30 s at every resumption, as in the Pollux artifact, unless a row says
otherwise; ``tiresias`` decides every 60 s with the artifact's threshold, ``tiresias 700`` has the threshold (700, here
GPU-seconds) and the starvation knob (1) of an author's research scheduler. Which settings the paper used is not public.

**Published** (arXiv 2407.13088, abstract): average JCT 27 to 33 % below preemptive schedulers (secondary text names
Tiresias), up to 17 % below first-fit sharing on large traces.

**Joint tests.** The published rule looks at one partner at a time; a gang may have several. ``sharing-partners`` isolates
that. Our SJF-BSBF was changed after these workloads had been seen, and tuned on the seeds 101 to 115.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from optsched.rounding import significant
from optsched.studies.experiment import Experiment, RunOutcome, Workload
from optsched.studies.findings import change_text
from optsched.studies.published import Published
from optsched.studies.sjf_bsbf_measures import SHARING, SHARING_OF_SECONDS, SMALL_RATIOS
from optsched.studies.study import study

METHOD = (
    "each seed is one workload, shared by all rows of a column, and by all columns that differ in a uniform interference "
    "only; intervals: 95 % of Student's t over the seeds; rows are compared on the same workloads, by the geometric mean of "
    "their ratios of mean JCT and its interval, not corrected for the number of comparisons; every schedule was accepted by "
    "the referee; bounds hold for all schedules in which jobs share GPUs, exclusive ones among them, and were proved again"
)
SEEDS = 20

BSBF, PUBLISHED, NOBODY, FFS = "sjf-bsbf", "sjf-bsbf as published", "sjf-bsbf, nobody to come", "sjf-ffs"
EXCLUSIVE = "+consolidated"
SHARING_ROWS = {
    BSBF: "sjf-bsbf",
    PUBLISHED: "sjf-bsbf:consolidated=false,joint=false,by=pair,outlook=0",
    NOBODY: "sjf-bsbf:outlook=0",
    FFS: "sjf-ffs",
}
TIRESIAS, RESEARCH, SRTF = "tiresias", "tiresias 700", "srtf"
PREEMPTIVE = {
    TIRESIAS: "tiresias:round=60,restart={}" + EXCLUSIVE,
    SRTF: "srtf:restart={}" + EXCLUSIVE,
}
ROWS = {
    **SHARING_ROWS,
    "sjf": "sjf" + EXCLUSIVE,
    "fifo": "fifo:skip=true" + EXCLUSIVE,
    **{row: policy.format(30) for row, policy in PREEMPTIVE.items()},
}
ALL_ROWS = {**ROWS, RESEARCH: "tiresias:threshold=700,starvation=1,round=60,restart=30" + EXCLUSIVE}
PARTS = {
    **{row: SHARING_ROWS[row] for row in (BSBF, PUBLISHED, NOBODY)},
    "sjf-bsbf, pair by pair": "sjf-bsbf:joint=false",
    "sjf-bsbf, anywhere": "sjf-bsbf:consolidated=false",
    "sjf-bsbf, whole batches": "sjf-bsbf:accumulate=false",
    "sjf-bsbf, by average": "sjf-bsbf:by=pair",
    FFS: SHARING_ROWS[FFS],
    "sjf-ffs, smaller sub-batches": "sjf-ffs:accumulate=true",
}
PLACED_ROWS = {**ROWS, "sjf, first-fit": "sjf+first-fit"}  # as published, SJF-BSBF spreads gangs over nodes, too
SMALL_ROWS = {"sjf": "sjf", **{row: SHARING_ROWS[row] for row in (BSBF, PUBLISHED, FFS)}}
RESTARTS = {
    BSBF: ROWS[BSBF],
    "sjf": ROWS["sjf"],
    **{f"{row}, restart {s} s": policy.format(s) for row, policy in PREEMPTIVE.items() for s in (0, 10, 30, 60)},
}
SWEEP = tuple(round(1 + step / 10, 1) for step in range(11))
FEW = (1.0, 1.5, 2.0)
SHOWN = (
    "mean_jct",
    "small_jct",
    "large_jct",
    "jct_ratio",
    "queueing",
    "makespan",
    "shared",
    "utilization",
    "effective",
)
ALL_SHOWN = (
    "mean_jct",
    "small_jct",
    "large_jct",
    "p95_jct",
    "jct_ratio",
    "queueing",
    "makespan",
    "shared",
    "accumulated",
    "stretch",
    "utilization",
    "effective",
    "preemptions",
)

NOT_PUBLIC = "its interference ratios are not public"
FROM_FIRST_FIT = Published(
    "mean JCT up to -17 % against first-fit sharing", "mean_jct", PUBLISHED, (FFS,), 1 / 0.83, note=NOT_PUBLIC
)


def _published(*rivals: str) -> tuple[Published, ...]:
    return (
        *(
            Published(
                f"mean JCT -{gain} % against Tiresias",
                "mean_jct",
                PUBLISHED,
                rivals,
                100 / (100 - gain),
                note=NOT_PUBLIC,
            )
            for gain in (27, 33)
        ),
        FROM_FIRST_FIT,
    )


Remark = Callable[[RunOutcome], list[str]]


def against(row: str, other: str) -> Remark:
    """How ``row`` compares with ``other``, which need not be the reference, in every column."""

    def remark(outcome: RunOutcome) -> list[str]:
        parts = []
        for column in outcome.experiment.columns:
            change = outcome.change(row, other, column)
            told = "unknown" if change is None else change.direction
            shown = f" ({change_text(change)})" if told in ("lower", "higher") else ""
            parts.append(f"{column}: {told}{shown}")
        return [f"{row} against {other}: {'; '.join(parts)}"]

    return remark


def by_workload(row: str, other: str) -> Remark:
    """On how many of the workloads ``row`` is below, equal to, above ``other``."""

    def remark(outcome: RunOutcome) -> list[str]:
        name = outcome.experiment.measurement.compared
        said: dict[str, list[str]] = {}
        for column in outcome.experiment.columns:
            pairs = list(zip(outcome.values(row, column, name), outcome.values(other, column, name), strict=True))
            below, above = sum(x < y for x, y in pairs), sum(x > y for x, y in pairs)
            text = f"{below} lower, {len(pairs) - below - above} equal, {above} higher"
            said.setdefault(text, []).append(column)
        parts = [f"{text} at {', '.join(columns)}" for text, columns in said.items()]
        return [f"{row} against {other}, workload by workload ({len(outcome.seeds)} a column): {'; '.join(parts)}"]

    return remark


def worst(*rows: str) -> Remark:
    """The largest value of the compared measure over the workloads of every column."""

    def remark(outcome: RunOutcome) -> list[str]:
        name, columns = outcome.experiment.measurement.compared, list(outcome.experiment.columns)
        most = {
            row: [f"{significant(max(outcome.values(row, c, name)), 3, 'up')} at {c}" for c in columns] for row in rows
        }
        said = "; ".join(f"{row}: {', '.join(parts)}" for row, parts in most.items())
        return [f"largest {outcome.compared} of {len(outcome.seeds)} workloads: {said}"]

    return remark


REMARKS: tuple[Remark, ...] = (
    against(BSBF, FFS),
    against(BSBF, TIRESIAS),
    against(BSBF, PUBLISHED),
    by_workload(BSBF, PUBLISHED),
)


@dataclass(frozen=True)
class SjfBsbfSize:
    """How much is run: parameters of the two clusters and of Gavel's job types, interference, loads, jobs of the
    heavy workload.

    Seeds where they are not the usual number: ``some`` of the side questions, ``few`` of what is slow, ``many`` of instances
    of a few jobs. None: the usual number.
    """

    large: Mapping[str, Any]
    testbed: Mapping[str, Any]
    gavel: Mapping[str, Any]
    sweep: tuple[float, ...]
    some_of_sweep: tuple[float, ...]
    loads: tuple[float, ...]
    heavy: int | None
    some: int | None = None
    few: int | None = None
    many: int | None = None


DEFAULT = SjfBsbfSize(
    {"jobs": 240, "nodes": 16},
    {"jobs": 30, "nodes": 4, "mix": "testbed", "memory": 11e9, "load": 2.0},
    {"jobs": 240, "nodes": 16},
    SWEEP,
    (1.0, 1.3, 1.6, 2.0),
    (0.5, 1.0, 2.0, 4.0),
    heavy=480,
    some=10,
    few=5,
    many=40,
)
SMALL = SjfBsbfSize(
    {"jobs": 24, "nodes": 4},
    {"jobs": 12, "nodes": 4, "mix": "testbed", "memory": 11e9, "load": 2.0},
    {"jobs": 24, "nodes": 4},
    (1.0, 2.0),
    (1.0, 2.0),
    (2.0,),
    heavy=None,
)


def declare(small: bool = False) -> tuple[Experiment, ...]:
    """The tables of the study."""
    size = SMALL if small else DEFAULT
    return (
        *_sweeps(size),
        *_narrow(size),
        *_parts(size),
        *_loads(size),
        *_restarts(size),
        *_elastic(size),
        *_other_interference(size),
        *_optima(size),
        *_partners(size),
    )


def _cluster(parameters: Mapping[str, Any], **more: Any) -> Workload:
    return Workload.of("sharing-cluster", **{**parameters, **more})


def _sweeps(size: SjfBsbfSize) -> Iterable[Experiment]:
    """Uniform interference: the lower and the upper half of the sweep are tables of their own, to be read on a screen."""
    middle = (len(size.sweep) + 1) // 2
    for cluster, parameters in (("64-gpus", size.large), ("16-gpus", size.testbed)):
        for part, values in (("low", size.sweep[:middle]), ("high", size.sweep[middle:])):
            yield _sweep(f"{cluster}-{part}", parameters, values)
    if size.heavy is not None:
        yield _sweep("64-gpus-heavy", {**size.large, "jobs": size.heavy}, FEW)


COMPARED = "How does sharing compare with waiting and with preemption as interference grows?"
XI = "xi of all pairs"


def _by_xi(parameters: Mapping[str, Any], values: Iterable[float], **more: Any) -> dict[str, Workload]:
    return {f"xi {xi:g}": _cluster(parameters, xi=xi, **more) for xi in values}


def _sweep(
    name: str, parameters: Mapping[str, Any], values: Iterable[float], question: str = COMPARED, **more: Any
) -> Experiment:
    columns, published = _by_xi(parameters, values, **more), _published(TIRESIAS)
    return Experiment(name, question, XI, columns, ROWS, "sjf", SHOWN, SHARING, published, remarks=REMARKS)


def _narrow(size: SjfBsbfSize) -> Iterable[Experiment]:
    """The same 64 GPUs without the jobs that hold up to half of them for hours."""
    question = "Does it depend on the widest gangs? No job of more than 16 GPUs"
    yield _sweep("no-wide-gangs", size.large, size.some_of_sweep, question, widest=16)


def _parts(size: SjfBsbfSize) -> Iterable[Experiment]:
    """Each part of SJF-BSBF taken away or given to its rival: the test, smaller sub-batches, the order of partners."""
    question = "Which part of SJF-BSBF does what: its test, its smaller sub-batches, its order of partners?"
    shown = ("mean_jct", "shared", "accumulated", "stretch")
    remarks = (against("sjf-ffs, smaller sub-batches", FFS), by_workload(BSBF, FFS))
    for name, parameters in (("parts-64-gpus", size.large), ("parts-16-gpus", size.testbed)):
        columns = _by_xi(parameters, size.some_of_sweep)
        yield Experiment(name, question, XI, columns, PARTS, BSBF, shown, SHARING, seeds=size.some, remarks=remarks)


def _loads(size: SjfBsbfSize) -> Iterable[Experiment]:
    question = "Does it depend on how busy the cluster is? xi = 1.3; the load sets the window of the arrivals"
    about = (ALL_ROWS, "sjf", ALL_SHOWN, SHARING, _published(TIRESIAS, RESEARCH))
    for name, parameters in (("loads-64-gpus", size.large), ("loads-16-gpus", size.testbed)):
        columns = {f"load {load:g}": _cluster(parameters, load=load, xi=1.3) for load in size.loads}
        yield Experiment(name, question, "offered load", columns, *about, seeds=size.some, remarks=REMARKS)


def _restarts(size: SjfBsbfSize) -> Iterable[Experiment]:
    question = "How much of the distance to preemptive schedulers is their restart cost?"
    columns, shown = _by_xi(size.large, FEW), ("mean_jct", "preemptions")
    yield Experiment("restarts", question, XI, columns, RESTARTS, BSBF, shown, SHARING, seeds=size.some)


def _elastic(size: SjfBsbfSize) -> Iterable[Experiment]:
    question = "A scheduler that chooses GPUs and batches itself? xi = 1.3; "
    question += "larger batches cost no samples here, which helps it"
    columns = {"64 GPUs": _cluster(size.large, xi=1.3), "16 GPUs": _cluster(size.testbed, xi=1.3)}
    rows = {row: ROWS[row] for row in (BSBF, "sjf", TIRESIAS, SRTF)} | {"goodput": "goodput:restart=30"}
    shown = ("mean_jct", "p95_jct", "jct_ratio", "preemptions")
    yield Experiment("elastic", question, "cluster", columns, rows, BSBF, shown, SHARING, seeds=size.few)


def _other_interference(size: SjfBsbfSize) -> Iterable[Experiment]:
    """Ratios that differ from pair to pair: measured ones, drawn ones, and those of a formula."""
    measured = {gpu: Workload.of("sharing-gavel", **size.gavel, gpu=gpu) for gpu in ("P100", "V100", "K80")}
    measured |= {"P100 at load 2": Workload.of("sharing-gavel", **size.gavel, gpu="P100", load=2.0)}
    measured |= {"drawn 1 + Exp(0.5)": Workload.of("sharing-gavel", **size.gavel, gpu="P100", xi="exp")}
    drawn = {"64 GPUs": _cluster(size.large, xi="exp"), "16 GPUs": _cluster(size.testbed, xi="exp")}
    vectors = {"from vectors": Workload.of("sharing-vectors"), "drawn": Workload.of("sharing-vectors", xi="exp")}
    on_one = "And with interference that was measured (on one GPU; gangs get the same ratios)? Placement matters here"
    about = (PLACED_ROWS, "sjf", ALL_SHOWN, SHARING, _published(TIRESIAS))
    for name, question, columns in (
        ("measured", on_one, measured),
        ("drawn", "And with ratios drawn for every ordered pair of models, 1 + Exp(0.5)?", drawn),
        ("vectors", "And with ratios from resource vectors, a formula and no measurement?", vectors),
    ):
        yield Experiment(name, question, "interference", columns, *about, remarks=REMARKS)


def _optima(size: SjfBsbfSize) -> Iterable[Experiment]:
    """Ratios to the optimum of a few jobs, found by an exact search."""
    about = (SMALL_ROWS, "sjf", ("ratio", "optimum_ratio", "shared"), SMALL_RATIOS)
    remarks = (worst(*SMALL_ROWS), by_workload(BSBF, FFS), by_workload(BSBF, PUBLISHED))
    for gpus, jobs in ((1, 4), (2, 4), (4, 4)):
        question = f"How far from the optimum are {jobs} jobs on one node of {gpus}? Sum of flow times"
        drawn = {xi: Workload.of("sharing-small", jobs=jobs, gpus=gpus, xi=xi) for xi in (1.1, 1.3, 1.5, 1.8, "exp")}
        columns = {f"{xi}": workload for xi, workload in drawn.items()}
        yield Experiment(f"optimum-{gpus}-gpus", question, XI, columns, *about, seeds=size.many, remarks=remarks)


def _partners(size: SjfBsbfSize) -> Iterable[Experiment]:
    """The limit of the pair test: a gang with P partners, whose sum of completions a test of pairs does not see."""
    laws = dict.fromkeys(("running", "gang"), "log-uniform:low=0.1,high=10")
    by_partners = {f"P = {p}": Workload.of("sharing-partners", jobs=p + 1, xi=1.4, **laws) for p in (1, 2, 3, 4)}
    by_xi = {f"xi {xi:g}": Workload.of("sharing-partners", jobs=4, xi=xi, **laws) for xi in (1.1, 1.2, 1.3, 1.4, 1.6)}
    loses = "Where does the test of pairs lose? A gang beside P running jobs of one GPU, xi = 1.4, lengths log-uniform"
    about = (SMALL_ROWS, "sjf", ("mean_jct", "jct_ratio", "shared"), SHARING_OF_SECONDS)
    against_sjf = (by_workload(BSBF, "sjf"), by_workload(PUBLISHED, "sjf"))
    remarks = (*against_sjf, by_workload(BSBF, PUBLISHED), against(BSBF, PUBLISHED))
    for name, question, across, columns in (
        ("partners", loses, "partners", by_partners),
        ("three-partners", "The same with P = 3 as interference grows", XI, by_xi),
    ):
        yield Experiment(name, question, across, columns, *about, seeds=size.many, remarks=remarks)


SJF_BSBF = study(
    "sjf-bsbf",
    "two jobs on a GPU: SJF-BSBF, first-fit sharing, exclusive and preemptive schedulers as interference grows",
    declare,
    METHOD,
    SEEDS,
)
