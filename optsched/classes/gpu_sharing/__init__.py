"""Class ``gpu-sharing``: two jobs on a GPU slow each other down (`optsched.problem.interference`).

It is larger than ``gang``, since a job may be alone on its GPUs.
"""

from optsched.classes.schedule_class import add_class

add_class(
    name="gpu-sharing",
    optimum="the best schedule, in which two jobs may share a GPU",
    place=3,
    verified=True,
    contains=("gang", "gang-nonpreemptive"),
    has=lambda instance: instance.interference is not None,
    lacking="interference",
    usual=True,
    alone=False,
    stated="sharing",
    means="sharing",
    policies=lambda _: ("sjf", "sjf-ffs", "sjf-bsbf"),
)
