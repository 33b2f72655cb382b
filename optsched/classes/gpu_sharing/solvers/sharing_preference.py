"""The order in which methods for jobs that share GPUs take each other's place where numbers fail."""

from optsched.solvers.method import PREFERRED

PREFERRED.register("gpu-sharing", ("gpu-sharing", "sharing-orders", "sharing-branching"))
