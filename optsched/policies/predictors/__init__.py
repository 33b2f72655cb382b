"""How long a job will run, said at its arrival: one predictor a file, registered under its name."""

from __future__ import annotations

from collections.abc import Callable

from optsched.parameters import made
from optsched.registry import Registry
from optsched.simulation.policy import Predictor

# name -> maker(**parameters) -> Predictor
PREDICTORS: Registry[Callable[..., Predictor]] = Registry("predictor", package="optsched.policies.predictors")


def predictor(text: str | Predictor) -> Predictor:
    """The predictor that ``NAME[/key=value]...`` names, e.g. ``forest`` or ``noisy/error=2/seed=1``."""
    if not isinstance(text, str):
        return text
    found: Predictor = made(PREDICTORS.get, "predictor", text, opens="/", separates="/")
    return found
