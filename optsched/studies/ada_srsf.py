"""Study ``ada-srsf``: placements and communication rules of Ada-SRSF's experiment, in a faithful model and as published.

**Workload.** Recipe ``ada-srsf``: 160 jobs on 16 nodes of four GPUs with 10 Gbit/s. The job files of the paper are not
public, so that figures of single workloads cannot come out again; ratios and spreads can. Iterations and arrivals are scaled
down together (scale 10); one experiment is at scale 1000, which is generally attributed to the paper, not confirmed.

**Published** (arXiv 2002.10105, abstract): LWF-kappa up to 1.59 x better than first-fit; mean JCT of Ada-SRSF 20.1 % below
that of SRSF(1), which never lets two transfers share a network interface, and 36.7 % below SRSF(2), which always lets two.

**A better rule.** ``leader-first`` is this project's, found on other seeds; it never lets transfers overlap either, but lets
some wait although their interfaces are free.

**Two accountings.** The published simulator credits a transfer with extra progress whenever a waiting job asks how much of
it is left, which happens under AdaDUAL alone (`optsched.studies.published_ticks`). That accounting exists in this study
only, where rows or columns say ``published accounting``, beside the faithful one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from optsched.problem.contention import ETHERNET_10G
from optsched.studies.ada_srsf_measures import ITERATIONS
from optsched.studies.experiment import Experiment, Workload
from optsched.studies.published import Published
from optsched.studies.published_ticks import LEGACY_COST
from optsched.studies.study import study

METHOD = (
    "each seed is one workload, shared by all rows of a column; intervals: 95 % of Student's t over the seeds; rows are "
    "compared on the same workloads, by the geometric mean of their ratios of mean JCT and its interval, not corrected for "
    "the number of comparisons; rows 'in ticks' and 'published accounting' come from a simulator with ticks of 1 ms that "
    "makes no schedule; every schedule of the other rows was accepted by the referee, task by task, every bound was proved "
    "again; LWF and list estimate load with the network's own seconds a byte unless a column says otherwise"
)

RULES = {
    "srsf:k=1": "srsf:k=1",
    "srsf:k=2": "srsf:k=2",
    "srsf:k=3": "srsf:k=3",
    "ada-srsf": "ada-srsf",
    "k-way": "k-way",
    "leader-first": "leader-first",
}
PLACEMENTS = {
    "random": "random",
    "first-fit": "first-fit",
    "list": "list",
    "lwf:kappa=8": "lwf:kappa=8",
    "lwf:kappa=4": "lwf:kappa=4",
    "lwf:kappa=2": "lwf:kappa=2",
    "lwf:kappa=1": "lwf:kappa=1",
}
BEST = "lwf:kappa=1"
ON_BEST = {rule: f"{policy}+{BEST}" for rule, policy in RULES.items()}
OWN, LEGACY = "b of 10 Gbit/s", "b of 1 Gbit/s (published)"
ESTIMATES = {OWN: f"{{}}+{BEST}", LEGACY: f"{{}}+{BEST},seconds_per_byte={LEGACY_COST!r}"}
TICKS = "in ticks: {}"
AS_PUBLISHED = "published accounting: ada-srsf"
ACCOUNTED = {
    "srsf:k=1": "srsf:k=1",
    "ada-srsf": "ada-srsf",
    **{TICKS.format(rule): f"faithful {rule}" for rule in ("srsf:k=1", "srsf:k=2", "ada-srsf")},
    AS_PUBLISHED: "published_simulator ada-srsf",
}
SHOWN = ("mean_jct", "long_jct", "short_jct", "p50_jct", "p95_jct", "utilization")
ALL_SHOWN = (*SHOWN, "jct_ratio", "spanning", "contended")
PENALTIES = (0.0, 0.1, 0.2745, 0.5, 1.0)  # eta / b

FROM_SRSF1, FROM_SRSF2, FROM_FIRST_FIT = 1 / (1 - 0.201), 1 / (1 - 0.367), 1.59
FAITHFUL_NOTE = "in a faithful model"
ACCOUNTING_NOTE = "with the published simulator's accounting"


def _gains(row: str, one: str, two: str, note: str) -> tuple[Published, ...]:
    return (
        Published("mean JCT -20.1 % against SRSF(1)", "mean_jct", row, (one,), FROM_SRSF1, note=note),
        Published("mean JCT -36.7 % against SRSF(2)", "mean_jct", row, (two,), FROM_SRSF2, note=note),
    )


GAINS = _gains("ada-srsf", "srsf:k=1", "srsf:k=2", FAITHFUL_NOTE)
GAINS_IN_TICKS = (
    *_gains(TICKS.format("ada-srsf"), TICKS.format("srsf:k=1"), TICKS.format("srsf:k=2"), FAITHFUL_NOTE),
    *_gains(AS_PUBLISHED, TICKS.format("srsf:k=1"), TICKS.format("srsf:k=2"), ACCOUNTING_NOTE),
)


def _over_first_fit(row: str, note: str) -> Published:
    return Published(
        "mean JCT, LWF-kappa up to 1.59 x better", "mean_jct", row, ("first-fit",), FROM_FIRST_FIT, note=note
    )


@dataclass(frozen=True)
class AdaSrsfSize:
    """How much is run: the workload, ``seeds`` of the comparison of the rules, and ``full``, the scale of the large one."""

    jobs: int
    cluster: str
    scale: int
    seeds: int | None
    full: int | None


DEFAULT = AdaSrsfSize(160, "16x4", 10, 20, 1000)
SMALL = AdaSrsfSize(40, "4x4", 4, None, None)


def declare(small: bool = False) -> tuple[Experiment, ...]:
    """The tables of the study."""
    size = SMALL if small else DEFAULT
    return (*_placements(size), *_rules(size), *_networks(size), *_full(size))


def _workload(size: AdaSrsfSize, **parameters: float) -> Workload:
    return Workload.of("ada-srsf", jobs=size.jobs, cluster=size.cluster, **{"scale": size.scale, **parameters})


def _experiment(
    size: AdaSrsfSize,
    name: str,
    question: str,
    across: str,
    columns: Mapping[str, str],
    rows: Mapping[str, str],
    reference: str,
    shown: tuple[str, ...] = SHOWN,
    published: tuple[Published, ...] = (),
    seeds: int | None = None,
) -> Experiment:
    """Columns that are ways to run a row's policy, all on the workload of the size."""
    where = dict.fromkeys(columns, _workload(size))
    return Experiment(name, question, across, where, rows, reference, shown, ITERATIONS, published, columns, seeds)


