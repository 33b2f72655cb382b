"""`formulate`: any formulation as a Pyomo or CVXPY model of an instance; `solve_program`: its optimum, prices by name.

`optsched.solve` proves optima of schedules. Here a model is solved as it stands, by HiGHS where it is linear and by CVXPY's
Clarabel where it is convex; of a primal and its dual both are solved, and what lies between them is told.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import Any

from optsched.errors import InputError, OptschedError
from optsched.models import FORMULATIONS
from optsched.models.program import PROGRAMS, Program, data_of
from optsched.problem.instance import Instance
from optsched.problem.instance_source import Source, instance_of
from optsched.problem.objectives import objective_of
from optsched.registry import near_matches
from optsched.solvers.compile_model import compile
from optsched.solvers.method import METHODS
from optsched.solvers.session import Session
from optsched.solvers.size import Size


def is_program(text: str) -> bool:
    """Does ``NAME[:key=value,...]`` name a program that is solved as it stands, and no method for optimal schedules?"""
    name = text.partition(":")[0].strip()
    return name in PROGRAMS and name not in METHODS


def formulate(instance: Source, model: str, objective: str | None = None, *, relax: bool = False) -> Any:
    """The mathematical program of an instance, to read, change and solve: a `pyomo.ConcreteModel` or `cvxpy.Problem`.

    Parameters
    ----------
    instance : jobs and a cluster, or a SOURCE that `optsched.load` reads.
    model : a name of ``optsched list models`` that is a formulation; some take parameters, ``"hadar-primal:rounds=6"``.
    objective : what a formulation of schedules minimises; default: the instance's own, else ``total_flow_time``.
    relax : without the integrality of a formulation of schedules.

    Times count from the first arrival. Raises `InputError` for an unknown name, and for an instance to which the formulation
    does not apply, with the reason. The module of a formulation, `optsched.models`, says what its parts are called.

    >>> import optsched as osd
    >>> model = osd.formulate("rigid-06-1", "rigid-time-indexed", "makespan")
    >>> type(model).__name__
    'ConcreteModel'
    """
    given = instance_of(instance)
    if model.partition(":")[0].strip() in PROGRAMS:
        program, data = data_of(given.relative, model)
        return program.build(data)
    if model not in FORMULATIONS:
        known = sorted({*PROGRAMS.names(), *FORMULATIONS.names()})
        raise InputError(
            "no such formulation", field="model", value=model, legal=near_matches(model, known, kind="model")
        )
    formulation = FORMULATIONS.get(model)
    name = objective_of(given, objective).name
    reason = formulation.applies(given.relative, name)
    if reason is not None:
        raise InputError(f"it does not apply: {reason}", field="model", value=model)
    return formulation.build(given.relative, name, relax=relax)


@dataclass(frozen=True)
class ProgramSolution:
    """The optimum of a program: ``value`` is what ``meaning`` says, ``opposite`` is the same of its dual.

    ``bound``: what the solver proved, on the other side of ``value`` (None: nothing); ``seconds`` of the clock, with
    building; ``duals``: d value / d what there is, in units of ``value`` a device or job.
    """

    model: str
    meaning: str
    status: str
    value: float | None
    bound: float | None
    solver: str
    size: Size
    seconds: float
    duals: dict[str, float] = field(default_factory=dict)
    opposite: ProgramSolution | None = None

    @property
    def gap(self) -> float | None:
        """|value - bound| / |value|; with a dual, of its value: 0 to rounding by strong duality."""
        other = self.opposite.value if self.opposite else self.bound
        if self.value is None or other is None:
            return None
        return abs(self.value - other) / abs(self.value) if self.value else abs(other)

    def to_json(self) -> dict[str, Any]:
        """The document of ``solve --json``, with ``value_is``, ``duals`` and, of a primal or dual, ``dual``."""
        document: dict[str, Any] = {
            "status": self.status,
            "objective": self.model,
            "value_is": self.meaning,
            "value": self.value,
            "bound": self.bound,
            "gap": self.gap,
            "model": self.model,
            "solver": self.solver,
            **asdict(self.size),
            "seconds": self.seconds,
            "duals": self.duals,
        }
        if self.opposite is not None:
            document["dual"] = {"model": self.opposite.model, "value": self.opposite.value}
        return document


def solve_program(instance: Source, model: str, time_limit: float | None = None) -> ProgramSolution:
    """Solve the program that ``NAME[:key=value,...]`` names on an instance, and its dual where it has one.

    ``time_limit``: seconds for each of the two solves; None: until the end. An LP or MIP is ``optimal`` with a bound that
    HiGHS proved; a convex program is so to the tolerances of Clarabel, without a bound, else ``feasible``. ``limit``: time
    was up. Raises `InputError` as `formulate`; `OptschedError` where a solver gives up.

    >>> import optsched as osd
    >>> found = osd.solve_program(osd.generate("hetero-small", seed=1), "hadar-primal:rounds=3")
    >>> found.status, round(found.value, 3), round(found.opposite.value, 3)
    ('optimal', 6.216, 6.216)
    """
    given = instance_of(instance).relative
    program, data = data_of(given, model)
    found = _solved(program, data, given, time_limit)
    if program.dual is None:
        return found
    opposite = PROGRAMS.get(program.dual)
    return ProgramSolution(**{**vars(found), "opposite": _solved(opposite, data, given, time_limit)})


def _solved(program: Program, data: Any, instance: Instance, time_limit: float | None) -> ProgramSolution:
    began = time.perf_counter()
    model = program.build(data)
    try:
        linear = compile(model)
    except InputError:
        if not hasattr(model, "is_dcp"):
            raise
        return _convex(program, model, data, instance, began, time_limit)
    session = Session(linear)
    outcome = session.solve(time_limit=time_limit)
    duals: dict[str, float] = {}
    if outcome.x is not None:
        linear.load(outcome.x, None if linear.integrality.any() else session.duals())
        duals = dict(program.duals(model, data, instance)) if program.duals and outcome.status == "optimal" else {}
    seconds = time.perf_counter() - began
    return ProgramSolution(
        program.name,
        program.value,
        outcome.status,
        outcome.value,
        outcome.bound,
        "HiGHS",
        linear.size,
        seconds,
        duals,
    )


def _convex(
    program: Program, model: Any, data: Any, instance: Instance, began: float, time_limit: float | None
) -> ProgramSolution:
    import cvxpy as cp

    model.solve(solver=cp.CLARABEL, **({} if time_limit is None else {"time_limit": time_limit}))
    # optimal to the solver's tolerances; where it did not reach them, what it has is no more than a solution
    status = {cp.OPTIMAL: "optimal", cp.OPTIMAL_INACCURATE: "feasible", cp.USER_LIMIT: "limit"}.get(model.status)
    if status is None:
        raise OptschedError(f"Clarabel: {program.name} ended {model.status}")
    value = None if status == "limit" else float(model.value)
    duals = dict(program.duals(model, data, instance)) if program.duals and status == "optimal" else {}
    rows = sum(constraint.size for constraint in model.constraints)
    columns = sum(variable.size for variable in model.variables())
    size, seconds = Size(rows, columns), time.perf_counter() - began
    return ProgramSolution(program.name, program.value, status, value, None, "Clarabel", size, seconds, duals)
