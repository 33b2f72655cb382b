"""The online algorithms: one a file, registered under its name."""

from __future__ import annotations

from optsched.forking import ForkingPolicy
from optsched.policy import OrderedPolicy, Policy
from optsched.registry import Registry
from optsched.task_policy import TaskPolicy

POLICIES: Registry[type[OrderedPolicy] | type[Policy] | type[ForkingPolicy] | type[TaskPolicy]] = Registry(
    "policy", package="optsched.online"
)
