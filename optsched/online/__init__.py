"""The online algorithms: one a file, registered under its name."""

from __future__ import annotations

from optsched.elastic import ElasticPolicy
from optsched.forking import ForkingPolicy
from optsched.policy import OrderedPolicy, Policy
from optsched.registry import Registry
from optsched.sharing_policy import SharingPolicy
from optsched.task_policy import TaskPolicy

AnyPolicy = Policy | OrderedPolicy | ForkingPolicy | TaskPolicy | SharingPolicy | ElasticPolicy

POLICIES: Registry[type[AnyPolicy]] = Registry("policy", package="optsched.online")
