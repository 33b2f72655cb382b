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
    from optsched import plot
    from optsched.bounds import Certificate, CertificateError, NoBoundError, bound
    from optsched.check import check_schedule
    from optsched.cluster import Cluster, NodeGroup
    from optsched.contention import Contention, IterationTasks
    from optsched.errors import (
        InfeasibleError,
        InputError,
        KnowledgeError,
        NotInstalledError,
        OptschedError,
        RowErrors,
        SimulationError,
    )
    from optsched.instance import Instance, Job
    from optsched.interference import Interference
    from optsched.offline.solve import Solution, solve
    from optsched.online.simulate import simulate
    from optsched.placement.heavy_edge import map_job
    from optsched.policy import Knowledge, Order, Policy, Predictor, Start, Stop, Wake
    from optsched.profile import Profile, Stage
    from optsched.rates.model_zoo import zoo_profile
    from optsched.rates.network import Network
    from optsched.rates.throughput_table import read_throughputs
    from optsched.ratios.guarantee import GuaranteeError
    from optsched.report import Report, compare, evaluate
    from optsched.scaling import MeasuredSteps, Scaling
    from optsched.schedule import Schedule, Segment, SharedSchedule
    from optsched.sharing_policy import Share, SharingOrder
    from optsched.simulation.iterations import TaskRun
    from optsched.simulation.run import Run
    from optsched.simulation.sharing import SharedRun
    from optsched.sources import load
    from optsched.task_log import TaskSchedule
    from optsched.task_policy import Countdown, TaskOrder
    from optsched.throughputs import Throughput, Throughputs
    from optsched.traces.generate import generate
    from optsched.transfers import TransferProblem

__version__ = "0.1.0"  # the only place: the package's metadata, ``optsched --version`` and the tests read it here

# `optsched.models` is the folder models/ at the top of the tree, by a link. A checkout without symbolic links (git on
# Windows leaves a text file) and an unpacked sdist have no such link: there the package is looked for at the top, too.
_TOP = os.path.dirname(__path__[0])
if not os.path.isdir(os.path.join(__path__[0], "models")) and os.path.isfile(
    os.path.join(_TOP, "models", "formulation.py")
):
    __path__.append(_TOP)

_HOMES = {
    "Certificate": "bounds",
    "CertificateError": "bounds",
    "Cluster": "cluster",
    "Contention": "contention",
    "Countdown": "task_policy",
    "GuaranteeError": "ratios.guarantee",
    "InfeasibleError": "errors",
    "InputError": "errors",
    "Instance": "instance",
    "Interference": "interference",
    "IterationTasks": "contention",
    "Job": "instance",
    "Knowledge": "policy",
    "KnowledgeError": "errors",
    "MeasuredSteps": "scaling",
    "Network": "rates.network",
    "NoBoundError": "bounds",
    "NotInstalledError": "errors",
    "NodeGroup": "cluster",
    "OptschedError": "errors",
    "Order": "policy",
    "Policy": "policy",
    "Predictor": "policy",
    "Profile": "profile",
    "Report": "report",
    "RowErrors": "errors",
    "Run": "simulation.run",
    "Scaling": "scaling",
    "Schedule": "schedule",
    "Segment": "schedule",
    "Share": "sharing_policy",
    "SharedRun": "simulation.sharing",
    "SharedSchedule": "schedule",
    "SharingOrder": "sharing_policy",
    "SimulationError": "errors",
    "Solution": "offline.solve",
    "Stage": "profile",
    "Start": "policy",
    "Stop": "policy",
    "TaskOrder": "task_policy",
    "TaskRun": "simulation.iterations",
    "TaskSchedule": "task_log",
    "Throughput": "throughputs",
    "Throughputs": "throughputs",
    "TransferProblem": "transfers",
    "Wake": "policy",
    "bound": "bounds",
    "check_schedule": "check",
    "compare": "report",
    "evaluate": "report",
    "generate": "traces.generate",
    "load": "sources",
    "map_job": "placement.heavy_edge",
    "read_throughputs": "rates.throughput_table",
    "simulate": "online.simulate",
    "solve": "offline.solve",
    "zoo_profile": "rates.model_zoo",
}

__all__ = [
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
    "Network",
    "NoBoundError",
    "NodeGroup",
    "NotInstalledError",
    "OptschedError",
    "Order",
    "Policy",
    "Predictor",
    "Profile",
    "Report",
    "RowErrors",
    "Run",
    "Scaling",
    "Schedule",
    "Segment",
    "Share",
    "SharedRun",
    "SharedSchedule",
    "SharingOrder",
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
    "bound",
    "check_schedule",
    "compare",
    "evaluate",
    "generate",
    "load",
    "map_job",
    "plot",
    "read_throughputs",
    "simulate",
    "solve",
    "zoo_profile",
]


if not TYPE_CHECKING:  # a type checker that saw it would let every name pass

    def __getattr__(name: str) -> Any:
        if name == "plot":
            return importlib.import_module("optsched.plot")
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
    return sorted({*globals(), *__all__})
