"""A toy class of schedules, as anybody may add one: no two jobs start within `APART` seconds of each other."""

from optsched.classes import add_class

APART = 10.0  # seconds

add_class(
    name="paced",
    optimum="the best schedule in which jobs start some seconds apart",
    inside=("gang",),
    stated="paced",
    means="paced",
)
