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

if TYPE_CHECKING:
    from optsched import guarantees, online, plot, speeds
    from optsched.adversary.attack import Attack, attack
    from optsched.bounds import Certificate, CertificateError, NoBoundError, bound
    from optsched.check.referee import check_schedule
    from optsched.errors import (
        InfeasibleError,
        InputError,
        KnowledgeError,
        NotInstalledError,
        OptschedError,
        RowErrors,
        SimulationError,
    )
    from optsched.guarantees.guarantee import GuaranteeError
    from optsched.io.library import BestKnown, best_known, library
    from optsched.io.sources import load
    from optsched.io.traces.generate import generate
    from optsched.policies.placements.heavy_edge import map_job
    from optsched.policies.simulate import simulate
    from optsched.problem.cluster import Cluster, NodeGroup
    from optsched.problem.contention import Contention, IterationTasks
    from optsched.problem.instance import Instance, Job
    from optsched.problem.interference import Interference
    from optsched.problem.profile import Profile, Stage
    from optsched.problem.scaling import MeasuredSteps, Scaling
    from optsched.problem.schedule import Schedule, Segment, SharedSchedule
    from optsched.problem.task_log import TaskSchedule
    from optsched.problem.throughputs import Throughput, Throughputs
    from optsched.problem.transfers import TransferProblem
    from optsched.report.comparison import Report, compare, evaluate
    from optsched.simulation.iterations import TaskRun
    from optsched.simulation.policy import Knowledge, Moves, Order, Policy, Predictor, Start, Stop, Wake
    from optsched.simulation.run import Run, SharedRun
    from optsched.simulation.task_policy import Countdown, TaskOrder
    from optsched.solvers.column_generation import PricedColumns, generate_columns
    from optsched.solvers.program import formulate, solve_model, solve_program
    from optsched.solvers.solve import Solution, solve
    from optsched.speeds.contention_fit import fit_contention
    from optsched.speeds.interference_fit import fit_interference
    from optsched.speeds.kinds.tasks import at_job_level
    from optsched.speeds.model_zoo import zoo_profile
    from optsched.speeds.network import Network
    from optsched.speeds.throughput_fit import fit_scaling
    from optsched.speeds.throughput_table import read_throughputs
    from optsched.sweeps.run import sweep

__version__ = "0.1.0"  # the only place: the package's metadata, ``optsched --version`` and the tests read it here

# `optsched.models` is the folder models/ at the top of the tree, by a link. A checkout without symbolic links (git on
# Windows leaves a text file) and an unpacked sdist have no such link: there the package is looked for at the top, too.
_TOP = os.path.dirname(__path__[0])
if not os.path.isdir(os.path.join(__path__[0], "models")) and os.path.isfile(
    os.path.join(_TOP, "models", "formulation.py")
):
    __path__.append(_TOP)

_NAMESPACES = ("guarantees", "online", "plot", "speeds")  # packages whose ``__all__`` is public

_HOMES = {
    "Attack": "adversary.attack",
    "BestKnown": "io.library",
    "Certificate": "bounds",
    "CertificateError": "bounds",
    "Cluster": "problem.cluster",
    "Contention": "problem.contention",
    "Countdown": "simulation.task_policy",
    "GuaranteeError": "guarantees.guarantee",
    "InfeasibleError": "errors",
    "InputError": "errors",
    "Instance": "problem.instance",
    "Interference": "problem.interference",
    "IterationTasks": "problem.contention",
    "Job": "problem.instance",
    "Knowledge": "simulation.policy",
    "KnowledgeError": "errors",
    "MeasuredSteps": "problem.scaling",
    "Moves": "simulation.policy",
    "Network": "speeds.network",
    "NoBoundError": "bounds",
    "NotInstalledError": "errors",
    "NodeGroup": "problem.cluster",
    "OptschedError": "errors",
    "Order": "simulation.policy",
    "Policy": "simulation.policy",
    "Predictor": "simulation.policy",
    "PricedColumns": "solvers.column_generation",
    "Profile": "problem.profile",
    "Report": "report.comparison",
    "RowErrors": "errors",
    "Run": "simulation.run",
    "Scaling": "problem.scaling",
    "Schedule": "problem.schedule",
    "Segment": "problem.schedule",
    "SharedRun": "simulation.run",
    "SharedSchedule": "problem.schedule",
    "SimulationError": "errors",
    "Solution": "solvers.solve",
    "Stage": "problem.profile",
    "Start": "simulation.policy",
    "Stop": "simulation.policy",
    "TaskOrder": "simulation.task_policy",
    "TaskRun": "simulation.iterations",
    "TaskSchedule": "problem.task_log",
    "Throughput": "problem.throughputs",
    "Throughputs": "problem.throughputs",
    "TransferProblem": "problem.transfers",
    "Wake": "simulation.policy",
    "attack": "adversary.attack",
    "at_job_level": "speeds.kinds.tasks",
    "best_known": "io.library",
    "bound": "bounds",
    "check_schedule": "check.referee",
    "compare": "report.comparison",
    "evaluate": "report.comparison",
    "fit_contention": "speeds.contention_fit",
    "fit_interference": "speeds.interference_fit",
    "fit_scaling": "speeds.throughput_fit",
    "formulate": "solvers.program",
    "generate": "io.traces.generate",
    "generate_columns": "solvers.column_generation",
    "library": "io.library",
    "load": "io.sources",
    "map_job": "policies.placements.heavy_edge",
    "read_throughputs": "speeds.throughput_table",
    "simulate": "policies.simulate",
    "solve": "solvers.solve",
    "solve_model": "solvers.program",
    "solve_program": "solvers.program",
    "sweep": "sweeps.run",
    "zoo_profile": "speeds.model_zoo",
}

__all__ = [
    "Attack",
    "BestKnown",
    "Certificate",
    "CertificateError",
    "Cluster",
    "Contention",
    "Countdown",
    "GuaranteeError",
    "InfeasibleError",
    "InputError",
    "Instance",
    "Interference",
    "IterationTasks",
    "Job",
    "Knowledge",
    "KnowledgeError",
    "MeasuredSteps",
    "Moves",
    "Network",
    "NoBoundError",
    "NodeGroup",
    "NotInstalledError",
    "OptschedError",
    "Order",
    "Policy",
    "Predictor",
    "PricedColumns",
    "Profile",
    "Report",
    "RowErrors",
    "Run",
    "Scaling",
    "Schedule",
    "Segment",
    "SharedRun",
    "SharedSchedule",
    "SimulationError",
    "Solution",
    "Stage",
    "Start",
    "Stop",
    "TaskOrder",
    "TaskRun",
    "TaskSchedule",
    "Throughput",
    "Throughputs",
    "TransferProblem",
    "Wake",
    "at_job_level",
    "attack",
    "best_known",
    "bound",
    "check_schedule",
    "compare",
    "evaluate",
    "fit_contention",
    "fit_interference",
    "fit_scaling",
    "formulate",
    "generate",
    "generate_columns",
    "guarantees",
    "library",
    "load",
    "map_job",
    "online",
    "plot",
    "read_throughputs",
    "simulate",
    "solve",
    "solve_model",
    "solve_program",
    "speeds",
    "sweep",
    "zoo_profile",
]


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
