"""Study ``a-srpt``: A-SRPT against its baselines and the certified bound, and what each of its parts is worth.

The workload is the recipe ``recurring`` (8-GPU nodes, six models of the zoo, scripts that recur), fixed before anything was
measured on it. The abstract of the paper (arXiv 2501.05563) claims a provable competitive ratio, and experiments on a
testbed and by simulation, without a number; its workloads are not available. So this study compares algorithms with each
other and with proven bounds (what came out: docs/theorems.md).

A-SRPT maps by Heavy-Edge. So do the baselines, and again, since they do not wait for a better place by themselves, with
``+consolidated``, where a gang never takes more nodes than it needs. Communication is scaled by dividing all bandwidths by
a factor, which is the same as multiplying all bytes; the recipe keeps the lengths of the jobs at the alpha_min of the
cluster, hence the load.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from optsched.parameters import parameters_of
from optsched.policies.a_srpt import VIRTUAL_ALPHA, ASrpt
from optsched.studies.experiment import Experiment, Workload
from optsched.studies.study import study

NIC, INTRA = 3.125e9, 150e9  # bytes/s: 25 Gbit/s Ethernet, NVLink
GPUS_PER_NODE = 8

POLICIES = {
    name: name
    for name in (
        "a-srpt",
        "a-srpt:overtake=0",
        "a-srpt:overtake=inf",
        "spjf+consolidated",
        "spwf+consolidated",
        "wcs-duration+consolidated",
        "wcs-workload+consolidated",
        "sjf+consolidated",
        "spjf",
        "spwf",
        "wcs-duration",
        "wcs-workload",
        "wcs-subtime",
        "fifo+heavy-edge",
    )
}
PREDICTORS = ("perfect", "shrinkage", "boosting", "forest", "group-mean", "global-mean")
ERRORS = (1.0, 1.25, 1.5, 2.0, 4.0)
MAPPERS = {
    "heavy-edge (auto)": "a-srpt",
    **{
        f"heavy-edge ({variant})": f"a-srpt+heavy-edge:variant={variant}"
        for variant in ("plain", "multi-seed", "local-search", "stage-moves", "random")
    },
    "first-fit": "a-srpt+first-fit",
    "consolidated": "a-srpt+consolidated",
    "random": "a-srpt+random",
}
ERROR_MEASURES = ("error_p50", "error_p95", "error_p99", "error_worst", "lam_o", "lam_u")
JCT, RATIO = ("mean_jct",), ("ratio", "jct_ratio")
PLACED = ("utilization", "slowdown", "consolidated")


@dataclass(frozen=True)
class ASrptSize:
    """How much is run. ``predicted_jobs`` fill the tables on predictors, which need a history to learn from."""

    nodes: tuple[int, ...]
    usual_nodes: int
    loads: tuple[float, ...]
    usual_load: float
    nics: tuple[float, ...]
    scales: tuple[float, ...]
    jobs_per_gpu: int
    predicted_jobs: int

    def workload(
        self, nodes: int | None = None, load: float | None = None, nic: float = NIC, scale: float = 1.0, jobs: int = 0
    ) -> Workload:
        """The recurring workload, the usual one but for what is given."""
        count = self.usual_nodes if nodes is None else nodes
        return Workload.of(
            "recurring",
            jobs=jobs or self.jobs_per_gpu * GPUS_PER_NODE * count,
            cluster=f"{count}x{GPUS_PER_NODE}",
            load=self.usual_load if load is None else load,
            nic_bandwidth=nic / scale,
            intra_bandwidth=INTRA / scale,
        )


DEFAULT = ASrptSize(
    nodes=(4, 8, 16, 32),
    usual_nodes=8,
    loads=(0.5, 0.7, 0.9, 1.1),
    usual_load=0.9,
    nics=(1.25e9, 3.125e9, 12.5e9),
    scales=(1.0, 4.0, 16.0),
    jobs_per_gpu=10,
    predicted_jobs=2000,
)
SMALL = ASrptSize(
    nodes=(2,),
    usual_nodes=2,
    loads=(0.9,),
    usual_load=0.9,
    nics=(1.25e9,),
    scales=(4.0,),
    jobs_per_gpu=3,
    predicted_jobs=120,
)


def declare(small: bool = False) -> tuple[Experiment, ...]:
    """The tables of the study."""
    size = SMALL if small else DEFAULT
    return (*_against_baselines(size), *_predictions(size), *_ablations(size))


def _loads(size: ASrptSize, loads: Iterable[float], nodes: int | None = None, jobs: int = 0) -> dict[str, Workload]:
    return {f"load {load:g}": size.workload(nodes, load, jobs=jobs) for load in loads}


def _nics(size: ASrptSize) -> dict[str, Workload]:
    return {f"{nic / 1e9:g} GB/s": size.workload(nic=nic) for nic in size.nics}


def _with(key: str, value: float | str) -> str:
    """A-SRPT with one parameter set; just ``a-srpt`` where that is the default, so that it is run once."""
    usual = value == parameters_of(ASrpt)[key]
    return "a-srpt" if usual else f"a-srpt:{key}={value if isinstance(value, str) else f'{value:g}'}"


def _usual(size: ASrptSize) -> str:
    return f"{size.usual_nodes * GPUS_PER_NODE} GPUs, load {size.usual_load:g}"


def _sweep(word: str, key: str, values: Iterable[float | str]) -> dict[str, str]:
    return {f"{word} {value if isinstance(value, str) else f'{value:g}'}": _with(key, value) for value in values}


def _against_baselines(size: ASrptSize) -> Iterable[Experiment]:
    shown = JCT + RATIO + PLACED
    for nodes in size.nodes:
        gpus, loads = nodes * GPUS_PER_NODE, _loads(size, size.loads, nodes)
        question = f"How do the policies compare on {gpus} GPUs as the load grows?"
        yield Experiment(f"policies-{gpus}", question, "offered load", loads, POLICIES, "a-srpt", shown)
    scales = {f"x {scale:g}": size.workload(scale=scale) for scale in size.scales}
    for name, question, across, columns in (
        ("nic", "What does the bandwidth between nodes change?", "NIC bandwidth of a node", _nics(size)),
        ("communication", "What if all traffic is multiplied?", "bytes of every transfer", scales),
    ):
        told = (*shown, "communication")
        yield Experiment(name, f"{question} {_usual(size)}", across, columns, POLICIES, "a-srpt", told)


def _predictions(size: ASrptSize) -> Iterable[Experiment]:
    yield Experiment(
        "prediction-error",
        f"What do predictions cost that are wrong by a known factor, log-uniform in [1/error, error]? "
        f"{size.usual_nodes * GPUS_PER_NODE} GPUs",
        "offered load",
        _loads(size, size.loads),
        {f"error {error:g}": f"a-srpt:predictor=noisy/error={error:g}" for error in ERRORS},
        "error 1",
        JCT + RATIO + ("guarantee", "lam_o", "lam_u", "error_p99"),
    )
    yield Experiment(
        "predictors",
        f"What does a predictor that learns as jobs complete cost against perfect prediction? "
        f"{size.usual_nodes * GPUS_PER_NODE} GPUs, {size.predicted_jobs} jobs, cold start included",
        "offered load",
        _loads(size, size.loads, jobs=size.predicted_jobs),
        {name: _with("predictor", name) for name in PREDICTORS},
        "perfect",
        JCT + RATIO + ERROR_MEASURES + ("guarantee",),
    )


def _ablations(size: ASrptSize) -> Iterable[Experiment]:
    waits = _sweep("tau", "tau", (0.0, 0.5, 1.0, 2.0, 4.0))
    for name, question, rows, reference in (
        ("mapper", "What is the mapper worth?", MAPPERS, "heavy-edge (auto)"),
        ("tau", "For how long may the head of the queue wait for a better place?", waits, "tau 0"),
    ):
        about, placed = f"{question} {_usual(size)}", JCT + RATIO + PLACED
        yield Experiment(name, about, "NIC bandwidth of a node", _nics(size), rows, reference, placed)
    betas = _sweep("beta", "beta", (0.1, 0.25, 0.5, 1.0))
    budgets = _sweep("overtake", "overtake", (0.0, 0.5, 1.0, 2.0, math.inf))
    charged = _sweep("virtual alpha", "virtual_alpha", VIRTUAL_ALPHA)
    overtake = "What is it worth to start short jobs out of turn (inf: without the proof)?"
    for name, question, rows, reference in (
        ("beta", "Is it better to queue a job at an early beta point of the virtual machine?", betas, "beta 1"),
        ("overtake", overtake, budgets, "overtake 0"),
        ("virtual-alpha", "Which iteration time should the virtual machine charge?", charged, "virtual alpha min"),
    ):
        about, shown = f"{question} {size.usual_nodes * GPUS_PER_NODE} GPUs", (*JCT, *RATIO, "utilization", "guarantee")
        yield Experiment(name, about, "offered load", _loads(size, size.loads), rows, reference, shown)


A_SRPT = study(
    "a-srpt",
    "A-SRPT against its baselines and the certified bound: loads, sizes, bandwidths, predictions, ablations",
    declare,
)
