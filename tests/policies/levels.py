"""The registered policies by what their jobs are."""

from __future__ import annotations

from optsched.policies import POLICIES
from optsched.policies.simulate import at_task_level, resizes, shares_gpus


def whole_job_policies() -> list[str]:
    """Those that give whole gangs to whole jobs, each its own GPUs."""
    return [name for name, each in POLICIES.items() if not (at_task_level(each) or shares_gpus(each) or resizes(each))]


def sharing_policies() -> list[str]:
    """Those under which two jobs may be on a GPU."""
    return [name for name, each in POLICIES.items() if shares_gpus(each)]
