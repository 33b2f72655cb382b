"""optsched: an instance goes in; a schedule and a proof of how good it is come out.

>>> import optsched as osd
>>> instance = osd.generate("rigid", seed=1, jobs=6)
>>> best = osd.solve(instance, "total_completion_time")     # Solution: .value .bound .status .schedule
>>> run = osd.simulate(instance, "srtf")                    # Run: .schedule .metrics .events
>>> low = osd.bound(instance, "total_completion_time")      # Certificate: .value .verify()
>>> table = osd.compare(instance, ["fifo", "srtf"])         # polars DataFrame

Names are imported when they are first used, so that ``import optsched`` is quick.
"""

from __future__ import annotations

import importlib
import os.path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # "as" what they are: exported, to type checkers
    from optsched import guarantees as guarantees, online as online, plot as plot, speeds as speeds
    from optsched.adversary.attack_search import Attack as Attack, attack as attack
    from optsched.bounds import (
        Certificate as Certificate,
        CertificateError as CertificateError,
        NoBoundError as NoBoundError,
        bound as bound,
    )
    from optsched.check.referee import check_schedule as check_schedule
    from optsched.classes.gpu_sharing.simulation.shared_run import SharedRun as SharedRun
    from optsched.classes.task_sharing.problem.task_log import TaskSchedule as TaskSchedule
    from optsched.classes.task_sharing.problem.transfers import TransferProblem as TransferProblem
    from optsched.classes.task_sharing.simulation.iterations import TaskRun as TaskRun
    from optsched.classes.task_sharing.simulation.task_policy import Countdown as Countdown, TaskOrder as TaskOrder
    from optsched.errors import (
        InfeasibleError as InfeasibleError,
        InputError as InputError,
        KnowledgeError as KnowledgeError,
        NotInstalledError as NotInstalledError,
        OptschedError as OptschedError,
        RowErrors as RowErrors,
        SimulationError as SimulationError,
    )
    from optsched.evaluation.advice.advice import Advice as Advice, advise as advise
    from optsched.evaluation.evaluate import compare as compare, evaluate as evaluate
    from optsched.evaluation.report import Report as Report
    from optsched.evaluation.robustness import Robustness as Robustness, robustness_curves as robustness_curves
    from optsched.evaluation.score import RejectedSchedule as RejectedSchedule, Score as Score, score as score
    from optsched.evaluation.suite_ratios import RatioTable as RatioTable, ratios as ratios
    from optsched.guarantees.guarantee import GuaranteeError as GuaranteeError
    from optsched.io.library import BestKnown as BestKnown, best_known as best_known, library as library
    from optsched.io.sources import load as load
    from optsched.io.traces.generate import generate as generate
    from optsched.policies.placements.heavy_edge import map_job as map_job
    from optsched.policies.simulate import simulate as simulate
    from optsched.problem.cluster import Cluster as Cluster, NodeGroup as NodeGroup
    from optsched.problem.contention import Contention as Contention, IterationTasks as IterationTasks
    from optsched.problem.instance import Instance as Instance, Job as Job
    from optsched.problem.interference import Interference as Interference
    from optsched.problem.profile import Profile as Profile, Stage as Stage
    from optsched.problem.scaling import MeasuredSteps as MeasuredSteps, Scaling as Scaling
    from optsched.problem.schedule import Schedule as Schedule, Segment as Segment, SharedSchedule as SharedSchedule
    from optsched.problem.throughputs import Throughput as Throughput, Throughputs as Throughputs
    from optsched.simulation.policy import (
        Knowledge as Knowledge,
        Moves as Moves,
        Order as Order,
        OrderedPolicy as OrderedPolicy,
        Policy as Policy,
        Predictor as Predictor,
        Start as Start,
        Stop as Stop,
        View as View,
        Wake as Wake,
    )
    from optsched.simulation.promised_starts import PromisedStarts as PromisedStarts, promised_starts as promised_starts
    from optsched.simulation.run import Run as Run
    from optsched.solvers.column_generation import PricedColumns as PricedColumns, generate_columns as generate_columns
    from optsched.solvers.formulate import formulate as formulate
    from optsched.solvers.solve import Solution as Solution, solve as solve
    from optsched.solvers.solve_model import solve_model as solve_model
    from optsched.solvers.solve_program import solve_program as solve_program
    from optsched.speeds.kinds.tasks import at_job_level as at_job_level
    from optsched.speeds.least_squares import (
        fit_contention as fit_contention,
        fit_interference as fit_interference,
    )
    from optsched.speeds.model_zoo import zoo_profile as zoo_profile
    from optsched.speeds.network import Network as Network
    from optsched.speeds.scaling_fit import fit_scaling as fit_scaling
    from optsched.speeds.throughput_sources import read_throughputs as read_throughputs
    from optsched.sweeps.run_sweep import sweep as sweep

