"""The registered policies by what their jobs are."""

from __future__ import annotations

from optsched.policies import POLICIES
from optsched.policies.simulate import policies_of
from optsched.simulation.policy import class_of


def whole_job_policies() -> list[str]:
    """Those that give whole gangs to whole jobs, each its own GPUs."""
    return [name for name, each in POLICIES.items() if class_of(each).keeps_gangs]


def sharing_policies() -> list[str]:
    """Those under which two jobs may be on a GPU."""
    return policies_of("gpu-sharing")
