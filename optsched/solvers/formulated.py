"""`Formulated`: the record of a model that `formulate` made, with which you can change it and still solve it to a schedule.

A model numbers jobs and slots from 0; people identify jobs by id and times by their clock. This module converts between
both: numbers of jobs and slots, completion times as expressions, names of rows.
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
SHOWN = 6  # largest number of parts of a conflict in a message


@dataclass(eq=False)
class Formulated:
    """A model of an instance and its state when it was made: ``model.formulated`` (for CVXPY also at every variable).

    ``of`` is its formulation or program, ``objective`` what it minimises (a program: its name), ``data`` the data of a
    program, ``horizon`` the latest completion that it allows in seconds after the first arrival (inf: a program).
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
        if not is_cvxpy(model):  # CVXPY's variables cannot change their bounds
            from pyomo.environ import Var

            self._variables = [(each, _range(each)) for each in model.component_data_objects(Var)]
        self._goal = _goal_of(model)
        for holder in (model, *(model.variables() if is_cvxpy(model) else ())):
            holder.formulated = self
        model.job, model.slot, model.end = self.job, self.slot, self.end

    def job(self, name: str) -> int:
        """Return the model's number of a job: ``model.once[model.job("7")]``.

        Parameters
        ----------
        name
            Id of the job.

        Raises
        ------
        InputError
            If there is no such job.
        """
        if name not in self.instance.ids:
            raise InputError("no such job", field="job", value=name, legal=near_matches(name, list(self.instance.ids)))
        return self.instance.ids.index(name)

    def slot(self, seconds: float) -> int:
        """Return the slot that begins at, or before, a time.

        Parameters
        ----------
        seconds
            Time in seconds on the instance's own clock.

        Raises
        ------
        InputError
            If the model has no slots.
        """
        if (grid := getattr(self.model, "grid", None)) is None:
            raise InputError("the model has no slots of time", field="model", value=self.of.name)
        return int(grid.slots(np.asarray(seconds - self.instance.epoch)))

    def end(self, name: str) -> Any:
        """Return the completion time of a job as a linear expression for constraints.

        It is in seconds on the instance's own clock.

        Parameters
        ----------
        name
            Id of the job.

        Raises
        ------
        InputError
            If there is no such job, or the model has no completion times.
        """
        if not isinstance(self.of, Formulation) or self.of.end is None:
            raise InputError("the model has no completion times of jobs", field="model", value=self.of.name)
        return self.of.end(self.model, self.job(name)) + self.instance.epoch

    def changes(self, model: Any) -> list[str]:
        """Return the differences of a model from its original state, a few words each, with the names of families.

        Parameters
        ----------
        model
            The model as it is now.
        """
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
        """Return whether every solution of the changed model is one of the original model, with the same value.

        Parameters
        ----------
        model
            The model as it is now.
        """
        now, goal = {id(row) for row in _rows_of(model)}, _goal_of(model)
        kept = all(id(row) in now and _body(row) is body for row, body in self._rows)
        within = all(_within(_range(each), was) for each, was in self._variables)
        return kept and within and goal[0] is self._goal[0] and goal[1] == self._goal[1]

    def own(self, columns: Iterable[Any]) -> Bools:
        """Return which columns of the compiled program belong to the original model, bool[columns].

        Parameters
        ----------
        columns
            Columns of the compiled program.
        """
        known = {id(each) for each, _ in self._variables}
        return np.array([id(column) in known for column in columns], dtype=bool)

    def added(self, rows: Iterable[Any]) -> list[Any]:
        """Return the rows of the compiled program that the caller has added.

        Parameters
        ----------
        rows
            Rows of the compiled program.
        """
        own = self._own
        return [row for row in rows if id(row[0] if isinstance(row, tuple) else row) not in own]

    @property
    def _own(self) -> set[int]:
        return {id(row) for row, _ in self._rows}  # computed on each call: a copy of the model has copies of the rows

    def name(self, part: Any) -> str:
        """Return the name of a row or column with job ids and seconds: ``once[job 7]``, ``capacity[12 s]``.

        Parameters
        ----------
        part
            Row or column of the compiled program.
        """
        return part_name(part, self.of.sets, self.instance, getattr(self.model, "grid", None), self.instance.epoch)


def formulated(model: Any) -> Formulated:
    """Return the record of a model that `formulate` made.

    Parameters
    ----------
    model
        The model.

    Raises
    ------
    InputError
        If `formulate` did not make the model.
    """
    holders = [model, *(model.variables() if is_cvxpy(model) else ())]
    for found in (getattr(holder, "formulated", None) for holder in holders):
        if isinstance(found, Formulated):
            return found
    raise InputError(
        "not a model of an instance", value=type(model).__name__, legal="what osd.formulate returns, changed"
    )


def is_cvxpy(model: Any) -> bool:
    """Return whether a model is a `cvxpy.Problem` and not a `pyomo.ConcreteModel`.

    Parameters
    ----------
    model
        The model.
    """
    return hasattr(model, "is_dcp")


def part_name(part: Any, sets: Mapping[str, str], instance: Instance, grid: Any, epoch: float) -> str:
    """Return a readable name of a Pyomo row or column, or of a (CVXPY constraint or variable, flat index).

    Parameters
    ----------
    part
        The row or column.
    sets
        What the indices of a family mean, as in `optsched.models.formulation.Formulation`.
    instance
        Jobs and cluster.
    grid
        Grid that converts slots to seconds after ``epoch``; None: the model has no slots.
    epoch
        Time of the first arrival in seconds on the instance's clock.
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
    """Return a sentence with rows and bounds of an infeasible program that cannot all hold.

    Parameters
    ----------
    session
        The infeasible program.
    name
        ``name(part)`` is the name of a row or column.
    """
    program, rows, columns = session.program, tuple[int, ...](), tuple[int, ...]()
    with contextlib.suppress(OptschedError):  # HiGHS may find no conflict; the program is infeasible all the same
        rows, columns = session.iis()
    parts = [name(program.rows[i]) for i in rows] + [f"the bounds of {name(program.columns[j])}" for j in columns]
    # show parts of small families first: a row of the caller is one of few
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
    """Return whether a variable's bounds and integrality are at least as tight as before."""
    lower = was[0] is None or (now[0] is not None and now[0] >= was[0])
    upper = was[1] is None or (now[1] is not None and now[1] <= was[1])
    return lower and upper and (was[2] or not now[2])


def _family(part: Any) -> str:
    if hasattr(part, "parent_component"):
        return str(part.parent_component().local_name)
    return str(getattr(part, "label", None) or part.name())  # CVXPY's name of a constraint is its text
