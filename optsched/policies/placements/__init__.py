"""Placements: rules that choose the GPUs of a gang, registered by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from optsched.registry import Registry
from optsched.simulation.placement import Placement

# name -> maker(**parameters) -> Placement
PLACEMENTS: Registry[Callable[..., Placement]] = Registry(
    "placement", package="optsched.policies.placements", tables=("in_order",)
)


@dataclass(frozen=True)
class SetPlacement(Placement):
    """A rule with integer ``settings``, which it reads after the state of its random numbers, u64[1 + settings]."""

    settings: tuple[int, ...] = ()

    def random_state(self) -> Any:
        """Return fresh random numbers, followed by the settings."""
        return np.append(super().random_state(), np.array(self.settings, dtype=np.uint64))
