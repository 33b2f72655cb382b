"""`Solution`: the result of `solve`, with its distance from the optimum."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from optsched.bounds.certificate import Certificate, rounded_down
from optsched.problem.documents import short_number
from optsched.problem.html import html_of, number
from optsched.problem.instance import Instance
from optsched.problem.objectives import OBJECTIVES, get_objective
from optsched.problem.schedule import Schedule, schedule_in
from optsched.problem.table import Table
from optsched.simulation.metrics import jobs_table, segments_table
from optsched.solvers.linear_program import Size

if TYPE_CHECKING:  # importing it imports HiGHS
    from optsched.solvers.session import Progress


@dataclass(frozen=True, repr=False)
class Solution:
    """An interval [bound, value] around the optimum, with the schedule that has the value.

    Fields
    ------
    objective : name of the objective; value and bound are in its unit (seconds, times weights).
    status : **optimal**: proved, and the referee has recomputed the value from the schedule. **feasible**: the
    requested model
        proves no more than this interval. **limit**: the time limit, or no exact method fits (see ``note``).
        **infeasible**: no schedule meets the horizon; ``note`` names the rows that conflict. **unbounded**: the
        objective of a changed model has no limit; there is neither value nor bound.
    value_exact, bound_exact : the same as fractions. ``bound_by``: "certificate" (exact, `Certificate.verify`) or
        "solver" (proved by the branch-and-bound of ``solver``).
    certificate : the best bound that can be verified from the instance alone; it may be below ``bound``.
    model, solver, size, nodes : the method that found it; ``size`` is that of the last program solved.
    duals : row name -> dual value, if the model is an LP.
    note : a sentence for people: why there is no proof, or what conflicts.
    clock_part : the part that the clock of the log adds to value and bound
        (`optsched.problem.objectives.Objective.clock_part`); ``gap`` is relative to the rest, so that it does not
        depend on the epoch.
    trace : the interval as it shrank, at most 1,000 reports by time (`optsched.plot.convergence`).
    meaning : for a program (`optsched.formulate`) the meaning of its value; its ``objective`` is its name, and it has no
        schedule.
    changed : the changes to a model before it was solved; status, value and bound are then those of the changed model.
    opposite : the solution of the dual program; ``gap`` is then the gap between the two.
    """

    objective: str
    status: str
    value_exact: Fraction | None
    bound_exact: Fraction | None
    bound_by: str = "solver"
    schedule: Schedule | None = None
    certificate: Certificate | None = None
    model: str = ""
    solver: str = ""
    seconds: float = 0.0
    size: Size = field(default_factory=Size)
    nodes: int = 0
    duals: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    clock_part: Fraction = Fraction(0)
    trace: tuple[Progress, ...] = ()
    meaning: str = ""
    changed: tuple[str, ...] = ()
    opposite: Solution | None = None

    def __repr__(self) -> str:
        on = "" if self.schedule is None else f" on {self.schedule.instance.name!r}"
        how = "" if self.status == "optimal" else f"{self.status}: "
        why = f": {self.note}" if self.status in ("infeasible", "unbounded") else ""
        return f"Solution({how}{self.text}{on}{why})"

    def _repr_html_(self) -> str:
        return html_of("solution", self)

    @property
    def text(self) -> str:
        """Short text on what is known of the optimum."""
        where = f" of the model {', '.join(self.changed)}" if self.changed else ""
        if self.value is None:
            sign = "<=" if self.gain else ">="
            known = self.objective if self.bound is None else f"{self.objective} {sign} {number(self.bound)}"
            return known + where
        if self.status == "optimal":
            return f"optimal {self.objective} {number(self.value)}{where}"
        above = self.gain or (
            self.meaning and self.bound_exact is not None and self.bound_exact > (self.value_exact or 0)
        )
        side = "most" if above else "least"  # a program may maximise
        known = "" if self.bound is None else f", the optimum is at {side} {number(self.bound)}"
        return f"{self.objective} {number(self.value)}{known}{where}"

    def named(self) -> Solution:
        """Return the solution with a schedule that is named after its value instead of the method that found it."""
        if self.schedule is None:
            return self
        schedule = replace(self.schedule, policy=self.text)
        # the relative schedule stays exact: a copy made from times on the clock would have rounded times
        schedule.__dict__["relative"] = replace(self.schedule.relative, policy=self.text)
        return replace(self, schedule=schedule)

    @property
    def jobs(self) -> Table:
        """Table `optsched.simulation.metrics.jobs_table` of the schedule; `InputError` without one."""
        return jobs_table(schedule_in(self))

    @property
    def segments(self) -> Table:
        """Table `optsched.simulation.metrics.segments_table` of the schedule; `InputError` without one."""
        return segments_table(schedule_in(self))

    def on_clock(self, instance: Instance) -> Solution:
        """Return this solution of ``instance.relative`` as one of ``instance``: times, value and bound on its clock.

        Parameters
        ----------
        instance
            Jobs and cluster.
        """
        moved = get_objective(self.objective).clock_part(instance)
        return replace(
            self,
            value_exact=None if self.value_exact is None else self.value_exact + moved,
            bound_exact=None if self.bound_exact is None else self.bound_exact + moved,
            schedule=None if self.schedule is None else self.schedule.on_clock(instance),
            certificate=None if self.certificate is None else self.certificate.on_clock(instance),
            clock_part=moved,
            trace=tuple(event.on_clock(float(moved)) for event in self.trace),
        )

    @property
    def value(self) -> float | None:
        """Value of the schedule; None without one."""
        return None if self.value_exact is None else float(self.value_exact)

    @property
    def bound(self) -> float | None:
        """Largest float that is not above the proven lower bound, or the smallest not below an upper bound; or None."""
        if self.bound_exact is None:
            return None
        return -rounded_down(-self.bound_exact) if self.gain else rounded_down(self.bound_exact)

    @property
    def gain(self) -> bool:
        """True if the objective is maximised, so that the bound is an upper one."""
        return self.objective in OBJECTIVES and get_objective(self.objective).gain

    @property
    def gap(self) -> float | None:
        """Relative gap |value - bound| / |value counted from the first arrival|.

        It is 0 if both are equal, inf for a value of 0, and None if value or bound is missing.
        """
        other = self.bound_exact if self.opposite is None else self.opposite.value_exact
        if self.value_exact is None or other is None:
            return None
        difference = self.value_exact - other
        if self.gain:
            difference = -difference
        if self.meaning:  # a program may maximise, and either of two solvers' optima may be larger
            difference = abs(difference)
        if difference <= 0:
            return 0.0
        value = self.value_exact - self.clock_part
        return float(difference / abs(value)) if value else math.inf

    def to_json(self) -> dict[str, Any]:
        """Return the document of ``optsched solve --json``.

        For a program it also has ``value_is``, ``duals`` and perhaps ``dual``.
        """
        gap = self.gap
        more: dict[str, Any] = {"changed": list(self.changed)} if self.changed else {}
        if self.meaning:
            more |= {"value_is": self.meaning, "duals": dict(self.duals)}
        if self.opposite is not None:
            more["dual"] = {"model": self.opposite.model, "value": self.opposite.value}
        return {
            "status": self.status,
            "objective": self.objective,
            "value": short_number(self.value),
            "bound": short_number(self.bound),
            "gap": gap if gap is None or math.isfinite(gap) else None,
            "model": self.model,
            "solver": self.solver,
            **asdict(self.size),
            "seconds": self.seconds,
            **more,
        }
