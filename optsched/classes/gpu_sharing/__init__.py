"""Class ``gpu-sharing``: two jobs on a GPU slow each other down (`optsched.problem.interference`).

It is larger than ``gang``, since a job may be alone on its GPUs.
"""

from optsched.classes.schedule_class import add_class
from optsched.problem.instance import Instance


def _has_interference(instance: Instance) -> bool:
    return instance.interference is not None


add_class(
    name="gpu-sharing",
    optimum="the best schedule, in which two jobs may share a GPU",
    place=3,
    verified=True,
    contains=("gang", "gang-nonpreemptive"),
    has=_has_interference,
    suits=_has_interference,
    lacking="interference",
    usual=True,
    alone=False,
    stated="sharing",
    means="sharing",
    policies=lambda _: ("sjf", "sjf-ffs", "sjf-bsbf"),
)