def _placements(size: AdaSrsfSize) -> Iterable[Experiment]:
    """Every placement with every rule, read both ways."""
    rules = {rule: f"{policy}+{{}}" for rule, policy in RULES.items()}
    yield _experiment(
        size,
        "placements",
        "Which placement is best, whatever the rule for transfers?",
        "rule for transfers",
        rules,
        PLACEMENTS,
        BEST,
        published=(_over_first_fit(BEST, FAITHFUL_NOTE),),
    )
    placed = {name: f"{{}}+{policy}" for name, policy in PLACEMENTS.items()}
    question = "Which rule for transfers is best, whatever the placement? The same runs, compared the other way."
    shown = ("jct_ratio", "spanning", "contended")
    yield _experiment(size, "rules-by-placement", question, "placement", placed, RULES, "srsf:k=1", shown)
    yield _experiment(
        size,
        "placements-accounting",
        "What does the published accounting do to the comparison of placements?",
        "accounting",
        {"faithful": "ada-srsf+{}", "published accounting": "published_simulator ada-srsf+{}"},
        PLACEMENTS,
        BEST,
        published=(_over_first_fit(BEST, "the first column is a faithful model"),),
    )


def _rules(size: AdaSrsfSize) -> Iterable[Experiment]:
    """The published gains, with as many workloads as a difference of a few per cent needs."""
    faithful = f"Does Ada-SRSF gain over SRSF(1) and SRSF(2) under {BEST}, in a faithful model?"
    ticks = "And with the published simulator's accounting, in which waiting for a transfer makes it faster?"
    for name, question, rows, reference, gains in (
        ("rules", faithful, RULES, "srsf:k=1", GAINS),
        ("accounting", ticks, ACCOUNTED, TICKS.format("srsf:k=1"), GAINS_IN_TICKS),
    ):
        across = "load estimate of LWF"
        yield _experiment(size, name, question, across, ESTIMATES, rows, reference, ALL_SHOWN, gains, size.seeds)


def _networks(size: AdaSrsfSize) -> Iterable[Experiment]:
    penalties = {f"{share:g}": _workload(size, penalty=share * ETHERNET_10G.seconds_per_byte) for share in PENALTIES}
    faster = {f"{x} times as fast": _workload(size, **_faster(x)) for x in (10, 1000)}
    most = "How much could any rule for transfers gain with this placement? Faster networks, where rules matter less"
    shown = ("mean_jct", "jct_ratio", "contended")
    for name, question, across, columns in (
        ("penalty", "How does the penalty of contention decide which rule is best?", "eta / b", penalties),
        ("speed", most, "network", {"10 Gbit/s": _workload(size), **faster}),
    ):
        yield Experiment(name, question, across, columns, ON_BEST, "srsf:k=1", shown, ITERATIONS)


def _faster(times: int) -> dict[str, float]:
    usual = ETHERNET_10G
    return {"seconds_per_byte": usual.seconds_per_byte / times, "penalty": usual.penalty / times}


def _full(size: AdaSrsfSize) -> Iterable[Experiment]:
    if size.full is None:
        return
    rows = {name: ON_BEST[name] for name in RULES if name != "srsf:k=3"} | {"first-fit": "ada-srsf+first-fit"}
    yield Experiment(
        "full-scale",
        f"Does the conclusion depend on the scale? {size.full} to {6 * size.full} iterations a job",
        "scale",
        {f"{size.full}": _workload(size, scale=size.full)},
        rows,
        "srsf:k=1",
        ALL_SHOWN,
        ITERATIONS,
        (*GAINS, _over_first_fit("ada-srsf", FAITHFUL_NOTE)),
        seeds=2,
    )


ADA_SRSF = study(
    "ada-srsf",
    "placements and communication rules of Ada-SRSF, in a faithful model and with the published accounting",
    declare,
    METHOD,
)
