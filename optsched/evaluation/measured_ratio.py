"""The ratio of a run: its value, the bound with which it is compared, and what the theorems say."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from optsched.check.certain_times import MOST_FORGIVEN
from optsched.guarantees.judge import Judgement, chosen
from optsched.rounding import NOISE


@dataclass(frozen=True)
class BoundShown:
    """The bound on the optimum with which a run is compared.

    Parameters
    ----------
    value
        The bound, in the unit of the objective.
    kind
        The kind of certificate, or ``known-optimum``.
    schedule_class
        The class of schedules whose optimum is bounded.
    exact
        True if the bound is known to be the optimum of its class.
    gain
        True if the objective is maximised; then the bound is an upper one.
    """

    value: float
    kind: str
    schedule_class: str
    exact: bool
    gain: bool = False

    def ratio(self, value: float) -> float | None:
        """Return ``value`` / bound, or bound / ``value`` for a gain; it is at least 1.

        A value that beats the bound by no more than the rounding that the referee forgives has the ratio 1.

        Parameters
        ----------
        value
            The value of the run.

        Returns
        -------
        float or None
            None if the value is nan or the ratio would divide by 0.
        """
        if math.isnan(value):
            return None
        over, under = (self.value, value) if self.gain else (value, self.value)
        if under <= 0:
            return 1.0 if over == 0 and not self.gain else None
        return 1.0 if 1 - float(MOST_FORGIVEN) <= over / under < 1 else over / under

    @property
    def ratio_to(self) -> str:
        """The denominator of a ratio: ``optimum`` or ``bound``."""
        return "optimum" if self.exact else "bound"

    def to_json(self) -> dict[str, Any]:
        """Return the bound as it is written in ``run --json``."""
        return {"value": self.value, "kind": self.kind, "class": self.schedule_class, "exact": self.exact}


@dataclass(frozen=True)
class MeasuredRatio:
    """One policy on one instance.

    Parameters
    ----------
    instance
        Name of the instance.
    objective
        Name of the objective.
    policy
        The policy as it is written.
    value
        The value of the run; nan if a job never finished.
    bound
        The bound with which the value is compared; None if no bound is known.
    judged
        The judgements of the theorems that apply.
    note
        A remark on an optimum that the instance states but that is not proved here.
    knowledge
        The knowledge of the policy.
    """

    instance: str
    objective: str
    policy: str
    value: float
    bound: BoundShown | None
    judged: tuple[Judgement, ...] = ()
    note: str = ""
    knowledge: str = ""

    @property
    def ratio(self) -> float | None:
        """The value divided by the optimum of the class of the run, or by a verified bound; None without a bound."""
        return None if self.bound is None else self.bound.ratio(self.value)

    @property
    def optimal(self) -> bool:
        """True if the value is the bound, up to the rounding of floats."""
        return self.ratio is not None and float(f"{self.ratio:.{NOISE}g}") == 1

    @property
    def guarantee(self) -> Judgement | None:
        """The judgement to show."""
        return chosen(self.judged, self.objective)

    def to_json(self) -> dict[str, Any]:
        """Return the row as it is written in ``ratio --json``."""
        return {
            "instance": self.instance,
            "objective": self.objective,
            "value": self.value if self.value == self.value else None,
            "bound": self.bound.to_json() if self.bound else None,
            "ratio": self.ratio,
            "ratio_to": None if self.ratio is None or self.bound is None else self.bound.ratio_to,
            "guarantee": self.guarantee.to_json() if self.guarantee else None,
        }
