"""Where to put a gang: one rule a file, registered under its name."""

from __future__ import annotations

from collections.abc import Callable

from optsched.registry import Registry
from optsched.simulation.placing import Placement

# name -> maker(**parameters) -> Placement
PLACEMENTS: Registry[Callable[..., Placement]] = Registry("placement", package="optsched.policies.placements")
