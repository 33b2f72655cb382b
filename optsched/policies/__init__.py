"""The online algorithms, registered under their names: a row of a table of orders, or a file."""

from __future__ import annotations

from optsched.registry import Registry
from optsched.simulation.policy import BasePolicy

TABLES = "queue_orders", "predicted_queue", "alpha_points", "sharing_choice", "task_orders"
POLICIES: Registry[type[BasePolicy]] = Registry("policy", package="optsched.policies", tables=TABLES)