__version__ = "0.1.0"  # the only place: the package's metadata, ``optsched --version`` and the tests read it here

# `optsched.models` is the folder models/ at the top of the tree, by a link. A checkout without symbolic links (git on
# Windows leaves a text file) and an unpacked sdist have no such link: there the package is looked for at the top, too.
_TOP = os.path.dirname(__path__[0])
if not os.path.isdir(os.path.join(__path__[0], "models")) and os.path.isfile(
    os.path.join(_TOP, "models", "formulation.py")
):
    __path__.append(_TOP)

_NAMESPACES = ("guarantees", "online", "plot", "speeds")  # packages whose ``__all__`` is public

_NAMES = {
    "adversary.attack_search": "Attack attack",
    "bounds": "Certificate CertificateError NoBoundError bound",
    "check.referee": "check_schedule",
    "classes.gpu_sharing.simulation.shared_run": "SharedRun",
    "classes.task_sharing.problem.task_log": "TaskSchedule",
    "classes.task_sharing.problem.transfers": "TransferProblem",
    "classes.task_sharing.simulation.iterations": "TaskRun",
    "classes.task_sharing.simulation.task_policy": "Countdown TaskOrder",
    "errors": "InfeasibleError InputError KnowledgeError NotInstalledError OptschedError RowErrors SimulationError",
    "evaluation.advice.advice": "Advice advise",
    "evaluation.evaluate": "compare evaluate",
    "evaluation.report": "Report",
    "evaluation.robustness": "Robustness robustness_curves",
    "evaluation.score": "RejectedSchedule Score score",
    "evaluation.suite_ratios": "RatioTable ratios",
    "guarantees.guarantee": "GuaranteeError",
    "io.library": "BestKnown best_known library",
    "io.sources": "load",
    "io.traces.generate": "generate",
    "policies.placements.heavy_edge": "map_job",
    "policies.simulate": "simulate",
    "problem.cluster": "Cluster NodeGroup",
    "problem.contention": "Contention IterationTasks",
    "problem.instance": "Instance Job",
    "problem.interference": "Interference",
    "problem.profile": "Profile Stage",
    "problem.scaling": "MeasuredSteps Scaling",
    "problem.schedule": "Schedule Segment SharedSchedule",
    "problem.throughputs": "Throughput Throughputs",
    "simulation.policy": "Knowledge Moves Order OrderedPolicy Policy Predictor Start Stop View Wake",
    "simulation.promised_starts": "PromisedStarts promised_starts",
    "simulation.run": "Run",
    "solvers.column_generation": "PricedColumns generate_columns",
    "solvers.formulate": "formulate",
    "solvers.solve_model": "solve_model",
    "solvers.solve_program": "solve_program",
    "solvers.solve": "Solution solve",
    "speeds.kinds.tasks": "at_job_level",
    "speeds.least_squares": "fit_contention fit_interference",
    "speeds.model_zoo": "zoo_profile",
    "speeds.network": "Network",
    "speeds.scaling_fit": "fit_scaling",
    "speeds.throughput_sources": "read_throughputs",
    "sweeps.run_sweep": "sweep",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}
__all__ = sorted({*_HOMES, *_NAMESPACES})


if not TYPE_CHECKING:  # a type checker that saw it would let every name pass

    def __getattr__(name: str) -> Any:
        if name in _NAMESPACES:
            return importlib.import_module(f"optsched.{name}")
        if name not in _HOMES:
            raise AttributeError(_unknown(name))
        value = getattr(importlib.import_module(f"optsched.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


def _unknown(name: str) -> str:
    import difflib

    near = difflib.get_close_matches(name, __all__, n=1)
    return f"module 'optsched' has no attribute {name!r}" + (f": did you mean {near[0]}?" if near else "")


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__") and name.endswith("__"))})
