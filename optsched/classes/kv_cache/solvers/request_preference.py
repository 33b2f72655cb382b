"""The order in which methods for requests take each other's place."""

from optsched.solvers.method import PREFERRED

PREFERRED.register("kv-cache", ("cache-states", "kv-time-indexed"))
