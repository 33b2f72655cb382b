"""`Formulated`: what a model that `formulate` made remembers, so that it may be changed and still be solved to a schedule.

A model numbers jobs and slots from 0; people know jobs by id and times by their clock. This is where the two meet: numbers
of jobs and slots, completion times as expressions, names of rows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optsched.errors import InputError, OptschedError
from optsched.models.formulation import Formulation
from optsched.models.program import Program
from optsched.problem.arrays import Bools
from optsched.problem.instance import Instance
from optsched.registry import near_matches
from optsched.solvers.session import Session

OBJECTIVE = "with another objective"
SHOWN = 6  # parts of a conflict that a line names


@dataclass(eq=False)
class Formulated:
    """A model of an instance and how it was when it was made; ``model.formulated`` (of CVXPY: also of every variable).

    ``of`` is its formulation or program, ``objective`` what it minimises (a program: its name), ``data`` what a program was
    built from, ``horizon`` the latest completion that it allows in seconds after the first arrival (inf: a program).
    """

    instance: Instance
    of: Formulation | Program
    model: Any
    objective: str
    relaxed: bool = False
    data: Any = None
    horizon: float = np.inf
    seconds: float = 0.0
    _rows: list[tuple[Any, Any]] = field(init=False)
    _variables: list[tuple[Any, Any]] = field(init=False)
    _goal: tuple[Any, Any] = field(init=False)

    def __post_init__(self) -> None:
        model = self.model
        self._rows = [(row, _body(row)) for row in _rows_of(model)]
        self._variables = []
        if not is_cvxpy(model):  # what CVXPY knows of a variable is said once
            from pyomo.environ import Var

            self._variables = [(each, _range(each)) for each in model.component_data_objects(Var)]
        self._goal = _goal_of(model)
        for holder in (model, *(model.variables() if is_cvxpy(model) else ())):
            holder.formulated = self
        model.job, model.slot, model.end = self.job, self.slot, self.end

    def job(self, name: str) -> int:
        """The number by which the model knows a job: ``model.once[model.job("7")]``."""
        if name not in self.instance.ids:
            raise InputError("no such job", field="job", value=name, legal=near_matches(name, list(self.instance.ids)))
        return self.instance.ids.index(name)

    def slot(self, seconds: float) -> int:
        """The slot that begins at, or before, a time on the instance's own clock."""
        if (grid := getattr(self.model, "grid", None)) is None:
            raise InputError("the model has no slots of time", field="model", value=self.of.name)
        return int(grid.slots(np.asarray(seconds - self.instance.epoch)))

    def end(self, name: str) -> Any:
        """The completion time of a job in seconds on the instance's own clock: a linear expression for constraints."""
        if not isinstance(self.of, Formulation) or self.of.end is None:
            raise InputError("the model has no completion times of jobs", field="model", value=self.of.name)
        return self.of.end(self.model, self.job(name)) + self.instance.epoch

    def changes(self, model: Any) -> list[str]:
        """In which ways a model is not what it was: a few words each, families of rows and variables by name."""
        rows, own = _rows_of(model), self._own
        now = {id(row) for row in rows}
        added = [f"with {_family(row)}" for row in rows if id(row) not in own]
        altered = [f"with {_family(row)} altered" for row, body in self._rows if _body(row) is not body]
        dropped = [f"without {_family(row)}" for row, _ in self._rows if id(row) not in now]
        moved = [f"with bounds of {_family(each)} altered" for each, was in self._variables if _range(each) != was]
        was, goal = self._goal, _goal_of(model)
        goals = [] if goal[0] is was[0] and goal[1] == was[1] else [OBJECTIVE]
        return list(dict.fromkeys([*added, *altered, *dropped, *moved, *goals]))

    def tightened(self, model: Any) -> bool:
        """Is every solution of the changed model one of the model as it was, with the same value?"""
        now, goal = {id(row) for row in _rows_of(model)}, _goal_of(model)
        kept = all(id(row) in now and _body(row) is body for row, body in self._rows)
        within = all(_within(_range(each), was) for each, was in self._variables)
        return kept and within and goal[0] is self._goal[0] and goal[1] == self._goal[1]

    def own(self, columns: Iterable[Any]) -> Bools:
        """bool[columns]: those of the compiled program that the model had when it was made."""
        known = {id(each) for each, _ in self._variables}
        return np.array([id(column) in known for column in columns], dtype=bool)

    def added(self, rows: Iterable[Any]) -> list[Any]:
        """Those of the rows of the compiled program that the caller has added."""
        own = self._own
        return [row for row in rows if id(row[0] if isinstance(row, tuple) else row) not in own]

    @property
    def _own(self) -> set[int]:
        return {id(row) for row, _ in self._rows}  # not kept: the copy of a model has copies of the rows

    def name(self, part: Any) -> str:
        """A row or column of the compiled program with job ids and seconds: ``once[job 7]``, ``capacity[12 s]``."""
        return part_name(part, self.of.sets, self.instance, getattr(self.model, "grid", None), self.instance.epoch)


