"""API reference of the site: one page for each task, and one for the view of a policy."""

from __future__ import annotations

import importlib
import inspect
from enum import Enum
from operator import attrgetter
from typing import Any

from catalogue import plain, rst, with_formulas

import optsched

VIEW = "optsched.simulation.policy_view.View"
# page: (heading, purpose, names of `optsched`, namespaces whose names are all on the page)
TASKS: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "load": (
        "Load, make and look up instances",
        "Read logs and files, use recipes and the instance library, or build an instance from jobs and a cluster",
        "load generate library best_known BestKnown Instance Job Cluster NodeGroup TransferProblem",
        (),
    ),
    "speeds": (
        "Describe how fast jobs run",
        "Set stage graphs, GPU types, scaling, sharing and the network, and fit their constants to measurements",
        "Profile Stage Throughput Throughputs read_throughputs Scaling MeasuredSteps Interference Contention IterationTasks "
        "Network zoo_profile map_job at_job_level fit_contention fit_interference fit_scaling",
        ("speeds",),
    ),
    "solve": (
        "Solve",
        "Prove optima, and read, change and solve formulations",
        "solve Solution formulate solve_model solve_program generate_columns PricedColumns",
        (),
    ),
    "bound": (
        "Bound",
        "Compute lower bounds with certificates that anybody can verify",
        "bound Certificate CertificateError NoBoundError",
        (),
    ),
    "simulate": (
        "Simulate",
        "Run a policy on an instance, and check schedules with the referee",
        "simulate Run SharedRun TaskRun Schedule SharedSchedule TaskSchedule Segment check_schedule",
        (),
    ),
    "compare": (
        "Compare",
        "Compare policies with bounds, on an instance or a suite, and run many cells at once",
        "compare evaluate Report score Score advise Advice PromisedStarts promised_starts ratios RatioTable "
        "robustness_curves Robustness sweep",
        (),
    ),
    "policy": (
        "Write a policy",
        "Implement the policy protocol: its decisions, and [its view of the cluster](view.md)",
        "Policy OrderedPolicy View Knowledge Start Stop Wake Moves Order Predictor TaskOrder Countdown",
        (),
    ),
    "plot": ("Plot", "Draw runs, schedules, bounds and curves", "", ("plot",)),
    "guard": (
        "Guard and attack",
        "Check runs against theorems, and search for bad instances",
        "GuaranteeError attack Attack",
        ("guarantees",),
    ),
    "online": ("The online primal-dual method", "Solve programs whose constraints arrive online", "", ("online",)),
    "errors": (
        "Errors",
        "Catch errors; all are subclasses of `OptschedError`",
        "OptschedError InputError RowErrors InfeasibleError KnowledgeError NotInstalledError RejectedSchedule "
        "SimulationError",
        (),
    ),
}


def pages() -> dict[str, str]:
    """Return the text of every page by file name; raise ValueError if a public name has no task, or two."""
    _require_all()
    found, tasks, rows = {}, [], []
    for task, (heading, purpose, names, spaces) in TASKS.items():
        parts = [f"# {heading}\n\n{purpose}.\n"]
        every = names.split()
        for space in spaces:
            module = importlib.import_module(f"optsched.{space}")
            about = "\n".join(with_formulas((inspect.getdoc(module) or "").splitlines()))
            parts.append(f"`osd.{space}`:\n\n{rst(about)}")
            every += [f"{space}.{name}" for name in module.__all__]
        for name in every:
            thing = attrgetter(name)(optsched)
            parts.append(rst(_directive(f"optsched.{name}", thing)))
            about = (inspect.getdoc(thing) or "").partition("\n")[0]
            rows.append((name, f"| {{py:obj}}`osd.{name} <optsched.{name}>` | {plain(about.replace('`', ''))} |"))
        found[f"api/{task}.md"] = "\n".join(parts)
        tasks.append(f"* [{heading}]({task}.md): {purpose[0].lower() + purpose[1:]}")
    found["api/view.md"] = (
        f"# The view of a policy\n\nThe engine passes this object to `decide`.\n\n{rst(f'.. autoclass:: {VIEW}{MEMBERS}')}"
    )
    table = "\n".join(
        ["| name | purpose |\n|---|---|", *(row for _, row in sorted(rows, key=lambda row: row[0].lower()))]
    )
    tree = "\n".join([*TASKS, "view"])
    found["api/index.md"] = (
        "# API by task\n\n`import optsched as osd`\n\n"
        + "\n".join([*tasks, "* [The view of a policy](view.md)"])
        + f"\n\n## All names\n\n{table}\n\n```{{toctree}}\n:hidden:\n\n{tree}\n```\n"
    )
    return found


def _require_all() -> None:
    named = [name for _, _, names, spaces in TASKS.values() for name in (*names.split(), *spaces)]
    wrong = {name for name in named if named.count(name) > 1} | (set(named) ^ set(optsched.__all__))
    if wrong:
        raise ValueError(
            f"docs/_ext/api_pages.py: these public names need exactly one task: {', '.join(sorted(wrong))}"
        )


MEMBERS = "\n   :members:"
INNER = ("JobColumns", "NodeArrays")  # base classes with the arrays of an instance and of a cluster


def _directive(name: str, thing: Any) -> str:
    if not inspect.isclass(thing):
        return f".. {'autofunction' if callable(thing) else 'autodata'}:: {name}"
    options = "\n   :undoc-members:" if issubclass(thing, Enum) else ""
    bases = [base for base in thing.__mro__[1:] if base.__name__ not in (*INNER, "object")]
    if len(bases) < len(thing.__mro__) - 2:  # it inherits documented members from a class without an entry
        options += f"\n   :inherited-members: {','.join(base.__name__ for base in bases)}"
    return f".. {'autoexception' if issubclass(thing, Exception) else 'autoclass'}:: {name}{MEMBERS}{options}"
