"""Where to put a gang: rules, registered under their names."""

from __future__ import annotations

from collections.abc import Callable

from optsched.registry import Registry
from optsched.simulation.policy import Placement

# name -> maker(**parameters) -> Placement
PLACEMENTS: Registry[Callable[..., Placement]] = Registry(
    "placement", package="optsched.policies.placements", tables=("first_fit", "lwf")
)