def formulated(model: Any) -> Formulated:
    """What a model remembers; `InputError` for one that `formulate` did not make."""
    holders = [model, *(model.variables() if is_cvxpy(model) else ())]
    for found in (getattr(holder, "formulated", None) for holder in holders):
        if isinstance(found, Formulated):
            return found
    raise InputError(
        "not a model of an instance", value=type(model).__name__, legal="what osd.formulate returns, changed"
    )


def is_cvxpy(model: Any) -> bool:
    """A `cvxpy.Problem`, not a `pyomo.ConcreteModel`?"""
    return hasattr(model, "is_dcp")


def part_name(part: Any, sets: Mapping[str, str], instance: Instance, grid: Any, epoch: float) -> str:
    """The name of a Pyomo row or column, or of (CVXPY constraint or variable, flat index), for people.

    ``sets`` as in `optsched.models.formulation.Formulation`; ``grid`` tells the seconds of slots after ``epoch``.
    """
    if isinstance(part, tuple):
        held, flat = part
        if held is None:
            return "a row that CVXPY made"
        family, plain = _family(held), _family(held)
        index = np.unravel_index(flat, held.shape, order="F") if held.shape else ()
        plain += f"[{','.join(map(str, index))}]" if index else ""
    else:
        family, plain, key = _family(part), str(part.name), part.index()
        index = key if isinstance(key, tuple) else () if key is None else (key,)
    kinds = sets.get(family, "")
    if not index or len(kinds) != len(index):
        return plain
    words: dict[str, Callable[[Any], str]] = {
        "j": lambda j: f"job {instance.ids[j]}",
        "t": lambda t: f"{epoch + grid.seconds(np.int64(t)):.15g} s",
        "v": lambda v: f"node {v}",
        "k": lambda k: f"position {k}",
        ".": str,
    }
    return f"{family}[{', '.join(words[kind](each) for kind, each in zip(kinds, index, strict=True))}]"


def conflict_in_words(session: Session, name: Callable[[Any], str]) -> str:
    """Rows and bounds of an infeasible program that cannot all hold, by the names that ``name`` gives them."""
    program, rows, columns = session.program, tuple[int, ...](), tuple[int, ...]()
    with contextlib.suppress(OptschedError):  # HiGHS may find none; that the program is infeasible stays
        rows, columns = session.iis()
    parts = [name(program.rows[i]) for i in rows] + [f"the bounds of {name(program.columns[j])}" for j in columns]
    # of families with many members a few are enough; the caller's own row is no such
    family = [part.partition("[")[0] for part in parts]
    parts = [part for _, part in sorted(zip(family, parts, strict=True), key=lambda each: family.count(each[0]))]
    more = [f"and {len(parts) - SHOWN} more"] if len(parts) > SHOWN else []
    return f"these cannot all hold: {'; '.join([*parts[:SHOWN], *more])}" if parts else "no single conflict was found"


# --- the two languages ----------------------------------------------------------------------------------------------------


def _rows_of(model: Any) -> list[Any]:
    if is_cvxpy(model):
        return list(model.constraints)
    from pyomo.environ import Constraint

    return list(model.component_data_objects(Constraint, active=True))


def _goal_of(model: Any) -> tuple[Any, Any]:
    if is_cvxpy(model):
        return model.objective, None
    from pyomo.environ import Objective

    return next(
        ((each.expr, each.sense) for each in model.component_data_objects(Objective, active=True)), (None, None)
    )


def _body(row: Any) -> Any:
    return row.expr if hasattr(row, "parent_component") else row


def _range(variable: Any) -> tuple[Any, Any, bool]:
    lower, upper = (variable.value,) * 2 if variable.fixed else variable.bounds
    return lower, upper, variable.is_continuous()


def _within(now: tuple[Any, Any, bool], was: tuple[Any, Any, bool]) -> bool:
    """Are a variable's bounds, and integrality, no looser than they were?"""
    lower = was[0] is None or (now[0] is not None and now[0] >= was[0])
    upper = was[1] is None or (now[1] is not None and now[1] <= was[1])
    return lower and upper and (was[2] or not now[2])


def _family(part: Any) -> str:
    if hasattr(part, "parent_component"):
        return str(part.parent_component().local_name)
    return str(getattr(part, "label", None) or part.name())  # CVXPY's name of a constraint is its text
