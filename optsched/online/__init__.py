"""The online algorithms: one a file, registered under its name."""

from __future__ import annotations

from optsched.policy import OrderedPolicy, Policy
from optsched.registry import Registry

POLICIES: Registry[type[OrderedPolicy] | type[Policy]] = Registry("policy", package="optsched.online")
