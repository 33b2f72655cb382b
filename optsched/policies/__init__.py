"""The online algorithms: one a file, registered under its name."""

from __future__ import annotations

from optsched.registry import Registry
from optsched.simulation.policy import OrderedPolicy, Policy
from optsched.simulation.task_policy import TaskPolicy

AnyPolicy = Policy | OrderedPolicy | TaskPolicy

POLICIES: Registry[type[AnyPolicy]] = Registry("policy", package="optsched.policies")
