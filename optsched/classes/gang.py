"""Classes ``gang`` and ``gang-nonpreemptive``: rigid gangs alone on their GPUs; they may be preempted, or may not."""

from optsched.classes.schedule_class import add_class

add_class(
    name="gang",
    optimum="the best schedule, which may preempt",
    place=0,
    verified=True,
    contains=("gang-nonpreemptive",),
)
add_class(
    name="gang-nonpreemptive",
    optimum="the best schedule without preemption",
    place=1,
    verified=True,
    bounded_as="gang",
    preemptive=False,
)
